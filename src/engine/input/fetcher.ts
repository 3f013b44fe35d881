/**
 * The fetch loop: one request at a time names every partition that may be fetched, each with its own share of bytes, so
 * that a partition whose buffer is full never keeps another from being filled. A request that waits at the broker is
 * ended early when a further partition may be fetched.
 *
 * What all partitions have buffered is bounded in bytes, however many they are: no more is asked for than there is room.
 * A broker gives one batch at least, and each of several brokers its own answer: by so much the bound may be exceeded.
 */
import type { Clock } from '../../base/clock.ts'
import { type PartitionKey, partitionKey, type TopicPartition } from '../../base/ids.ts'
import { sleep, type Timers, turn } from '../../base/timers.ts'
import type { BrokerPort, FetchedPartition, Isolation } from '../../broker/port.ts'
import type { EngineError } from '../../base/errors.ts'
import { EndChecks, within } from './end-checks.ts'
import { FetchPace, type FetchPaceEvents, type LastFetch } from './fetch-pace.ts'
import { cannotBeRead, endedBy, existsNoMore, isPassing, isRefused } from './fetch-errors.ts'
import { asking, PartitionBuffer, type PartitionBufferEvents, type TimestampOf } from './partition-buffer.ts'

export interface FetcherOptions {
  readonly broker: BrokerPort
  readonly clock: Clock
  readonly timers: Timers
  readonly isolation: Isolation
  /** Records at which the fetching of a partition stops. */
  readonly bufferCapacity: number
  readonly maxPollRecords: number
  readonly maxWaitMs: number
  /** Where little comes at a time and all of it was read, so long passes from one request to the next. Default 0. */
  readonly paceMs?: number
  /** Most bytes of one fetch, and of one partition in it. */
  readonly maxBytes: number
  readonly maxPartitionBytes: number
  /** Most bytes that all partitions together may have buffered. */
  readonly maxBufferedBytes: number
  /** What happens where the offset asked for no longer exists. */
  readonly outOfRange: 'fail' | 'earliest' | 'latest'
  /** Topics between sub-topologies. */
  readonly own?: ReadonlySet<string>
}

export interface FetcherEvents extends FetchPaceEvents {
  /** A partition that had nothing buffered has a head now. */
  records(buffer: PartitionBuffer): void
  /** So many bytes are buffered, of all partitions. Told after each answer of the broker, when it has risen. */
  buffered?(bytes: number): void
  /** A request took so long, the wait for records at the broker included. */
  requested?(ms: number): void
  /** A poll let records into a buffer. */
  polled?(buffer: PartitionBuffer, records: number): void
  /** How much of a partition's log was not fetched when it was asked; undefined: nobody knows any more. Or that fetching failed. */
  evidence(buffer: PartitionBuffer, lag: number | undefined, failed: boolean, askedAt?: number): void
  /** Whether the broker answers. Told when it changes. */
  connected(connected: boolean, why: string | undefined): void
  /** Something was set right that somebody should know of. */
  warning?(message: string): void
  /** Fetching a partition, or altogether, has ended for good; the loop does not ask again. */
  failed(error: EngineError, partition: TopicPartition | undefined): void
}

/** Why a partition is not fetched although its buffer is not full. */
export type FetchPause = 'application' | 'restoring' | 'lost'

interface Slot {
  readonly buffer: PartitionBuffer
  readonly key: PartitionKey
  readonly isLast: boolean
  readonly pauses: Set<FetchPause>
  /** Least to ask for: grows while the next batch does not fit. */
  least: number
  failed: boolean
}

/** `topicId`: the identity of the topic that is meant, where it is known. */
type Meant = TopicPartition & { readonly topicId?: string | undefined }

/** What was asked for, from which offset on. */
type Asked = ReadonlyMap<PartitionKey, readonly [slot: Slot, offset: number]>

const largestBatchBytes = 1 << 30
const shortestBackoffMs = 50
const longestBackoffMs = 2000
/** What is in doubt is known soon; else it is not waited for before others are fetched. */
const doubtPatienceMs = 50
/** A partition asks for this much, however many others there are: most batches are smaller. */
const leastShare = 16 * 1024

export class Fetcher {
  readonly #o: FetcherOptions
  readonly #events: FetcherEvents
  readonly #bufferEvents: PartitionBufferEvents
  readonly #slots = new Map<PartitionKey, Slot>()
  #paused = false
  #closed = false
  #running: Promise<void> | undefined
  #hasNews = false
  /** Ends the wait under way: of a request, of a backoff, or for something to ask for. */
  #wake: (() => void) | undefined
  #connected = true
  #backoffMs = shortestBackoffMs
  #rotation = 0
  readonly #checks: EndChecks
  readonly #pace: FetchPace
  /** Nothing is asked for until some of what is buffered was dispatched. */
  #overloaded = false

  constructor(options: FetcherOptions, events: FetcherEvents) {
    this.#o = options
    this.#events = events
    this.#bufferEvents = {
      arrived: (buffer) => events.records(buffer),
      polled: (buffer, records) => events.polled?.(buffer, records),
      released: () => {
        if (this.#overloaded) this.#changed()
      },
      hungry: () => this.#changed(),
      failed: (buffer, error) => this.#bufferFailed(buffer, error),
    }
    this.#pace = new FetchPace(options.paceMs ?? 0, options.clock, events)
    this.#checks = new EndChecks(options, {
      evidence: (buffer, lag, askedAt) => events.evidence(buffer, lag, false, askedAt),
      released: () => this.#changed(false),
      failed: (error) => void this.#requestFailed(error, []),
    })
  }

  get connected(): boolean {
    return this.#connected
  }

  /** Bytes buffered of all partitions. */
  get bufferedBytes(): number {
    let bytes = 0
    for (const { buffer } of this.#slots.values()) bytes += buffer.bytes + buffer.held
    return bytes
  }

  get buffers(): PartitionBuffer[] {
    return [...this.#slots.values()].map((slot) => slot.buffer)
  }

  /**
   * Adds a partition, to be read from `offset`. A broker comes to those with `isLast` behind all others: a row that was there
   * before another record then comes along with it. `timestampOf`, `task`: see `PartitionBufferOptions`.
   */
  add(tp: Meant, offset: number, timestampOf?: TimestampOf, isLast = false, task?: string): PartitionBuffer {
    const { bufferCapacity: capacity, maxPollRecords, isolation } = this.#o
    const { topic, partition, topicId } = tp
    const buffer = new PartitionBuffer(
      { topic, partition, topicId, offset, capacity, maxPollRecords, isolation, timestampOf, task },
      this.#bufferEvents,
    )
    // A request may be under way from when it was here before.
    this.#checks.doubt(buffer)
    const key = partitionKey(topic, partition)
    this.#slots.set(key, { buffer, key, isLast, pauses: new Set(), least: 0, failed: false })
    this.#changed()
    return buffer
  }

  /** Removes a partition. What a request under way brings for it is thrown away. */
  remove(tp: TopicPartition): void {
    const buffer = this.buffer(tp)
    if (buffer) this.#checks.forget(buffer)
    this.#slots.delete(partitionKey(tp.topic, tp.partition))
  }

  buffer(tp: TopicPartition): PartitionBuffer | undefined {
    return this.#slots.get(partitionKey(tp.topic, tp.partition))?.buffer
  }

  /** What is known to be there of it and was not fetched; undefined: nobody knows. */
  readonly lagOf = (buffer: PartitionBuffer): number | undefined => this.#checks.lagOf(buffer)

  /** Gives up what is buffered of a partition and reads it from `offset` on. */
  seek(tp: TopicPartition, offset: number): void {
    const slot = this.#slots.get(partitionKey(tp.topic, tp.partition))
    if (!slot) return
    slot.failed = false
    slot.buffer.seek(offset)
    this.#changed()
  }

  /** Stops fetching one partition, or all, for this cause, until `resume`. A request under way is still taken over. */
  pause(cause: FetchPause, tp?: TopicPartition): void {
    if (!tp && cause === 'application') this.#paused = true
    for (const slot of this.#affected(tp)) slot.pauses.add(cause)
  }

  resume(cause: FetchPause, tp?: TopicPartition): void {
    if (!tp && cause === 'application') this.#paused = false
    for (const slot of this.#affected(tp)) slot.pauses.delete(cause)
    this.#changed()
  }

  /** Whether the partition is not being fetched: its buffer is full, or there is a pause. */
  isPaused(tp: TopicPartition): boolean {
    const slot = this.#slots.get(partitionKey(tp.topic, tp.partition))
    return slot === undefined || this.#overloaded || !this.#mayFetch(slot)
  }

  /** The same, but for the pause of the whole application: whether the partition waits for something beside it. */
  isHeld(tp: TopicPartition): boolean {
    const slot = this.#slots.get(partitionKey(tp.topic, tp.partition))
    if (slot === undefined) return true
    const pauses = slot.pauses.size - (slot.pauses.has('application') ? 1 : 0)
    return pauses > 0 || slot.failed || slot.buffer.full || this.#overloaded
  }

  start(): void {
    this.#running ??= this.#loop()
  }

  /** Ends the loop; resolves when no request is under way any more. */
  async close(): Promise<void> {
    this.#closed = true
    this.#checks.close()
    this.#changed()
    await this.#running
  }

  #affected(tp: TopicPartition | undefined): Slot[] {
    if (!tp) return [...this.#slots.values()]
    const slot = this.#slots.get(partitionKey(tp.topic, tp.partition))
    return slot ? [slot] : []
  }

  #mayFetch(slot: Slot): boolean {
    return !this.#paused && slot.pauses.size === 0 && !slot.failed && !slot.buffer.full
  }

  #changed(isNews = true): void {
    this.#hasNews ||= isNews
    this.#wake?.()
  }

  async #loop(): Promise<void> {
    while (!this.#closed) {
      const all = [...this.#slots.values()]
      const wanted = all.filter((slot) => this.#mayFetch(slot) && !this.#checks.holds(slot.buffer))
      const room = this.#o.maxBufferedBytes - this.bufferedBytes
      if (wanted.length === 0) await this.#pauseUntilChange(undefined)
      else if (room >= this.#share || room === this.#o.maxBufferedBytes) await this.#round(wanted, room)
      else await this.#withoutRoom(wanted)
    }
  }

  /**
   * The buffers are full, with batches larger than a partition's share. Where what they hold waits for a record of a
   * partition that has none, that partition gets a batch all the same: else all would stand still for ever.
   */
  async #withoutRoom(wanted: readonly Slot[]): Promise<void> {
    const empty = wanted.filter(({ buffer }) => buffer.bytes === 0)
    if (empty.length > 0 && this.#events.starving?.()) {
      await this.#round(empty, 1)
      return
    }
    this.#overloaded = true
    await this.#pauseUntilChange(this.#o.maxWaitMs)
    this.#overloaded = false
  }

  /** What a partition may ask for: what it has at hand and what it asks for, twice that, fit for all of them. */
  get #share(): number {
    const { maxBufferedBytes, maxPartitionBytes } = this.#o
    const fair = Math.floor(maxBufferedBytes / (2 * Math.max(1, this.#slots.size)))
    return Math.min(maxPartitionBytes, Math.max(leastShare, fair))
  }

  async #round(wanted: readonly Slot[], room: number): Promise<void> {
    const asked: Asked = new Map(wanted.map((slot) => [slot.key, [slot, slot.buffer.position]]))
    const began = this.#o.clock.monotonic()
    const answer = await this.#request(this.#rotated(wanted), room).catch((error) => this.#requestFailed(error, wanted))
    if (this.#closed || answer === undefined) return
    this.#setConnected(true, undefined)
    this.#backoffMs = shortestBackoffMs
    const atHand = await this.#takeAll(answer, asked, began)
    this.#events.buffered?.(this.bufferedBytes)
    await this.#paced(wanted, { began, atHand })
  }

  /** Nothing is dispatched between what an answer brings and the doubts that it raises. Answers what was at hand then. */
  async #takeAll(answer: readonly FetchedPartition[], asked: Asked, began: number): Promise<number> {
    const taken: PartitionBuffer[] = []
    const arrived: number[] = []
    const failed: Array<[slot: Slot, code: string]> = []
    for (const fetched of answer) {
      const key = partitionKey(fetched.topic, fetched.partition)
      const [slot, offset] = asked.get(key) ?? []
      // Removed, or moved, while the request was under way: this is no answer to what is wanted now.
      if (!slot || this.#slots.get(key) !== slot || slot.buffer.position !== offset) continue
      if (fetched.error !== undefined) failed.push([slot, fetched.error])
      else {
        if (fetched.records.length > 0) arrived.push(taken.length)
        taken.push(slot.buffer)
        this.#take(slot, fetched, began - (fetched.askedBeforeMs ?? 0))
      }
    }
    for (const [slot, code] of failed) this.#partitionFailed(slot, code)
    const there = [...this.#slots.values()].filter(({ pauses }) => !pauses.has('lost')).map(({ buffer }) => buffer)
    const atHand = this.#events.waiting?.() ?? 0
    const checking = this.#checks.check({ taken, arrived, isApart: answer[0]?.isApart === true }, there)
    if (checking && !this.#checks.areSlow) {
      await within(this.#o.timers, doubtPatienceMs, checking)
      if (this.#pace.isKept) await turn(this.#o.timers)
    }
    return atHand
  }

  async #paced(wanted: readonly Slot[], last: LastFetch): Promise<void> {
    for (;;) {
      const left = this.#pace.leftMs(wanted, last)
      if (left <= 0) return
      this.#hasNews = false
      const isWoken = await this.#pauseUntilChange(left)
      if (isWoken && this.#hasNews) return
      // A commit may have begun meanwhile, or it is known where logs end: what may go now goes first.
      if (isWoken) await turn(this.#o.timers)
    }
  }

  /** The order changes from request to request: brokers fill an answer from the front until it is full. */
  #rotated(wanted: readonly Slot[]): readonly Slot[] {
    this.#rotation = (this.#rotation + 1) % wanted.length
    const rotated = [...wanted.slice(this.#rotation), ...wanted.slice(0, this.#rotation)]
    return rotated.sort((a, b) => Number(a.isLast) - Number(b.isLast))
  }

  async #request(wanted: readonly Slot[], room: number): Promise<FetchedPartition[]> {
    const { broker, maxWaitMs, isolation } = this.#o
    const maxBytes = Math.min(this.#o.maxBytes, room)
    const share = this.#share
    const abort = new AbortController()
    this.#wake = () => abort.abort()
    const began = this.#o.clock.monotonic()
    try {
      return await broker.fetch({
        partitions: wanted.map(({ buffer, least }) => asking(buffer, Math.max(share, least))),
        maxWaitMs,
        maxBytes,
        isolation,
        signal: abort.signal,
      })
    } finally {
      this.#wake = undefined
      this.#events.requested?.(this.#o.clock.monotonic() - began)
    }
  }

  #take(slot: Slot, fetched: FetchedPartition, askedAt: number): void {
    const { buffer } = slot
    const end = this.#o.isolation === 'read_committed' ? fetched.lastStableOffset : fetched.highWatermark
    buffer.sawEnds(Math.max(end, 0), fetched.highWatermark, this.#o.clock.monotonic())
    try {
      const progress = buffer.append(fetched.records, fetched.aborted)
      if (progress) slot.least = 0
      else if (fetched.records.length > 0) this.#askForMore(slot, largestBatchBytes)
      // There may have been no room left in the answer, or a batch is larger than this partition's share.
      else if (buffer.lag > 0) this.#askForMore(slot, this.#o.maxPartitionBytes)
    } catch (error) {
      this.#bufferFailed(buffer, error)
    }
    if (!slot.failed) this.#events.evidence(buffer, this.#checks.lagOf(buffer), false, askedAt)
  }

  #askForMore(slot: Slot, atMost: number): void {
    slot.least = Math.max(slot.least, Math.min(Math.max(this.#share, slot.least) * 2, atMost))
  }

  #bufferFailed(buffer: PartitionBuffer, error: unknown): void {
    const { topic, partition, nextOffset: offset } = buffer
    const slot = this.#slots.get(partitionKey(topic, partition))
    if (slot?.buffer !== buffer) return
    this.#fail(slot, cannotBeRead({ topic, partition, offset }, error))
  }

  #partitionFailed(slot: Slot, code: string): void {
    const { topic, partition, position: offset } = slot.buffer
    const at = { topic, partition, offset }
    if (code !== 'OFFSET_OUT_OF_RANGE') this.#fail(slot, isRefused(at, code, this.#o.own?.has(topic)))
    else if (this.#o.outOfRange === 'fail') this.#fail(slot, existsNoMore(at))
    else void this.#lookUp(slot, this.#o.outOfRange)
  }

  /** What it asks for exists no more. Until it is read on from somewhere, nobody knows what it has. */
  async #lookUp(slot: Slot, where: 'earliest' | 'latest'): Promise<void> {
    const { buffer, key, pauses } = slot
    const { topic, partition, position } = buffer
    pauses.add('lost')
    this.#checks.doubt(buffer)
    this.#events.evidence(buffer, undefined, false)
    this.#events.evidence(buffer, 0, true)
    try {
      const [found] = await this.#o.broker.listOffsets([{ topic, partition }], where)
      if (!found || this.#slots.get(key) !== slot || buffer.position !== position) return
      buffer.skipTo(found.offset)
      this.#events.warning?.(`offset ${position} of ${key} no longer exists; reading on from ${where}, ${found.offset}`)
    } catch (error) {
      if (isPassing(error)) await sleep(this.#o.timers, longestBackoffMs)
      else await this.#requestFailed(error, [slot])
    } finally {
      pauses.delete('lost')
      this.#changed()
    }
  }

  #fail(slot: Slot, error: EngineError): void {
    slot.failed = true
    this.#events.evidence(slot.buffer, 0, true)
    this.#events.failed(error, { topic: slot.buffer.topic, partition: slot.buffer.partition })
  }

  /** A broker that cannot be reached, or not now, is asked again for ever; what it refuses is refused. */
  async #requestFailed(error: unknown, wanted: readonly Slot[]): Promise<undefined> {
    if (this.#closed) return
    for (const slot of wanted) if (this.#slots.get(slot.key) === slot) this.#events.evidence(slot.buffer, 0, true)
    if (!isPassing(error)) {
      this.#closed = true
      this.#events.failed(endedBy(error), undefined)
      return
    }
    this.#setConnected(false, error.message)
    const backoffMs = this.#backoffMs
    this.#backoffMs = Math.min(longestBackoffMs, backoffMs * 2)
    const until = this.#o.clock.monotonic() + backoffMs
    // A change elsewhere does not make the broker answer: only closing cuts the wait short.
    for (let left = backoffMs; left > 0 && !this.#closed; left = until - this.#o.clock.monotonic()) {
      await this.#pauseUntilChange(left)
    }
  }

  /** Until something changes, and not longer than `atMostMs`. Answers whether something has changed. */
  #pauseUntilChange(atMostMs: number | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      let cancel: (() => void) | undefined
      const done = (hasChanged: boolean): void => {
        cancel?.()
        this.#wake = undefined
        resolve(hasChanged)
      }
      if (atMostMs !== undefined) cancel = this.#o.timers.after(atMostMs, () => done(false))
      this.#wake = () => done(true)
    })
  }

  #setConnected(connected: boolean, why: string | undefined): void {
    if (connected === this.#connected) return
    this.#connected = connected
    this.#events.connected(connected, why)
  }
}
