/** Sealed changes as record batches for the changelog topic. */
import type { SealedChanges } from '../state/contract.ts'
import { noHeaders } from '../wire/headers.ts'
import { RecordBatchBuilder } from '../wire/record-batch.ts'

/** Well below Kafka's default limit of 1 MiB a batch. */
const batchBytes = 256 * 1024

export function changelogBatches(sealed: SealedChanges): Uint8Array[] {
  const builder = new RecordBatchBuilder()
  const batches: Uint8Array[] = []
  sealed.each((key, value, timestamp) => {
    builder.append(timestamp, key, value, noHeaders)
    if (builder.bytes >= batchBytes) batches.push(builder.finish())
  })
  if (builder.count > 0) batches.push(builder.finish())
  return batches
}
