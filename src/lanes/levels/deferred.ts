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

interface Waiting extends DeferredRecord {
  id: number
  /** All that wait for this stage of what the same record became. */
  readonly beside: Waiting[]
}

export class Deferred {
  readonly #records = new Map<number, Waiting>()
  /** By stage of a task, then by the number of the source record's dispatch. */
  #bySeq = new WeakMap<TaskSlot, Map<number, Waiting[]>>()
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
    const bySeq = this.#bySeq.get(slot) ?? new Map<number, Waiting[]>()
    this.#bySeq.set(slot, bySeq)
    const beside = bySeq.get(rec.origin.seq) ?? []
    bySeq.set(rec.origin.seq, beside)
    const waiting = { slot, source, rec, id, beside }
    beside.push(waiting)
    this.#records.set(id, waiting)
    return id
  }

  /**
   * The record of this number, or another one of the same place that would have come before it, had all been done at
   * once: what passed through a stage between was sent later. All of them are there before the first is taken.
   */
  take(id: number): DeferredRecord {
    const deferred = this.#records.get(id)
    assert(deferred !== undefined, `record ${id} was passed on to a deeper stage and is not there`)
    const { slot, rec, beside } = deferred
    const first = beside.length === 1 ? deferred : firstOf(deferred)
    if (first !== deferred) {
      this.#records.set(first.id, deferred)
      deferred.id = first.id
    }
    this.#records.delete(id)
    beside.splice(beside.indexOf(first), 1)
    if (beside.length === 0) this.#bySeq.get(slot)?.delete(rec.origin.seq)
    return first
  }

  reset(): void {
    this.#records.clear()
    this.#bySeq = new WeakMap()
  }
}

function firstOf(deferred: Waiting): Waiting {
  const { at, turn } = deferred.rec.origin
  let first = deferred
  for (const other of deferred.beside) {
    const { origin } = other.rec
    if (origin.at === at && origin.turn === turn && origin.sub < first.rec.origin.sub) first = other
  }
  return first
}
