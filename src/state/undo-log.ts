/** What the rows were before an epoch changed them: how an epoch is taken back, and where committed rows are read meanwhile. */

/** Numbers of an entry beside its timestamp. */
const entryInts = 4

export class UndoLog {
  /** The generation of rows that made these entries. */
  generation = 0
  /** Some of the rows are deletions. */
  hasDeletions = false
  count = 0
  #ints = new Int32Array(64 * entryInts)
  #timestamps = new Float64Array(64)
  readonly #values: unknown[] = []

  /** Gives the entry's place. `generation` and `undo` are those of the row as it was. */
  push(slot: number, form: number, value: unknown, timestamp: number, generation: number, undo: number): number {
    const at = this.count++
    if (at === this.#timestamps.length) this.#grow()
    const i = at * entryInts
    const ints = this.#ints
    ints[i] = slot
    ints[i + 1] = form
    ints[i + 2] = generation
    ints[i + 3] = undo
    this.#timestamps[at] = timestamp
    this.#values[at] = value
    return at
  }

  slot(at: number): number {
    return this.#ints[at * entryInts] as number
  }

  form(at: number): number {
    return this.#ints[at * entryInts + 1] as number
  }

  generationAt(at: number): number {
    return this.#ints[at * entryInts + 2] as number
  }

  undo(at: number): number {
    return this.#ints[at * entryInts + 3] as number
  }

  timestamp(at: number): number {
    return this.#timestamps[at] as number
  }

  value(at: number): unknown {
    return this.#values[at]
  }

  /** The row that the entry goes back to. */
  replace(at: number, form: number, value: unknown, timestamp: number): void {
    this.#ints[at * entryInts + 1] = form
    this.#timestamps[at] = timestamp
    this.#values[at] = value
  }

  /** Empty, to be used for another generation. */
  reset(generation: number): void {
    this.#values.fill(undefined, 0, this.count)
    this.count = 0
    this.generation = generation
    this.hasDeletions = false
  }

  #grow(): void {
    const ints = new Int32Array(this.#ints.length * 2)
    ints.set(this.#ints)
    const timestamps = new Float64Array(this.#timestamps.length * 2)
    timestamps.set(this.#timestamps)
    this.#ints = ints
    this.#timestamps = timestamps
  }
}
