/** Changelog records back into a store. */
import type { AbortedRange as AbortedTransaction } from '../wire/record-batch.ts'
import { RecordCursor } from '../wire/record-batch.ts'
import { restoreEntry } from '../state/changelog.ts'
import type { ByteChange, Checkpoint, StoreLifecycle } from '../state/contract.ts'

export interface ChangelogRun {
  readonly records: Uint8Array
  readonly fromOffset: number
  /** Records from this offset on are left out. */
  readonly untilOffset: number
  readonly aborted: readonly AbortedTransaction[]
  readonly checkpoint: Checkpoint
}

/** Records applied. One run of record batches goes in as one atomic step with its checkpoint. */
export function restoreInto(store: StoreLifecycle, run: ChangelogRun): number {
  const { records, fromOffset, untilOffset, aborted, checkpoint } = run
  const cursor = new RecordCursor()
  cursor.reset(records, fromOffset, aborted, 'read_committed')
  const changes: ByteChange[] = []
  while (cursor.next()) {
    if (cursor.offset >= untilOffset) break
    if (cursor.keyStart < 0) continue
    const key = cursor.bytes.slice(cursor.keyStart, cursor.keyEnd)
    const value = cursor.valueStart < 0 ? null : cursor.bytes.slice(cursor.valueStart, cursor.valueEnd)
    changes.push(restoreEntry(store.spec, { key, value, timestamp: cursor.timestamp }))
  }
  store.restore(changes, checkpoint)
  return changes.length
}
