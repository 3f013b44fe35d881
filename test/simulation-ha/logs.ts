/** Whole topics, as plain records. */
import type { EmbeddedCluster } from '../../src/broker/embedded/core/cluster.ts'
import { directClient } from '../../src/broker/embedded/direct-client.ts'
import type { ProduceRequest } from '../../src/broker/port.ts'
import type { RawRecord } from '../../src/ha/events.ts'
import { RecordCursor } from '../../src/broker/wire/record-batch.ts'

export async function readLog(cluster: EmbeddedCluster, topic: string): Promise<RawRecord[]> {
  const client = directClient(cluster)
  if ((await client.topics([topic])).length === 0) return []
  const result: RawRecord[] = []
  for (let position = 0; ; ) {
    const [fetched] = await client.fetch({
      partitions: [{ topic, partition: 0, offset: position, maxBytes: 1 << 24 }],
      maxWaitMs: 0,
      maxBytes: 1 << 24,
      isolation: 'read_committed',
    })
    if (!fetched || fetched.records.length === 0) return result
    const cursor = new RecordCursor()
    cursor.reset(fetched.records, position, fetched.aborted, 'read_committed')
    while (cursor.next()) {
      const { bytes, keyStart, keyEnd, valueStart, valueEnd, offset } = cursor
      const key = Buffer.from(bytes.subarray(keyStart, keyEnd)).toString()
      const value = valueStart < 0 ? null : Buffer.from(bytes.subarray(valueStart, valueEnd)).toString()
      result.push({ offset, key, value })
    }
    position = cursor.position
  }
}

/** Keys of the records that are written. */
export function keysOf({ batches }: ProduceRequest): string[] {
  const keys: string[] = []
  for (const { records } of batches) {
    const cursor = new RecordCursor()
    cursor.reset(records, 0, [], 'read_uncommitted')
    while (cursor.next()) keys.push(Buffer.from(cursor.bytes.subarray(cursor.keyStart, cursor.keyEnd)).toString())
  }
  return keys
}
