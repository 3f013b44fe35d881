/** Rows in front of a backend that is written behind: those that it does not have yet, and perhaps some that it has. */
import type { RowWrites } from '../contract.ts'
import type { KeyFilter } from './key-filter.ts'

export interface WriteBuffer {
  /** Memory of the rows that the backend does not have, about. */
  readonly heldBytes: number
  /** Memory of all rows, about. */
  readonly bufferBytes: number
  /** By how much the number of rows differs from the backend's, as far as that is known. */
  readonly difference: number
  /** Rows of which nobody knows whether the backend has them, and which are taken for rows that it has. */
  readonly unknown?: number
  /**
   * Told of every row that leaves here while the backend has it: of all others that are not here the backend has none.
   * Undefined while nobody knows; absent where nobody asks.
   */
  gone?: KeyFilter | undefined
  /** The rows that are not held go, for others come in the place of these. */
  leave?(): void
  /** The committed row; null: it is deleted; undefined: that is the backend's to tell. */
  committed(key: string): Uint8Array | null | undefined
  /** Keys of rows, in their order. */
  keys(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<string>
  /** Holds a row that is committed; null: it goes. */
  hold(key: string, value: Uint8Array | null): void
  /** All rows that the backend does not have, in no order. */
  held(): IterableIterator<readonly [key: string, value: Uint8Array | null]>
  /** Takes the rows that are held as those that are written now; about in the order of their keys, or in that of their hashes where they have some. */
  take(inHashOrder: boolean): HeldBatch
  /** Asks of rows of which nobody knows it whether the backend has them. */
  compare(has: (key: string) => boolean): void
  /** Drops rows that the backend has. */
  shrink(): void
  clear(): void
}

/** Rows on their way to the backend, as they are when they are asked for. */
export interface HeldBatch extends RowWrites {
  /** The backend has the rows of these places; with `keep` they may stay for those who read them. */
  release(from: number, to: number, keep: boolean): void
}
