/** What is left after an end at any moment: between any two writes to the disk, or in the middle of one. */
import assert from 'node:assert/strict'
import { appendFileSync, cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { PartitionFiles, SegmentFile, Storage } from '../../../src/broker/embedded/core/storage.ts'
import type { DiskSegment } from '../../../src/broker/embedded/disk-segment.ts'
import { openDiskStorage } from '../../../src/broker/embedded/disk-storage.ts'
import type { EmbeddedClient } from '../../../src/broker/embedded/embedded-client.ts'
import { BrokerError } from '../../../src/broker/port.ts'
import { directCluster, temporaryFolder } from './embedded-support.ts'
import { batchOf, outsider, Producer, refused, refusedAs, valuesOf } from './support.ts'

class SuddenEnd extends Error {
  override readonly name = 'SuddenEnd'
}

/** Lets so many writes through; the next one is done in half, or not at all, and then nothing works any more. */
class FailingStorage implements Storage {
  readonly #inner: Storage
  #left: number
  readonly #torn: boolean

  constructor(inner: Storage, writes: number, torn: boolean) {
    this.#inner = inner
    this.#left = writes
    this.#torn = torn
  }

  journal(entry: Parameters<Storage['journal']>[0]): void {
    this.#write(() => this.#inner.journal(entry))
  }

  journalEntries(): ReturnType<Storage['journalEntries']> {
    return this.#inner.journalEntries()
  }

  journalIsLong(): boolean {
    return false
  }

  replaceJournal(entries: Parameters<Storage['replaceJournal']>[0]): void {
    this.#inner.replaceJournal(entries)
  }

  partition(topicId: string, partition: number): PartitionFiles {
    const files = this.#inner.partition(topicId, partition)
    const wrapped = new Map<SegmentFile, SegmentFile>()
    const unwrap = (segment: SegmentFile): SegmentFile =>
      [...wrapped].find(([, outer]) => outer === segment)?.[0] ?? segment
    const wrap = (inner: SegmentFile): SegmentFile => {
      const outer: SegmentFile = {
        baseOffset: inner.baseOffset,
        get size() {
          return inner.size
        },
        append: (bytes) =>
          this.#write(
            () => inner.append(bytes),
            () => appendFileSync((inner as DiskSegment).path, bytes.subarray(0, bytes.length >> 1)),
          ),
        copy: (position, target, at, length) => inner.copy(position, target, at, length),
        truncate: (size) => inner.truncate(size),
        facts: inner.facts,
        recovered: (whole) => inner.recovered(whole),
        damaged: (at, why) => inner.damaged(at, why),
      }
      wrapped.set(inner, outer)
      return outer
    }
    return {
      isComplete: files.isComplete,
      isForced: files.isForced,
      list: () => files.list().map(wrap),
      create: (baseOffset) => wrap(files.create(baseOffset)),
      replace: (old, content) => {
        let segment: SegmentFile | undefined
        this.#write(() => {
          segment = wrap(files.replace(old.map(unwrap), content))
        })
        return segment as SegmentFile
      },
      remove: (segment) => files.remove(unwrap(segment)),
    }
  }

  removeTopic(topicId: string): void {
    this.#inner.removeTopic(topicId)
  }

  written(): void {
    this.#write(() => this.#inner.written())
  }

  get endsUnknown(): boolean {
    return this.#inner.endsUnknown
  }

  lost(topicId: string, partition: number, end: number, why: string): Error {
    return this.#inner.lost(topicId, partition, end, why)
  }

  close(): void {
    this.#inner.close()
  }

  #write(whole: () => void, half?: () => void): void {
    if (this.#left <= 0) {
      if (this.#left === 0 && this.#torn) half?.()
      this.#left = -1
      throw new SuddenEnd('the process is gone')
    }
    this.#left--
    whole()
  }
}

interface Told {
  /** Transactions that were answered as committed, and begun. */
  committed: number
  begun: number
  fedLines: number
  finished: boolean
}

const group = 'group'

/** Transactions that write to two topics and commit an offset, every third one aborted; lines are fed between them. */
async function workload(client: EmbeddedClient, told: Told): Promise<void> {
  await client.createTopics([
    { topic: 'left', partitions: 1 },
    { topic: 'right', partitions: 1 },
    { topic: 'latest', partitions: 1, config: { 'cleanup.policy': 'compact' } },
    { topic: 'fed', partitions: 2 },
  ])
  const producer = await Producer.start(client, 'tx')
  for (let i = 0; i < 8; i++) {
    if (i % 3 === 2) {
      await producer.send('left', ['never'])
      await producer.sendOffsets(outsider(group), [{ topic: 'left', partition: 0, offset: 999, metadata: '' }])
      await producer.end(false)
    }
    told.begun++
    await producer.send('left', [`${i}`])
    await producer.send('right', [`${i}`])
    await producer.send('latest', [`${i}`.padEnd(300, '.')])
    await producer.sendOffsets(outsider(group), [{ topic: 'left', partition: 0, offset: i + 1, metadata: `tag ${i}` }])
    await producer.end(true)
    told.committed++
    const batches = [0, 1].map((partition) => ({ topic: 'fed', partition, records: batchOf([`line ${i}`]) }))
    await client.produceFed(batches, { topic: 'fed', file: 'file', lines: i + 1 })
    told.fedLines = i + 1
  }
  told.finished = true
}

async function lastCommitted(client: EmbeddedClient): Promise<number> {
  const [offset] = await client.committedOffsets(group, [{ topic: 'left', partition: 0 }], false)
  return Math.max(offset?.offset ?? 0, 0)
}

async function checkAfter(folder: string, told: Told): Promise<void> {
  const { client, cluster } = directCluster({ storage: openDiskStorage(folder, { fsync: false }) })
  try {
    const names = (await client.topics(null)).map((t) => t.topic)
    if (!names.includes('fed')) {
      assert.equal(told.begun, 0)
      return
    }
    // A successor takes the id over, as the engine does first of all: what was open is decided then.
    const successor = await Producer.start(client, 'tx')
    const committed = await lastCommitted(client)
    assert.ok(committed === told.committed || committed === told.begun, `${committed} of ${JSON.stringify(told)}`)
    const expected = Array.from({ length: committed }, (_, i) => `${i}`)
    assert.deepEqual(await valuesOf(client, 'left'), expected)
    assert.deepEqual(await valuesOf(client, 'right'), expected)
    assert.equal((await valuesOf(client, 'latest')).at(-1)?.replaceAll('.', ''), expected.at(-1))
    const lines = await client.feedMark('fed', 'file')
    assert.ok(lines === told.fedLines || lines === told.fedLines + 1)
    const fed = Array.from({ length: lines }, (_, i) => `line ${i}`)
    assert.deepEqual(await valuesOf(client, 'fed'), fed)
    const [other] = await client.listOffsets([{ topic: 'fed', partition: 1 }], 'latest')
    assert.equal(other?.offset, lines)
    // And it goes on from there.
    await successor.send('left', ['more'])
    await successor.end(true)
    assert.deepEqual(await valuesOf(client, 'left'), [...expected, 'more'])
  } finally {
    cluster.close()
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
