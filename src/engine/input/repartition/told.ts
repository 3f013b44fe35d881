/** What rounds have told of sub-topologies: in force once their partitions are read up to the ends of the round. */
import type { TopicPartition } from '../../../base/ids.ts'

interface Waiting<P, T> {
  readonly ends: ReadonlyArray<{ readonly at: P; readonly end: number }>
  readonly told: T
}

export class Told<P extends TopicPartition, T> {
  readonly #inForce: (subtopology: number, told: T) => void
  /** By sub-topology: the oldest that is not reached yet, and the newest. */
  readonly #waiting = new Map<number, ReadonlyArray<Waiting<P, T>>>()

  constructor(inForce: (subtopology: number, told: T) => void) {
    this.#inForce = inForce
  }

  add(subtopology: number, ends: Waiting<P, T>['ends'], told: T): void {
    const [oldest] = this.#waiting.get(subtopology) ?? []
    const newest = { ends, told }
    this.#waiting.set(subtopology, oldest === undefined ? [newest] : [oldest, newest])
  }

  /** Those of other sub-topologies are no longer waited for. */
  keep(subtopologies: ReadonlyMap<number, unknown>): void {
    for (const subtopology of this.#waiting.keys())
      if (!subtopologies.has(subtopology)) this.#waiting.delete(subtopology)
  }

  clear(): void {
    this.#waiting.clear()
  }

  settle(isReached: (at: P, end: number) => boolean): void {
    for (const [subtopology, waiting] of this.#waiting) {
      const reached = waiting.filter(({ ends }) => ends.every(({ at, end }) => isReached(at, end)))
      if (reached.length === 0) continue
      this.#waiting.set(
        subtopology,
        waiting.filter((each) => !reached.includes(each)),
      )
      for (const { told } of reached) this.#inForce(subtopology, told)
    }
  }
}
