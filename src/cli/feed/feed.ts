/**
 * Sends the lines of feeds to their topics. How many lines of a file are stored is kept in the same write as the
 * records, so that a run that was cut short goes on where it stopped.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { keySlot } from '../../base/hash.ts'
import { batchLimitOf } from '../../broker/batch-limit.ts'
import type { FeedStore } from '../../broker/feed-marks.ts'
import type { BrokerPort, ProduceRequest } from '../../broker/port.ts'
import { ProducerStamps } from '../../broker/producer-stamps.ts'
import { EngineError, messageOf } from '../../base/errors.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import { PartitionBatches } from '../../broker/wire/partition-batches.ts'
import { FeedLineError, type FeedRecord, parseFeedLine } from './feed-lines.ts'
import type { Feed } from './feed-reader.ts'
import { type Patience, throughOutages } from './outages.ts'
import { grouped, type ProgressLine } from '../progress.ts'
import { FeedEncoder } from './topic-codec.ts'

const flushRecords = 5000
const flushBytes = 768 * 1024
/** With a rate, what is due is sent this often. */
const paceMs = 50

export interface FeederOptions {
  readonly broker: BrokerPort
  readonly topology: () => CompiledTopology | null
  /** Records a second over all feeds; undefined: as fast as it goes. */
  readonly rate: number | undefined
  readonly progress: ProgressLine
  /** Told in a sentence what is worth knowing: where a feed was taken up again. */
  readonly note: (message: string) => void
  /** Told in a sentence what may be a slip, and what somebody has to see to. */
  readonly warn: (message: string) => void
  /** Whether the run is to end by itself: then nothing is waited for that does not end by itself. */
  readonly untilIdle?: boolean
  readonly signal: AbortSignal
  /** Resolves when the serdes of the topology may be used. */
  readonly ready?: Promise<void>
}

export class Feeder {
  readonly #options: FeederOptions
  #startedAt = 0
  #paced = 0

  constructor(options: FeederOptions) {
    this.#options = options
  }

  /** Sends all feeds, one after the other; resolves once the last record is stored, or when the signal fires. */
  async run(feeds: readonly Feed[]): Promise<void> {
    this.#startedAt = performance.now()
    const { broker, warn } = this.#options
    // Where no marks are kept, each is sent as often as it is given.
    if (hasMarks(broker)) for (const sentence of repeated(feeds)) warn(sentence)
    for (const feed of feeds) {
      if (this.#options.signal.aborted) return
      await this.#feed(feed)
    }
    this.#options.progress.clear()
  }

  async #feed(feed: Feed): Promise<void> {
    const { broker, topology, signal, note, warn, untilIdle, ready } = this.#options
    await ready
    if (signal.aborted) return
    const patience = { signal, note, warn, endsOnFullDisk: untilIdle === true && hasMarks(broker) }
    const target = await throughOutages(patience, async () => ({
      partitions: await partitionsOf(broker, feed.topic),
      limit: await batchLimitOf(broker, feed.topic),
    }))
    if (target === undefined) return
    const writer = new FeedWriter(broker, feed, target, topology(), patience)
    const stored = await throughOutages(patience, () => writer.storedLines())
    if (stored === undefined) return
    if (stored > 0) note(`Feed ${feed.source}: ${grouped(stored)} lines are stored already, going on behind them.`)
    let line = 0
    try {
      for await (const lines of feed.open()) {
        for (const text of lines) {
          line++
          if (line <= stored || isBlank(text)) continue
          await this.#take(writer, text, feed, line)
          if (writer.isFull || this.#isDue()) await this.#pace(writer, line)
          if (signal.aborted) return
        }
        // More of a file comes at once, more of a pipe perhaps never.
        if (feed.mark === undefined) await writer.flush(line)
        this.#show(feed, line, writer)
      }
      if (line < stored) warn(shorter(feed, line, stored))
    } finally {
      // Also where the feed cannot be read further. Behind a malformed line nothing is left to be sent.
      if (!signal.aborted) {
        await writer.flush(line)
        await writer.settled()
      }
    }
  }

  /** What stands before a malformed line is stored; nothing from it on is. */
  async #take(writer: FeedWriter, text: string, feed: Feed, line: number): Promise<void> {
    try {
      const record = parseFeedLine(text, feed.source, line)
      writer.check(record, line)
      if (!writer.add(record, line)) {
        await writer.flush(line - 1)
        writer.add(record, line)
      }
    } catch (error) {
      await writer.flush(line - 1)
      await writer.settled()
      throw error
    }
  }

  #isDue(): boolean {
    const { rate } = this.#options
    if (rate === undefined) return false
    this.#paced++
    return this.#paced % Math.max(1, Math.round((rate * paceMs) / 1000)) === 0
  }

  async #pace(writer: FeedWriter, line: number): Promise<void> {
    const { rate, signal } = this.#options
    await writer.flush(line)
    if (rate === undefined) return
    const dueAt = this.#startedAt + (this.#paced / rate) * 1000
    const waitMs = dueAt - performance.now()
    // An abort during the wait is seen by the caller, at its next look at the signal.
    if (waitMs > 1) await sleep(waitMs, undefined, { signal }).catch(() => undefined)
  }

  #show(feed: Feed, line: number, writer: FeedWriter): void {
    const { progress } = this.#options
    if (!progress.enabled) return
    const seconds = (performance.now() - this.#startedAt) / 1000
    const speed = seconds > 0.5 ? `, ${grouped(writer.sent / seconds)} records/s` : ''
    progress.show(`feeding ${feed.topic}: ${grouped(line)} lines${speed}`)
  }
}

/** Marks go by path: of a file that was put into the place of another one, lines may be missing. */
function shorter({ source, topic }: Feed, lines: number, stored: number): string {
  const has = `Feed ${source} has ${grouped(lines)} lines, and ${grouped(stored)} of it are stored in '${topic}' already`
  return `${has}: nothing was sent. If it is another file in the place of the first, feed it under another name.`
}

/** A sentence on each file that is given more than once for a topic: the mark of the first turn stops the others. */
function repeated(feeds: readonly Feed[]): string[] {
  const alike = Map.groupBy(feeds, ({ topic, mark }) => (mark === undefined ? undefined : `${topic}=${mark}`))
  alike.delete(undefined)
  return [...alike.values()].flatMap(([first, ...more]) => {
    if (first === undefined || more.length === 0) return []
    const { topic, source } = first
    const given = `--feed ${topic}=${source} is given ${more.length + 1} times, and its lines are sent once`
    return [`${given}: what is stored is counted by file. To send them again, feed a copy under another name.`]
  })
}

/** The partitions of the topic; a topic that does not exist is made with the broker's own number of them. */
async function partitionsOf(broker: BrokerPort, topic: string): Promise<number> {
  const [existing] = await broker.topics([topic])
  if (existing) return existing.partitions
  await broker.createTopics([{ topic, partitions: -1 }])
  for (let attempt = 0; attempt < 50; attempt++) {
    const [made] = await broker.topics([topic])
    if (made) return made.partitions
    await sleep(100)
  }
  throw new EngineError('TOPIC_MISSING', `The topic '${topic}' of --feed does not exist and could not be created.`)
}

/** Collects records by partition and stores them in the order of the feed, one write at a time. */
class FeedWriter {
  readonly #broker: BrokerPort
  /** Undefined where the broker cannot keep marks: such a feed begins anew each time. */
  readonly #store: FeedStore | undefined
  readonly #feed: Feed
  readonly #partitions: number
  readonly #limit: number | undefined
  readonly #encoder: FeedEncoder
  readonly #patience: Patience
  readonly #batches: PartitionBatches
  readonly #stamps: ProducerStamps
  #writing: Promise<unknown> = Promise.resolve()
  sent = 0

  constructor(
    broker: BrokerPort,
    feed: Feed,
    { partitions, limit }: { readonly partitions: number; readonly limit: number | undefined },
    topology: CompiledTopology | null,
    patience: Patience,
  ) {
    this.#patience = patience
    this.#broker = broker
    this.#stamps = new ProducerStamps(broker)
    this.#store = hasMarks(broker) ? broker : undefined
    this.#feed = feed
    this.#partitions = partitions
    this.#limit = limit
    this.#encoder = new FeedEncoder(topology, feed.topic)
    this.#batches = new PartitionBatches(partitions, { most: flushBytes, limit })
  }

  async storedLines(): Promise<number> {
    const { mark, topic } = this.#feed
    return mark === undefined || !this.#store ? 0 : await this.#store.feedMark(topic, mark)
  }

  get isFull(): boolean {
    return this.#batches.records >= flushRecords || this.#batches.bytes >= flushBytes
  }

  check({ partition }: FeedRecord, line: number): void {
    if (partition === undefined || partition < this.#partitions) return
    const has = this.#partitions === 1 ? 'partition 0 alone' : `partitions 0 to ${this.#partitions - 1}`
    const { source, topic } = this.#feed
    throw new FeedLineError(source, line, `names partition ${partition}, but '${topic}' has ${has}`)
  }

  /** False: what was collected has to be sent first. */
  add(record: FeedRecord, line: number): boolean {
    const { key, value } = this.#encoded(record, line)
    // Keyless records go round by line, not by a counter: a feed that is taken up again puts them where they belong.
    const chosen = record.partition ?? (key === null ? line : keySlot(key)) % this.#partitions
    const added = this.#batches.add(chosen, record.timestamp ?? Date.now(), key, value, record.headers)
    if (typeof added !== 'number') return added === 'added'
    const { source, topic } = this.#feed
    throw new FeedLineError(
      source,
      line,
      `is a record of ${added} bytes, and '${topic}' takes at most ${this.#limit} (max.message.bytes)`,
    )
  }

  #encoded(record: FeedRecord, line: number): { key: Uint8Array | null; value: Uint8Array | null } {
    try {
      return { key: this.#encoder.key(record), value: this.#encoder.value(record) }
    } catch (error) {
      throw new FeedLineError(
        this.#feed.source,
        line,
        `does not fit the serde of '${this.#feed.topic}': ${messageOf(error).replace(/\.$/, '')}`,
      )
    }
  }

  /** Sends what was collected; `lines` is how many lines of the feed are stored with it. */
  async flush(lines: number): Promise<void> {
    const count = this.#batches.records
    if (count === 0) return
    const { topic } = this.#feed
    const batches = this.#batches.take().map(({ partition, records }) => ({ topic, partition, records }))
    // The write before must be stored first: order within a partition, and marks that only grow.
    await this.#writing
    this.#writing = this.#write(batches, lines).then(() => {
      this.sent += count
    })
    // Awaited by the next flush or by `settled`; a failure in between is not unhandled.
    this.#writing.catch(() => undefined)
  }

  async settled(): Promise<void> {
    await this.#writing
  }

  async #write(batches: ProduceRequest['batches'], lines: number): Promise<void> {
    const { mark, topic } = this.#feed
    const store = this.#store
    let isRepeated = false
    let isStamped = false
    await throughOutages(this.#patience, async () => {
      if (mark === undefined || !store) {
        // Stamped once: the broker knows what is sent again, and stores it once.
        if (!isStamped) await this.#stamps.stamp(batches)
        isStamped = true
        await this.#broker.produce({ transactionalId: null, batches })
        return
      }
      // Of a write that nobody answered the mark tells whether it took effect.
      if (isRepeated && (await store.feedMark(topic, mark)) >= lines) return
      isRepeated = true
      await store.produceFed(batches, { topic, file: mark, lines })
    })
  }
}

function hasMarks(broker: BrokerPort): broker is BrokerPort & FeedStore {
  return 'produceFed' in broker && 'feedMark' in broker
}

function isBlank(text: string): boolean {
  return text === '' || text === '\r' || text.trim() === ''
}
