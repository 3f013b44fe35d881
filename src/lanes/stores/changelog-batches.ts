/** Sealed changes as record batches for the changelog topic. */
import type { SealedChanges } from '../../state/contract.ts'
import type { BatchPacker } from '../../broker/wire/batch-pack.ts'
import { noHeaders } from '../../broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../broker/wire/record-batch.ts'
import { usualMaxBatchBytes } from '../outputs.ts'

/** Used for one store after the other, each of which leaves it empty. */
let builder = new RecordBatchBuilder()

export function packChangelog(
  store: string,
  partition: number,
  sealed: SealedChanges,
  into: BatchPacker,
  batchBytes: number,
): void {
  // A serde that threw in the middle of another store: what it left belongs nowhere.
  if (builder.count > 0) builder = new RecordBatchBuilder()
  sealed.each((key, value, timestamp) => {
    const before = builder.bytes
    builder.append(timestamp, key, value, noHeaders)
    if (builder.bytes < batchBytes) return
    if (builder.bytes > usualMaxBatchBytes && builder.count > 1) {
      // Together they are too much for one batch, where each by itself may be none too large.
      builder.dropLast(before)
      into.add(store, partition, builder)
      builder.append(timestamp, key, value, noHeaders)
      if (builder.bytes < batchBytes) return
    }
    into.add(store, partition, builder)
  })
  if (builder.count > 0) into.add(store, partition, builder)
}
