/** Work for a broker in a folder of which each write is known, and what has to be there behind it. */
import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import type { PartitionFiles, SegmentFile, Storage } from '../../../src/broker/embedded/core/storage.ts'
import type { DiskSegment } from '../../../src/broker/embedded/disk-segment.ts'
import { openDiskStorage } from '../../../src/broker/embedded/disk-storage.ts'
import type { EmbeddedClient } from '../../../src/broker/embedded/embedded-client.ts'
import { directCluster } from './embedded-support.ts'
import { batchOf, outsider, Producer, valuesOf } from './support.ts'

/** Asks somebody before each write, who may throw. */
export class WatchedStorage implements Storage {
  readonly #inner: Storage
  readonly #before: (half?: () => void) => void

  /** `before`: `half` does half of the write. */
  constructor(inner: Storage, before: (half?: () => void) => void) {
    this.#inner = inner
    this.#before = before
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
    this.#before(half)
    whole()
  }
}

export interface Told {
  /** Transactions that were answered as committed, and begun. */
  committed: number
  begun: number
  fedLines: number
  finished: boolean
}

export const group = 'group'

/** Transactions that write to two topics and commit an offset, every third one aborted; lines are fed between them. */
export async function workload(client: EmbeddedClient, told: Told): Promise<void> {
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

export async function checkAfter(folder: string, told: Told): Promise<void> {
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
