/** What `--print` shows at the end is all that is committed, or the run says that it is not. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { BrokerPort } from '../../src/broker/port.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { CommittedReader } from '../../src/cli/feed/committed-reader.ts'
import { silentAbout } from '../support/silent-broker.ts'
import { World } from '../unit/engine/world.ts'

const count = 50

async function withRecords(): Promise<BrokerPort> {
  const { broker } = new World()
  const builder = new RecordBatchBuilder()
  for (let i = 0; i < count; i++) builder.append(1000 + i, Buffer.from(`k${i}`), Buffer.from(`v${i}`), [])
  await broker.createTopics([{ topic: 'out', partitions: 1 }])
  await broker.produce({ transactionalId: null, batches: [{ topic: 'out', partition: 0, records: builder.finish() }] })
  return broker
}

function readerOf(broker: BrokerPort): { reader: CommittedReader; offsets: number[] } {
  const offsets: number[] = []
  const reader = new CommittedReader({
    broker,
    topics: ['out'],
    onRecords: (_topic, _partition, cursor) => {
      while (cursor.next()) offsets.push(cursor.offset)
    },
  })
  return { reader, offsets }
}

describe('the committed records of a topic', { concurrency: true }, () => {
  test('are read to their end where the broker shows nothing for a while', async () => {
    const { reader, offsets } = readerOf(silentAbout(await withRecords(), 'out', 6))
    await reader.finish()
    assert.deepEqual(
      offsets,
      Array.from({ length: count }, (_, i) => i),
    )
  })

  test('are not taken for read where the broker does not show them', async () => {
    const { reader } = readerOf(silentAbout(await withRecords(), 'out', Number.POSITIVE_INFINITY))
    await assert.rejects(reader.finish(), { code: 'BROKER_UNREACHABLE' })
  })
})
