/** The changes of a sealed epoch of windows, out of their columns. */
import type { CommitEpoch } from '../../base/ids.ts'
import { keyBytes } from '../rows/bytes.ts'
import type { ByteChange } from '../contract.ts'
import { Row, type RowCodec } from '../rows/row.ts'
import { Scratch } from '../rows/scratch.ts'
import type { ShowChange } from '../table/sealed-epoch.ts'
import { decoded } from '../table/cell-record.ts'
import { unpublished, type SegmentTable } from './segment-table.ts'

export interface WindowGeneration {
  readonly epoch: CommitEpoch
  readonly generation: number
  /** Number of rows. */
  readonly count: number
  /** Those with changes. */
  readonly places: readonly SegmentTable[]
}

/** The rows that the changes are read from. */
interface Rows {
  readonly codec: RowCodec
  readonly committedGeneration: number
}

const scratch = new Scratch()
const row = new Row(undefined, undefined, 0)

/** Shows each row by its key in the changelog: key, start and sequence number. */
export function showChanges(
  { codec, committedGeneration }: Rows,
  { generation, places }: WindowGeneration,
  now: number,
  show: ShowChange,
): void {
  for (const place of places) {
    const log = place.logOf(generation)
    const { table, tail } = place
    for (let at = 0; at < log.count; at++) {
      if (log.form(at) === unpublished) continue
      const cell = log.cell(at)
      const length = table.keyLength(cell)
      const key = scratch.of(length + tail.length)
      table.copyKey(cell, key, 0)
      for (let i = 0; i < tail.length; i++) key[length + i] = tail[i] as number
      const isThere = place.load(cell, generation, committedGeneration, codec, row) >= decoded
      if (isThere) show(key, codec.bytes(row, true), row.timestamp)
      else show(key, null, now)
    }
  }
}

/** The same in the form of a backend. */
export function* changesInBytes(
  { codec, committedGeneration }: Rows,
  { generation, places }: WindowGeneration,
): IterableIterator<ByteChange> {
  for (const place of places) {
    const log = place.logOf(generation)
    for (let at = 0; at < log.count; at++) {
      if (log.form(at) === unpublished) continue
      const cell = log.cell(at)
      const isThere = place.load(cell, generation, committedGeneration, codec, row) >= decoded
      yield [keyBytes(place.rowOf(cell)), isThere ? codec.toBackend(row) : null]
    }
  }
}
