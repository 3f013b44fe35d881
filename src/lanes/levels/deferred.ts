/** Records on their way from one stage of a task to a deeper one: they wait here, and only their places go with the others. */
import { assert } from '../../base/assert.ts'
import type { Rec } from '../../operators/contract.ts'
import type { TaskSlot } from '../tasks/task-slot.ts'

export interface DeferredRecord {
  readonly slot: TaskSlot
  /** The way by which it goes, as records name their source. */
  readonly source: number
  readonly rec: Rec
}

export class Deferred {
  readonly #records = new Map<number, DeferredRecord>()
  readonly #slotAt: (stage: number, partition: number) => TaskSlot | undefined
  #next = 0

  constructor(slotAt: (stage: number, partition: number) => TaskSlot | undefined) {
    this.#slotAt = slotAt
  }

  /** The part of a task that is done at a stage. */
  target(stage: number, partition: number): TaskSlot {
    const slot = this.#slotAt(stage, partition)
    assert(slot !== undefined, `stage ${stage} has no task ${partition} on this lane`)
    return slot
  }

  /** Returns the number by which it is taken again. */
  put(slot: TaskSlot, source: number, rec: Rec): number {
    const id = this.#next++
    this.#records.set(id, { slot, source, rec })
    return id
  }

  take(id: number): DeferredRecord {
    const deferred = this.#records.get(id)
    assert(deferred !== undefined, `record ${id} was passed on to a deeper stage and is not there`)
    this.#records.delete(id)
    return deferred
  }

  reset(): void {
    this.#records.clear()
  }
}
