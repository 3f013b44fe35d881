/** What is committed of a store's rows, as bytes. */

export interface CommittedRows {
  readonly size: number
  getBytes(key: string): Uint8Array | undefined
  /** Rows in [from, to), in the order of their keys. */
  rangeBytes(
    from: string | undefined,
    to: string | undefined,
    reverse: boolean,
  ): IterableIterator<readonly [key: string, value: Uint8Array]>
  /** All rows, in no order. */
  allBytes(): IterableIterator<readonly [key: string, value: Uint8Array]>
  /** A row that is committed already; null: it goes. `value` may be volatile. */
  commit(key: string, value: Uint8Array | null): void
  clear(): void
}
