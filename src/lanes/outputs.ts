/**
 * What a lane writes to topics: encoded at once as record batches by topic and partition, one set an epoch, so that
 * outputs of the next epoch never slip into the transaction of this one.
 */
import { assert } from '../base/assert.ts'
import type { ByteRange } from '../base/byte-range.ts'
import { type Clock, systemClock } from '../base/clock.ts'
import { keySlot } from '../base/hash.ts'
import type { CommitEpoch } from '../base/ids.ts'
import { type Sizes, usualSizes } from '../base/sizes.ts'
import type { Headers } from '../broker/wire/headers.ts'
import { type BatchPack, BatchPacker } from '../broker/wire/batch-pack.ts'
import { RecordBatchBuilder } from '../broker/wire/record-batch.ts'

/** The largest batch that a topic takes unless it says otherwise. */
export const usualMaxBatchBytes = 1_048_588
/**
 * Outputs that fall into many partitions leave their lane once a batch takes as much as this on average: what a broker
 * does for a batch hardly depends on its size.
 */
const usualBatchBytes = 16 * 1024
const mostBytes = 4 * 1024 * 1024

interface Waiting {
  readonly topic: string
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly timestamp: number
  readonly headers: Headers
  readonly slot: number
  refuse: ((refusal: Refusal) => void) | undefined
}

/** Why a record was not taken. */
export interface Refusal {
  readonly topic: string
  /** No batch of its topic may be as large as it is alone; or its topic takes none without a key, none that far ahead of the clock, or none that old. */
  readonly why: 'size' | 'key' | 'time' | 'old'
  /** What it takes, with the head of a batch, or its event time. */
  readonly has: number
  /** What is allowed of that. */
  readonly most: number
  /** See `OutputTopic.isUnread`. */
  readonly isUnread: boolean
}

export interface OutputTopic {
  readonly topic: string
  readonly partitions: number
  /** The largest batch that it takes. */
  readonly maxBatchBytes: number
  /** Whether its broker refuses records without a key, as Kafka does where it compacts. */
  readonly needsKey: boolean
  /** How far ahead of the clock the event time of a record may be, milliseconds. Default: as far as it likes. */
  readonly mostAheadMs?: number
  /** How old the event time of a record may be, milliseconds. Default: as old as it likes. */
  readonly mostBehindMs?: number
  /** Its settings may not be read: the limits are those that were found out. Default: it is known what it takes. */
  readonly isUnread?: boolean
}

/** The batch of a partition as it grows. */
class PartitionOutput {
  readonly topic: string
  readonly partition: number
  readonly builder = new RecordBatchBuilder()

  constructor(topic: string, partition: number) {
    this.topic = topic
    this.partition = partition
  }
}

interface TopicOutput {
  readonly topic: string
  /** How many the topic has; the array below has those that were written to. */
  count: number
  maxBatchBytes: number
  needsKey: boolean
  mostAheadMs: number
  /** Event times up to this one are certain to be taken: looked up when one is beyond. */
  latest: number
  mostBehindMs: number
  /** Event times before this one would be refused. It moves on with the clock, and is looked up for every batch that begins. */
  earliest: number
  isUnread: boolean
  readonly partitions: Array<PartitionOutput | undefined>
}

/** How much older a record may become before its broker looks at it: it is refused here, by itself, and not with its whole batch there. */
function movesOnBy(mostBehindMs: number): number {
  return Math.min(10_000, mostBehindMs / 100)
}

function firstOf(out: TopicOutput, partition: number): PartitionOutput {
  const first = new PartitionOutput(out.topic, partition)
  out.partitions[partition] = first
  return first
}

class EpochOutput {
  readonly topics = new Map<string, TopicOutput>()
  /** Written to last: most sub-topologies write to one topic. */
  last: TopicOutput | undefined
  /** Partitions whose batch has records. */
  begun: PartitionOutput[] = []
  readonly finished = new BatchPacker()
  waiting: Waiting[] = []
  bytes = 0
}

/** True: in a batch. `later`: when its topic is known. False: its topic would refuse it, `refusal` says why. */
export type Taken = boolean | 'later'

export class Outputs {
  readonly #topics = new Map<string, OutputTopic>()
  readonly #epochs: [EpochOutput, EpochOutput] = [new EpochOutput(), new EpochOutput()]
  readonly #resolve: (topic: string) => void
  readonly #batchBytes: number
  readonly #leaveBytes: number
  readonly #clock: Pick<Clock, 'now'>
  readonly #asked = new Set<string>()
  #roundRobin = 0
  /** Why `add` did not take the last record that it did not take. */
  refusal: Refusal = { topic: '', why: 'size', has: 0, most: 0, isUnread: false }

  /** `resolve` asks for a topic that nobody named before; `setTopic` answers. */
  constructor(
    resolve: (topic: string) => void,
    { batchBytes, outputBytes }: Sizes = usualSizes,
    clock: Pick<Clock, 'now'> = systemClock,
  ) {
    this.#resolve = resolve
    this.#clock = clock
    this.#batchBytes = batchBytes
    this.#leaveBytes = outputBytes
  }

  setTopic(known: OutputTopic): void {
    const { topic } = known
    assert(known.partitions > 0, `the topic ${topic} has no partitions`)
    this.#topics.set(topic, known)
    for (const output of this.#epochs) {
      const before = output.topics.get(topic)
      if (before !== undefined) {
        before.count = known.partitions
        before.maxBatchBytes = known.maxBatchBytes
        before.needsKey = known.needsKey
        before.mostAheadMs = known.mostAheadMs ?? Number.POSITIVE_INFINITY
        before.latest = Number.NEGATIVE_INFINITY
        before.mostBehindMs = known.mostBehindMs ?? Number.POSITIVE_INFINITY
        before.isUnread = known.isUnread === true
      }
      const ready = output.waiting.filter((w) => w.topic === topic)
      if (ready.length === 0) continue
      output.waiting = output.waiting.filter((w) => w.topic !== topic)
      const out = this.#find(output, topic) as TopicOutput
      for (const { slot, key, value, timestamp, headers, refuse } of ready) {
        const taken = this.#write(output, out, slot, key, 0, key?.length ?? 0, value, timestamp, headers)
        if (!taken) refuse?.(this.refusal)
      }
    }
  }

  /** Whoever gave the last record that has to wait for its topic hears if it is not taken then. */
  whenRefused(epoch: CommitEpoch, refuse: (refusal: Refusal) => void): void {
    const last = (this.#epochs[epoch & 1] as EpochOutput).waiting.at(-1)
    if (last !== undefined) last.refuse = refuse
  }

  /**
   * Without a key and a partition key the records go round the partitions. `to`, a partition key or the partition itself, wins
   * over the key. The value's bytes are copied. The record may have to wait for its topic; it is not taken where that would
   * refuse it by itself.
   */
  add(
    epoch: CommitEpoch,
    topic: string,
    key: Uint8Array | null,
    value: Uint8Array | null,
    timestamp: number,
    headers: Headers,
    to: Uint8Array | number | undefined,
  ): Taken {
    return this.#add(epoch, topic, key, 0, key === null ? 0 : key.length, value, timestamp, headers, to)
  }

  /** As `add`, of a record that goes on under the key with which it came. */
  addKeyed(
    epoch: CommitEpoch,
    topic: string,
    key: ByteRange | null,
    value: Uint8Array | null,
    timestamp: number,
    headers: Headers,
    partitionKey: Uint8Array | undefined,
  ): Taken {
    if (key === null) return this.#add(epoch, topic, null, 0, 0, value, timestamp, headers, partitionKey)
    return this.#add(epoch, topic, key.buffer, key.start, key.end, value, timestamp, headers, partitionKey)
  }

  #add(
    epoch: CommitEpoch,
    topic: string,
    key: Uint8Array | null,
    keyStart: number,
    keyEnd: number,
    value: Uint8Array | null,
    timestamp: number,
    headers: Headers,
    to: Uint8Array | number | undefined,
  ): Taken {
    const output = this.#epochs[epoch & 1] as EpochOutput
    let slot: number
    if (to !== undefined) slot = typeof to === 'number' ? to : keySlot(to)
    else slot = key === null ? this.#roundRobin++ & 0x7fffffff : keySlot(key, keyStart, keyEnd)
    const out = output.last?.topic === topic ? output.last : this.#find(output, topic)
    if (out === undefined) {
      // The bytes may be those of a buffer that is used again.
      const own = key === null ? null : key.slice(keyStart, keyEnd)
      const record = { topic, key: own, value: value && new Uint8Array(value), timestamp, headers, slot }
      return this.#keep(output, { ...record, refuse: undefined })
    }
    return this.#write(output, out, slot, key, keyStart, keyEnd, value, timestamp, headers)
  }

  /** Until its topic is known. */
  #keep(output: EpochOutput, record: Waiting): 'later' {
    const { topic, value } = record
    output.waiting.push(record)
    output.bytes += (value?.length ?? 0) + 64
    if (!this.#asked.has(topic)) {
      this.#asked.add(topic)
      this.#resolve(topic)
    }
    return 'later'
  }

  /** True while records of the epoch wait for their topic's partition count. */
  unresolved(epoch: CommitEpoch): boolean {
    return (this.#epochs[epoch & 1] as EpochOutput).waiting.length > 0
  }

  bytes(epoch: CommitEpoch): number {
    return (this.#epochs[epoch & 1] as EpochOutput).bytes
  }

  /** Whether a commit has outputs to take. */
  get hasAny(): boolean {
    return this.#epochs.some(({ bytes, waiting }) => bytes > 0 || waiting.length > 0)
  }

  /** Whether the epoch's outputs are worth a request to the broker before it ends. */
  isFull(epoch: CommitEpoch): boolean {
    const { bytes, begun } = this.#epochs[epoch & 1] as EpochOutput
    const [leaveBytes, perBatch] = [this.#leaveBytes, Math.min(usualBatchBytes, this.#leaveBytes)]
    return bytes >= leaveBytes && bytes >= Math.min(mostBytes, begun.length * perBatch)
  }

  /** All batches of the epoch so far. */
  take(epoch: CommitEpoch): BatchPack[] {
    const output = this.#epochs[epoch & 1] as EpochOutput
    const { begun, finished } = output
    if (begun.length > 0) finished.expect(begun.reduce((bytes, { builder }) => bytes + builder.bytes, 0))
    for (const { topic, partition, builder } of begun) finished.add(topic, partition, builder)
    assert(output.bytes >= 0, `outputs of epoch ${epoch} take ${output.bytes} bytes`)
    output.begun = []
    output.bytes = 0
    return finished.take()
  }

  /** What topics take is told anew, or asked: the run may have ended because one of them refused a record. */
  discard(): void {
    this.#topics.clear()
    this.#epochs[0] = new EpochOutput()
    this.#epochs[1] = new EpochOutput()
    this.#asked.clear()
  }

  /** Undefined while nobody knows how many partitions the topic has. */
  #find(output: EpochOutput, topic: string): TopicOutput | undefined {
    let out = output.topics.get(topic)
    if (out === undefined) {
      const known = this.#topics.get(topic)
      if (known === undefined) return undefined
      const { partitions: count, maxBatchBytes, needsKey, isUnread = false } = known
      const { mostAheadMs = Number.POSITIVE_INFINITY, mostBehindMs = Number.POSITIVE_INFINITY } = known
      const times = { mostAheadMs, latest: Number.NEGATIVE_INFINITY, mostBehindMs, earliest: Number.NEGATIVE_INFINITY }
      out = { topic, count, maxBatchBytes, needsKey, ...times, isUnread, partitions: [] }
      output.topics.set(topic, out)
    }
    output.last = out
    return out
  }

  #write(
    output: EpochOutput,
    out: TopicOutput,
    slot: number,
    key: Uint8Array | null,
    keyStart: number,
    keyEnd: number,
    value: Uint8Array | null,
    timestamp: number,
    headers: Headers,
  ): boolean {
    if (key === null && out.needsKey) return this.#refuse(out, 'key', 0, 0)
    if (timestamp > out.latest && this.#isAhead(out, timestamp)) return this.#refuse(out, 'time', timestamp, out.latest)
    const partition = slot % out.count
    const to = out.partitions[partition] ?? firstOf(out, partition)
    const { builder } = to
    const isFirst = builder.count === 0
    if (isFirst) out.earliest = this.#clock.now() - out.mostBehindMs + movesOnBy(out.mostBehindMs)
    if (timestamp < out.earliest) return this.#refuse(out, 'old', timestamp, out.earliest)
    if (isFirst) output.begun.push(to)
    const before = builder.bytes
    builder.appendFrom(timestamp, key, keyStart, keyEnd, value, headers)
    const { bytes } = builder
    if (bytes > out.maxBatchBytes) {
      builder.dropLast(before)
      if (isFirst) return this.#tooLarge(output, out, bytes)
      // Together they are too much for one batch.
      this.#finish(output, to)
      return this.#write(output, out, slot, key, keyStart, keyEnd, value, timestamp, headers)
    }
    output.bytes += isFirst ? bytes : bytes - before
    if (bytes >= this.#batchBytes) this.#finish(output, to)
    return true
  }

  #tooLarge(output: EpochOutput, out: TopicOutput, bytes: number): false {
    output.begun.pop()
    return this.#refuse(out, 'size', bytes, out.maxBatchBytes)
  }

  /** So far ahead of the clock that its topic would refuse it. */
  #isAhead(out: TopicOutput, timestamp: number): boolean {
    out.latest = this.#clock.now() + out.mostAheadMs
    return timestamp > out.latest
  }

  #finish(output: EpochOutput, to: PartitionOutput): void {
    output.finished.add(to.topic, to.partition, to.builder)
    output.begun.splice(output.begun.indexOf(to), 1)
  }

  #refuse({ topic, isUnread }: TopicOutput, why: Refusal['why'], has: number, most: number): false {
    this.refusal = { topic, why, has, most, isUnread }
    return false
  }
}
