/**
 * Changelog records back into a store. Of a key that a run tells of several times only its last word is taken: what it
 * was before is neither cut out nor written, and a changelog that was not compacted yet is mostly that.
 */
import type { AbortedRange as AbortedTransaction } from '../../broker/wire/record-batch.ts'
import { RecordCursor } from '../../broker/wire/record-batch.ts'
import { textOfBytes } from '../../state/rows/bytes.ts'
import { restoreEntry } from '../../state/rows/changelog.ts'
import type { ByteChange, Checkpoint, StoreLifecycle } from '../../state/contract.ts'

export interface ChangelogRun {
  readonly records: Uint8Array
  readonly fromOffset: number
  /** Records from this offset on are left out. */
  readonly untilOffset: number
  readonly aborted: readonly AbortedTransaction[]
  readonly checkpoint: Checkpoint
}

/** Records applied. One run of record batches goes in as one atomic step with its checkpoint. `check` may refuse a record. */
export function restoreInto(store: StoreLifecycle, run: ChangelogRun, check?: (cursor: RecordCursor) => void): number {
  const { records, fromOffset, untilOffset, aborted, checkpoint } = run
  // The engine's thread has been through the batches and verified them.
  const cursor = new RecordCursor({ verifyChecksums: false })
  cursor.reset(records, fromOffset, aborted, 'read_committed')
  const newest = new Map<string, Found>()
  // Versions of one key are rows of their own.
  const versioned = store.spec.kind === 'versioned'
  let count = 0
  while (cursor.next()) {
    if (cursor.offset >= untilOffset) break
    const { bytes, keyStart, keyEnd, valueStart, valueEnd, timestamp } = cursor
    if (keyStart < 0) continue
    check?.(cursor)
    count++
    const name = textOfBytes(bytes, keyStart, keyEnd)
    newest.set(versioned ? `${name}@${timestamp}` : name, { bytes, keyStart, keyEnd, valueStart, valueEnd, timestamp })
  }
  const changes: ByteChange[] = []
  for (const { bytes, keyStart, keyEnd, valueStart, valueEnd, timestamp } of newest.values()) {
    const key = bytes.slice(keyStart, keyEnd)
    const value = valueStart < 0 ? null : bytes.slice(valueStart, valueEnd)
    changes.push(restoreEntry(store.spec, { key, value, timestamp }))
  }
  store.restore(changes, checkpoint)
  return count
}

/** Where a record lies. */
type Found = Pick<RecordCursor, 'bytes' | 'keyStart' | 'keyEnd' | 'valueStart' | 'valueEnd' | 'timestamp'>
