/**
 * Puts dead letters back. What a letter was made of is written again to the topic and partition that it came from, and
 * in the same transaction a note that it was: a key `partition:offset@topic` of the letter, in a compacted topic of its own.
 * Whoever begins takes the one transactional id of the topic first, which several applications may share. That ends what a predecessor had open, and only then the notes
 * are read, so that each is there or will never be. No letter is put back twice, whatever breaks in between.
 */
import { partitionKey } from '../../base/ids.ts'
import type { BrokerPort } from '../../broker/port.ts'
import { RecordBatchBuilder } from '../../broker/wire/record-batch.ts'
import { Producer, type ToProduce } from '../../engine/commit/producer.ts'
import type { DeadLetterFilter, RedriveHow, Redriven } from '../../http/data-seam.ts'
import { fits, letterId, notesOf } from './letter.ts'
import { recordsAt, scan, type ScannedRecord, type Span, spansOf } from './topic-scan.ts'

const transactionTimeoutMs = 60_000

export interface RedriveOptions {
  readonly broker: BrokerPort
  readonly deadLetterTopic: string
  /** Whether the application reads this topic: nothing is written to any other. */
  readonly isSource: (topic: string) => boolean
  readonly now: () => number
  /** Called before anything is written; where it throws, nothing is. */
  readonly writing?: () => void
}

/** The record that a letter is of. */
interface Source {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** Its topic as it was then; undefined in letters of before that was noted. */
  readonly topicId: string | undefined
}

interface Chosen {
  readonly letter: ScannedRecord
  readonly source: Source
}

const placeOf = ({ topic, partition, offset }: Omit<Source, 'topicId'>): string =>
  `${partitionKey(topic, partition)}:${offset}`

const recordId = (source: Source): string =>
  source.topicId === undefined ? placeOf(source) : `${placeOf(source)}@${source.topicId}`

/** Incarnations of these topics, as they are now. */
async function topicIdsOf(broker: BrokerPort, sources: readonly Chosen[]): Promise<Map<string, string>> {
  const names = new Set(sources.map(({ source }) => source.topic))
  if (names.size === 0) return new Map()
  return new Map((await broker.topics([...names])).map(({ topic, topicId }) => [topic, topicId]))
}

export function notesTopicOf(deadLetterTopic: string): string {
  return `${deadLetterTopic}-redriven`
}

/** What was put back: letters by `keyOf`, and the records that they are of. */
export class PutBack {
  readonly #topicId: string
  readonly #letters = new Set<string>()
  readonly #records = new Set<string>()

  /** `topicId`: of the topic of dead letters, as it is now. */
  constructor(topicId: string) {
    this.#topicId = topicId
  }

  /** The topic of dead letters, too, may be deleted and made anew. */
  keyOf(letter: ScannedRecord): string {
    return `${letterId(letter)}@${this.#topicId}`
  }

  add(letter: string, record: string): void {
    this.#letters.add(letter)
    this.#records.add(record)
  }

  /** A record that failed at several operators has as many letters; to put back one of them puts the record back. */
  has(letter: ScannedRecord, source: Source | null): boolean {
    return (
      this.#letters.has(this.keyOf(letter)) ||
      // Notes of earlier builds.
      this.#letters.has(letterId(letter)) ||
      (source !== null && this.#records.has(recordId(source)))
    )
  }
}

export async function putBack(broker: BrokerPort, deadLetterTopic: string): Promise<PutBack> {
  const topic = notesTopicOf(deadLetterTopic)
  const [letters] = await broker.topics([deadLetterTopic])
  const done = new PutBack(letters?.topicId ?? '')
  await scan(broker, topic, (await spansOf(broker, topic)) ?? [], ({ key, value }) => {
    if (key !== null) done.add(Buffer.from(key).toString(), Buffer.from(value ?? '').toString())
    return true
  })
  return done
}

export async function redrive(
  options: RedriveOptions,
  filter: DeadLetterFilter,
  { dryRun, limit, ends }: RedriveHow,
): Promise<Redriven> {
  const { broker, deadLetterTopic } = options
  const all = await spansOf(broker, deadLetterTopic)
  if (all === undefined) return { dryRun, matched: 0, redriven: 0, already: 0, gone: 0, more: false, ends: ends ?? '' }
  const spans = boundedBy(all, ends)
  const producer = new Producer(broker, `${deadLetterTopic}-redrive`, transactionTimeoutMs)
  if (!dryRun) {
    const topic = notesTopicOf(deadLetterTopic)
    await broker.createTopics([{ topic, partitions: 1, config: { 'cleanup.policy': 'compact' } }])
    await producer.init()
  }
  const scope = { spans, done: await putBack(broker, deadLetterTopic), gone: new Gone(broker), limit }
  const { found, ...counts } = await chooseThere(options, filter, scope)
  if (!dryRun && found.length > 0) {
    options.writing?.()
    await write(producer, options, found, scope.done)
  }
  // Of hundreds of partitions few have letters, and the answer comes back within an address.
  const written = spans
    .filter(({ from, to }) => to > from)
    .map(({ partition, to }) => `${partition}:${to}`)
    .join(',')
  return { dryRun, ...counts, redriven: found.length, ends: written }
}

/** What comes back may fail again: without a bound one would run after one's own letters. */
function boundedBy(spans: readonly Span[], ends: string | undefined): Span[] {
  if (ends === undefined) return [...spans]
  const endOf = new Map(ends.split(',').map((each) => each.split(':').map(Number) as [number, number]))
  return spans.map((span) => ({ ...span, to: Math.min(span.to, endOf.get(span.partition) ?? span.from) }))
}

/**
 * Letters whose record is known to be gone: what their topics have removed since, or no longer have at their place, and all
 * of topics that were deleted, or deleted and made anew.
 */
class Gone {
  readonly #broker: BrokerPort
  readonly #letters = new Set<string>()
  /** Where the partitions of their topics begin. */
  readonly #starts = new Map<string, number>()
  readonly #topicIds = new Map<string, string>()

  constructor(broker: BrokerPort) {
    this.#broker = broker
  }

  get isEmpty(): boolean {
    return this.#letters.size === 0
  }

  has(letter: ScannedRecord, { topic, partition, offset, topicId }: Source): boolean {
    if (topicId !== undefined && topicId !== (this.#topicIds.get(topic) ?? topicId)) return true
    return offset < (this.#starts.get(partitionKey(topic, partition)) ?? 0) || this.#letters.has(letterId(letter))
  }

  async add(missing: readonly Chosen[]): Promise<void> {
    for (const { letter } of missing) this.#letters.add(letterId(letter))
    for (const [topic, topicId] of await topicIdsOf(this.#broker, missing)) this.#topicIds.set(topic, topicId)
    for (const topic of new Set(missing.map(({ source }) => source.topic))) {
      for (const { partition, from } of (await spansOf(this.#broker, topic)) ?? [])
        this.#starts.set(partitionKey(topic, partition), from)
    }
  }
}

interface Scope {
  readonly spans: readonly Span[]
  readonly done: PutBack
  readonly gone: Gone
  readonly limit: number
}

/** Chooses again where records are gone: they are not to take the places of others, call after call. */
async function chooseThere(
  options: RedriveOptions,
  filter: DeadLetterFilter,
  scope: Scope,
): Promise<{ found: Original[]; matched: number; already: number; gone: number; more: boolean }> {
  for (;;) {
    const { chosen, ...counts } = await choose(options, filter, scope)
    const found = await originals(options.broker, chosen)
    const there = new Set(found.map(({ letter }) => letter))
    const missing = chosen.filter(({ letter }) => !there.has(letter))
    const isEnough = missing.length === 0 || (found.length > 0 && !scope.gone.isEmpty)
    if (isEnough || !counts.more) return { found, ...counts, gone: counts.gone + missing.length }
    await scope.gone.add(missing)
  }
}

async function choose(
  { broker, deadLetterTopic, isSource }: RedriveOptions,
  filter: DeadLetterFilter,
  { spans, done, gone, limit }: Scope,
): Promise<{ chosen: Chosen[]; matched: number; already: number; gone: number; more: boolean }> {
  const chosen: Chosen[] = []
  const now = new PutBack('')
  const counts = { matched: 0, already: 0, gone: 0, more: false }
  await scan(broker, deadLetterTopic, spans, (letter) => {
    const notes = notesOf(letter)
    if (!fits(letter, notes, filter)) return true
    const source = notes.source && { ...notes.source, topicId: notes.topicId }
    const isDone = done.has(letter, source) || now.has(letter, source)
    const isGone = source === null || !isSource(source.topic) || gone.has(letter, source)
    if (!isDone && !isGone && chosen.length === limit) {
      counts.more = true
      return false
    }
    counts.matched++
    if (isDone) counts.already++
    else if (isGone) counts.gone++
    else {
      chosen.push({ letter, source })
      now.add(letterId(letter), recordId(source))
    }
    return true
  })
  return { chosen, ...counts }
}

type Original = Chosen & { readonly record: ScannedRecord }

/** One way through each partition: letters of a bad hour lie side by side in their topic. */
async function originals(broker: BrokerPort, all: readonly Chosen[]): Promise<Original[]> {
  const partitions = new Map<string, Source[]>()
  const topicIds = await topicIdsOf(broker, all)
  const chosen = all.filter(
    ({ source: { topic, topicId } }) => topicId === undefined || topicId === topicIds.get(topic),
  )
  for (const { source } of chosen) {
    const id = partitionKey(source.topic, source.partition)
    const of = partitions.get(id) ?? []
    if (of.push(source) === 1) partitions.set(id, of)
  }
  const records = new Map<string, ScannedRecord>()
  for (const sources of partitions.values()) {
    const { topic, partition } = sources[0] as Source
    const offsets = sources.map(({ offset }) => offset).sort((a, b) => a - b)
    for (const [offset, record] of await recordsAt(broker, topic, partition, offsets))
      records.set(placeOf({ topic, partition, offset }), record)
  }
  return chosen.flatMap((each) => {
    const record = records.get(placeOf(each.source))
    return record === undefined ? [] : [{ ...each, record }]
  })
}

async function write(
  producer: Producer,
  options: RedriveOptions,
  found: readonly Original[],
  done: PutBack,
): Promise<void> {
  const notes = new RecordBatchBuilder()
  const builders = new Map<string, { topic: string; partition: number; builder: RecordBatchBuilder }>()
  for (const { letter, source, record } of found) {
    const { topic, partition } = source
    const id = partitionKey(topic, partition)
    const to = builders.get(id) ?? { topic, partition, builder: new RecordBatchBuilder() }
    builders.set(id, to)
    to.builder.append(record.timestamp, record.key, record.value, record.headers)
    notes.append(options.now(), Buffer.from(done.keyOf(letter)), Buffer.from(recordId(source)), [])
  }
  const batchOf = (topic: string, partition: number, builder: RecordBatchBuilder): ToProduce => ({
    topic,
    partition,
    count: builder.count,
    records: builder.finish(),
  })
  const batches = [...builders.values()].map(({ topic, partition, builder }) => batchOf(topic, partition, builder))
  producer.send([...batches, batchOf(notesTopicOf(options.deadLetterTopic), 0, notes)], options.now())
  try {
    await producer.flush()
  } catch (error) {
    await producer.end(false)
    throw error
  }
  await producer.end(true)
}
