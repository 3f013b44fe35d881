/**
 * Which partitions feed one task, and whether there is a choice between all of them. As long as one of them is known to
 * have more than was fetched, and nothing of it is buffered, the heads of the others wait: it may be older, and a
 * stream's record must not overtake a row of its table that the broker had before. Other tasks go on meanwhile.
 *
 * Nothing here is touched per record: a partition changes its state when it runs empty, when something is buffered, and
 * when a fetch has said how much there is.
 */
import { widened } from './idleness.ts'

export interface TaskInput {
  /** Names the task. */
  readonly task: string
  /** Records that are known to lie at the broker and were not fetched; undefined where nobody has looked. */
  readonly lag: number | undefined
  /** Monotonic instant of that. */
  readonly at: number
}

interface Task {
  readonly name: string
  readonly members: number[]
  /** Members that the others wait for. */
  awaited: number
  since: number
}

/** Never waits, not even for what is known to be there. */
export const neverWait = -1

export class TaskInputs {
  readonly #maxIdleMs: number
  readonly #byName = new Map<string, Task>()
  readonly #taskOf: Array<Task | undefined> = []
  /** NaN: unknown. */
  #lag: Float64Array
  /** Since when the partition has been empty and read to its end; NaN while it is not. */
  #emptySince: Float64Array
  #buffered: Uint8Array
  #awaited: Uint8Array

  /** `maxIdleMs`: how long a partition that was read to its end is waited for all the same; `neverWait`. */
  constructor(capacity: number, maxIdleMs: number) {
    this.#maxIdleMs = maxIdleMs
    this.#lag = new Float64Array(capacity).fill(Number.NaN)
    this.#emptySince = new Float64Array(capacity).fill(Number.NaN)
    this.#buffered = new Uint8Array(capacity)
    this.#awaited = new Uint8Array(capacity)
  }

  /** True when the members of its task have to be looked at. The same holds for every method that answers. */
  join(p: number, { task, lag, at }: TaskInput): boolean {
    let found = this.#byName.get(task)
    if (!found) {
      found = { name: task, members: [], awaited: 0, since: Number.NaN }
      this.#byName.set(task, found)
    }
    found.members.push(p)
    this.#taskOf[p] = found
    this.#lag[p] = lag ?? Number.NaN
    this.#emptySince[p] = Number.NaN
    this.#buffered[p] = 0
    this.#awaited[p] = 0
    return this.#settle(p, at)
  }

  /** Those that it leaves are the ones to look at. */
  leave(p: number): readonly number[] {
    const task = this.#taskOf[p]
    if (!task) return []
    if (this.#awaited[p] === 1) task.awaited--
    this.#awaited[p] = 0
    this.#taskOf[p] = undefined
    task.members.splice(task.members.indexOf(p), 1)
    if (task.members.length === 0) this.#byName.delete(task.name)
    return task.members
  }

  /** Partitions of the same task, itself included. */
  members(p: number): readonly number[] {
    return this.#taskOf[p]?.members ?? []
  }

  /** Whether a head of this partition has to wait. */
  waits(p: number): boolean {
    return (this.#taskOf[p]?.awaited ?? 0) > 0
  }

  /** Since when the heads of its task wait, and for which partition. */
  wait(p: number): { readonly since: number; readonly awaited: number } | undefined {
    const task = this.#taskOf[p]
    if (!task || task.awaited === 0) return undefined
    return { since: task.since, awaited: task.members.find((q) => this.#awaited[q] === 1) as number }
  }

  buffered(p: number, now: number): boolean {
    this.#buffered[p] = 1
    this.#emptySince[p] = Number.NaN
    return this.#settle(p, now)
  }

  ranEmpty(p: number, now: number): boolean {
    this.#buffered[p] = 0
    this.#rest(p, now)
    return this.#settle(p, now)
  }

  /** A fetch has said how much lies beyond the position that it reached. */
  fetched(p: number, lag: number, now: number): boolean {
    this.#lag[p] = lag
    if (lag > 0) this.#emptySince[p] = Number.NaN
    else if (Number.isNaN(this.#emptySince[p] as number)) this.#rest(p, now)
    return this.#settle(p, now)
  }

  /**
   * What was known to lie at the broker may have changed unseen. True when heads of its task wait by that. Where nothing had
   * come, the next fetch says so, and the partition has been empty for as long as before.
   */
  forgetLag(p: number, now: number): boolean {
    this.#lag[p] = Number.NaN
    return this.#settle(p, now)
  }

  /** When time alone lets something go on; `Infinity` for never. */
  nextDeadline(slots: readonly number[]): number {
    let least = Number.POSITIVE_INFINITY
    if (this.#maxIdleMs <= 0) return least
    for (const p of slots) if (this.#awaited[p] === 1) least = Math.min(least, this.#deadlineOf(p))
    return least
  }

  /** The next partition that is not waited for any longer, for time alone; -1: none. Call again until then. */
  expired(slots: readonly number[], now: number): number {
    for (const p of slots) {
      if (this.#awaited[p] === 1 && this.#deadlineOf(p) <= now) {
        this.#settle(p, now)
        return p
      }
    }
    return -1
  }

  grow(capacity: number): void {
    const { length } = this.#awaited
    this.#lag = widened(this.#lag, capacity).fill(Number.NaN, length)
    this.#emptySince = widened(this.#emptySince, capacity).fill(Number.NaN, length)
    const [buffered, awaited] = [this.#buffered, this.#awaited]
    this.#buffered = new Uint8Array(capacity)
    this.#buffered.set(buffered)
    this.#awaited = new Uint8Array(capacity)
    this.#awaited.set(awaited)
  }

  #rest(p: number, now: number): void {
    if (this.#lag[p] === 0 && this.#buffered[p] === 0) this.#emptySince[p] = now
  }

  /** `Infinity` while the wait is for records that are known to be there. */
  #deadlineOf(p: number): number {
    const since = this.#lag[p] === 0 ? (this.#emptySince[p] as number) : Number.NaN
    return Number.isNaN(since) ? Number.POSITIVE_INFINITY : since + this.#maxIdleMs
  }

  #isAwaited(p: number, now: number): boolean {
    if (this.#maxIdleMs === neverWait || this.#buffered[p] === 1) return false
    const lag = this.#lag[p] as number
    if (lag > 0 || Number.isNaN(lag)) return true
    return this.#maxIdleMs > 0 && !(now >= this.#deadlineOf(p))
  }

  #settle(p: number, now: number): boolean {
    const task = this.#taskOf[p]
    const awaited = this.#isAwaited(p, now)
    if (!task || awaited === (this.#awaited[p] === 1)) return false
    this.#awaited[p] = awaited ? 1 : 0
    task.awaited += awaited ? 1 : -1
    if (task.awaited === 1 && awaited) task.since = now
    return awaited ? task.awaited === 1 : task.awaited === 0
  }
}
