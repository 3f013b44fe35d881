/** A key with what it holds: the newest row, and below it the rows of older generations down to the committed one. */
import type { CommitEpoch } from '../../base/ids.ts'
import type { Row } from '../rows/row.ts'

export class Node {
  /** The row's key string. */
  readonly key: string
  top: Row
  /** Counts the nodes made: a walk over the keys leaves out those that are younger than itself. */
  born: number
  /** The backend has no row of this key; undefined while nobody has looked. */
  isNew: boolean | undefined = undefined
  /** Its place among the nodes whose committed row is to be written; of use only while that place is its own. */
  heldAt = -1
  /** The epoch that made it took it back, and it has left the table. */
  isGone = false

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

/** The rows that a sealed epoch changed. */
export interface Generation {
  readonly epoch: CommitEpoch
  readonly generation: number
  readonly nodes: readonly Node[]
}
