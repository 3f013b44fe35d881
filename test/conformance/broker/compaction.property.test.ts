import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from '../../support/properties.ts'
import { Random } from '../../../src/base/random.ts'
import { maintain } from '../../../src/broker/embedded/core/compaction.ts'
import { MemoryStorage } from '../../../src/broker/embedded/core/memory-storage.ts'
import { type Partition, Topics } from '../../../src/broker/embedded/core/topics.ts'
import { batchField, batchHeaderSize, sealBatch } from '../../../src/broker/wire/batch-header.ts'
import { writeInt16, writeInt32 } from '../../../src/broker/wire/integers.ts'
import { checksumHolds, RecordBatchBuilder, RecordCursor, stampBatch } from '../../../src/broker/wire/record-batch.ts'

const tombstoneMs = 1000
const maxBatchBytes = 2 ** 24

interface Written {
  readonly offset: number
  readonly key: string | null
  readonly value: string | null
  readonly timestamp: number
}

function newPartition(segmentBytes: number, lagMs: number): Partition {
  const topics = new Topics(new MemoryStorage(), new Random(1), segmentBytes, 1)
  const lag = lagMs > 0 ? { 'min.compaction.lag.ms': `${lagMs}` } : {}
  const config = { 'cleanup.policy': 'compact', 'delete.retention.ms': `${tombstoneMs}`, ...lag }
  topics.create({ topic: 'table', partitions: 1, config })
  return topics.partition({ topic: 'table', partition: 0 })
}

const bytesOf = (text: string | null): Uint8Array | null => (text === null ? null : Buffer.from(text, 'latin1'))

function batchOf(records: readonly Omit<Written, 'offset'>[], isCompressed: boolean): Uint8Array {
  const builder = new RecordBatchBuilder()
  for (const { timestamp, key, value } of records) builder.append(timestamp, bytesOf(key), bytesOf(value), [])
  const plain = builder.finish()
  if (!isCompressed) return plain
  const body = gzipSync(plain.subarray(batchHeaderSize))
  const batch = new Uint8Array(batchHeaderSize + body.length)
  batch.set(plain.subarray(0, batchHeaderSize))
  batch.set(body, batchHeaderSize)
  writeInt32(batch, batchField.length, batch.length - 12)
  writeInt16(batch, batchField.attributes, 1)
  sealBatch(batch)
  return batch
}

/** Everything that a reader of committed records gets, batch by batch as the log keeps it. */
function readAll({ log }: Partition): Written[] {
  const cursor = new RecordCursor()
  const all: Written[] = []
  for (let from = 0; from < log.highWatermark; ) {
    const bytes = log.read(from, log.highWatermark, 1000, true)
    assert.ok(bytes.length > 0, `nothing can be read from offset ${from} on`)
    cursor.reset(bytes, from, log.abortedBetween(from, log.highWatermark), 'read_committed')
    const part = (start: number, end: number): string | null =>
      start < 0 ? null : Buffer.from(cursor.bytes.subarray(start, end)).toString('latin1')
    while (cursor.next()) {
      const key = part(cursor.keyStart, cursor.keyEnd)
      all.push({
        offset: cursor.offset,
        key,
        value: part(cursor.valueStart, cursor.valueEnd),
        timestamp: cursor.timestamp,
      })
    }
    assert.ok(cursor.position > from)
    from = cursor.position
  }
  return all
}

function compactNow(partition: Partition, now: number): void {
  // As though nothing of it had been compacted before: any growth is enough.
  partition.cleanBytes = 0
  maintain(partition, now, 1)
}

class Story {
  readonly #random: Random
  readonly partition: Partition
  readonly committed: Written[] = []
  /** How far each pass saw the log, and when. */
  readonly passes: Array<{ readonly end: number; readonly at: number }> = []
  readonly lagMs: number
  now = 10_000
  #sequence = 0

  constructor(seed: number, lagMs = 0) {
    this.#random = new Random(seed)
    this.lagMs = lagMs
    this.partition = newPartition(this.#random.int(2) === 0 ? 500 : 1_000_000, lagMs)
  }

  step(): void {
    const random = this.#random
    const records = Array.from({ length: 1 + random.int(random.chance(0.1) ? 400 : 20) }, () => ({
      key: this.#key(),
      value: random.chance(0.15) ? null : 'v'.repeat(random.int(random.chance(0.1) ? 5000 : 40)),
      timestamp: this.lagMs > 0 ? this.now - random.int(2 * this.lagMs) : 5000 + random.int(1000),
    }))
    const batch = batchOf(records, random.chance(0.2))
    const { log } = this.partition
    const isTransaction = random.chance(0.5)
    if (isTransaction) {
      stampBatch(batch, { producerId: 7n, producerEpoch: 0, baseSequence: this.#sequence, transactional: true })
      this.#sequence += records.length
    }
    const base = log.append(batch, maxBatchBytes)
    const commit = !isTransaction || random.chance(0.7)
    if (isTransaction) log.endTransaction(7n, 0, commit, this.now)
    if (commit) this.committed.push(...records.map((record, i) => ({ ...record, offset: base + i })))
    this.now += random.int(500)
    if (!random.chance(0.25)) return
    compactNow(this.partition, this.now)
    this.passes.push({ end: log.highWatermark, at: this.now })
  }

  /** What is left once all of it was compacted. */
  left(): Written[] {
    const gone = this.passes.filter(({ at }) => at + tombstoneMs <= this.now).at(-1)?.end ?? 0
    const last = new Map<string, number>()
    for (const { key, offset } of this.committed) if (key !== null) last.set(key, offset)
    return this.committed.filter(({ key, value, offset }) => {
      if (key === null) return true
      return last.get(key) === offset && (value !== null || offset >= gone)
    })
  }

  #key(): string | null {
    const random = this.#random
    const kind = random.int(20)
    if (kind === 0) return null
    if (kind === 1) return ''
    if (kind === 2) return 'long'.repeat(60 + random.int(6))
    return `k${random.int(kind < 8 ? 10 : 2000)}`
  }
}

describe('what compaction leaves', () => {
  test('is the last committed record of each key, as it was written and where it was, and those without a key', () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const story = new Story(seed)
        for (let i = 0; i < 40; i++) story.step()
        const end = story.partition.log.highWatermark
        const before = story.left()
        compactNow(story.partition, story.now)
        const { log } = story.partition
        assert.equal(log.highWatermark, end)
        assert.equal(log.aborted.length, 0)
        assert.deepEqual(readAll(story.partition), before)
        // From any offset on the rest of it is found.
        for (const { offset } of before.slice(0, 20)) {
          const bytes = log.read(offset, end, 1, true)
          assert.ok(checksumHolds(bytes, 0, bytes.length))
        }
      }),
      { numRuns: 60 },
    )
  })

  test('is all that lies within the lag of the topic besides, for as long as it does', () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 4000 }), (seed, lagMs) => {
        const story = new Story(seed, lagMs)
        const { partition, committed } = story
        for (let i = 0; i < 40; i++) {
          story.step()
          const there = new Map(readAll(partition).map((record) => [record.offset, record]))
          for (const record of committed) {
            if (record.timestamp > story.now - lagMs) assert.deepEqual(there.get(record.offset), record)
          }
        }
        const end = partition.log.highWatermark
        story.now += lagMs
        compactNow(partition, story.now)
        story.now += tombstoneMs
        compactNow(partition, story.now)
        const last = new Map(committed.map(({ key, offset }) => [key, offset]))
        const left = committed.filter(
          ({ key, value, offset }) => key === null || (last.get(key) === offset && value !== null),
        )
        assert.deepEqual(readAll(partition), left)
        assert.equal(partition.log.highWatermark, end)
      }),
      { numRuns: 20 },
    )
  })

  test('a batch that cannot be read stops no write, and nothing is lost', () => {
    const partition = newPartition(1_000_000, 0)
    const { log } = partition
    log.append(batchOf([{ key: 'a', value: '1', timestamp: 1 }], false), maxBatchBytes)
    const broken = batchOf([{ key: 'b', value: '2', timestamp: 1 }], false)
    // The record says that it is longer than the batch; the checksum holds.
    broken[batchHeaderSize] = 126
    sealBatch(broken)
    log.append(broken, maxBatchBytes)
    log.append(batchOf([{ key: 'a', value: '3', timestamp: 1 }], false), maxBatchBytes)
    const before = log.bytes
    compactNow(partition, 1)
    assert.equal(log.bytes, before)
    assert.equal(log.highWatermark, 3)
  })
})
