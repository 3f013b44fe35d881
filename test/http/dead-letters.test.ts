/** Which letters GET /dead-letters looks through: the newest of all partitions, whatever lies between them. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type EmbeddedBroker, startEmbeddedBroker } from '../../src/broker/embedded/start.ts'
import type { BrokerPort, FetchedPartition, FetchPartition } from '../../src/broker/port.ts'
import { RecordBatchBuilder, setBaseOffset, stampBatch } from '../../src/broker/wire/record-batch.ts'
import { Producer, type ToProduce } from '../../src/engine/commit/producer.ts'
import type { DeadLetters } from '../../src/http/data-seam.ts'
import { millrace } from '../support/millrace.ts'
import { type Served, served } from './support/dead-letters.ts'

const t0 = 1_700_000_000_000

interface Letter {
  readonly timestamp: number
  readonly reason?: string
  readonly value?: Uint8Array
}

async function lettersOf(instance: Served, query: string): Promise<DeadLetters> {
  const answer = await instance.ask({ path: `/dead-letters?${query}` })
  assert.equal(answer.status, 200, answer.body)
  return answer.json as unknown as DeadLetters
}

/** Each letter by how much later than `t0` it is. */
const timesOf = ({ letters }: DeadLetters): number[] => letters.map(({ timestamp }) => Date.parse(timestamp) - t0)

function batchOf(letters: readonly Letter[]): Uint8Array {
  const builder = new RecordBatchBuilder()
  for (const { timestamp, reason = 'TypeError', value = null } of letters) {
    builder.append(timestamp, null, value, [['__streams.errors.exception', reason]])
  }
  return builder.finish()
}

const rising = (count: number, from = 0): Letter[] =>
  Array.from({ length: count }, (_, i) => ({ timestamp: t0 + from + i }))

const falling = (count: number, from: number): number[] => Array.from({ length: count }, (_, i) => from - i)

describe('GET /dead-letters on a broker', () => {
  let embedded: EmbeddedBroker
  let broker: BrokerPort
  before(async () => {
    embedded = await startEmbeddedBroker({ partitions: 1 })
    broker = embedded.client()
  })
  after(async () => {
    await broker.close()
    await embedded.close()
  })

  const made = (topic: string, partitions: number): Promise<void> => broker.createTopics([{ topic, partitions }])
  const write = async (topic: string, partition: number, letters: readonly Letter[]): Promise<void> => {
    const batches = [{ topic, partition, records: batchOf(letters) }]
    await broker.produce({ transactionalId: null, batches })
  }

  test('shows a thousand of one partition among a hundred, before an old one of another', async (t) => {
    await made('hot', 100)
    await write('hot', 0, [{ timestamp: 1_600_000_000_000 }])
    await write('hot', 99, rising(1000))
    const all = await lettersOf(await served(t, broker, { topic: 'hot' }), 'limit=1000')
    assert.deepEqual(timesOf(all), falling(1000, 999))
    assert.deepEqual([all.seen, all.more, all.byReason], [1001, false, { TypeError: 1001 }])
  })

  test('counts neither the marks of transactions nor what they gave up', async (t) => {
    await made('marks', 4)
    const producer = new Producer(broker, 'marks', 60_000)
    await producer.init()
    const transaction = async (letters: readonly Letter[], partition: number, commit: boolean): Promise<void> => {
      const batch: ToProduce = { topic: 'marks', partition, records: batchOf(letters), count: letters.length }
      producer.send([batch], t0)
      await producer.flush()
      await producer.end(commit)
    }
    await transaction([{ timestamp: 1_600_000_000_000 }], 0, true)
    for (let i = 0; i < 500; i++) {
      await transaction([{ timestamp: t0 + i }], 3, true)
      if (i % 50 === 0) await transaction(rising(60, 100_000), 3, false)
    }
    // Nothing else lies at the end of this one.
    for (let i = 0; i < 30; i++) await transaction(rising(20, 100_000), 0, false)
    const all = await lettersOf(await served(t, broker, { topic: 'marks' }), 'limit=1000')
    assert.deepEqual(timesOf(all).slice(0, 500), falling(500, 499))
    assert.deepEqual([all.letters.length, all.seen, all.more], [501, 501, false])
  })

  test('looks through the newest two thousand of all partitions, and says that there are more', async (t) => {
    await made('many', 8)
    // A letter each 8 ms in seven partitions until 1,600 ms, and a thousand of the last second in the eighth.
    for (let p = 0; p < 7; p++) {
      await write(
        'many',
        p,
        Array.from({ length: 200 }, (_, i) => ({ timestamp: t0 + i * 8 + p })),
      )
    }
    await write('many', 7, rising(300, -1000))
    await write('many', 7, rising(1000, 600))
    await write('many', 0, [{ timestamp: t0 + 5000, reason: 'RangeError' }])
    const instance = await served(t, broker, { topic: 'many' })
    const all = await lettersOf(instance, 'limit=1000')
    const every = [
      ...Array.from({ length: 1400 }, (_, i) => Math.floor(i / 7) * 8 + (i % 7)),
      ...Array.from({ length: 1000 }, (_, i) => 600 + i),
      5000,
    ].sort((a, b) => b - a)
    assert.deepEqual(timesOf(all), every.slice(0, 1000))
    assert.deepEqual([all.seen, all.more, all.byReason], [2000, true, { TypeError: 1999, RangeError: 1 }])
    const oldest = every[1999] as number
    const old = await lettersOf(instance, `limit=1000&until=${t0 + oldest}`)
    assert.deepEqual(
      timesOf(old),
      every.slice(0, 2000).filter((time) => time <= oldest),
    )
    assert.deepEqual(timesOf(await lettersOf(instance, 'reason=RangeError')), [5000])
    const { stdout } = await millrace(['dlq', 'list', '--limit', '1', '--url', instance.url])
    assert.match(stdout, /many: .*TypeError 1999.* among the newest 2000; there are older ones\n/)
  })

  test('goes by the order of writing where times are equal, and past single ones that are wrong', async (t) => {
    await made('equal', 1)
    await write(
      'equal',
      0,
      Array.from({ length: 2500 }, () => ({ timestamp: t0 })),
    )
    const equal = await lettersOf(await served(t, broker, { topic: 'equal' }), 'limit=1000')
    assert.deepEqual(
      equal.letters.map(({ offset }) => offset),
      falling(1000, 2499),
    )
    assert.deepEqual([equal.seen, equal.more], [2000, true])

    await made('skewed', 50)
    for (let p = 0; p < 50; p++) await write('skewed', p, rising(100, -1_000_000))
    const wrong = [{ timestamp: 0 }, { timestamp: t0 + 1_000_000 }, { timestamp: 0 }]
    await write('skewed', 7, [...rising(1500), ...wrong])
    const skewed = await lettersOf(await served(t, broker, { topic: 'skewed' }), 'limit=1000')
    assert.deepEqual(timesOf(skewed), [1_000_000, ...falling(999, 1499)])
    assert.deepEqual([skewed.seen, skewed.more], [2000, true])
  })

  test('is empty without letters, and without their topic', async (t) => {
    await made('empty', 3)
    for (const topic of ['empty', 'nowhere']) {
      const none = await lettersOf(await served(t, broker, { topic }), '')
      assert.deepEqual([none.letters, none.seen, none.more, none.byReason], [[], 0, false, {}], topic)
    }
  })
})

interface Log {
  readonly from: number
  readonly to: number
  readonly aborted?: FetchedPartition['aborted']
  /** The batch with this offset, or the next one behind it. */
  at(offset: number): { readonly base: number; readonly count: number; readonly records: Uint8Array } | undefined
}

/** A broker with logs that no test could write, and what it was asked for. */
function brokerOf(logs: readonly Log[]): { broker: BrokerPort; asked: { fetches: number; bytes: number } } {
  const asked = { fetches: 0, bytes: 0 }
  const answer = ({ topic, partition, offset, maxBytes }: FetchPartition): FetchedPartition => {
    const log = logs[partition] as Log
    const parts: Uint8Array[] = []
    let bytes = 0
    for (let next = offset; next < log.to; ) {
      const batch = log.at(next)
      if (batch === undefined || (bytes > 0 && bytes + batch.records.length > maxBytes)) break
      const records = Uint8Array.from(batch.records)
      setBaseOffset(records, batch.base)
      parts.push(records)
      bytes += records.length
      next = batch.base + batch.count
    }
    asked.fetches++
    asked.bytes += bytes
    const ends = { highWatermark: log.to, lastStableOffset: log.to, logStartOffset: log.from }
    return { topic, partition, records: Buffer.concat(parts), ...ends, aborted: log.aborted ?? [] }
  }
  const broker: Pick<BrokerPort, 'topics' | 'listOffsets' | 'fetch'> = {
    topics: async (names) =>
      (names ?? []).flatMap((topic) => (topic === 'logs' ? [{ topic, topicId: 'id', partitions: logs.length }] : [])),
    listOffsets: async (partitions, at) =>
      partitions.map((each) => {
        const { from, to } = logs[each.partition] as Log
        return { ...each, offset: at === 'earliest' ? from : to }
      }),
    fetch: async ({ partitions }) => partitions.map(answer),
  }
  return { broker: broker as BrokerPort, asked }
}

/** Batches at these offsets, one letter each, as compaction leaves them; the time of a letter is its offset. */
function sparse(offsets: readonly number[], from: number, to: number): Log {
  return {
    from,
    to,
    at(offset) {
      const base = offsets.find((each) => each >= offset)
      return base === undefined ? undefined : { base, count: 1, records: batchOf([{ timestamp: t0 + base }]) }
    },
  }
}

describe('GET /dead-letters of a topic', () => {
  test('finds its letters behind wide gaps and a deleted head, in few steps', async (t) => {
    const dense = Array.from({ length: 400 }, (_, i) => 1_000_000 + i)
    const offsets = [...dense, 5_000_000, 9_000_000, 9_000_001]
    const { broker, asked } = brokerOf([sparse(offsets, 999_990, 9_000_002), sparse([3], 0, 4), sparse([], 7, 7)])
    const all = await lettersOf(await served(t, broker, { topic: 'logs' }), 'limit=1000')
    assert.deepEqual(timesOf(all), [...offsets.reverse(), 3])
    assert.deepEqual([all.seen, all.more], [404, false])
    assert.ok(asked.fetches < 60, `${asked.fetches} fetches`)
  })

  test('with one partition full of what was given up costs a bounded amount, and shows what others have', async (t) => {
    const count = 64
    const value = new Uint8Array(4096)
    const records = batchOf(Array.from({ length: count }, () => ({ timestamp: t0, value })))
    stampBatch(records, { producerId: 5n, producerEpoch: 0, baseSequence: 0, transactional: true })
    const givenUp: Log = {
      from: 0,
      to: 10_000_000,
      aborted: [{ producerId: 5n, firstOffset: 0 }],
      at: (offset) => ({ base: offset - (offset % count), count, records }),
    }
    const { broker, asked } = brokerOf([givenUp, sparse([0, 1, 2, 3], 0, 4)])
    const all = await lettersOf(await served(t, broker, { topic: 'logs' }), '')
    assert.deepEqual(timesOf(all), [3, 2, 1, 0])
    assert.deepEqual([all.seen, all.more], [4, true])
    assert.ok(asked.bytes < 300 * 1024 * 1024, `${asked.bytes} bytes`)
  })
})
