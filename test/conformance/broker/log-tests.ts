import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokerPort, FetchRequest } from '../../../src/broker/port.ts'
import { RecordBatchBuilder } from '../../../src/broker/wire/record-batch.ts'
import { eventually } from '../../support/millrace.ts'
import type { SuiteContext } from './suite.ts'
import {
  batchOf,
  decode,
  newTopic,
  Producer,
  readToEnd,
  refused,
  refusedAs,
  text,
  unique,
  valuesOf,
} from './support.ts'

function fetchRequest(topic: string, offset: number, more: Partial<FetchRequest> = {}): FetchRequest {
  return {
    partitions: [{ topic, partition: 0, offset, maxBytes: 1_000_000 }],
    maxWaitMs: 100,
    maxBytes: 1_000_000,
    isolation: 'read_committed',
    ...more,
  }
}

const plain = (client: BrokerPort, topic: string, records: Uint8Array, partition = 0): Promise<unknown> =>
  client.produce({ transactionalId: null, batches: [{ topic, partition, records }] })

export function logTests(context: SuiteContext): void {
  test('records come back as they were sent, with offsets in order', async () => {
    const topic = await newTopic(context.one)
    const builder = new RecordBatchBuilder()
    builder.append(1700, text('key'), text('value'), [
      ['trace', 'ä'],
      ['trace', null],
      ['raw', Uint8Array.of(0xff)],
    ])
    builder.append(1600, null, null, [])
    await plain(context.one, topic, builder.finish())
    await plain(context.one, topic, batchOf(['next']))
    const { records, position } = await readToEnd(context.other, topic)
    assert.deepEqual(records.slice(0, 2), [
      {
        offset: 0,
        timestamp: 1700,
        key: 'key',
        value: 'value',
        headers: [
          ['trace', 'ä'],
          ['trace', null],
          ['raw', Uint8Array.of(0xff)],
        ],
      },
      { offset: 1, timestamp: 1600, key: null, value: null, headers: [] },
    ])
    assert.equal(records[2]?.offset, 2)
    assert.equal(position, 3)
  })

  test('one call may write several batches to several partitions, and keeps the caller its bytes', async () => {
    const topic = await newTopic(context.one, 2)
    const twice = Buffer.concat([batchOf(['a', 'b']), batchOf(['c'])])
    const single = batchOf(['d'])
    const produced = await context.one.produce({
      transactionalId: null,
      batches: [
        { topic, partition: 0, records: twice },
        { topic, partition: 1, records: single },
      ],
    })
    assert.deepEqual(
      produced.map(({ partition, baseOffset }) => [partition, baseOffset]),
      [
        [0, 0],
        [1, 0],
      ],
    )
    assert.ok(single.length > 0)
    assert.deepEqual(await valuesOf(context.one, topic), ['a', 'b', 'c'])
    assert.deepEqual(
      (await readToEnd(context.one, topic, { partition: 1 })).records.map((r) => r.value),
      ['d'],
    )
  })

  test('a fetch begins at its offset, also in the middle of a batch', async () => {
    const topic = await newTopic(context.one)
    await plain(context.one, topic, batchOf(['a', 'b', 'c']))
    const { records } = await readToEnd(context.one, topic, { from: 2 })
    assert.deepEqual(
      records.map((r) => [r.offset, r.value]),
      [[2, 'c']],
    )
  })

  test('offsets of the beginning and the end', async () => {
    const topic = await newTopic(context.one)
    await plain(context.one, topic, batchOf(['a', 'b']))
    for (const [at, offset] of [
      ['earliest', 0],
      ['latest', 2],
      ['stable', 2],
    ] as const) {
      assert.deepEqual(await context.one.listOffsets([{ topic, partition: 0 }], at), [{ topic, partition: 0, offset }])
    }
    await refused(context.one.listOffsets([{ topic, partition: 7 }], 'latest'), 'UNKNOWN_TOPIC_OR_PARTITION')
  })

  test('a fetch waits for records, and ends with them', async () => {
    const topic = await newTopic(context.one)
    const fetching = context.other.fetch(fetchRequest(topic, 0, { maxWaitMs: 20_000 }))
    await plain(context.one, topic, batchOf(['late']))
    const [fetched] = await fetching
    assert.equal(decode(fetched?.records ?? new Uint8Array(0), 0, [], 'read_committed').records[0]?.value, 'late')
  })

  test('a fetch without anything to get ends with its time, saying where the log ends', async () => {
    const topic = await newTopic(context.one)
    await plain(context.one, topic, batchOf(['a']))
    const [fetched] = await context.other.fetch(fetchRequest(topic, 1))
    assert.equal(fetched?.records.length, 0)
    assert.deepEqual([fetched?.highWatermark, fetched?.lastStableOffset, fetched?.logStartOffset], [1, 1, 0])
    assert.equal(fetched?.error, undefined)
  })

  test('a signal ends the wait', async () => {
    const topic = await newTopic(context.one)
    const abort = new AbortController()
    const fetching = context.other.fetch(fetchRequest(topic, 0, { maxWaitMs: 30_000, signal: abort.signal }))
    abort.abort()
    for (const { records } of await fetching) assert.equal(records.length, 0)
  })

  test('a partition that cannot be read fails alone', async () => {
    const topic = await newTopic(context.one)
    const unknown = unique('nowhere')
    await plain(context.one, topic, batchOf(['a']))
    const errors: Record<string, string | undefined> = {}
    // The answer for the one need not wait for that of the other.
    await eventually('both are answered for', async () => {
      const fetched = await context.one.fetch({
        ...fetchRequest(topic, 0),
        partitions: [
          { topic, partition: 0, offset: 0, maxBytes: 1000 },
          { topic: unknown, partition: 0, offset: 0, maxBytes: 1000 },
        ],
      })
      for (const each of fetched) errors[each.topic] = each.error
      return Object.keys(errors).length === 2
    })
    assert.deepEqual(errors, { [topic]: undefined, [unknown]: 'UNKNOWN_TOPIC_OR_PARTITION' })
    const [behind] = await context.one.fetch(fetchRequest(topic, 50))
    assert.equal(behind?.error, 'OFFSET_OUT_OF_RANGE')
  })

  test('a batch that is longer than asked for comes all the same, and alone', async () => {
    const topic = await newTopic(context.one)
    for (const letter of ['a', 'b']) await plain(context.one, topic, batchOf([letter.repeat(5000)]))
    const [fetched] = await context.one.fetch({
      ...fetchRequest(topic, 0),
      partitions: [{ topic, partition: 0, offset: 0, maxBytes: 100 }],
    })
    const { records } = decode(fetched?.records ?? new Uint8Array(0), 0, [], 'read_committed')
    assert.deepEqual(
      records.map((r) => r.value?.[0]),
      ['a'],
    )
  })

  test('a batch above the size that its topic allows is refused, as a fault of the record', async () => {
    const topic = await newTopic(context.one, 1, { 'max.message.bytes': '2000' })
    await refusedAs(plain(context.one, topic, batchOf(['x'.repeat(3000)])), 'record')
    assert.deepEqual(await valuesOf(context.one, topic), [])
  })

  test('a batch whose checksum is wrong is refused', async () => {
    const topic = await newTopic(context.one)
    const records = batchOf(['abc'])
    records[records.length - 2] = (records.at(-2) as number) ^ 1
    await refused(plain(context.one, topic, records), 'CORRUPT_MESSAGE')
  })

  test('a repeated batch is acknowledged with its offset and not stored again', async () => {
    const topic = await newTopic(context.one)
    const producer = await Producer.start(context.one)
    await producer.send(topic, ['a'])
    const records = producer.stamped(topic, 0, ['b', 'c'])
    const first = await producer.sendRaw(topic, records)
    const again = await producer.sendRaw(topic, records)
    assert.equal(first.baseOffset, 1)
    assert.equal(again.baseOffset, 1)
    await producer.send(topic, ['d'])
    assert.deepEqual(await valuesOf(context.one, topic), ['a', 'b', 'c', 'd'])
  })

  test('a gap in the sequence is refused', async () => {
    const topic = await newTopic(context.one)
    const producer = await Producer.start(context.one)
    await producer.send(topic, ['a'])
    producer.stamped(topic, 0, ['lost'])
    await refused(producer.send(topic, ['c']), 'OUT_OF_ORDER_SEQUENCE_NUMBER')
  })
}
