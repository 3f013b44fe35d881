/** Rows of a write as changes, for who has to keep them. */
import { keyBytes } from './bytes.ts'
import type { ByteChange, RowWrites } from '../contract.ts'

/** The rows of these places, each with bytes of its own. */
export function* changesOf(rows: RowWrites, from: number, to: number): IterableIterator<ByteChange> {
  for (let i = from; i < to; i++) yield [keyBytes(rows.key(i)), rows.value(i)?.slice() ?? null]
}
