/** Whether lanes come further: one that does is slow, and not stuck. */
import { laneIndex } from '../../base/counters.ts'

export class LaneProgress {
  readonly #lanes: readonly Float64Array[]
  #marked: readonly number[]

  constructor(lanes: readonly Float64Array[]) {
    this.#lanes = lanes
    this.#marked = this.#finished()
  }

  /** From here on. */
  mark(): void {
    this.#marked = this.#finished()
  }

  /** Those of these lanes that have finished no record since the mark. */
  standing(names: readonly string[]): string[] {
    const finished = this.#finished()
    return names.filter((name) => {
      const lane = Number(name.slice('lane-'.length))
      return finished[lane] === this.#marked[lane]
    })
  }

  #finished(): number[] {
    return this.#lanes.map((block) => block[laneIndex.finishedRecords] as number)
  }
}
