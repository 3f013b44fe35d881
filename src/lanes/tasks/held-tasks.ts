/** What the tasks of a lane held back when the last mark of a commit came to each of them. */
import type { Held } from '../protocol.ts'
import type { TaskSlot } from './task-slot.ts'

/** Undefined where nobody asks. */
export function heldByTasks(slots: Iterable<TaskSlot>): Held[] | undefined {
  let all: Held[] | undefined
  for (const { partition, task } of slots) {
    if (task.held === undefined) continue
    all ??= []
    for (const held of task.held.marked) all.push({ ...held, partition })
  }
  return all
}
