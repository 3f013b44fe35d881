/**
 * What is known of the rows of windows that lie in a backend alone: in which segments there may be any. Windows come in the order
 * of time, so of nearly all that are asked for nobody has to look.
 */
import type { ByteRows } from '../rows/byte-rows.ts'
import { int64At, int64String } from '../rows/bytes.ts'
import { segmentStart, windowStartOf } from '../rows/layout.ts'
import type { Row } from '../rows/row.ts'

type Walk = (from: string, to: string) => IterableIterator<[string, Row]>

export class PersistedSegments {
  /** The backend's rows; undefined: there is no such backend. */
  readonly rows: ByteRows | undefined
  readonly #segmentMs: number
  /** The backend has rows that are not here in no segment that begins earlier, or later; undefined: nobody has looked. */
  #from = 0
  #upTo: number | undefined
  /** No window of such a segment starts earlier and is still to be taken out. */
  #next = Number.NEGATIVE_INFINITY

  /** `keepsNone`: no committed row is ever kept in front of the backend. */
  constructor(rows: ByteRows | undefined, segmentMs: number, keepsNone: boolean) {
    this.rows = rows
    this.#segmentMs = segmentMs
    if (keepsNone) this.#upTo = Number.POSITIVE_INFINITY
  }

  /** The last segment of which not all may be here. */
  get last(): number {
    if (this.rows === undefined) return Number.NEGATIVE_INFINITY
    if (this.#upTo === undefined) {
      const [last] = this.rows.range(undefined, undefined, true)
      this.#upTo = last === undefined ? Number.NEGATIVE_INFINITY : int64At(last[0], 0)
    }
    return this.#upTo
  }

  /** Whether there may be rows of this segment, of which nothing is here. */
  mayHave(segment: number): boolean {
    return segment >= this.#from && segment <= this.last
  }

  /** There are rows of this segment that are no longer here. */
  gained(segment: number): void {
    this.#upTo = Math.max(this.last, segment)
    this.changed(segment)
  }

  /** Rows of this segment, or of later ones, have changed: what is over is looked for anew. */
  changed(segment = this.#from): void {
    if (segment < this.#from) this.#from = segment
    this.#next = Number.NEGATIVE_INFINITY
  }

  /** Nothing is known any more. */
  forget(): void {
    this.changed(0)
    if (this.#upTo !== Number.POSITIVE_INFINITY) this.#upTo = undefined
  }

  /**
   * Finds rows of windows that start at `horizon` or before, up to `most`, and gives their number. `take` takes one out;
   * without it they are only counted. `walk` shows rows, here and below.
   */
  expire(horizon: number, most: number, walk: Walk, take?: (row: string) => void): number {
    if (this.rows === undefined || horizon < Math.max(0, this.#next)) return 0
    const newest = segmentStart(horizon, this.#segmentMs)
    const end = Math.min(newest, this.last) + 1
    if (this.#from >= end) return 0
    const over: string[] = []
    let kept = Number.POSITIVE_INFINITY
    for (const [at] of walk(int64String(this.#from), int64String(end))) {
      const start = windowStartOf(at)
      if (start <= horizon) over.push(at)
      else if (start < kept) kept = start
      if (over.length === most) break
    }
    if (take !== undefined) for (const row of over) take(row)
    // What is taken out lies here as deletions until it is gone below, many of them: they are not walked through again.
    if (over.length === most) {
      this.#from = int64At(over[most - 1] as string, 0)
      return most
    }
    const isEmpty = kept === Number.POSITIVE_INFINITY
    this.#from = isEmpty ? end : Math.max(this.#from, newest)
    this.#next = isEmpty ? Number.NEGATIVE_INFINITY : kept
    return over.length
  }
}
