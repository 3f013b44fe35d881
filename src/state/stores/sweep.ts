/**
 * Finds rows whose time is over where they do not lie in the order of time, without ever reading a store in one go:
 * every call goes on where the last one ended and looks at a bounded number of rows. A pass over all rows notes those
 * that are over next, so that the next pass waits until these are gone; while nothing can be over nothing is read.
 */
import type { Row } from '../rows/row.ts'
import type { RowLayer } from '../rows/row-layer.ts'

/** Rows looked at with a commit that has other changes, and with one that has none. */
const rowsPerBusyCall = 512
const rowsPerIdleCall = 4096
/** Rows that a pass notes. */
const mostNoted = 4096

const never = Number.POSITIVE_INFINITY

type Noted = readonly [key: string, due: number]

export class Sweep {
  readonly #overlay: RowLayer
  readonly #due: (key: string, row: Row) => number
  /** Under way is a pass, which goes on behind this key; undefined: from the first. */
  #isPassing = true
  #from: string | undefined
  /** Rows that are over next, in this order from `#at` on. */
  #noted: Noted[] = []
  #at = 0
  /** Of the rows that the pass saw, those that are over before this time are noted. */
  #notedBefore = never
  /** Earliest end of the rows that were put since the pass began; and, for the next one, of those not committed yet. */
  #sincePass = never
  #sinceSeal = never
  #sealed = never

  /** `due`: the time at which a row is over. */
  constructor(overlay: RowLayer, due: (key: string, row: Row) => number) {
    this.#overlay = overlay
    this.#due = due
  }

  /** A row that is over at this time was put. */
  put(due: number): void {
    if (due < this.#sincePass) this.#sincePass = due
    if (due < this.#sinceSeal) this.#sinceSeal = due
  }

  /** Whether there may be rows that are over. */
  isDue(time: number): boolean {
    return time > Number.NEGATIVE_INFINITY && (this.#isPassing || this.#nextDue <= time)
  }

  /** Rows came or went by another way. */
  restart(): void {
    this.#isPassing = true
    this.#from = undefined
    this.#noted = []
    this.#at = 0
    this.#notedBefore = never
    this.#sincePass = Math.min(this.#sinceSeal, this.#sealed)
  }

  /** To be called once for each epoch: committed rows that are over, and that no open or sealed change speaks of. */
  next(time: number): string[] {
    const over = this.isDue(time) ? this.#take(time) : []
    this.#sealed = this.#sinceSeal
    this.#sinceSeal = never
    return over
  }

  get #nextDue(): number {
    return Math.min(this.#noted[this.#at]?.[1] ?? never, this.#notedBefore, this.#sincePass)
  }

  #take(time: number): string[] {
    const most = this.#overlay.isChanged ? rowsPerBusyCall : rowsPerIdleCall
    const over: string[] = []
    if (!this.#isPassing) {
      this.#takeNoted(time, most, over)
      if (over.length === most || this.#nextDue > time) return over
      this.restart()
    }
    this.#pass(time, most - over.length, over)
    return over
  }

  #takeNoted(time: number, most: number, over: string[]): void {
    for (let next = this.#noted[this.#at]; next !== undefined && next[1] <= time; next = this.#noted[this.#at]) {
      if (over.length === most) return
      this.#at++
      const [key] = next
      const row = this.#overlay.get(key)
      // Put again since, it is over later.
      if (row !== undefined && this.#due(key, row) <= time) over.push(key)
    }
  }

  #pass(time: number, most: number, over: string[]): void {
    const taken = new Set(over)
    let seen = 0
    for (const [key, row] of this.#overlay.settled(this.#from)) {
      if (seen++ === most) {
        this.#from = key
        return
      }
      const due = this.#due(key, row)
      if (due <= time) {
        if (!taken.has(key)) over.push(key)
      } else if (due < this.#notedBefore) this.#note(key, due)
    }
    this.#isPassing = false
    this.#from = undefined
    this.#noted.sort(byDue)
  }

  #note(key: string, due: number): void {
    this.#noted.push([key, due])
    if (this.#noted.length < 2 * mostNoted) return
    this.#noted.sort(byDue)
    this.#notedBefore = (this.#noted[mostNoted] as Noted)[1]
    this.#noted.length = mostNoted
  }
}

function byDue(a: Noted, b: Noted): number {
  return a[1] - b[1]
}
