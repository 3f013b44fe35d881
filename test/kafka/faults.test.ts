/** Lost answers, cut connections and stopped brokers, on both kinds of transactions that Kafka has. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import type { BrokerError, BrokerPort } from '../../src/broker/port.ts'
import { TopicWriter } from '../../src/runtime/topics/topic-writer.ts'
import { plainKeySerde, plainValueSerde } from '../../src/topology/serdes/default-serdes.ts'
import { readAll, TestProducer, transactionsSettled } from '../support/broker-io.ts'
import { kafkaForTests, type NoKafka, type TestKafka } from '../support/kafka.ts'
import { KafkaProxy } from '../support/proxy.ts'

for (const transactionVersion of [2, 0]) {
  const proxy = await KafkaProxy.listen()
  const settings = { 'transaction.abort.timed.out.transaction.cleanup.interval.ms': '200' }
  const options = { own: true, proxyPort: proxy.port, transactionVersion, settings }
  const kafka: TestKafka | NoKafka = await kafkaForTests(options)
  const skip = 'skip' in kafka ? kafka.skip : false
  if ('skip' in kafka) await proxy.close()

  describe(`faults under transactions of version ${transactionVersion}`, { skip }, () => {
    const broker = 'skip' in kafka ? undefined : kafka.broker
    let port: BrokerPort
    before(() => {
      proxy.target = broker?.proxiedPort ?? 0
      port = connectKafka({ bootstrapServers: [proxy.bootstrap], clientId: 'fault-test' })
    })
    after(async () => {
      await port.close()
      await proxy.close()
      if (!('skip' in kafka)) await kafka.stop()
    })

    async function newTopic(): Promise<string> {
      const topic = `f-${randomUUID()}`
      await port.createTopics([{ topic, partitions: 1 }])
      return topic
    }

    async function committedValues(topic: string): Promise<number[]> {
      await transactionsSettled(port, topic, 0)
      return (await readAll(port, topic, 0)).map((record) => Number(record.value))
    }

    const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

    for (const [side, api] of [
      ['response', 'endTxn'],
      ['request', 'endTxn'],
      ['response', 'produce'],
      ['request', 'produce'],
      ['response', 'txnOffsetCommit'],
    ] as const) {
      test(`a lost ${api} ${side} neither loses nor doubles anything`, async () => {
        const topic = await newTopic()
        const id = `x-${topic}`
        const member = { groupId: `g-${topic}`, memberId: '', generationId: -1, groupInstanceId: null }
        const producer = await TestProducer.open(port, id)
        const lost: Array<() => number> = []
        for (let i = 0; i < 20; i++) {
          if (i % 4 === 1) lost.push(proxy.lose(side, api))
          await producer.write(topic, 0, [{ value: String(i) }])
          const offset = { topic, partition: 0, offset: i + 1, metadata: '' }
          await port.commitOffsetsInTransaction(id, producer.identity, member, [offset])
          await producer.end(true)
        }
        assert.deepEqual(await committedValues(topic), upTo(20))
        const [committed] = await port.committedOffsets(member.groupId, null, true)
        assert.equal(committed?.offset, 20)
        assert.ok(lost.every((count) => count() === 1))
      })
    }

    test('nobody waits for a commit but who commits', async () => {
      const topic = await newTopic()
      const id = `x-${topic}`
      const member = { groupId: `g-${topic}`, memberId: '', generationId: -1, groupInstanceId: null }
      const offsets = [{ topic, partition: 0, offset: 1, metadata: '' }]
      const producer = await TestProducer.open(port, id)
      await port.commitOffsets(member, offsets)
      const commits = {
        offsetCommit: () => port.commitOffsets(member, offsets),
        txnOffsetCommit: () => port.commitOffsetsInTransaction(id, producer.identity, member, offsets),
        endTxn: () => producer.end(true),
      }
      for (const api of ['offsetCommit', 'txnOffsetCommit', 'endTxn'] as const) {
        proxy.delay(api, Number.POSITIVE_INFINITY)
        const committed = commits[api]()
        const asked = port.listOffsets([{ topic, partition: 0 }], 'latest')
        const first = await Promise.race([asked.then(() => 'the answer'), sleep(10_000, 'the time', { ref: false })])
        proxy.delay(api, 0)
        await committed
        assert.equal(first, 'the answer', `a question waits until ${api} has its answer`)
      }
    })

    if (transactionVersion === 2) {
      test('a transaction that begins right behind another one is announced, and no other', async () => {
        const topic = await newTopic()
        const id = `x-${topic}`
        const member = { groupId: `g-${topic}`, memberId: '', generationId: -1, groupInstanceId: null }
        const producer = await TestProducer.open(port, id)
        const before = proxy.seen('addPartitionsToTxn')
        const transaction = async (): Promise<void> => {
          await producer.write(topic, 0, [{ value: '0' }])
          await producer.write(topic, 0, [{ value: '0' }])
          const offset = { topic, partition: 0, offset: 1, metadata: '' }
          await port.commitOffsetsInTransaction(id, producer.identity, member, [offset])
          await producer.end(true)
        }
        await transaction()
        await sleep(500)
        await transaction()
        assert.equal(proxy.seen('addPartitionsToTxn'), before)
        const behind = 20
        for (let i = 0; i < behind; i++) {
          if (i % 4 === 1) proxy.lose('response', 'addPartitionsToTxn')
          await transaction()
        }
        // More where one was refused or lost its answer; fewer where the machine stood still before one.
        const announced = proxy.seen('addPartitionsToTxn') - before
        assert.ok(announced >= behind / 2, `${announced} of ${behind} were announced`)
        assert.equal((await committedValues(topic)).length, 2 * (behind + 2))
      })
    }

    test('what a program writes is stored once, in order, though answers are lost', async () => {
      const topic = await newTopic()
      const writer = new TopicWriter(port, () => 1)
      const lost: Array<() => number> = []
      for (let i = 0; i < 20; i++) {
        if (i % 4 === 1) lost.push(proxy.lose('response', 'produce'))
        assert.equal(await writer.write(topic, [{ value: i }], { key: plainKeySerde, value: plainValueSerde }), 1)
      }
      assert.deepEqual(await committedValues(topic), upTo(20))
      assert.ok(lost.every((count) => count() === 1))
    })

    test('a lost answer to an init still gives a producer that can write', async () => {
      const topic = await newTopic()
      proxy.lose('response', 'initProducerId')
      const producer = await TestProducer.open(port, `x-${topic}`)
      await producer.write(topic, 0, [{ value: '0' }])
      proxy.lose('response', 'initProducerId')
      await producer.end(true)
      const again = await port.initProducer(`x-${topic}`, 60_000, producer.identity)
      assert.equal(again.producerId, producer.identity.producerId)
      assert.deepEqual(await committedValues(topic), [0])
    })

    test('a transaction that was ended for its age is not taken for one of another process', async () => {
      const topic = `f-${randomUUID()}`
      await port.createTopics([{ topic, partitions: 2 }])
      const nobody = { groupId: topic, memberId: '', generationId: -1, groupInstanceId: null }
      const offsets = [{ topic, partition: 0, offset: 1, metadata: '' }]
      const late: Record<string, (id: string, producer: TestProducer) => Promise<unknown>> = {
        write: (_, producer) => producer.write(topic, 0, [{ value: 'late' }]),
        'write to another partition': (_, producer) => producer.write(topic, 1, [{ value: 'late' }]),
        offsets: (id, { identity }) => port.commitOffsetsInTransaction(id, identity, nobody, offsets),
        commit: (_, producer) => producer.end(true),
      }
      const open = Object.entries(late).map(async ([what, call]) => {
        const id = `${what}-${topic}`
        const producer = await TestProducer.open(port, id, 5000)
        await producer.write(topic, 0, [{ value: 'lost' }])
        return async () => {
          const error = (await call(id, producer).catch((thrown: unknown) => thrown)) as BrokerError
          assert.equal(error.errorClass, 'epoch-lost', `${what}: ${error}`)
          assert.notEqual(error.code, 'PRODUCER_FENCED', `${what}: ${error}`)
        }
      })
      const calls = await Promise.all(open)
      await transactionsSettled(port, topic, 0)
      for (const call of calls) await call()
      assert.deepEqual(await committedValues(topic), [])
    })

    test('connections reset in the middle of everything cost nothing', async () => {
      const topic = await newTopic()
      const producer = await TestProducer.open(port, `x-${topic}`)
      const resets = setInterval(() => proxy.reset(), 40)
      for (let i = 0; i < 60; i++) {
        await producer.write(topic, 0, [{ value: String(i) }])
        await producer.end(true)
      }
      clearInterval(resets)
      assert.deepEqual(await committedValues(topic), upTo(60))
    })

    test('a cut of two seconds is waited for', async () => {
      const topic = await newTopic()
      const producer = await TestProducer.open(port, `x-${topic}`)
      await producer.write(topic, 0, [{ value: '0' }])
      proxy.cut()
      const ended = producer.end(true)
      await sleep(2000)
      assert.equal(port.connected, false)
      proxy.heal()
      await ended
      assert.equal(port.connected, true)
      assert.deepEqual(await committedValues(topic), [0])
    })

    test('a fetch outlives a cut and goes on where it was', async () => {
      const topic = await newTopic()
      const direct = connectKafka({ bootstrapServers: [broker?.bootstrap ?? ''], clientId: 'fault-test-direct' })
      const producer = await TestProducer.open(direct)
      const request = {
        partitions: [{ topic, partition: 0, offset: 0, maxBytes: 1000 }],
        maxWaitMs: 10_000,
        maxBytes: 10_000,
        isolation: 'read_committed',
      } as const
      const fetching = port.fetch(request)
      await sleep(100)
      proxy.cut()
      await sleep(300)
      await producer.write(topic, 0, [{ value: 'meanwhile' }])
      proxy.heal()
      const [fetched] = await fetching
      assert.ok((fetched?.records.length ?? 0) > 0)
      await direct.close()
    })

    for (const [name, stop] of [
      ['cleanly', () => broker?.stop()],
      ['hard', () => broker?.kill()],
    ] as const) {
      test(`a broker stopped ${name} and started again costs nothing`, async () => {
        const topic = await newTopic()
        const producer = await TestProducer.open(port, `x-${topic}`)
        await producer.write(topic, 0, [{ value: '0' }])
        await producer.end(true)
        await producer.write(topic, 0, [{ value: '1' }])
        await stop()
        const writing = producer.write(topic, 0, [{ value: '2' }])
        await broker?.start()
        await writing
        await producer.end(true)
        assert.deepEqual(await committedValues(topic), [0, 1, 2])
      })
    }

    test('a broker that stands still for a while is waited for', async () => {
      const topic = await newTopic()
      const producer = await TestProducer.open(port, `x-${topic}`)
      broker?.pause()
      const writing = producer.write(topic, 0, [{ value: '0' }])
      await sleep(1500)
      broker?.resume()
      await writing
      await producer.end(true)
      assert.deepEqual(await committedValues(topic), [0])
    })
  })
}
