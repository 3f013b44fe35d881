/**
 * What a lane has let functions of the application do and not heard back of, and how long such calls take: the engine
 * lets in no more than comes through in time, and names the call that does not return.
 */
import type { Clock } from '../../base/clock.ts'
import { laneIndex } from '../../base/counters.ts'
import { keySlot } from '../../base/hash.ts'
import type { OpenCall, Origin, Rec } from '../../operators/contract.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import { Occupation } from './occupation.ts'
import type { TaskSlot } from './task-slot.ts'

/** How fast the mean follows, and in which time the slowest call is half forgotten. */
const weight = 1 / 8
const forgottenMs = 2000

export interface Failing {
  readonly origin: Origin
  readonly node: number
  /** The last one. */
  error: unknown
  /** On the clock of the wall. */
  readonly sinceMs: number
}

export class Calls {
  readonly occupation: Occupation
  readonly #clock: Clock
  readonly #node: () => number
  /** The ends of a list: who was called, in the order of their calls. Those whose record is held are not in it. */
  #oldest: OpenCall | undefined
  #newest: OpenCall | undefined
  /** Records whose calls fail and are made again, the oldest first. */
  readonly #failing = new Map<Origin, Failing>()
  #next = 1
  #run = 0
  #meanMs = 0
  #slowestMs = 0
  #slowestAt = 0
  /** Records that came to their end in this lane, whatever became of them. */
  finished = 0
  /** Slots of the keys of records from the engine that are finished; kept once a function was asynchronous. */
  #keys: number[] | undefined

  /** Of each source whether the engine gives its records, and not another lane; and its sub-topology. */
  readonly #given: readonly boolean[]
  readonly #subtopologies: readonly number[]
  /** Records that are finished, by sub-topology. */
  readonly finishedOf: Float64Array

  constructor(clock: Clock, topology: CompiledTopology, node: () => number) {
    this.#clock = clock
    this.occupation = new Occupation(clock)
    this.#given = topology.sources.map(({ level, kind }) => level === 0 || kind !== 'boundary')
    this.#subtopologies = topology.sources.map(({ subtopology }) => subtopology)
    this.finishedOf = new Float64Array(topology.subtopologies.length)
    this.#node = node
  }

  reset(): void {
    this.#run++
    this.#oldest = undefined
    this.#newest = undefined
    this.#failing.clear()
    this.#keys = undefined
    this.finished = 0
    this.finishedOf.fill(0)
    this.occupation.reset()
  }

  /** The one that has not answered for longest. */
  get oldest(): OpenCall | undefined {
    return this.#oldest
  }

  /** The record whose calls have failed for longest. */
  get oldestFailing(): Failing | undefined {
    return this.#failing.values().next().value
  }

  began(origin: Origin | undefined): OpenCall {
    this.#keys ??= []
    const call = origin?.call ?? this.#open(origin)
    call.isAwaited = true
    if (!call.isHeld) this.#begins(call)
    return call
  }

  /** False of a call that was made before the lane began anew. */
  isOfThisRun({ run }: OpenCall): boolean {
    return run === this.#run
  }

  ended(call: OpenCall): void {
    this.#remove(call)
    if (call.origin !== undefined) call.origin.call = undefined
    const now = this.#clock.monotonic()
    const took = now - call.firstMs
    this.#meanMs += (took - this.#meanMs) * (this.#meanMs === 0 ? 1 : weight)
    this.took(took, now)
  }

  /** The record waits for its turn: no function of the application has it. */
  held(origin: Origin): void {
    const call = origin.call ?? this.#open(origin)
    call.isHeld = true
    this.#remove(call)
  }

  /** The function of this node has it. */
  goesOn({ call }: Origin, node: number): void {
    if (call === undefined) return
    call.isHeld = false
    // Of what a timer made there is another call, that of the timer.
    if (!call.isAwaited) return
    this.#begins(call)
    call.node = node
  }

  /** Its call has failed, and is made again. */
  failed(origin: Origin, node: number, error: unknown): void {
    const known = this.#failing.get(origin)
    if (known !== undefined) known.error = error
    else this.#failing.set(origin, { origin, node, error, sinceMs: Math.round(this.#clock.now()) })
  }

  settled(origin: Origin): void {
    this.#failing.delete(origin)
  }

  /**
   * Of one of several calls in a row the promise was kept; where another one is out, it is as old as this moment. False
   * where that is none that counts.
   */
  returned(origin: Origin | undefined, timer: OpenCall | undefined): boolean {
    const call = origin?.call?.isAwaited === true ? origin.call : timer
    // It may be held, and then nobody has it.
    if (call === undefined || !this.#isOut(call)) return false
    const { firstMs } = call
    this.#begins(call)
    call.firstMs = firstMs
    return true
  }

  /** Of several calls in a row another one is out, that of this node's function. */
  called(origin: Origin | undefined, timer: OpenCall | undefined, node: number): void {
    const call = origin?.call?.isAwaited === true ? origin.call : timer
    if (call !== undefined && this.#isOut(call)) call.node = node
  }

  #open(origin: Origin | undefined): OpenCall {
    const now = this.#clock.monotonic()
    const call: OpenCall = {
      origin,
      run: this.#run,
      number: 0,
      node: -1,
      beganMs: now,
      firstMs: now,
      isAwaited: false,
      isHeld: false,
      older: undefined,
      newer: undefined,
    }
    if (origin !== undefined) origin.call = call
    return call
  }

  /** From now on, and as another call. Of several side by side for one record the last to begin is known. */
  #begins(call: OpenCall): void {
    this.#remove(call)
    call.number = this.#next++
    call.node = this.#node()
    call.beganMs = this.#clock.monotonic()
    call.firstMs = call.beganMs
    call.older = this.#newest
    if (this.#newest === undefined) this.#oldest = call
    else this.#newest.newer = call
    this.#newest = call
  }

  #isOut(call: OpenCall): boolean {
    return call.older !== undefined || this.#oldest === call
  }

  #remove(call: OpenCall): void {
    if (!this.#isOut(call)) return
    const { older, newer } = call
    if (older === undefined) this.#oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
    call.older = undefined
    call.newer = undefined
  }

  /** A call, or a turn that had one, took so long. */
  took(ms: number, now: number): void {
    // What is left of the slowest is no less than this: so much need not be worked out for every call.
    const left = 1 - (Math.LN2 * (now - this.#slowestAt)) / this.#halfMs
    if (ms < this.#slowestMs * left || ms < this.slowestMs(now)) return
    this.#slowestMs = ms
    this.#slowestAt = now
  }

  /** The slowest of late: a slow one counts for less the longer ago it was. */
  slowestMs(now: number): number {
    return this.#slowestMs * 2 ** (-(now - this.#slowestAt) / this.#halfMs)
  }

  get #halfMs(): number {
    return forgottenMs + 4 * this.#slowestMs
  }

  /** A record is done. What the engine gave it counts by key. `key`: its slot, where it is known. */
  done(source: number, rec: Rec, key = -1): void {
    this.finished++
    this.finishedOf[this.#subtopologies[source] as number]!++
    if (this.#keys === undefined || !this.#given[source]) return
    const slot = key >= 0 ? key : slotOf(rec)
    if (slot >= 0) this.#keys.push(slot)
  }

  /** What the engine has to hear of, since the last call. */
  takeKeys(): readonly number[] | undefined {
    const keys = this.#keys
    if (keys === undefined || keys.length === 0) return undefined
    this.#keys = []
    return keys
  }

  /** For the engine's eyes, in shared memory. `topicOf`: the number under which the engine knows a topic. */
  show(block: Float64Array, topicOf: (name: string) => number): void {
    block[laneIndex.finishedRecords] = this.finished
    block[laneIndex.callMs] = this.#meanMs
    block[laneIndex.slowestMs] = this.slowestMs(this.#clock.monotonic())
    if (this.#failing.size > 0 || block[laneIndex.failingCalls] !== 0) this.#showFailing(block, topicOf)
    const { oldest } = this
    const isShown = block[laneIndex.oldestCall] === (oldest?.number ?? 0)
    if (isShown && (oldest === undefined || block[laneIndex.oldestNode] === oldest.node)) return
    block[laneIndex.oldestCall] = oldest?.number ?? 0
    block[laneIndex.oldestNode] = oldest?.node ?? -1
    const age = oldest === undefined ? 0 : this.#clock.monotonic() - oldest.beganMs
    block[laneIndex.oldestSinceMs] = oldest === undefined ? 0 : Math.round(this.#clock.now() - age)
    block[laneIndex.oldestTopic] = oldest?.origin === undefined ? -1 : topicOf(oldest.origin.topic)
    block[laneIndex.oldestPartition] = oldest?.origin?.partition ?? -1
    block[laneIndex.oldestOffset] = oldest?.origin?.offset ?? -1
  }

  #showFailing(block: Float64Array, topicOf: (name: string) => number): void {
    block[laneIndex.failingCalls] = this.#failing.size
    const oldest = this.oldestFailing
    if (oldest === undefined) return
    const { origin, node, sinceMs } = oldest
    block[laneIndex.failingNode] = node
    block[laneIndex.failingSinceMs] = sinceMs
    block[laneIndex.failingTopic] = topicOf(origin.topic)
    block[laneIndex.failingPartition] = origin.partition
    block[laneIndex.failingOffset] = origin.offset
  }
}

/** Shows the most records of one key of which each waits for the one before it, and which key that is. */
export function showLongestChain(
  slots: Iterable<TaskSlot>,
  block: Float64Array,
  topicOf: (name: string) => number,
): void {
  const known = block[laneIndex.hotKeyHash] as number
  let longest = 0
  let heaviest: Rec | undefined
  for (const { keys } of slots) {
    for (const queue of keys.values()) {
      const length = queue.length + 1
      if (length < longest) continue
      const rec = queue[0]?.rec
      // Of two that are as heavy the one that was shown before stays.
      if (length === longest && (rec === undefined || hashOf(rec) !== known)) continue
      longest = length
      heaviest = rec
    }
  }
  block[laneIndex.longestChain] = longest
  if (heaviest === undefined) return
  block[laneIndex.hotKeyHash] = hashOf(heaviest)
  block[laneIndex.hotKeyTopic] = topicOf(heaviest.origin.topic)
  block[laneIndex.hotKeyPartition] = heaviest.origin.partition
}

/** The same on all pods, and nothing that the key could be told by. */
function hashOf(rec: Rec): number {
  return Math.max(0, slotOf(rec))
}

/** As the dispatcher's: of the key's bytes, or the partition where there is no key; -1 where there is neither. */
function slotOf(rec: Rec): number {
  const key = rec.keyRange
  if (key === undefined || key === null) return rec.origin.partition
  return keySlot(key.buffer, key.start, key.end)
}
