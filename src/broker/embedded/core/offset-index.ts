/** Byte positions of some batches of a segment, by their base offsets: enough to find any batch with a short walk. */
import { assert } from '../../../base/assert.ts'

const interval = 4096

export class OffsetIndex {
  readonly #offsets: number[] = []
  readonly #positions: number[] = []

  /** Notes a batch, unless the last one noted is near. */
  add(offset: number, position: number): void {
    const last = this.#positions.at(-1)
    assert(last === undefined || position >= last, `a batch at ${position} comes behind one at ${last}`)
    if (last !== undefined && position - last < interval) return
    this.#offsets.push(offset)
    this.#positions.push(position)
  }

  /** Position of the last noted batch that begins at or before `offset`; 0 without one. */
  byOffset(offset: number): number {
    return this.#positions[floor(this.#offsets, offset)] ?? 0
  }

  /** The greatest noted position that is not above `position`. */
  byPosition(position: number): number {
    return this.#positions[floor(this.#positions, position)] ?? 0
  }

  truncate(size: number): void {
    while (this.#positions.length > 0 && (this.#positions.at(-1) as number) >= size) {
      this.#positions.pop()
      this.#offsets.pop()
    }
  }
}

function floor(sorted: readonly number[], value: number): number {
  let low = -1
  let high = sorted.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((sorted[middle] as number) <= value) low = middle
    else high = middle - 1
  }
  return low
}
