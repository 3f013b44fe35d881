/** Cost of taking records out of a partition's buffer, per record. `node bench/micro/partition-buffer.ts` */
import { PartitionBuffer } from '../../src/engine/input/partition-buffer.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'

const records = 1_000_000
const perBatch = 1000

function batch(): Uint8Array {
  const builder = new RecordBatchBuilder()
  const key = Buffer.from('key-0000')
  const value = Buffer.alloc(100, 'x')
  for (let i = 0; i < perBatch; i++) builder.append(1000 + i, key, value, [])
  return builder.finish()
}

function round(): number {
  const nothing = (): void => undefined
  const buffer = new PartitionBuffer(
    { topic: 't', partition: 0, offset: 0, capacity: 1000, maxPollRecords: 1000, isolation: 'read_committed' },
    { arrived: nothing, polled: nothing, hungry: nothing, failed: nothing },
  )
  const bytes = batch()
  const startedAt = performance.now()
  let sum = 0
  for (let done = 0; done < records; done += perBatch) {
    buffer.seek(0)
    buffer.append(bytes, [])
    while (buffer.hasHead) {
      sum += buffer.headTimestamp + buffer.cursor.keyStart
      buffer.shift()
    }
  }
  return sum > 0 ? ((performance.now() - startedAt) * 1e6) / records : Number.NaN
}

let best = Number.POSITIVE_INFINITY
for (let i = 0; i < 5; i++) best = Math.min(best, round())
process.stdout.write(`${best.toFixed(0)} ns a record of 120 bytes, checksum included\n`)
