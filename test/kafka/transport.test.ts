/** The Kafka implementation of the broker port against a real Kafka: what only a real one can show. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Cluster } from '../../src/broker/kafka/cluster.ts'
import { refused } from '../../src/broker/kafka/errors.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { parseAddress, settingsOf } from '../../src/broker/kafka/options.ts'
import { BrokerError, type BrokerPort } from '../../src/broker/port.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { batchOf, readAll, TestProducer, transactionsSettled } from '../support/broker-io.ts'

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false
const broker = 'skip' in kafka ? undefined : kafka.broker

function connect(settings: Partial<Parameters<typeof connectKafka>[0]> = {}): ReturnType<typeof connectKafka> {
  const bootstrapServers = 'skip' in kafka ? [] : [kafka.bootstrap]
  return connectKafka({ bootstrapServers, clientId: 'transport-test', ...settings })
}

async function newTopic(port: BrokerPort, partitions = 1, config: Record<string, string> = {}): Promise<string> {
  const topic = `t-${randomUUID()}`
  await port.createTopics([{ topic, partitions, config }])
  return topic
}

const notController = 41

const isCode = (code: string) => (error: unknown) => error instanceof BrokerError && error.code === code

describe('transport over Kafka', { skip }, () => {
  let port: BrokerPort
  before(() => {
    port = connect()
  })
  after(async () => {
    await port.close()
    if ('stop' in kafka) await kafka.stop()
  })

  test('records written idempotently are read back as they were', async () => {
    const topic = await newTopic(port, 2)
    const producer = await TestProducer.open(port)
    assert.equal(
      await producer.write(topic, 0, [
        { key: 'a', value: '1' },
        { key: null, value: null },
      ]),
      0,
    )
    assert.equal(await producer.write(topic, 0, [{ key: 'b', value: '2', timestamp: 1_700_000_000_005 }]), 2)
    await producer.write(topic, 1, [{ key: 'c', value: '3' }])
    assert.deepEqual(await readAll(port, topic, 0), [
      { offset: 0, timestamp: 1_700_000_000_000, key: 'a', value: '1' },
      { offset: 1, timestamp: 1_700_000_000_000, key: null, value: null },
      { offset: 2, timestamp: 1_700_000_000_005, key: 'b', value: '2' },
    ])
    assert.equal((await readAll(port, topic, 1)).length, 1)
    assert.equal(port.connected, true)
  })

  for (const away of [1, 2, 3]) {
    test(`asks each of ${away + 1} bootstrap servers in turn, of which the last one alone is there`, async () => {
      const topic = await newTopic(port)
      const gone = Array.from({ length: away }, (_, i) => `127.0.0.1:${i + 1}`)
      const client = connect({ bootstrapServers: [...gone, broker?.bootstrap ?? ''] })
      try {
        assert.equal((await client.topics([topic]))[0]?.topic, topic)
      } finally {
        await client.close()
      }
    })
  }

  test('passes a bootstrap server by that takes connections and says nothing', async () => {
    const topic = await newTopic(port)
    const sockets = new Set<Socket>()
    const silent = createServer((socket) => sockets.add(socket.on('error', () => undefined)))
    await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done))
    const { port: number } = silent.address() as AddressInfo
    const client = connect({
      bootstrapServers: [`127.0.0.1:${number}`, broker?.bootstrap ?? ''],
      requestTimeoutMs: 2000,
    })
    try {
      assert.equal((await client.topics([topic]))[0]?.topic, topic)
      assert.ok(sockets.size > 0)
    } finally {
      await client.close()
      for (const socket of sockets) socket.destroy()
      silent.close()
    }
  })

  test('goes on with the next node where one is lost amid a call, or is not the one to ask', async () => {
    // One node under two names, which are two to a client that has not asked yet.
    const { port: number } = parseAddress(broker?.bootstrap ?? '')
    const bootstrapServers = [`127.0.0.1:${number}`, `localhost:${number}`]
    for (const failure of [new Error('the socket is gone'), refused(notController, 'it')]) {
      const cluster = new Cluster(settingsOf({ bootstrapServers, clientId: 'transport-test' }))
      const asked: string[] = []
      const answer = await cluster.retrying('asking', () =>
        cluster.anywhere('asking', async ({ address }) => {
          if (asked.push(address.host) === 1) throw failure
          return address.host
        }),
      )
      await cluster.close()
      assert.deepEqual([asked, answer], [['127.0.0.1', 'localhost'], 'localhost'])
    }
  })

  for (const codec of ['gzip', 'snappy', 'lz4', 'zstd'] as const) {
    test(`batches that an independent client compressed with ${codec} are read`, async () => {
      const topic = await newTopic(port)
      const lines = Array.from({ length: 2000 }, (_, i) => `line ${i} of a text that compresses well`)
      const file = join(tmpdir(), `${randomUUID()}.properties`)
      writeFileSync(file, `bootstrap.servers=${broker?.bootstrap}\ncompression.type=${codec}\nlinger.ms=50\n`)
      const args = ['--bootstrap-server', broker?.bootstrap ?? '', '--topic', topic, '--producer.config', file]
      await broker?.tool('org.apache.kafka.tools.ConsoleProducer', args, `${lines.join('\n')}\n`)
      const read = await readAll(port, topic, 0)
      assert.deepEqual(
        read.map((record) => record.value),
        lines,
      )
    })
  }

  test('an aborted transaction is passed over, also by a fetch that begins at its marker', async () => {
    const topic = await newTopic(port)
    const producer = await TestProducer.open(port, `x-${topic}`)
    await producer.write(topic, 0, [{ value: 'kept' }])
    await producer.end(true)
    await producer.write(topic, 0, [{ value: 'dropped' }])
    await producer.end(false)
    await producer.write(topic, 0, [{ value: 'kept too' }])
    await producer.end(true)
    await transactionsSettled(port, topic, 0)
    const values = async (from: number) => (await readAll(port, topic, 0, 'read_committed', from)).map((r) => r.value)
    // 0 kept, 1 marker, 2 dropped, 3 marker of the abort, 4 kept too, 5 marker
    assert.deepEqual(await values(0), ['kept', 'kept too'])
    assert.deepEqual(await values(3), ['kept too'])
    assert.deepEqual(await values(2), ['kept too'])
    assert.deepEqual(await values(5), [])
    assert.deepEqual(
      (await readAll(port, topic, 0, 'read_uncommitted')).map((r) => r.value),
      ['kept', 'dropped', 'kept too'],
    )
  })

  test('an open transaction holds back the stable end and its records', async () => {
    const topic = await newTopic(port)
    const producer = await TestProducer.open(port, `x-${topic}`)
    await producer.write(topic, 0, [{ value: 'open' }])
    const end = async (at: 'stable' | 'latest' | 'earliest') =>
      (await port.listOffsets([{ topic, partition: 0 }], at))[0]?.offset
    assert.deepEqual([await end('earliest'), await end('stable'), await end('latest')], [0, 0, 1])
    assert.deepEqual(await readAll(port, topic, 0), [])
    await producer.end(true)
    assert.equal(await transactionsSettled(port, topic, 0), 2)
  })

  test('a new holder of a transactional id fences the older one and aborts what it left open', async () => {
    const topic = await newTopic(port)
    const id = `x-${topic}`
    const older = await TestProducer.open(port, id)
    await older.write(topic, 0, [{ value: 'of the older' }])
    const other = connect()
    const newer = await TestProducer.open(other, id)
    await newer.write(topic, 0, [{ value: 'of the newer' }])
    await newer.end(true)
    await transactionsSettled(other, topic, 0)
    await assert.rejects(older.write(topic, 0, [{ value: 'too late' }]), (error: unknown) => {
      assert.ok(error instanceof BrokerError)
      assert.equal(error.errorClass, 'epoch-lost')
      return true
    })
    await assert.rejects(port.initProducer(id, 60_000, older.identity), isCode('PRODUCER_FENCED'))
    assert.deepEqual(
      (await readAll(port, topic, 0)).map((r) => r.value),
      ['of the newer'],
    )
    await other.close()
  })

  test('the holder itself goes on after a conditional init', async () => {
    const topic = await newTopic(port)
    const producer = await TestProducer.open(port, `x-${topic}`)
    const again = await port.initProducer(`x-${topic}`, 60_000, producer.identity)
    assert.equal(again.producerId, producer.identity.producerId)
    assert.ok(again.producerEpoch > producer.identity.producerEpoch)
  })

  test('offsets committed in a transaction take effect with it', async () => {
    const topic = await newTopic(port)
    const groupId = `g-${topic}`
    const producer = await TestProducer.open(port, `x-${topic}`)
    const member = { groupId, memberId: '', generationId: -1, groupInstanceId: null }
    const at = [{ topic, partition: 0 }]
    assert.deepEqual(await port.committedOffsets(groupId, at, true), [
      { topic, partition: 0, offset: -1, metadata: '' },
    ])
    await producer.write(topic, 0, [{ value: 'x' }])
    const commit = (offset: number) =>
      port.commitOffsetsInTransaction(`x-${topic}`, producer.identity, member, [
        { topic, partition: 0, offset, metadata: `tag ${offset}` },
      ])
    await commit(5)
    assert.equal((await port.committedOffsets(groupId, at, false))[0]?.offset, -1)
    const stable = port.committedOffsets(groupId, at, true)
    await producer.end(true)
    assert.deepEqual(await stable, [{ topic, partition: 0, offset: 5, metadata: 'tag 5' }])
    await producer.write(topic, 0, [{ value: 'x' }])
    await commit(9)
    await producer.end(false)
    assert.equal((await port.committedOffsets(groupId, null, true))[0]?.offset, 5)
  })

  test('a hundred transactions in a row come through, each in its own epoch or in one', async () => {
    const topic = await newTopic(port, 3)
    const producer = await TestProducer.open(port, `x-${topic}`)
    for (let i = 0; i < 100; i++) {
      await Promise.all([0, 1, 2].map((partition) => producer.write(topic, partition, [{ value: String(i) }])))
      await producer.end(i % 10 !== 9)
    }
    for (const partition of [0, 1, 2]) {
      await transactionsSettled(port, topic, partition)
      const values = (await readAll(port, topic, partition)).map((r) => Number(r.value))
      assert.deepEqual(
        values,
        Array.from({ length: 100 }, (_, i) => i).filter((i) => i % 10 !== 9),
      )
    }
  })

  test('a fetch waits for data, and ends early when its signal fires', async () => {
    const topic = await newTopic(port)
    const partitions = [{ topic, partition: 0, offset: 0, maxBytes: 1000 }]
    const request = { partitions, maxWaitMs: 20_000, maxBytes: 10_000, isolation: 'read_committed' } as const
    const stop = new AbortController()
    const stopped = port.fetch({ ...request, signal: stop.signal })
    setTimeout(() => stop.abort(), 50)
    assert.equal((await stopped).filter((p) => p.records.length).length, 0)
    const waiting = port.fetch(request)
    const producer = await TestProducer.open(port)
    await producer.write(topic, 0, [{ value: 'at last' }])
    const [fetched] = await waiting
    assert.ok((fetched?.records.length ?? 0) > 0)
    assert.equal(fetched?.highWatermark, 1)
  })

  test('an offset outside of the log is told for that partition alone', async () => {
    const topic = await newTopic(port, 2)
    const producer = await TestProducer.open(port)
    await producer.write(topic, 1, [{ value: 'there' }])
    // A new topic's partition may have its leader a little later than another: an answer may tell of one alone.
    let error: string | undefined
    let records = 0
    for (let i = 0; i < 50 && (error === undefined || records === 0); i++) {
      const fetched = await port.fetch({
        partitions: [
          { topic, partition: 0, offset: 77, maxBytes: 1000 },
          { topic, partition: 1, offset: 0, maxBytes: 1000 },
        ],
        maxWaitMs: 100,
        maxBytes: 10_000,
        isolation: 'read_committed',
      })
      for (const part of fetched) {
        if (part.partition === 0) error ??= part.error
        else assert.equal(part.error, undefined)
        if (part.partition === 1) records += part.records.length
      }
    }
    assert.equal(error, 'OFFSET_OUT_OF_RANGE')
    assert.ok(records > 0)
  })

  test('a topic made anew is not mistaken for the old one, until it is described again', async () => {
    const topic = await newTopic(port)
    const [before] = await port.topics([topic])
    const producer = await TestProducer.open(port)
    await producer.write(topic, 0, [{ value: 'old' }])
    assert.equal((await readAll(port, topic, 0)).length, 1)
    const other = connect()
    await other.deleteTopics([topic])
    await other.createTopics([{ topic, partitions: 1 }])
    await (await TestProducer.open(other)).write(topic, 0, [{ value: 'new' }])
    const fetchOnce = () =>
      port.fetch({
        partitions: [{ topic, partition: 0, offset: 0, maxBytes: 1000 }],
        maxWaitMs: 3000,
        maxBytes: 10_000,
        isolation: 'read_committed',
      })
    assert.equal((await fetchOnce())[0]?.error, 'UNKNOWN_TOPIC_ID')
    const [anew] = await port.topics([topic])
    assert.notEqual(anew?.topicId, before?.topicId)
    assert.ok(((await fetchOnce())[0]?.records.length ?? 0) > 0)
    await other.close()
  })

  test('partitions that were added are seen', async () => {
    const topic = await newTopic(port)
    await port.topics([topic])
    const args = ['--bootstrap-server', broker?.bootstrap ?? '', '--alter', '--topic', topic, '--partitions', '3']
    await broker?.tool('org.apache.kafka.tools.TopicCommand', args)
    assert.equal((await port.topics([topic]))[0]?.partitions, 3)
    await (await TestProducer.open(port)).write(topic, 2, [{ value: 'there' }])
  })

  test('a fed file is taken up again behind its last stored line, also after an interruption', async () => {
    const topic = await newTopic(port, 2)
    const batches = (value: string) => [
      { topic, partition: 0, records: batchOf([{ value }]) },
      { topic, partition: 1, records: batchOf([{ value }, { value }]) },
    ]
    const feeding = connect({ clientId: 'feeder' })
    assert.equal(await feeding.feedMark(topic, 'a.ndjson'), 0)
    await feeding.produceFed(batches('1'), { topic, file: 'a.ndjson', lines: 3 })
    await feeding.produceFed(batches('2'), { topic, file: 'a.ndjson', lines: 6 })
    const unfinished = feeding.produceFed(batches('3'), { topic, file: 'a.ndjson', lines: 9 }).catch(() => undefined)
    await feeding.close()
    await unfinished
    const again = connect({ clientId: 'feeder' })
    const stored = await again.feedMark(topic, 'a.ndjson')
    assert.ok(stored === 6 || stored === 9)
    assert.equal(await again.feedMark(topic, 'b.ndjson'), 0)
    if (stored === 6) await again.produceFed(batches('3'), { topic, file: 'a.ndjson', lines: 9 })
    await transactionsSettled(port, topic, 1)
    const values = (await readAll(port, topic, 1)).map((record) => record.value)
    assert.deepEqual(values, ['1', '1', '2', '2', '3', '3'])
    await again.close()
  })

  test('a missing topic is named, with what to do', async () => {
    const producer = await TestProducer.open(port)
    await assert.rejects(producer.write('no-such-topic', 0, [{ value: 'x' }]), (error: unknown) => {
      assert.ok(error instanceof BrokerError)
      assert.equal(error.code, 'UNKNOWN_TOPIC_OR_PARTITION')
      assert.match(error.message, /no-such-topic:0.*Create the topic/s)
      return true
    })
    assert.deepEqual(await port.topics(['no-such-topic']), [])
  })

  test('a transaction timeout above the maximum of the broker is refused with the setting to change', async () => {
    await assert.rejects(port.initProducer('x-timeout', 2_000_000_000), (error: unknown) => {
      assert.ok(error instanceof BrokerError)
      assert.equal(error.errorClass, 'config')
      assert.match(error.message, /transaction\.max\.timeout\.ms/)
      return true
    })
  })

  test('a record that is too large is refused as such', async () => {
    const topic = await newTopic(port, 1, { 'max.message.bytes': '2000' })
    const producer = await TestProducer.open(port)
    await assert.rejects(producer.write(topic, 0, [{ value: 'x'.repeat(5000) }]), isCode('MESSAGE_TOO_LARGE'))
  })

  test('settings of a topic are those it was made with', async () => {
    const topic = await newTopic(port, 1, { 'cleanup.policy': 'compact', 'retention.ms': '12345' })
    const config = await port.topicConfig(topic)
    assert.equal(config['cleanup.policy'], 'compact')
    assert.equal(config['retention.ms'], '12345')
  })

  test('an unreachable host is named after a short while', async () => {
    const nowhere = connect({ bootstrapServers: ['127.0.0.1:1'], firstContactMs: 100 })
    await assert.rejects(nowhere.topics(null), (error: unknown) => {
      assert.ok(error instanceof BrokerError)
      assert.equal(error.errorClass, 'unreachable')
      assert.match(error.message, /127\.0\.0\.1:1 is not reachable.*`broker\.bootstrap-servers`/)
      return true
    })
    assert.equal(nowhere.connected, false)
    await nowhere.close()
  })

  test('a client that is closed says so and leaves nothing behind', async () => {
    const closing = connect()
    const topic = await newTopic(closing)
    const waiting = closing.fetch({
      partitions: [{ topic, partition: 0, offset: 0, maxBytes: 1000 }],
      maxWaitMs: 60_000,
      maxBytes: 10_000,
      isolation: 'read_committed',
    })
    await closing.close()
    await waiting.catch(() => undefined)
    await assert.rejects(closing.topics(null), isCode('CLOSED'))
  })
})
