/** Rows of a store as its changelog has them: for one that is written anew. */
import { type BatchPack, BatchPacker } from '../../broker/wire/batch-pack.ts'
import { noHeaders } from '../../broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../broker/wire/record-batch.ts'
import type { StoreBackend, StoreSpec } from '../../state/contract.ts'
import { changelogRecord } from '../../state/rows/changelog.ts'

/** What one answer has, about. */
const answerBytes = 1024 * 1024
const batchBytes = 256 * 1024

export interface Dumped {
  readonly packs: BatchPack[]
  /** Key in the backend from which on rows are left; null: none. */
  readonly next: Uint8Array | null
}

export function dumpRows(spec: StoreSpec, partition: number, backend: StoreBackend, from: Uint8Array | null): Dumped {
  const into = new BatchPacker()
  const builder = new RecordBatchBuilder()
  let bytes = 0
  let next: Uint8Array | null = null
  for (const [at, row] of backend.range(from ?? undefined, undefined)) {
    if (bytes >= answerBytes) {
      next = at.slice()
      break
    }
    const { key, value, timestamp } = changelogRecord(spec, at, row)
    builder.append(timestamp, key, value, noHeaders)
    bytes += at.length + row.length
    if (builder.bytes >= batchBytes) into.add(spec.name, partition, builder)
  }
  if (builder.count > 0) into.add(spec.name, partition, builder)
  return { packs: into.take(), next }
}
