/**
 * Watermarks of the partitions and of the application, and which buffered record goes next.
 *
 * A partition's watermark is the highest event time dispatched from it less its allowed out-of-orderness. The
 * application's watermark is the least of those that count: idle partitions do not, and a partition whose head waits
 * behind older ones counts with what that head will bring (its *preview*), since nothing older than its own bound can
 * come before it. It never falls, and stays unknown while a partition that is not idle has no watermark.
 *
 * Partitions are named by small integers, and nothing is allocated per record. Durations are counted on a monotonic
 * clock that the caller reads; the wall clock is only shown.
 */
import { assert } from '../base/assert.ts'
import { type PartitionKey, partitionKey, type TopicPartition } from '../base/ids.ts'
import { Alignment } from './alignment.ts'
import { HeadOrder, noHead } from './head-order.ts'
import { IdleClocks, widened } from './idleness.ts'
import { MinTree } from './min-tree.ts'
import { type TaskInput, TaskInputs } from './task-inputs.ts'
import {
  type AlignmentBindingReport,
  type PartitionWatermarkReport,
  saturatingDifference,
  WallClockOffset,
  type WatermarkReport,
} from './watermark-report.ts'

export { noHead } from './head-order.ts'

export interface PartitionTiming {
  /** `Infinity`: its records tell nothing of its watermark, which is announced by who writes them (`announce`). */
  readonly maxOutOfOrdernessMs: number
  /** 0: never idle. */
  readonly idlenessMs: number
  readonly alignment: { readonly group: string; readonly maxDriftMs: number } | undefined
}

export interface WatermarksOptions {
  /** How long a fetch that brought nothing proves a partition empty, milliseconds. Default 3000. */
  readonly evidenceTtlMs?: number
  /** Whether a partition that cannot be fetched counts towards idleness. Default `suspend`: it does not. */
  readonly onFetchError?: 'suspend' | 'count'
  /**
   * How long an empty partition that was read to its end holds back the others of its task. 0, the default: not at all;
   * -1: not even one of which more is known to come.
   */
  readonly maxTaskIdleMs?: number
  /** A hold that lasted this long no longer waits for its laggards. Default 0: it waits for as long as they are behind. */
  readonly maxHoldMs?: number
}

/** Why nothing is dispatched although something is buffered. */
export type Suspension = 'pause' | 'backpressure'
const suspensionBits: Readonly<Record<Suspension, number>> = { pause: 1, backpressure: 2 }

const unknown = Number.NEGATIVE_INFINITY
const never = Number.POSITIVE_INFINITY

export class Watermarks {
  readonly #maxHoldMs: number
  #capacity = 8
  #topicPartitions: Array<TopicPartition | undefined> = []
  readonly #handles = new Map<PartitionKey, number>()
  /** Live handles by topic and partition. */
  #slots: number[] = []
  #outOfOrderness = new Float64Array(8)
  #watermark = new Float64Array(8).fill(unknown)
  #headOffset = new Float64Array(8).fill(-1)
  /** Since when something has been buffered without interruption; NaN while nothing is. */
  #bufferedSince = new Float64Array(8).fill(Number.NaN)
  /** Since when the head waits behind an older one of another partition; NaN while it does not. */
  #behindSince = new Float64Array(8).fill(Number.NaN)
  #lastEvent = new Float64Array(8).fill(Number.NaN)
  readonly #heads = new HeadOrder(8)
  /** Watermark that counts, preview included; `-Infinity` unknown, `Infinity` idle or not assigned. */
  readonly #counted = new MinTree(8)
  readonly #idle: IdleClocks
  readonly #alignment = new Alignment(8)
  readonly #inputs: TaskInputs
  readonly #wall = new WallClockOffset()
  #oldest = -1
  #global = unknown
  #suspended = 0
  #blockedSince = Number.NaN
  #futureLimit = never
  #clamped = 0

  constructor(options: WatermarksOptions = {}) {
    this.#maxHoldMs = options.maxHoldMs ?? 0
    this.#inputs = new TaskInputs(8, options.maxTaskIdleMs ?? 0)
    this.#idle = new IdleClocks(8, {
      evidenceTtlMs: options.evidenceTtlMs ?? 3000,
      onFetchError: options.onFetchError ?? 'suspend',
    })
  }

  /**
   * Adds a partition, with no watermark yet. The handle holds until `revoke`; then it may name another partition.
   * `input`: the task that it feeds together with others, whose heads wait for one another.
   */
  assign(tp: TopicPartition, timing: PartitionTiming, input?: TaskInput): number {
    const key = partitionKey(tp.topic, tp.partition)
    assert(!this.#handles.has(key), `partition ${key} is assigned already`)
    let p = this.#topicPartitions.indexOf(undefined)
    if (p < 0) p = this.#topicPartitions.length
    if (p >= this.#capacity) this.#grow()
    this.#topicPartitions[p] = { topic: tp.topic, partition: tp.partition }
    this.#handles.set(key, p)
    this.#outOfOrderness[p] = timing.maxOutOfOrdernessMs
    this.#watermark[p] = unknown
    this.#lastEvent[p] = Number.NaN
    this.#idle.assign(p, timing.idlenessMs)
    if (timing.alignment) this.#alignment.join(p, timing.alignment.group, timing.alignment.maxDriftMs)
    this.#slots.push(p)
    this.#slots.sort((a, b) => this.#compare(a, b))
    this.#heads.rank(this.#slots)
    this.#refresh(p)
    if (input && this.#inputs.join(p, input)) this.#sort(this.#inputs.members(p), input.at)
    return p
  }

  /** Removes a partition: it holds nobody back any more. */
  revoke(tp: TopicPartition, now: number): void {
    const key = partitionKey(tp.topic, tp.partition)
    const p = this.#handles.get(key)
    if (p === undefined) return
    this.#noteGroupMin(p)
    this.#takeHead(p, now)
    this.#sort(this.#inputs.leave(p), now)
    this.#idle.assign(p, 0)
    this.#alignment.leave(p)
    this.#handles.delete(key)
    this.#topicPartitions[p] = undefined
    this.#slots = this.#slots.filter((q) => q !== p)
    this.#counted.set(p, never)
  }

  /** -1 for a partition that is not assigned. */
  handle(topic: string, partition: number): number {
    return this.#handles.get(partitionKey(topic, partition)) ?? -1
  }

  /** Something is buffered where nothing was. The partition is not idle any more. */
  headArrived(p: number, timestamp: number, offset: number, now: number): void {
    this.#idle.arrived(p, now)
    this.#alignment.arrived(p)
    this.#bufferedSince[p] = now
    this.#headOffset[p] = offset
    this.#heads.set(p, timestamp)
    if (this.#inputs.buffered(p, now)) this.#place(this.#inputs.members(p))
    else if (this.#inputs.waits(p)) this.#heads.withhold(p)
    this.#findOldest(now)
    if (p !== this.#oldest) this.#behindSince[p] = now
    this.#refresh(p)
  }

  /** What was buffered is given up (a seek, a restart): the position and hence all evidence is another one. */
  headDiscarded(p: number, now: number): void {
    this.#takeHead(p, now)
    if (this.#inputs.ranEmpty(p, now)) this.#sort(this.#inputs.members(p), now)
    this.#idle.reset(p)
    this.#refresh(p)
  }

  /**
   * The partition whose head goes next: the oldest of all. -1 when nothing may go: nothing is buffered, dispatch is
   * suspended, or the oldest head is held by its alignment group, which holds everything younger with it.
   */
  pick(now: number): number {
    this.#advance()
    const p = this.#oldest
    if (this.#suspended !== 0) return -1
    if (p < 0) {
      this.#blockedSince = Number.NaN
      return -1
    }
    if (this.#alignment.holding) this.#endHolds()
    if (this.#isHeld(p) && !this.#holdIsOver(p, now)) {
      this.#alignment.hold(p, this.#headOffset[p] as number, now)
      if (Number.isNaN(this.#blockedSince)) this.#blockedSince = now
      return -1
    }
    if (!Number.isNaN(this.#blockedSince)) this.#endBlock(now)
    return p
  }

  /**
   * The head of `p` was dispatched; behind it waits the next one, or `noHead`. Answers with the application's watermark
   * in force for the dispatched record, itself included. What the next head previews counts for later records only, or
   * it could make the very record late.
   */
  dispatched(p: number, nextTimestamp: number, nextOffset: number, now: number): number {
    const timestamp = this.#heads.timestamp(p)
    const watermark = this.#bound(timestamp) - (this.#outOfOrderness[p] as number)
    if (timestamp > this.#futureLimit) this.#clamped++
    if (watermark > (this.#watermark[p] as number)) {
      this.#watermark[p] = watermark
      this.#refreshCounted(p)
    }
    this.#lastEvent[p] = now
    this.#advance()
    const more = nextTimestamp !== noHead
    this.#idle.dispatched(p, more, now)
    this.#heads.set(p, nextTimestamp)
    this.#headOffset[p] = nextOffset
    this.#behindSince[p] = Number.NaN
    if (!more) {
      this.#bufferedSince[p] = Number.NaN
      if (this.#inputs.ranEmpty(p, now)) this.#place(this.#inputs.members(p))
    }
    // Where it is the oldest still, it has a head and its own watermark counts, as before.
    if (this.#findOldest(now)) this.#refresh(p)
    return this.#global
  }

  /**
   * What the last fetch of a partition said. `lag`: offsets between the position it reached and the last stable one.
   * Only a partition seen empty can turn idle.
   */
  evidence(p: number, lag: number, fetchFailed: boolean, now: number): void {
    this.#idle.evidence(p, lag, fetchFailed, now)
    this.#refreshLaggard(p)
    if (!fetchFailed && this.#inputs.fetched(p, lag, now)) this.#sort(this.#inputs.members(p), now)
  }

  /** Stops dispatch. A pause stops the idle clocks too. Holds are kept with the time at which they began. */
  suspend(cause: Suspension, now: number): void {
    this.#suspended |= suspensionBits[cause]
    if (cause === 'pause') this.#idle.stop(this.#slots, now)
  }

  resume(cause: Suspension, now: number): void {
    this.#suspended &= ~suspensionBits[cause]
    if (cause === 'pause') this.#idle.go(this.#slots, now)
  }

  /** Applies what time alone brings. True when something changed, so that `pick` may answer otherwise. */
  tick(now: number): boolean {
    let changed = false
    if (now >= this.#idle.nextDeadline(this.#slots)) {
      const due = this.#slots.filter((p) => this.#idle.isDue(p, now))
      // First the minimum of their groups, while all of them still count.
      for (const p of due) this.#noteGroupMin(p)
      for (const p of due) {
        this.#idle.expire(p)
        this.#refresh(p)
      }
      changed = due.length > 0
    }
    if (now >= this.#inputs.nextDeadline(this.#slots)) {
      for (let p = this.#inputs.expired(this.#slots, now); p >= 0; p = this.#inputs.expired(this.#slots, now)) {
        this.#sort(this.#inputs.members(p), now)
        changed = true
      }
    }
    this.#advance()
    return changed || now >= this.#holdDeadline()
  }

  /** When `tick` has something to do, on the monotonic clock; `Infinity` for never. */
  nextDeadline(): number {
    const [idle, waits] = [this.#idle.nextDeadline(this.#slots), this.#inputs.nextDeadline(this.#slots)]
    return Math.min(idle, waits, this.#holdDeadline())
  }

  /** The application's watermark, -Infinity while unknown. */
  global(): number {
    return this.#global
  }

  /** Highest event time dispatched from a partition, -Infinity before the first. */
  maxTs(p: number): number {
    const outOfOrderness = this.#outOfOrderness[p] as number
    return (this.#watermark[p] as number) + (outOfOrderness === never ? 0 : outOfOrderness)
  }

  /** Whoever writes to the partition has come this far, and all that was written until then was dispatched. */
  announce(p: number, watermark: number): void {
    if (watermark <= (this.#watermark[p] as number)) return
    this.#watermark[p] = watermark
    this.#refresh(p)
    this.#advance()
  }

  isIdle(p: number): boolean {
    return this.#idle.isIdle(p)
  }

  /** Sets a partition's highest event time to what was committed, also back; -Infinity makes it unknown. */
  restore(p: number, maxTs: number): void {
    const outOfOrderness = this.#outOfOrderness[p] as number
    this.#watermark[p] = maxTs - (outOfOrderness === never ? 0 : outOfOrderness)
    this.#refresh(p)
  }

  /** Sets the application's watermark to what was committed. The one way in which it may fall. */
  restoreGlobal(watermark: number): void {
    this.#global = watermark
  }

  /** Forgets since when heads are held. */
  resetHolds(): void {
    this.#alignment.endHolds(() => true)
    this.#blockedSince = Number.NaN
  }

  /** Event times beyond this instant count as if they were at it. Default: no limit. */
  setFutureLimit(epochMs: number): void {
    this.#futureLimit = epochMs
    for (const p of this.#slots) this.#refresh(p)
  }

  /** Records whose event time lay beyond the limit. */
  get clampedRecords(): number {
    return this.#clamped
  }

  /** For how long dispatch has been held by an alignment group; 0 when it is not. */
  holdMs(now: number): number {
    const p = this.#bindingPartition()
    return p < 0 ? 0 : now - this.#alignment.heldSince(p, this.#headOffset[p] as number)
  }

  /** Of the heads that wait for a partition of their task, the one that has waited longest. */
  longestWait(): { readonly held: PartitionKey; readonly awaited: PartitionKey; readonly since: number } | undefined {
    if (this.#heads.withheld === 0) return undefined
    let longest: { readonly held: number; readonly awaited: number; readonly since: number } | undefined
    for (const p of this.#slots) {
      const wait = this.#heads.isWithheld(p) ? this.#inputs.wait(p) : undefined
      if (!wait) continue
      const since = Math.max(wait.since, this.#bufferedSince[p] as number)
      if (!longest || since < longest.since) longest = { held: p, awaited: wait.awaited, since }
    }
    return longest && { held: this.#key(longest.held), awaited: this.#key(longest.awaited), since: longest.since }
  }

  snapshot(now: number, wallNow: number): WatermarkReport {
    this.#wall.observe(now, wallNow)
    this.#advance()
    const partitions: Record<PartitionKey, PartitionWatermarkReport> = {}
    const alignmentGroupMins: Record<string, number> = {}
    for (const p of this.#slots) {
      const group = this.#alignment.groupName(p)
      let groupMin: number | undefined
      if (group !== null) {
        groupMin = alignmentGroupMins[group] ?? this.#noteGroupMin(p)
        if (groupMin !== undefined) alignmentGroupMins[group] = groupMin
      }
      partitions[this.#key(p)] = this.#report(p, groupMin)
    }
    const undecided = this.#global === unknown || this.#counted.min === unknown
    return {
      globalMs: undecided ? null : this.#global,
      alignmentGroupMins,
      alignmentBinding: this.#bindingReport(),
      partitions,
    }
  }

  #report(p: number, groupMin: number | undefined): PartitionWatermarkReport {
    const watermark = this.#watermark[p] as number
    const lastEvent = this.#lastEvent[p] as number
    const known = watermark !== unknown
    const report: PartitionWatermarkReport = {
      watermarkMs: known ? watermark : null,
      idle: this.#idle.isIdle(p),
      lastEventTimeMs: Number.isNaN(lastEvent) ? null : this.#wall.epochMs(lastEvent),
      idlenessTimeoutMs: this.#idle.timeoutMs(p),
      alignmentGroup: this.#alignment.groupName(p),
      alignmentHeld: this.#heads.timestamp(p) !== noHead && this.#isHeld(p),
      driftFromGroupMinMs: known && groupMin !== undefined ? saturatingDifference(watermark, groupMin) : null,
    }
    const behindSince = this.#behindSince[p] as number
    if (!Number.isNaN(behindSince)) {
      const counted = this.#countedOf(p)
      if (counted > watermark) report.previewWatermarkMs = counted
      report.headHeldSinceMs = this.#wall.epochMs(behindSince)
    }
    return report
  }

  #bindingPartition(): number {
    const p = this.#oldest
    if (this.#suspended !== 0 || p < 0 || !this.#isHeld(p)) return -1
    return Number.isNaN(this.#alignment.heldSince(p, this.#headOffset[p] as number)) ? -1 : p
  }

  #bindingReport(): AlignmentBindingReport | null {
    const p = this.#bindingPartition()
    const group = p < 0 ? null : this.#alignment.groupName(p)
    if (group === null) return null
    const laggards = this.#alignment.laggards(p, this.#candidate(p))
    return {
      group,
      partition: this.#key(p),
      emptyLaggards: laggards.sort((a, b) => this.#compare(a, b)).map((q) => this.#key(q)),
      sinceMs: this.#wall.epochMs(this.#alignment.heldSince(p, this.#headOffset[p] as number)),
    }
  }

  #advance(): void {
    const least = this.#counted.min
    // Infinity: every partition is idle. What was reached stays.
    if (least > this.#global && least !== never) this.#global = least
  }

  /** Finds the oldest head anew; true if it is another one, whose preview ends while that of the last one begins. */
  #findOldest(now: number): boolean {
    const first = this.#heads.first()
    const before = this.#oldest
    if (first === before) return false
    this.#oldest = first
    if (before >= 0 && this.#heads.timestamp(before) !== noHead) {
      this.#behindSince[before] = now
      this.#refreshCounted(before)
    }
    if (first >= 0) {
      this.#behindSince[first] = Number.NaN
      this.#refreshCounted(first)
    }
    return true
  }

  /** Heads whose task waits for more are passed over. */
  #place(partitions: readonly number[]): void {
    for (const p of partitions) {
      if (this.#inputs.waits(p)) this.#heads.withhold(p)
      else this.#heads.release(p)
      this.#refreshLaggard(p)
    }
  }

  #sort(partitions: readonly number[], now: number): void {
    this.#place(partitions)
    this.#findOldest(now)
  }

  #takeHead(p: number, now: number): void {
    this.#alignment.endHold(p)
    this.#heads.clear(p)
    this.#headOffset[p] = -1
    this.#bufferedSince[p] = Number.NaN
    this.#behindSince[p] = Number.NaN
    this.#findOldest(now)
  }

  #bound(timestamp: number): number {
    return Math.min(timestamp, this.#futureLimit)
  }

  /** The watermark that the partition will have when its head is dispatched. */
  #candidate(p: number): number {
    const watermark = this.#watermark[p] as number
    const brought = this.#bound(this.#heads.timestamp(p)) - (this.#outOfOrderness[p] as number)
    return Math.max(brought, watermark)
  }

  /** The watermark that counts in the minimum. */
  #countedOf(p: number): number {
    if (p === this.#oldest || this.#heads.timestamp(p) === noHead) return this.#watermark[p] as number
    return this.#candidate(p)
  }

  #refreshCounted(p: number): void {
    this.#counted.set(p, this.#idle.isIdle(p) ? never : this.#countedOf(p))
  }

  #refreshLaggard(p: number): void {
    if (!this.#alignment.aligned(p)) return
    if (this.#heads.isWithheld(p)) {
      // It cannot go before those that are ahead of it, and its head tells how far it will be.
      this.#alignment.setLaggard(p, this.#candidate(p))
      return
    }
    const watermark = this.#watermark[p] as number
    const waitsForNothing =
      this.#heads.timestamp(p) !== noHead || this.#idle.isIdle(p) || (watermark === unknown && this.#idle.seenEmpty(p))
    this.#alignment.setLaggard(p, waitsForNothing ? never : watermark)
  }

  #refresh(p: number): void {
    this.#refreshCounted(p)
    this.#refreshLaggard(p)
  }

  #isHeld(p: number): boolean {
    return this.#alignment.held(p, this.#candidate(p))
  }

  #endHolds(): void {
    this.#alignment.endHolds((p, offset) => this.#headOffset[p] !== offset || !this.#isHeld(p))
  }

  #holdIsOver(p: number, now: number): boolean {
    if (this.#maxHoldMs === 0) return false
    const since = this.#alignment.heldSince(p, this.#headOffset[p] as number)
    if (!(now - since >= this.#maxHoldMs)) return false
    this.#alignment.excuse(this.#alignment.laggards(p, this.#candidate(p)))
    this.#alignment.endHold(p)
    return true
  }

  #holdDeadline(): number {
    if (this.#maxHoldMs === 0) return never
    const p = this.#bindingPartition()
    return p < 0 ? never : this.#alignment.heldSince(p, this.#headOffset[p] as number) + this.#maxHoldMs
  }

  /** A hold has ended: what was buffered meanwhile could not be dispatched, and the wait is no sign of idleness. */
  #endBlock(now: number): void {
    const from = this.#blockedSince
    this.#blockedSince = Number.NaN
    for (const p of this.#slots) {
      const bufferedSince = this.#bufferedSince[p] as number
      if (!Number.isNaN(bufferedSince))
        this.#lastEvent[p] = (this.#lastEvent[p] as number) + now - Math.max(from, bufferedSince)
    }
  }

  #noteGroupMin(p: number): number | undefined {
    return this.#alignment.groupMin(p, (q) => {
      const counted = this.#idle.isIdle(q) ? never : this.#countedOf(q)
      return counted === unknown ? never : counted
    })
  }

  #key(p: number): PartitionKey {
    const { topic, partition } = this.#topicPartitions[p] as TopicPartition
    return partitionKey(topic, partition)
  }

  #compare(p: number, q: number): number {
    const a = this.#topicPartitions[p] as TopicPartition
    const b = this.#topicPartitions[q] as TopicPartition
    return a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.partition - b.partition
  }

  #grow(): void {
    const before = this.#capacity
    const capacity = before * 2
    this.#capacity = capacity
    this.#outOfOrderness = widened(this.#outOfOrderness, capacity)
    this.#watermark = widened(this.#watermark, capacity).fill(unknown, before)
    this.#headOffset = widened(this.#headOffset, capacity).fill(-1, before)
    this.#bufferedSince = widened(this.#bufferedSince, capacity).fill(Number.NaN, before)
    this.#behindSince = widened(this.#behindSince, capacity).fill(Number.NaN, before)
    this.#lastEvent = widened(this.#lastEvent, capacity).fill(Number.NaN, before)
    this.#heads.grow(capacity)
    this.#counted.grow(capacity)
    this.#idle.grow(capacity)
    this.#inputs.grow(capacity)
    this.#alignment.grow(capacity)
  }
}
