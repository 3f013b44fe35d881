/** What the rows were before an epoch changed them: how an epoch is taken back, and where committed rows are read meanwhile. */

import { plainNumber } from './cell-record.ts'

/** Integers of an entry. */
const entryInts = 4
/** Doubles: the timestamp, and the value if it is a number. */
const entryDoubles = 2

export class UndoLog {
  /** The generation of rows that made these entries. */
  generation = 0
  /** Some of the rows are deletions. */
  hasDeletions = false
  count = 0
  #ints = new Int32Array(64 * entryInts)
  #doubles = new Float64Array(64 * entryDoubles)
  /** By place; as long as the last one needs whose value is no number. */
  readonly #values: unknown[] = []

  /** Gives the entry's place. `generation` and `undo` are those of the row as it was; its value is no number. */
  push(cell: number, form: number, value: unknown, timestamp: number, generation: number, undo: number): number {
    const at = this.#enter(cell, form, timestamp, generation, undo)
    this.#keep(at, value)
    return at
  }

  /** As `push`, for a row whose value is a number. */
  pushNumber(cell: number, value: number, timestamp: number, generation: number, undo: number): number {
    const at = this.#enter(cell, plainNumber, timestamp, generation, undo)
    this.#doubles[at * entryDoubles + 1] = value
    return at
  }

  cell(at: number): number {
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
    return this.#doubles[at * entryDoubles] as number
  }

  value(at: number): unknown {
    return this.form(at) === plainNumber ? this.#doubles[at * entryDoubles + 1] : this.#values[at]
  }

  /** The row that the entry goes back to; its value is no number. */
  replace(at: number, form: number, value: unknown, timestamp: number): void {
    this.#ints[at * entryInts + 1] = form
    this.#doubles[at * entryDoubles] = timestamp
    this.#keep(at, value)
  }

  /** Empty, to be used for another generation. */
  reset(generation: number): void {
    this.#values.fill(undefined, 0, this.count)
    this.count = 0
    this.generation = generation
    this.hasDeletions = false
  }

  #enter(cell: number, form: number, timestamp: number, generation: number, undo: number): number {
    const at = this.count++
    const i = at * entryInts
    if (i === this.#ints.length) this.#grow()
    const ints = this.#ints
    ints[i] = cell
    ints[i + 1] = form
    ints[i + 2] = generation
    ints[i + 3] = undo
    this.#doubles[at * entryDoubles] = timestamp
    return at
  }

  #keep(at: number, value: unknown): void {
    const values = this.#values
    if (at < values.length) values[at] = value
    else if (value !== undefined) {
      while (values.length < at) values.push(undefined)
      values.push(value)
    }
  }

  #grow(): void {
    const ints = new Int32Array(this.#ints.length * 2)
    ints.set(this.#ints)
    const doubles = new Float64Array(this.#doubles.length * 2)
    doubles.set(this.#doubles)
    this.#ints = ints
    this.#doubles = doubles
  }
}
