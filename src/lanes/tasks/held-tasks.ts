/** What the tasks of a lane held back when the last mark of a commit came to each of them. */
import { nothing } from '../../operators/quiet/held-back.ts'
import type { HeldTask } from '../protocol.ts'
import type { TaskSlot } from './task-slot.ts'

/** Those that hold something back; undefined where nobody asks. */
export function heldTasks(slots: Iterable<TaskSlot>): HeldTask[] | undefined {
  let all: HeldTask[] | undefined
  for (const { subtopology, partition, task } of slots) {
    if (task.held === undefined) continue
    all ??= []
    const from = task.held.marked
    if (from !== nothing) all.push({ subtopology, partition, from })
  }
  return all
}
