/** The changes of a sealed epoch of windows, out of their columns. */
import type { CommitEpoch } from '../base/ids.ts'
import { keyBytes } from './bytes.ts'
import type { ByteChange } from './contract.ts'
import { Row, type RowCodec } from './row.ts'
import { Scratch } from './scratch.ts'
import type { ShowChange } from './slot-generation.ts'
import { decoded } from './slot-record.ts'
import { neverTold, type WindowPlace } from './window-place.ts'

export interface WindowGeneration {
  readonly epoch: CommitEpoch
  readonly generation: number
  /** Those with changes. */
  readonly places: readonly WindowPlace[]
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
      if (log.form(at) === neverTold) continue
      const slot = log.slot(at)
      const length = table.keyLength(slot)
      const key = scratch.of(length + tail.length)
      table.copyKey(slot, key, 0)
      for (let i = 0; i < tail.length; i++) key[length + i] = tail[i] as number
      const isThere = place.load(slot, generation, committedGeneration, codec, row) >= decoded
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
      if (log.form(at) === neverTold) continue
      const slot = log.slot(at)
      const isThere = place.load(slot, generation, committedGeneration, codec, row) >= decoded
      yield [keyBytes(place.rowOf(slot)), isThere ? codec.toBackend(row) : null]
    }
  }
}
