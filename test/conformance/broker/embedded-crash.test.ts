/** What is left after an end at any moment: between any two writes to the disk, or in the middle of one. */
import assert from 'node:assert/strict'
import { appendFileSync, cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Storage } from '../../../src/broker/embedded/core/storage.ts'
import { openDiskStorage } from '../../../src/broker/embedded/disk-storage.ts'
import { BrokerError } from '../../../src/broker/port.ts'
import { directCluster, temporaryFolder } from './embedded-support.ts'
import { batchOf, outsider, Producer, refused, refusedAs, valuesOf } from './support.ts'
import { checkAfter, group, type Told, WatchedStorage, workload } from './watched-storage.ts'

class SuddenEnd extends Error {
  override readonly name = 'SuddenEnd'
}

/** Lets so many writes through; the next one is done in half, or not at all, and then nothing works any more. */
class FailingStorage extends WatchedStorage {
  constructor(inner: Storage, writes: number, torn: boolean) {
    let left = writes
    super(inner, (half) => {
      if (left > 0) left--
      else {
        if (left === 0 && torn) half?.()
        left = -1
        throw new SuddenEnd('the process is gone')
      }
    })
  }
}

describe('the embedded broker in a folder, ended at any moment', () => {
  for (const torn of [false, true]) {
    test(`whatever write was the last${torn ? ', and half done' : ''}: what was acknowledged is there, nothing else is`, async (t) => {
      let ends = 0
      for (let writes = 0; ; writes++) {
        const folder = temporaryFolder(t)
        const disk = openDiskStorage(folder, { fsync: false })
        const options = { storage: new FailingStorage(disk, writes, torn), segmentBytes: 400, compactionBytes: 900 }
        const told: Told = { committed: 0, begun: 0, fedLines: 0, finished: false }
        const { client, cluster } = directCluster(options)
        try {
          await workload(client, told)
        } catch (error) {
          assert.ok(error instanceof BrokerError && error.message.includes('the process is gone'), String(error))
          ends++
        }
        cluster.close()
        await checkAfter(folder, told)
        if (told.finished) break
      }
      assert.ok(ends > 80, `${ends} moments`)
    })
  }

  test('a disk that refuses a write: a produce may be tried again, after a half-done decision all stops', async (t) => {
    const folder = temporaryFolder(t)
    const disk = openDiskStorage(folder, { fsync: false })
    let full = false
    const refuse = (): void => {
      if (full) throw new BrokerError('KAFKA_STORAGE_ERROR', 'There is no space left.')
    }
    class FullStorage extends FailingStorage {
      override journal(entry: Parameters<Storage['journal']>[0]): void {
        refuse()
        super.journal(entry)
      }
    }
    const storage = new FullStorage(disk, Number.POSITIVE_INFINITY, false)
    const { client, cluster } = directCluster({ storage })
    await client.createTopics([{ topic: 'log', partitions: 1 }])
    const producer = await Producer.start(client, 'tx')
    await producer.send('log', ['a'])
    const offsets = [{ topic: 'log', partition: 0, offset: 1, metadata: '' }]
    full = true
    await refused(client.commitOffsets(outsider(group), offsets), 'KAFKA_STORAGE_ERROR')
    full = false
    assert.deepEqual(await client.committedOffsets(group, null, true), [])
    await client.commitOffsets(outsider(group), offsets)
    full = true
    await refusedAs(producer.end(true), 'config')
    full = false
    await refusedAs(producer.send('log', ['b']), 'config')
    assert.deepEqual(await valuesOf(client, 'log'), [])
    cluster.close()
    const again = directCluster({ storage: openDiskStorage(folder, { fsync: false }) })
    await Producer.start(again.client, 'tx', producer.identity)
    assert.deepEqual(await valuesOf(again.client, 'log'), [])
    assert.equal((await again.client.listOffsets([{ topic: 'log', partition: 0 }], 'stable'))[0]?.offset, 2)
    again.cluster.close()
  })

  test('bytes behind the last whole write are cut off, wherever they break off', async (t) => {
    const folder = temporaryFolder(t)
    const open = () => directCluster({ storage: openDiskStorage(folder, { fsync: false }) })
    let { client, cluster } = open()
    await client.createTopics([{ topic: 'log', partitions: 1 }])
    for (const value of ['a', 'b']) {
      await client.produce({
        transactionalId: null,
        batches: [{ topic: 'log', partition: 0, records: batchOf([value]) }],
      })
    }
    await client.commitOffsets(outsider('g'), [{ topic: 'log', partition: 0, offset: 1, metadata: '' }])
    cluster.close()
    const segment = segmentOf(folder)
    const journal = join(folder, 'journal')
    const files = [segment, journal, `${journal}.end`].map((path) => [path, readFileSync(path)] as const)
    const bytes = readFileSync(segment)
    const half = bytes.length / 2
    for (let cut = half; cut < bytes.length; cut++) {
      for (const [path, content] of files) writeFileSync(path, content)
      appendFileSync(segment, bytes.subarray(half, cut))
      appendFileSync(journal, Buffer.from([0, 0, 1, 0, 7, 7, 7, 7]).subarray(0, cut % 9))
      const reopened = open()
      client = reopened.client
      cluster = reopened.cluster
      assert.deepEqual(await valuesOf(client, 'log'), ['a', 'b'])
      assert.equal((await client.committedOffsets('g', null, true))[0]?.offset, 1)
      const [c] = await client.produce({
        transactionalId: null,
        batches: [{ topic: 'log', partition: 0, records: batchOf(['c']) }],
      })
      assert.equal(c?.baseOffset, 2)
      assert.deepEqual(await valuesOf(client, 'log'), ['a', 'b', 'c'])
      cluster.close()
    }
  })

  test('damage before the end is not mistaken for a torn write', async (t) => {
    const folder = temporaryFolder(t)
    const open = () => directCluster({ segmentBytes: 100, storage: openDiskStorage(folder, { fsync: false }) })
    const { client, cluster } = open()
    await client.createTopics([{ topic: 'log', partitions: 1 }])
    for (const value of ['a', 'b', 'c']) {
      const records = batchOf([value.repeat(200)])
      await client.produce({ transactionalId: null, batches: [{ topic: 'log', partition: 0, records }] })
    }
    cluster.close()
    const segment = segmentOf(folder)
    const bytes = readFileSync(segment)
    bytes[100] = (bytes[100] as number) ^ 1
    writeFileSync(segment, bytes)
    const storage = openDiskStorage(folder, { fsync: false })
    try {
      assert.throws(() => directCluster({ storage }), { code: 'BROKER_FILES_DAMAGED' })
    } finally {
      storage.close()
    }
  })

  test('a second broker on the same folder is refused, and let in after the first', (t) => {
    const folder = temporaryFolder(t)
    const first = openDiskStorage(folder, { fsync: true })
    assert.throws(() => openDiskStorage(folder, { fsync: true }), {
      code: 'STORAGE_LOCKED',
      message: new RegExp(`in use by the process ${process.pid}`),
    })
    first.close()
    openDiskStorage(folder, { fsync: true }).close()
  })

  test('topics, settings, deletions and idempotent producers outlive the process', async (t) => {
    const folder = temporaryFolder(t)
    const open = () => directCluster({ storage: openDiskStorage(folder, { fsync: true }) })
    let { client, cluster } = open()
    await client.createTopics([
      { topic: 'kept', partitions: 3, config: { 'cleanup.policy': 'compact' } },
      { topic: 'gone', partitions: 1 },
    ])
    const [before] = await client.topics(['kept'])
    const producer = await Producer.start(client)
    const records = producer.stamped('kept', 0, ['a'])
    await producer.sendRaw('kept', records)
    await producer.send('gone', ['x'])
    await client.deleteTopics(['gone'])
    cluster.close()
    ;({ client, cluster } = open())
    assert.deepEqual(await client.topics(null), [before])
    assert.equal((await client.topicConfig('kept'))['cleanup.policy'], 'compact')
    const batches = [{ topic: 'kept', partition: 0, records }]
    assert.equal((await client.produce({ transactionalId: null, batches }))[0]?.baseOffset, 0)
    assert.deepEqual(await valuesOf(client, 'kept'), ['a'])
    await refused(client.topicConfig('gone'), 'UNKNOWN_TOPIC_OR_PARTITION')
    assert.equal(readdirSync(join(folder, 'topics')).length, 1)
    cluster.close()
  })
})

test('offsets that wait for their transaction go with their topic: those who read the next one of its name begin at its beginning', async (t) => {
  const folder = temporaryFolder(t)
  const open = () => directCluster({ storage: openDiskStorage(folder, { fsync: false }) })
  let { client, cluster } = open()
  await client.createTopics(['in', 'other'].map((topic) => ({ topic, partitions: 1 })))
  const producer = await Producer.start(client, 'tx')
  const offsets = ['in', 'other'].map((topic) => ({ topic, partition: 0, offset: 500, metadata: '' }))
  await producer.sendOffsets(outsider('readers'), offsets)
  await producer.sendOffsets(outsider('of in alone'), offsets.slice(0, 1))
  await client.deleteTopics(['in'])
  // Nothing that would still be decided is left for this group.
  const stable = client.committedOffsets('of in alone', null, true)
  assert.deepEqual(await Promise.race([stable, setImmediate('it waits')]), [])
  const committed = async (): Promise<Array<readonly [string, number]>> => {
    const partitions = ['in', 'other'].map((topic) => ({ topic, partition: 0 }))
    const found = await client.committedOffsets('readers', partitions, true)
    return found.map(({ topic, offset }) => [topic, offset] as const)
  }
  await producer.end(true)
  await client.createTopics([{ topic: 'in', partitions: 1 }])
  const expected = [['in', -1] as const, ['other', 500] as const]
  assert.deepEqual(await committed(), expected)
  // A process that is killed here finds the same in the journal.
  const copy = join(temporaryFolder(t), 'copy')
  cpSync(folder, copy, { recursive: true })
  cluster.close()
  ;({ client, cluster } = directCluster({ storage: openDiskStorage(copy, { fsync: false }) }))
  assert.deepEqual(await committed(), expected)
  cluster.close()
})

/** The first segment of the only partition that has one. */
function segmentOf(folder: string): string {
  const [topic] = readdirSync(join(folder, 'topics'))
  const partition = join(folder, 'topics', topic as string, '0')
  return join(partition, readdirSync(partition).sort()[0] as string)
}
