/**
 * The watermark of each task, where a task has partitions of its own: sub-topologies that exchange records through topics.
 * It follows the task's partitions alone. So it does not matter which other tasks the process has, nor which process has
 * the task: the watermark moves with it.
 */
import { assert } from '../base/assert.ts'
import type { Heads } from './heads.ts'
import type { IdleClocks } from './idleness.ts'
import { noHead } from './head-order.ts'
import { never, type PartitionWatermarks, unknown } from './partition-watermarks.ts'

interface TaskTime {
  readonly name: string
  readonly members: number[]
  watermark: number
  /** What its lane knows. */
  told: number
}

export class TaskWatermarks {
  readonly #heads: Heads
  readonly #marks: PartitionWatermarks
  readonly #idle: IdleClocks
  readonly #byName = new Map<string, TaskTime>()
  readonly #taskOf: Array<TaskTime | undefined> = []

  constructor(heads: Heads, marks: PartitionWatermarks, idle: IdleClocks) {
    this.#heads = heads
    this.#marks = marks
    this.#idle = idle
  }

  join(p: number, name: string): void {
    let task = this.#byName.get(name)
    if (task === undefined) {
      task = { name, members: [], watermark: unknown, told: unknown }
      this.#byName.set(name, task)
    }
    assert(!task.members.includes(p), `partition ${p} feeds task ${name} twice`)
    task.members.push(p)
    this.#taskOf[p] = task
  }

  leave(p: number): void {
    const task = this.#taskOf[p]
    if (task === undefined) return
    this.#taskOf[p] = undefined
    task.members.splice(task.members.indexOf(p), 1)
    if (task.members.length === 0) this.#byName.delete(task.name)
  }

  /** The task that this partition feeds has come so far, as a commit says; it never falls. */
  restore(p: number, watermark: number): void {
    const task = this.#taskOf[p] as TaskTime
    if (watermark > task.watermark) task.watermark = watermark
    // Its lane is told with the task.
    if (watermark > task.told) task.told = watermark
  }

  /** The watermark of the task that this partition feeds. */
  of(p: number): number {
    const task = this.#taskOf[p] as TaskTime
    this.#advance(task)
    return task.watermark
  }

  /** There is no more input for the task that this partition feeds. True if it rose. */
  raise(p: number, watermark: number): boolean {
    const task = this.#taskOf[p] as TaskTime
    if (watermark <= task.watermark) return false
    task.watermark = watermark
    return true
  }

  /** Tells of each task that has come further since the last call, by one of its partitions. */
  tell(each: (p: number, watermark: number) => void): void {
    for (const task of this.#byName.values()) {
      this.#advance(task)
      if (task.watermark <= task.told) continue
      task.told = task.watermark
      each(task.members[0] as number, task.watermark)
    }
  }

  #advance(task: TaskTime): void {
    let least = this.#leastOf(task)
    if (least === never) least = this.#others(task)
    if (least > task.watermark && least !== never) task.watermark = least
  }

  /**
   * All of its partitions are idle: it goes on with the others of the process, yet no further than those have come who
   * write to it. What these are still at would be late.
   */
  #others({ members }: TaskTime): number {
    let { least } = this.#marks
    for (const p of members) least = Math.min(least, this.#heads.writersAt(p))
    return least
  }

  #leastOf({ members }: TaskTime): number {
    const first = this.#firstOf(members)
    let least = never
    for (const p of members) {
      if (this.#idle.isIdle(p)) continue
      const watermark = p === first ? this.#marks.watermark(p) : this.#marks.counted(p)
      if (watermark < least) least = watermark
    }
    return least
  }

  /** The partition whose head goes next of those of a task: what it will bring does not count before. */
  #firstOf(members: readonly number[]): number {
    if (members.length === 1) return members[0] as number
    let first = -1
    let oldest: number = noHead
    for (const p of members) {
      const timestamp = this.#heads.timestamp(p)
      if (timestamp >= oldest || this.#heads.isWithheld(p)) continue
      first = p
      oldest = timestamp
    }
    return first
  }
}
