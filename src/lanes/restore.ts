/** Changelog records back into a store. */
import type { AbortedRange as AbortedTransaction } from '../wire/record-batch.ts'
import { RecordCursor } from '../wire/record-batch.ts'
import { restoreEntry } from '../state/changelog.ts'
import type { ByteChange, Checkpoint, StoreLifecycle } from '../state/contract.ts'

/** Records applied. One run of record batches goes in as one atomic step with its checkpoint. */
export function restoreInto(
  store: StoreLifecycle,
  records: Uint8Array,
  fromOffset: number,
  aborted: readonly AbortedTransaction[],
  checkpoint: Checkpoint,
): number {
  const cursor = new RecordCursor()
  cursor.reset(records, fromOffset, aborted, 'read_committed')
  const changes: ByteChange[] = []
  while (cursor.next()) {
    if (cursor.keyStart < 0) continue
    const key = cursor.bytes.slice(cursor.keyStart, cursor.keyEnd)
    const value = cursor.valueStart < 0 ? null : cursor.bytes.slice(cursor.valueStart, cursor.valueEnd)
    changes.push(restoreEntry(store.spec, { key, value, timestamp: cursor.timestamp }))
  }
  store.restore(changes, checkpoint)
  return changes.length
}
