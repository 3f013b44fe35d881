/**
 * Finds rows whose time is over without ever reading a store in one go: every call goes on where the last one ended
 * and looks at a bounded number of rows.
 */
import type { Overlay } from './overlay.ts'
import type { Row } from './row.ts'

/** Rows looked at with each commit. A store that grows by less than this many rows a commit is swept faster than it grows. */
const rowsPerCall = 512

export class Sweep {
  readonly #overlay: Overlay
  #from: string | undefined

  constructor(overlay: Overlay) {
    this.#overlay = overlay
  }

  /** Committed rows that are over and that no open or sealed change speaks of. */
  next(isOver: (key: string, row: Row) => boolean): string[] {
    const over: string[] = []
    let seen = 0
    for (const [key, row] of this.#overlay.settled(this.#from)) {
      if (seen++ === rowsPerCall) {
        this.#from = key
        return over
      }
      if (isOver(key, row)) over.push(key)
    }
    this.#from = undefined
    return over
  }
}
