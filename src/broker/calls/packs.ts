/** Batches to write, as they travel over a message port. */
import { type BatchPack, BatchPacker, eachBatch } from '../wire/batch-pack.ts'
import type { ProduceRequest } from '../port.ts'

/** The caller keeps its bytes, also for sending them again; the broker takes a copy over. */
export function packed(batches: ProduceRequest['batches']): BatchPack[] {
  const packer = new BatchPacker()
  packer.expect(batches.reduce((bytes, { records }) => bytes + records.length, 0))
  for (const { topic, partition, records } of batches) packer.addCopy(topic, partition, 0, records)
  return packer.take()
}

export function unpack(packs: readonly BatchPack[]): ProduceRequest['batches'] {
  const batches: Array<ProduceRequest['batches'][number]> = []
  for (const pack of packs) {
    eachBatch(pack, (topic, partition, _, records) => batches.push({ topic, partition, records }))
  }
  return batches
}
