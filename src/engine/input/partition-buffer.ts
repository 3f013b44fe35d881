/**
 * What was fetched of one partition and not yet dispatched. The bytes lie as they came; records are read one at a time,
 * the head in `cursor`, so nothing is allocated per record.
 *
 * A fetch may bring far more than the buffer should hold. What it brings is *staged* first; a poll lets up to
 * `maxPollRecords` of it into the buffer whenever the buffer holds fewer than `capacity`. Hence `capacity` is where
 * fetching stops, and `buffered` exceeds it by at most one poll less one record.
 */
import { assert } from '../../base/assert.ts'
import type { AbortedTransaction, FetchPartition, Isolation } from '../../broker/port.ts'
import { noHead } from '../../time/head-order.ts'
import { RecordCursor } from '../../broker/wire/record-batch.ts'
import { surveyBatches } from './partition-buffer-survey.ts'

export type TimestampOf = (cursor: RecordCursor) => number

export interface PartitionBufferOptions {
  readonly topic: string
  readonly partition: number
  /** Identity of the topic that is meant, where it is known. */
  readonly topicId?: string | undefined
  /** Offset of the first record wanted. */
  readonly offset: number
  readonly capacity: number
  readonly maxPollRecords: number
  readonly isolation: Isolation
  /** Event time of the record at the cursor; NaN passes the record over. Default: the record's own timestamp. */
  readonly timestampOf?: TimestampOf | undefined
  /** Names the task that it feeds, where its records wait for those of others. */
  readonly task?: string | undefined
}

export interface PartitionBufferEvents {
  /** Nothing was buffered, now something is. */
  arrived(buffer: PartitionBuffer): void
  /** A poll let so many records into the buffer. */
  polled(buffer: PartitionBuffer, records: number): void
  /** What a fetch had brought is read to its end: so many bytes are free again. */
  released?(buffer: PartitionBuffer, bytes: number): void
  /** The buffer holds fewer than its capacity and nothing is staged: fetch. */
  hungry(buffer: PartitionBuffer): void
  /** What lies at `nextOffset` cannot be read. Nothing comes out of the buffer any more, until a `seek`. */
  failed(buffer: PartitionBuffer, error: unknown): void
}

interface Chunk {
  readonly records: Uint8Array
  readonly from: number
  readonly end: number
  readonly aborted: readonly AbortedTransaction[]
  /** Records in it, as far as the batches' headers tell; never too few. */
  readonly count: number
}

const nothing = new Uint8Array(0)
/** An answer to a fetch comes within this time, or not at all. */
const underWayMs = 60_000

export class PartitionBuffer {
  readonly topic: string
  readonly partition: number
  readonly topicId: string | undefined
  readonly capacity: number
  readonly task: string | undefined
  /** Stands at the head while there is one. Read it, never move it. */
  readonly cursor = new RecordCursor()
  /** Event time of the head; `noHead` while nothing is buffered. */
  headTimestamp: number = noHead
  /** Where the next fetch begins: behind everything that came, markers and aborted records included. */
  position: number
  /** Offset of what comes after the records that were shifted out: behind markers too, once all is shifted out. */
  nextOffset: number
  /** End of what can be read at present, as the last fetch said; -1 before the first. */
  logEndOffset = -1
  /** End of all that lies in the log, records of open transactions included; -1 before it is known. */
  highWatermark = -1
  /** When the broker told these ends last, by the monotonic clock. */
  endsAt = Number.NEGATIVE_INFINITY

  /** Where the log ended at least, as was asked apart from fetches, and until when answers may come that know less. */
  #leastEnd = -1
  #leastUntil = Number.NEGATIVE_INFINITY
  /** The end that was told with what was fetched, or in its place where it is not fetched. */
  #fetchedEnd = -1
  readonly #maxPollRecords: number
  readonly #isolation: Isolation
  readonly #timestampOf: TimestampOf | undefined
  readonly #events: PartitionBufferEvents
  #chunks: Chunk[] = []
  #held = 0
  /** Of the chunk at the cursor: records not read yet, by the headers. */
  #unread = 0
  #end = -1
  /** Bytes of the chunk at the cursor, and of all chunks. */
  #current = 0
  #bytes = 0
  #admitted = 0
  #staged = 0

  constructor(options: PartitionBufferOptions, events: PartitionBufferEvents) {
    this.topic = options.topic
    this.partition = options.partition
    this.topicId = options.topicId
    this.capacity = options.capacity
    this.task = options.task
    this.position = options.offset
    this.nextOffset = options.offset
    this.#maxPollRecords = options.maxPollRecords
    this.#isolation = options.isolation
    this.#timestampOf = options.timestampOf
    this.#events = events
  }

  /** Records in the buffer, the head included. */
  get buffered(): number {
    return this.#admitted
  }

  /** Bytes of what was fetched and is not read to its end: each answer of the broker lies in memory as a whole. */
  get bytes(): number {
    return this.#bytes
  }

  /** Bytes of records that were taken out and still wait to be dispatched. */
  get held(): number {
    return this.#held
  }

  hold(bytes: number): void {
    this.#held += bytes
  }

  letGo(bytes: number): void {
    this.#held -= bytes
    this.#events.released?.(this, bytes)
  }

  /** Whether fetching has to stop because the buffer holds enough. */
  get full(): boolean {
    return this.#admitted >= this.capacity || this.#staged > 0
  }

  get hasHead(): boolean {
    return this.headTimestamp !== noHead
  }

  /** Offset of the head, -1 while there is none. */
  get headOffset(): number {
    return this.hasHead ? this.cursor.offset : -1
  }

  /** The broker told where the log ends for a reader of this isolation, and where it ends. */
  sawEnds(readable: number, highWatermark: number, at: number): void {
    this.#fetchedEnd = readable
    this.#raiseEnds(readable, highWatermark, at)
  }

  #raiseEnds(readable: number, highWatermark: number, at: number): void {
    this.logEndOffset = at < this.#leastUntil ? Math.max(readable, this.#leastEnd) : readable
    this.highWatermark = Math.max(this.logEndOffset, highWatermark)
    this.endsAt = at
  }

  /** The log ends here or behind. A fetch that is under way may have been answered before, and takes nothing of it back. */
  endsAtLeast(readable: number, at: number, highWatermark = readable): void {
    this.highWatermark = Math.max(this.highWatermark, highWatermark)
    // An end that has gone back, with a leader that knows less, is believed once nothing is under way any more.
    if (readable < this.#leastEnd && at < this.#leastUntil) return
    this.#leastEnd = readable
    this.#leastUntil = at + underWayMs
    if (readable > this.logEndOffset) this.#raiseEnds(readable, this.highWatermark, at)
  }

  /** Open transactions hold records of it back. */
  get isWithheld(): boolean {
    return this.highWatermark > this.logEndOffset
  }

  /** Offsets between what was fetched and what could be. 0: the partition was read to its end. */
  get lag(): number {
    return Math.max(0, this.logEndOffset - this.position)
  }

  /** What a fetch has left there. What came since, as far as anybody has asked for that, is `lag` alone. */
  get backlog(): number {
    return Math.max(0, this.#fetchedEnd - this.position)
  }

  /**
   * Takes over what a fetch at `position` brought. False if there was no whole batch in it. Throws `CorruptBatchError`
   * where no batches lie in these bytes; damage within a batch is told by `failed` when its turn comes.
   */
  append(records: Uint8Array, aborted: readonly AbortedTransaction[]): boolean {
    if (records.length === 0) return false
    const { count, end } = surveyBatches(records, this.position, aborted, this.#isolation)
    if (end <= this.position) return false
    assert(count >= 0, `${this.topic}:${this.partition} brought ${count} records`)
    this.#chunks.push({ records, from: this.position, end, aborted, count })
    this.#bytes += records.length
    this.position = end
    this.#staged += count
    this.#admit()
    if (!this.hasHead) this.#readHead()
    return true
  }

  /** Takes the head out; the next record becomes the head. */
  shift(): void {
    assert(this.hasHead, 'a partition without a buffered record has no head to take')
    this.nextOffset = this.cursor.position
    const wasFull = this.full
    this.#admitted--
    if (this.#staged > 0) this.#admit()
    this.#readHead()
    if (wasFull && !this.full) this.#events.hungry(this)
  }

  /** Gives up what is buffered; the next fetch begins at `offset`. */
  seek(offset: number): void {
    this.#chunks = []
    this.#unread = 0
    this.#end = -1
    this.#admitted = 0
    this.#staged = 0
    this.headTimestamp = noHead
    this.position = offset
    this.nextOffset = offset
    this.#current = 0
    const released = this.#bytes
    this.#bytes = 0
    this.cursor.reset(nothing, offset, [], this.#isolation)
    if (released > 0) this.#events.released?.(this, released)
  }

  /** Goes on fetching at `offset`; what is buffered stays. For where the log has lost what lies between. */
  skipTo(offset: number): void {
    this.position = offset
    if (!this.hasHead && this.#chunks.length === 0) this.nextOffset = offset
  }

  #admit(): void {
    while (this.#staged > 0 && this.#admitted < this.capacity) {
      const records = Math.min(this.#staged, this.#maxPollRecords)
      this.#staged -= records
      this.#admitted += records
      this.#events.polled(this, records)
    }
  }

  /** Moves the cursor to the next record that counts, over chunks that are at their end. */
  #readHead(): void {
    const hadHead = this.hasHead
    this.headTimestamp = noHead
    try {
      if (this.#findHead() && !hadHead) this.#events.arrived(this)
    } catch (error) {
      const { nextOffset, position } = this
      this.seek(nextOffset)
      this.position = position
      this.#events.failed(this, error)
    }
  }

  #findHead(): boolean {
    for (;;) {
      if (this.#end >= 0 && this.cursor.next()) {
        this.#unread--
        const timestampOf = this.#timestampOf
        const timestamp = timestampOf === undefined ? this.cursor.timestamp : timestampOf(this.cursor)
        if (!Number.isNaN(timestamp)) {
          this.headTimestamp = timestamp
          return true
        }
        this.nextOffset = this.cursor.position
        this.#forget(1)
      } else if (!this.#nextChunk()) {
        return false
      }
    }
  }

  #nextChunk(): boolean {
    if (this.#end >= 0) {
      // The headers counted records that compaction had taken away.
      this.#forget(this.#unread)
      this.#unread = 0
      // Not where this one ended: the log may have lost what lay between, and nobody is to begin there again.
      this.nextOffset = this.#chunks[0]?.from ?? this.position
      this.#end = -1
    }
    const released = this.#current
    const chunk = this.#chunks.shift()
    this.#current = chunk?.records.length ?? 0
    if (released > 0) {
      this.#bytes -= released
      assert(this.#bytes >= 0, `${this.topic}:${this.partition} released more bytes than it held`)
      if (chunk === undefined) this.cursor.reset(nothing, this.nextOffset, [], this.#isolation)
      this.#events.released?.(this, released)
    }
    if (chunk === undefined) return false
    this.cursor.reset(chunk.records, chunk.from, chunk.aborted, this.#isolation)
    this.#unread = chunk.count
    this.#end = chunk.end
    return true
  }

  #forget(records: number): void {
    const admitted = Math.min(records, this.#admitted)
    this.#admitted -= admitted
    this.#staged -= records - admitted
    this.#admit()
  }
}

/** What is asked for to go on where the buffer ends. */
export function asking({ topic, partition, topicId, position }: PartitionBuffer, maxBytes: number): FetchPartition {
  return { topic, partition, offset: position, maxBytes, ...(topicId && { topicId }) }
}
