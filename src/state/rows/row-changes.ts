/** The rows that the open epoch has changed: what they are now, and what they were before it. One walk, made when it is asked for. */
import { Row } from './row.ts'

/** Fills what it is given with the change at this place; false: that is none that anybody is to hear of. */
export type ShowRow = (at: number, into: RowChanges) => boolean

export class RowChanges {
  /** Rows changed, at most: each is shown once. */
  readonly count: number
  /** The key string of the row that is shown. */
  key = ''
  isThere = false
  wasThere = false
  /** Only of use where they are there, and until the next one is shown. */
  now = new Row(undefined, undefined, 0)
  before = new Row(undefined, undefined, 0)
  readonly #show: ShowRow
  /** How many were looked at. */
  at = 0

  constructor(count: number, show: ShowRow) {
    this.count = count
    this.#show = show
  }

  /** What only the backend had. */
  showBefore(row: Row | undefined): void {
    this.wasThere = row !== undefined
    if (row !== undefined) this.before = row
  }

  /** Goes to the next one; false: there is none. Rows that are changed meanwhile for the first time do not come. */
  next(): boolean {
    while (this.at < this.count) if (this.#show(this.at++, this)) return true
    return false
  }
}
