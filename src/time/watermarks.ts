/**
 * Watermarks of the partitions and of the application, and which buffered record goes next.
 *
 * A partition's watermark is the highest event time dispatched from it less its allowed out-of-orderness. The
 * application's watermark is the least of those that count: idle partitions do not, and a partition whose head waits
 * behind older ones counts with what that head will bring (its *preview*), since nothing older than its own bound can
 * come before it. It never falls, and stays unknown while a partition that is not idle has no watermark.
 *
 * Partitions are named by small integers, and nothing is allocated per record. Durations are by the caller's monotonic clock.
 */
import { assert } from '../base/assert.ts'
import type { PartitionKey, TopicPartition } from '../base/ids.ts'
import type { Gate } from './gates.ts'
import { noHead } from './head-order.ts'
import { Heads } from './heads.ts'
import { Holds } from './holds.ts'
import { IdleClocks, type MoreEvidence } from './idleness.ts'
import { type PartitionTiming, PartitionWatermarks, never } from './partition-watermarks.ts'
import { PartitionNames } from './partition-names.ts'
import type { TaskInput } from './task-inputs.ts'
import { TaskWatermarks } from './task-watermarks.ts'
import { clockToleranceMs, type WatermarkReport } from './watermark-report.ts'
import { WatermarkSnapshots } from './watermark-snapshot.ts'

export { noHead } from './head-order.ts'

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
  /** Each task has a watermark of its own, for no other task gives it records but through a topic. */
  readonly byTask?: boolean
}

/** A head that waits; `byWriters`: for those who write to the awaited partition, and not for records that lie in it. */
export interface PartitionWait {
  readonly held: PartitionKey
  readonly awaited: PartitionKey
  readonly byWriters: boolean
  readonly since: number
}

/** Why nothing is dispatched although something is buffered. */
export type Suspension = 'pause' | 'backpressure'
const suspensionBits: Readonly<Record<Suspension, number>> = { pause: 1, backpressure: 2 }

const firstCapacity = 4

export class Watermarks {
  #capacity = firstCapacity
  readonly #names = new PartitionNames()
  readonly #heads: Heads
  readonly #idle: IdleClocks
  readonly #marks: PartitionWatermarks
  readonly #holds: Holds
  readonly #snapshots: WatermarkSnapshots
  /** Undefined where all tasks go by the application's watermark. */
  readonly #tasks: TaskWatermarks | undefined
  #suspended = 0

  constructor(options: WatermarksOptions = {}) {
    const heads = new Heads(firstCapacity, options.maxTaskIdleMs ?? 0)
    const idle = new IdleClocks(firstCapacity, {
      evidenceTtlMs: options.evidenceTtlMs ?? 3000,
      onFetchError: options.onFetchError ?? 'suspend',
    })
    const marks = new PartitionWatermarks(firstCapacity, heads, idle)
    const holds = new Holds(firstCapacity, options.maxHoldMs ?? 0, { heads, marks, idle })
    this.#heads = heads
    this.#idle = idle
    this.#marks = marks
    this.#holds = holds
    this.#tasks = options.byTask === true ? new TaskWatermarks(heads, marks, idle) : undefined
    this.#snapshots = new WatermarkSnapshots({ names: this.#names, heads, marks, holds, idle })
  }

  /**
   * Adds a partition, with no watermark yet. The handle holds until `revoke`; then it may name another partition.
   * `input`: the task that it feeds together with others, whose heads wait for one another.
   */
  assign(tp: TopicPartition, timing: PartitionTiming, input?: TaskInput): number {
    const p = this.#names.add(tp)
    if (p >= this.#capacity) this.#grow()
    assert(p < this.#capacity, `partition ${p} has no room among ${this.#capacity}`)
    assert(!this.#heads.has(p), 'a partition that comes has a head of one that went')
    this.#marks.assign(p, timing)
    this.#idle.assign(p, timing.idlenessMs)
    this.#holds.assign(p, timing.alignment)
    this.#heads.rank(this.#names.slots)
    this.#refresh(p)
    if (input) this.#sort(this.#heads.join(p, input), input.at)
    if (this.#tasks) this.#tasks.join(p, input?.task ?? this.#names.key(p))
    return p
  }

  /** Removes a partition: it holds nobody back any more. */
  revoke(tp: TopicPartition, now: number): void {
    const p = this.handle(tp.topic, tp.partition)
    if (p < 0) return
    this.#holds.groupMin(p)
    this.#takeHead(p, now)
    this.#sort(this.#heads.leave(p), now)
    this.#idle.assign(p, 0)
    this.#tasks?.leave(p)
    this.#holds.revoke(p, now)
    this.#names.remove(p)
    this.#marks.revoke(p)
  }

  /** -1 for a partition that is not assigned. */
  handle(topic: string, partition: number): number {
    return this.#names.handle(topic, partition)
  }

  /** Something is buffered where nothing was. The partition is not idle any more. */
  headArrived(p: number, timestamp: number, offset: number, now: number): void {
    this.#idle.arrived(p, now)
    this.#holds.arrived(p)
    this.#place(this.#heads.arrived(p, timestamp, offset, now))
    this.#findOldest(now)
    this.#heads.waitsBehind(p, now)
    this.#refresh(p)
  }

  /** The partition's next record is another one than before: an older one came. */
  headReplaced(p: number, timestamp: number, offset: number, now: number): void {
    this.#place(this.#heads.replaced(p, timestamp, offset))
    this.#holds.refresh(p)
    this.#findOldest(now)
    this.#refresh(p)
  }

  /**
   * The heads of these partitions wait from now on for those who write to `awaited`, one of them; `went` says of each up
   * to which event time heads of it have gone already.
   */
  gate(members: readonly number[], awaited: number, went: (p: number) => number, now: number): void {
    this.#sort(this.#heads.gate(members, awaited, went, now), now)
  }

  /** Those who feed the gate of `p` have come so far; `known` says of each partition up to where it was read then. */
  cameTo(p: number, gate: Gate, known: ReadonlyMap<PartitionKey, number>, now: number): void {
    const knownOf = (q: number): number => known.get(this.#names.key(q)) ?? 0
    this.#sort(this.#heads.cameTo(p, gate, knownOf, now), now)
  }

  /** The heads behind the gate of `p` go up to this event time, whoever has come so far or not. */
  letGo(p: number, upToMs: number, now: number): void {
    this.#sort(this.#heads.letGo(p, upToMs, now), now)
  }

  /** The partition has a head that waits for others of its task, or for those who write to it. */
  isWithheld(p: number): boolean {
    return this.#heads.isWithheld(p)
  }

  /** What was buffered is given up (a seek, a restart): the position and hence all evidence is another one. */
  headDiscarded(p: number, now: number): void {
    this.#takeHead(p, now)
    this.#sort(this.#heads.ranEmpty(p, now), now)
    this.#idle.reset(p, now)
    this.#refresh(p)
  }

  /**
   * The partition whose head goes next: the oldest of all. -1 when nothing may go: nothing is buffered, dispatch is
   * suspended, or the oldest head is held by its alignment group, which holds everything younger with it.
   */
  pick(now: number): number {
    this.#marks.advance()
    if (this.#suspended !== 0) return -1
    const p = this.#heads.oldest
    return this.#holds.any && this.#holds.stops(p, this.#names.slots, now) ? -1 : p
  }

  /**
   * The head of `p` was dispatched; behind it waits the next one, or `noHead`. Answers with the watermark in force for the
   * dispatched record, itself included. What the next head previews counts for later records only, or it could make the
   * very record late.
   */
  dispatched(p: number, nextTimestamp: number, nextOffset: number, now: number): number {
    const heads = this.#heads
    const marks = this.#marks
    const timestamp = heads.timestamp(p)
    marks.dispatched(p, timestamp, heads.offset(p), now)
    this.#holds.dispatched(p, now)
    marks.advance()
    const inForce = this.inForce(p)
    heads.next(p, nextTimestamp, nextOffset)
    if (heads.isAnyGated) this.#place(heads.wentThrough(p, timestamp, now))
    if (nextTimestamp === noHead) this.#ranEmpty(p, now)
    else this.#findOldest(now)
    // Behind a gate the heads are in order: nothing older than the next one is left, as far as those who write have told.
    if (heads.isGated(p)) marks.comeTo(p, nextTimestamp)
    return inForce
  }

  /**
   * What the last fetch of a partition said, or a question where its log ends. `lag`: offsets between the position it
   * reached and the last stable one. Only a partition seen empty can turn idle.
   */
  evidence(p: number, lag: number | undefined, fetchFailed: boolean, now: number, more: MoreEvidence = {}): void {
    if (lag === undefined) this.#sort(this.#heads.forgetLag(p, now), now)
    if (lag === undefined) return
    // What has come and may not be read yet is waited for, but held up by nobody who has something to read.
    const left = more.isWithheld === true ? Math.max(1, lag) : lag
    if (this.#idle.evidence(p, left, fetchFailed, now, more.askedAt)) this.#marks.refresh(p)
    this.#holds.refresh(p)
    if (!fetchFailed) this.#sort(this.#heads.fetched(p, lag, now), now)
  }

  /** Stops dispatch. A pause stops the idle clocks too. Holds are kept with the time at which they began. */
  suspend(cause: Suspension, now: number): void {
    this.#suspended |= suspensionBits[cause]
    if (cause === 'pause') this.#idle.stop(this.#names.slots, now)
  }

  resume(cause: Suspension, now: number): void {
    this.#suspended &= ~suspensionBits[cause]
    if (cause !== 'pause') return
    this.#idle.go(this.#names.slots, now)
    // Nothing was fetched meanwhile: a partition that was empty has to be seen so again before others go ahead of it.
    for (const p of this.#names.slots) this.#sort(this.#heads.forgetLag(p, now), now)
  }

  /** Applies what time alone brings. True when something changed, so that `pick` may answer otherwise. */
  tick(now: number): boolean {
    const { slots } = this.#names
    let changed = false
    // Each at its time, however late this is asked: until then it counts for how far the others have come.
    for (let at = this.#idle.nextDeadline(slots); at <= now; at = this.#idle.nextDeadline(slots)) {
      this.#turnIdle(at)
      changed = true
    }
    if (now >= this.#heads.nextDeadline(slots)) {
      for (let task = this.#heads.expired(slots, now); task; task = this.#heads.expired(slots, now)) {
        this.#sort(task, now)
        changed = true
      }
    }
    this.#marks.advance()
    return changed || now >= this.#holdDeadline()
  }

  /** When `tick` or `unproven` has something to do, on the monotonic clock; `Infinity` for never. */
  nextDeadline(): number {
    const { slots } = this.#names
    const idle = Math.min(this.#idle.nextDeadline(slots), this.#idle.nextQuestion(slots))
    return Math.min(idle, this.#heads.nextDeadline(slots), this.#holdDeadline())
  }

  /** Those that turn idle once the broker, asked from now on, says that they are empty. */
  unproven(now: number): PartitionKey[] {
    return this.#idle.unproven(this.#names.slots, now).map((p) => this.#names.key(p))
  }

  /** The application's watermark, -Infinity while unknown. */
  global(): number {
    return this.#marks.global
  }

  /** The watermark by which the task goes that this partition feeds. */
  inForce(p: number): number {
    return this.#tasks === undefined ? this.#marks.global : this.#tasks.of(p)
  }

  get areByTask(): boolean {
    return this.#tasks !== undefined
  }

  /** Where tasks have their own: tells of each that has come further since the last call, by one of its partitions. */
  tellTasks(each: (p: number, watermark: number) => void): void {
    this.#tasks?.tell(each)
  }

  /** Where tasks have their own: the one that this partition feeds had come this far at its last commit. */
  restoreTask(p: number, watermark: number): void {
    this.#tasks?.restore(p, watermark)
  }

  /** There is no more input for the task that this partition feeds: it comes as far as this. True if it rose. */
  raiseTask(p: number, watermark: number): boolean {
    return this.#tasks?.raise(p, watermark) ?? false
  }

  /** Highest event time dispatched from a partition, -Infinity before the first. */
  maxTs(p: number): number {
    return this.#marks.maxTs(p)
  }

  /** See `Heads.comesTo`. */
  comesTo(p: number): number {
    return this.#heads.comesTo(p)
  }

  /** Whoever writes to the partition has come this far, and all that was written until then was dispatched. */
  announce(p: number, watermark: number): void {
    if (!this.#marks.raise(p, watermark)) return
    this.#refresh(p)
    this.#marks.advance()
  }

  /** Of this partition no record shows more than this event time: those who write to it have told no more. */
  setCeiling(p: number, epochMs: number): void {
    this.#marks.setCeiling(p, epochMs)
    this.#refresh(p)
    this.#marks.advance()
  }

  /** See `IdleClocks.knownAt`. */
  knownAt(p: number): number | undefined {
    return this.#idle.knownAt(p)
  }

  isIdle(p: number): boolean {
    return this.#idle.isIdle(p)
  }

  /** Sets a partition's highest event time to what was committed, also back; -Infinity makes it unknown. */
  restore(p: number, maxTs: number): void {
    this.#marks.setMaxTs(p, maxTs)
    this.#refresh(p)
  }

  /** Sets the application's watermark to what was committed. The one way in which it may fall. */
  restoreGlobal(watermark: number): void {
    this.#marks.global = watermark
  }

  /** Event times beyond this instant count as if they were at it. Default: no limit. */
  setFutureLimit(epochMs: number): void {
    this.#marks.setFutureLimit(epochMs)
    for (const p of this.#names.slots) this.#refresh(p)
  }

  /** Records whose event time lay beyond the limit. */
  get clampedRecords(): number {
    return this.#marks.clamped
  }

  /** For how long dispatch has been held by an alignment group; 0 when it is not. */
  holdMs(now: number): number {
    const p = this.#bindingPartition()
    return p < 0 ? 0 : now - this.#holds.heldSince(p)
  }

  /** Some head waits for those who write to a topic of its task. */
  get isWaitingForWriters(): boolean {
    return this.#names.slots.some((p) => this.#heads.isWithheld(p) && this.#heads.isGated(p))
  }

  /** Of the heads that wait for a partition of their task, the one that has waited longest. */
  longestWait(): PartitionWait | undefined {
    const longest = this.#heads.longestWait(this.#names.slots)
    if (!longest) return undefined
    const { held, awaited, byWriters, since } = longest
    return { held: this.#names.key(held), awaited: this.#names.key(awaited), byWriters, since }
  }

  snapshot(now: number, wallNow: number): WatermarkReport {
    this.#marks.advance()
    this.#marks.setAheadLimit(wallNow + clockToleranceMs)
    return this.#snapshots.take(this.#bindingPartition(), now, wallNow)
  }

  /** The partition whose hold stops all dispatch, -1 for none. */
  #bindingPartition(): number {
    const p = this.#heads.oldest
    if (this.#suspended !== 0 || p < 0 || !this.#holds.isHeld(p)) return -1
    return Number.isNaN(this.#holds.heldSince(p)) ? -1 : p
  }

  #turnIdle(at: number): void {
    const due = this.#names.slots.filter((p) => this.#idle.isDue(p, at))
    // First the minimum of their groups, while all of them still count.
    for (const p of due) this.#holds.groupMin(p)
    // Those that never had a record go first: what the others have reached counts, be they idle with them.
    const silent = due.filter((p) => this.#marks.maxTs(p) === Number.NEGATIVE_INFINITY)
    this.#expire(silent)
    if (silent.length > 0) this.#marks.advance()
    if (silent.length < due.length) this.#expire(due.filter((p) => !this.#idle.isIdle(p)))
    this.#marks.advance()
  }

  #expire(due: readonly number[]): void {
    for (const p of due) {
      this.#idle.expire(p)
      this.#refresh(p)
    }
  }

  #holdDeadline(): number {
    const p = this.#holds.areBounded ? this.#bindingPartition() : -1
    return p < 0 ? never : this.#holds.deadline(p)
  }

  #ranEmpty(p: number, now: number): void {
    this.#idle.ranEmpty(p, now)
    this.#place(this.#heads.ranEmpty(p, now))
    this.#findOldest(now)
    this.#refresh(p)
  }

  /** Finds the oldest head anew. If it is another one, its preview ends while that of the last one begins. */
  #findOldest(now: number): void {
    const heads = this.#heads
    const before = heads.oldest
    if (!heads.findOldest(now)) return
    if (before >= 0) this.#marks.refresh(before)
    if (heads.oldest >= 0) this.#marks.refresh(heads.oldest)
  }

  /** Heads whose task waits for more are passed over. */
  #place(partitions: readonly number[]): void {
    for (const p of partitions) {
      this.#heads.place(p)
      this.#holds.refresh(p)
    }
  }

  #sort(partitions: readonly number[], now: number): void {
    if (partitions.length === 0) return
    this.#place(partitions)
    this.#findOldest(now)
  }

  #takeHead(p: number, now: number): void {
    this.#holds.end(p, now)
    this.#sort(this.#heads.take(p), now)
    this.#findOldest(now)
  }

  #refresh(p: number): void {
    this.#marks.refresh(p)
    this.#holds.refresh(p)
  }

  #grow(): void {
    this.#capacity *= 2
    for (const part of [this.#marks, this.#heads, this.#idle, this.#holds]) part.grow(this.#capacity)
  }
}
