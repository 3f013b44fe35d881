/** A key with what it holds: the newest row, and below it the rows of older generations down to the committed one. */
import type { Row } from './row.ts'

export class Node {
  /** What the node's table knows it by: the row's key string, or the part of it that lies within a segment. */
  readonly key: string
  top: Row
  /** Counts the nodes made: a walk over the keys leaves out those that are younger than itself. */
  born: number
  /** Where the node lies in a table that is cut into segments; undefined in others. */
  place: NodePlace | undefined = undefined
  /** The backend has no row of this key; undefined while nobody has looked. */
  isNew: boolean | undefined = undefined

  constructor(key: string, top: Row, born: number) {
    this.key = key
    this.top = top
    this.born = born
  }

  /** The newest row that is not younger than the generation. */
  at(generation: number): Row | undefined {
    let row: Row | undefined = this.top
    while (row !== undefined && row.generation > generation) row = row.below
    return row
  }

  /** The oldest row that is younger than the generation. */
  above(generation: number): Row | undefined {
    let found: Row | undefined
    for (let row: Row | undefined = this.top; row !== undefined && row.generation > generation; row = row.below) {
      found = row
    }
    return found
  }
}

/** The nodes of one part of a table that are named in the same way. */
export interface NodePlace {
  /** What stands in front of the nodes' keys in their rows' key strings, and what behind them. */
  readonly before: string
  readonly behind: string
  /** `behind` in bytes. */
  readonly tail: Uint8Array
}
