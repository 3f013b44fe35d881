/** A record batch that is too large for its topic, as two of about half the size. */
import { RecordBatchBuilder } from './record-batch-builder.ts'
import { RecordCursor } from './record-cursor.ts'

export interface BatchPart {
  readonly records: Uint8Array<ArrayBuffer>
  readonly count: number
}

/** The batch has more than one record; its producer's identity is not carried over. */
export function splitBatch(batch: Uint8Array, count: number): BatchPart[] {
  const cursor = new RecordCursor({ verifyChecksums: false })
  cursor.reset(batch, 0, [], 'read_uncommitted')
  const builder = new RecordBatchBuilder()
  const parts: BatchPart[] = []
  const finish = (): void => {
    const records = builder.count
    parts.push({ count: records, records: builder.finish() })
  }
  for (let i = 0; cursor.next(); i++) {
    const range = (start: number, end: number): Uint8Array | null =>
      start < 0 ? null : cursor.bytes.subarray(start, end)
    const key = range(cursor.keyStart, cursor.keyEnd)
    const value = range(cursor.valueStart, cursor.valueEnd)
    const headers = cursor.bytes.subarray(cursor.headersStart, cursor.headersEnd)
    const size = (key?.length ?? 0) + (value?.length ?? 0) + headers.length
    // Each part has a record at least.
    const isLast = i === count - 1
    const isHalf = builder.bytes + size > batch.length / 2
    if (parts.length === 0 && builder.count > 0 && (isLast || isHalf)) finish()
    builder.append(cursor.timestamp, key, value, headers)
  }
  finish()
  return parts
}
