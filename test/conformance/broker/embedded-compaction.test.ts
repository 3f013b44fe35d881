import assert from 'node:assert/strict'
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { Random } from '../../../src/base/random.ts'
import { openDiskStorage } from '../../../src/broker/embedded/disk-storage.ts'
import type { EmbeddedClient } from '../../../src/broker/embedded/embedded-client.ts'
import { RecordBatchBuilder, stampBatch } from '../../../src/broker/wire/record-batch.ts'
import { directCluster, temporaryFolder } from './embedded-support.ts'
import { batchOf, Producer, type ReadRecord, readToEnd, text, valuesOf } from './support.ts'

const topic = 'table'
const compact = { 'cleanup.policy': 'compact' }
const small = { segmentBytes: 2000, compactionBytes: 4000 }

function upserts(entries: ReadonlyArray<readonly [key: string, value: string | null]>, timestamp = 5): Uint8Array {
  const builder = new RecordBatchBuilder()
  for (const [key, value] of entries) builder.append(timestamp, text(key), value === null ? null : text(value), [])
  return builder.finish()
}

async function put(
  client: EmbeddedClient,
  entries: ReadonlyArray<readonly [key: string, value: string | null]>,
  timestamp?: number,
): Promise<void> {
  const batches = [{ topic, partition: 0, records: upserts(entries, timestamp) }]
  await client.produce({ transactionalId: null, batches })
}

function fold(records: readonly ReadRecord[]): Map<string | null, string> {
  const table = new Map<string | null, string>()
  for (const { key, value } of records) {
    if (value === null) table.delete(key)
    else table.set(key, value)
  }
  return table
}

const endOf = async (client: EmbeddedClient): Promise<number | undefined> =>
  (await client.listOffsets([{ topic, partition: 0 }], 'stable'))[0]?.offset

describe('compaction in the embedded broker', () => {
  test('keeps the last record of every key at its offset, and the log from growing', async () => {
    const { client } = directCluster(small)
    await client.createTopics([{ topic, partitions: 1, config: compact }])
    const last = new Map<string, readonly [offset: number, value: string]>()
    for (let i = 0; i < 3000; i++) {
      const key = `k${i % 10}`
      await put(client, [[key, `${i}`]])
      last.set(key, [i, `${i}`])
    }
    const { records, position } = await readToEnd(client, topic)
    assert.equal(position, 3000)
    assert.ok(records.length < 200, `${records.length} records are left`)
    const left = new Map(records.map((r) => [r.key, [r.offset, r.value]]))
    assert.deepEqual(left, last)
    for (let i = 1; i < records.length; i++) {
      assert.ok((records[i]?.offset ?? 0) > (records[i - 1]?.offset ?? 0))
    }
    assert.deepEqual((await readToEnd(client, topic, { from: 1234 })).position, 3000)
  })

  test('the table stays the same whatever is written, committed, aborted and left open, also after a restart', async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const folder = temporaryFolder(t)
        const random = new Random(seed)
        const open = () => directCluster({ ...small, storage: openDiskStorage(folder, { fsync: false }) })
        let { client, cluster } = open()
        await client.createTopics([{ topic, partitions: 1, config: compact }])
        let producer = await Producer.start(client, 'tx')
        const expected = new Map<string | null, string>()
        let sequence = 0
        for (let i = 0; i < 60; i++) {
          const entries = Array.from({ length: 1 + random.int(30) }, (): [string, string | null] => [
            `k${random.int(12)}`,
            random.chance(0.15) ? null : `${i}`.padEnd(random.int(60), '.'),
          ])
          if (random.chance(0.5)) {
            await put(client, entries)
            for (const [key, value] of entries) value === null ? expected.delete(key) : expected.set(key, value)
            continue
          }
          const commit = random.chance(0.6)
          const records = upserts(entries)
          stampBatch(records, { ...producer.identity, baseSequence: sequence, transactional: true })
          sequence += entries.length
          await producer.sendRaw(topic, records)
          const epoch = producer.identity.producerEpoch
          // Others write while the transaction is open.
          for (let n = random.int(3); n > 0; n--) {
            await put(client, [['other', 'x'.repeat(2000)]])
            expected.set('other', 'x'.repeat(2000))
          }
          await producer.end(commit)
          if (producer.identity.producerEpoch !== epoch) sequence = 0
          if (commit)
            for (const [key, value] of entries) value === null ? expected.delete(key) : expected.set(key, value)
          if (random.chance(0.2)) {
            const end = await endOf(client)
            cluster.close()
            ;({ client, cluster } = open())
            assert.equal(await endOf(client), end)
            producer = await Producer.start(client, 'tx')
            sequence = 0
          }
        }
        // A write to the same key inside and outside of a transaction counts in the order of the log.
        const { records, position } = await readToEnd(client, topic)
        assert.equal(position, await endOf(client))
        assert.deepEqual(new Map([...fold(records)].sort()), new Map([...expected].sort()))
        cluster.close()
      }),
      { numRuns: 20 },
    )
  })

  test('records of aborted transactions go, and the log keeps its end', async (t) => {
    const folder = temporaryFolder(t)
    const open = () => directCluster({ ...small, storage: openDiskStorage(folder, { fsync: false }) })
    let { client, cluster } = open()
    await client.createTopics([{ topic, partitions: 1, config: compact }])
    const producer = await Producer.start(client, 'tx')
    await put(client, [['a', 'kept']])
    for (let i = 0; i < 12; i++) await producer.send(topic, ['gone'.repeat(100)])
    await producer.end(false)
    const end = await endOf(client)
    cluster.close()
    ;({ client, cluster } = open())
    assert.equal(await endOf(client), end)
    assert.deepEqual(await valuesOf(client, topic), ['kept'])
    assert.deepEqual(await valuesOf(client, topic, 'read_uncommitted'), ['kept'])
    cluster.close()
  })

  test('segments that a crash left beside the compacted one are recognised', async (t) => {
    const folder = temporaryFolder(t)
    const open = () => directCluster({ ...small, storage: openDiskStorage(folder, { fsync: false }) })
    let { client, cluster } = open()
    await client.createTopics([{ topic, partitions: 1, config: compact }])
    const partition = () => join(folder, 'topics', readdirSync(join(folder, 'topics'))[0] as string, '0')
    const backup = temporaryFolder(t)
    let before: string[] = []
    for (let i = 0; ; i++) {
      await put(client, [[`k${i % 3}`, `${i}`.padEnd(400, '.')]])
      const now = readdirSync(partition())
      if (now.length < before.length) break
      before = now
      cpSync(partition(), backup, { recursive: true, force: true })
    }
    const expected = await readToEnd(client, topic)
    cluster.close()
    const after = new Set(readdirSync(partition()))
    const leftovers = before.filter((name) => !after.has(name))
    assert.ok(leftovers.length > 0)
    for (const name of leftovers) cpSync(join(backup, name), join(partition(), name))
    ;({ client, cluster } = open())
    assert.deepEqual(await readToEnd(client, topic), expected)
    assert.deepEqual(new Set(readdirSync(partition())), after)
    cluster.close()
  })

  test('records within the lag of a topic stay, older ones go, also where an earlier process made the topic', async (t) => {
    const folder = temporaryFolder(t)
    const open = () => directCluster({ ...small, storage: openDiskStorage(folder, { fsync: false }) })
    let { client, cluster, clock } = open()
    const lag = { ...compact, 'min.compaction.lag.ms': '60000' }
    await client.createTopics([{ topic, partitions: 1, config: lag }])
    const values = Array.from({ length: 100 }, (_, i) => `${i}`.padEnd(100, '.'))
    for (const value of values.slice(0, 60)) await put(client, [['a', value]], clock.now())
    assert.deepEqual(await valuesOf(client, topic), values.slice(0, 60))
    cluster.close()
    ;({ client, cluster, clock } = open())
    for (const value of values.slice(60)) await put(client, [['a', value]], clock.now())
    assert.deepEqual(await valuesOf(client, topic), values)
    for (let round = 0; round < 30; round++) {
      clock.advance(30_001)
      for (const value of values.slice(0, 40)) await put(client, [['a', `${round} ${value}`]], clock.now())
      const left = await valuesOf(client, topic)
      const kept = left.filter((value) => [`${round}`, `${round - 1}`].includes(value?.split(' ')[0] ?? ''))
      assert.equal(kept.length, round === 0 ? 40 : 80)
      // What is over waits for the segment that it shares with what is not, and until compaction is worth while.
      assert.ok(left.length < 200, `${left.length} records are left`)
    }
    cluster.close()
  })

  test('deletions stay readable for their time, then go', async () => {
    const { client, clock } = directCluster(small)
    await client.createTopics([{ topic, partitions: 1, config: { ...compact, 'delete.retention.ms': '60000' } }])
    const fill = async (): Promise<void> => {
      for (let i = 0; i < 30; i++) await put(client, [['other', 'x'.repeat(500)]])
    }
    const deletion = async (): Promise<boolean> =>
      (await readToEnd(client, topic)).records.some((r) => r.key === 'a' && r.value === null)
    await put(client, [['a', 'x']])
    await put(client, [['a', null]])
    await fill()
    assert.ok(await deletion())
    clock.advance(50_000)
    await fill()
    assert.ok(await deletion())
    clock.advance(50_000)
    await fill()
    assert.ok(!(await deletion()))
  })

  test('a topic with a size limit loses its oldest segments, and says where it begins', async () => {
    const { client } = directCluster({ segmentBytes: 1000 })
    await client.createTopics([{ topic, partitions: 1, config: { 'retention.bytes': '5000' } }])
    for (let i = 0; i < 100; i++) await put(client, [['a', `${i}`.padEnd(400, '.')]])
    const [start] = await client.listOffsets([{ topic, partition: 0 }], 'earliest')
    assert.ok((start?.offset ?? 0) > 80)
    const [fetched] = await client.fetch({
      partitions: [{ topic, partition: 0, offset: 3, maxBytes: 1000 }],
      maxWaitMs: 0,
      maxBytes: 1000,
      isolation: 'read_committed',
    })
    assert.equal(fetched?.error, 'OFFSET_OUT_OF_RANGE')
    assert.equal(fetched?.logStartOffset, start?.offset)
    assert.equal((await readToEnd(client, topic, { from: start?.offset ?? 0 })).position, 100)
  })

  test('a topic with a time limit is measured against its newest record: old data that is fed stays', async () => {
    const { client } = directCluster({ segmentBytes: 300 })
    await client.createTopics([{ topic, partitions: 1, config: { 'retention.ms': '1000' } }])
    const produce = async (timestamp: number): Promise<void> => {
      const builder = new RecordBatchBuilder()
      builder.append(timestamp, null, text('x'.repeat(300)), [])
      await client.produce({ transactionalId: null, batches: [{ topic, partition: 0, records: builder.finish() }] })
    }
    for (const timestamp of [100, 200, 300]) await produce(timestamp)
    assert.equal((await client.listOffsets([{ topic, partition: 0 }], 'earliest'))[0]?.offset, 0)
    await produce(1250)
    assert.equal((await client.listOffsets([{ topic, partition: 0 }], 'earliest'))[0]?.offset, 2)
  })

  test('the ends of transactions are no records: a restart lets no old data expire for the time at which they ended', async (t) => {
    const folder = temporaryFolder(t)
    const open = () => directCluster({ segmentBytes: 300, storage: openDiskStorage(folder, { fsync: false }) })
    const begin = async (client: EmbeddedClient): Promise<number | undefined> =>
      (await client.listOffsets([{ topic, partition: 0 }], 'earliest'))[0]?.offset
    for (const policy of ['delete', 'compact,delete']) {
      let { client, cluster } = open()
      await client.createTopics([
        { topic, partitions: 1, config: { 'cleanup.policy': policy, 'retention.ms': '1000' } },
      ])
      const producer = await Producer.start(client, policy)
      // Records of the time 1000, in transactions that end at 1,000,000.
      for (let i = 0; i < 5; i++) {
        await producer.send(topic, ['x'.repeat(300)])
        await producer.end(true)
      }
      cluster.close()
      ;({ client, cluster } = open())
      await client.produce({ transactionalId: null, batches: [{ topic, partition: 0, records: batchOf(['y']) }] })
      assert.equal(await begin(client), 0, policy)
      await client.deleteTopics([topic])
      cluster.close()
    }
  })
})
