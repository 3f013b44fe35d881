/**
 * Standstills around transactions on a real Kafka, asked over a socket: a coordinator that is silent or slow, and the open
 * transaction of another producer. A proxy between makes it so.
 */
import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { type In, produce, TestEngine } from '../engine/support/engine.ts'
import { causesIn, flows, found, meanwhile, quiet, why } from '../engine/support/why.ts'
import { TestProducer } from '../support/broker-io.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { type ApiName, KafkaProxy } from '../support/proxy.ts'

const proxy = await KafkaProxy.listen()
const kafka = await kafkaForTests({ own: true, proxyPort: proxy.port })
const skip = 'skip' in kafka ? kafka.skip : false
if (skip) await proxy.close()

const intervalMs = 100
const requestTimeoutMs = 6000
const some = Array.from({ length: 20 }, (_, n): In => ({ key: `k${n}`, value: {} }))

describe('why, around transactions on Kafka', { skip }, () => {
  /** Beside the proxy: what is slow for the engine is not for those who write its topics. */
  const direct = connectKafka({
    bootstrapServers: ['skip' in kafka ? 'nowhere:1' : kafka.bootstrap],
    clientId: 'other',
  })
  const feed = (records: readonly In[] = some): Promise<void> => produce(direct, 'works', records)

  before(async () => {
    proxy.target = ('skip' in kafka ? undefined : kafka.broker)?.proxiedPort ?? 0
    const topics = ['works', 'worked', 'calls', 'called', 'stamped', 'stamped-out', 'events', 'counted']
    await direct.createTopics(topics.map((topic) => ({ topic, partitions: 2 })))
  })
  after(async () => {
    await direct.close()
    await proxy.close()
    if (!('skip' in kafka)) await kafka.stop()
  })

  async function start(t: TestContext): Promise<TestEngine> {
    const engine = await TestEngine.start(t, 'standing', {
      ...quiet,
      'engine.state.store': 'memory',
      'broker.bootstrap-servers': proxy.bootstrap,
      'broker.request-timeout': requestTimeoutMs,
      // How long the coordinator lets a transaction be open is not what this is about.
      'producer.transaction.timeout.ms': 300_000,
      'commit-barrier.interval-ms': intervalMs,
    })
    await engine.reaches('RUNNING')
    await feed()
    await engine.idle()
    return engine
  }

  /** Until the test is over, at the latest. */
  function delayed(t: TestContext, api: ApiName, ms: number): () => void {
    const heal = (): void => proxy.delay(api, 0)
    t.after(heal)
    proxy.delay(api, ms)
    return heal
  }

  for (const [api, asked] of [
    ['endTxn', 'to end the transaction of a commit (committing the transaction of standing-main)'],
    [
      'txnOffsetCommit',
      'to commit the offsets of what was read (committing offsets of group standing in a transaction)',
    ],
  ] as const) {
    test(`a coordinator that is silent to ${api} is told with id, address, call and age, for as long as it is`, async (t) => {
      const engine = await start(t)
      const heal = delayed(t, api, Number.POSITIVE_INFINITY)
      await feed()
      const { first, answer } = await found(engine, 'COMMIT_UNANSWERED', ({ sentence }) =>
        sentence.startsWith(`The broker 1 at ${proxy.bootstrap} has not answered for `),
      )
      assert.ok(first.sentence.includes(`The engine asked it ${asked}.`), first.sentence)
      assert.deepEqual(first.place, { broker: proxy.bootstrap })
      assert.deepEqual(causesIn(answer), ['COMMIT_UNANSWERED'])
      const ageOf = (sentence: string): number => Number(/has not answered for (\d+) s/.exec(sentence)?.[1])
      // Requests are given up meanwhile, and asked anew.
      const end = Date.now() + 2 * requestTimeoutMs
      while (Date.now() < end) {
        const later = await why(engine)
        assert.deepEqual(causesIn(later), ['COMMIT_UNANSWERED'], later.verdict)
        assert.equal(later.since, first.since)
        await new Promise((done) => setTimeout(done, 200))
      }
      const last = await why(engine)
      assert.ok(ageOf(last.verdict) > ageOf(first.sentence), last.verdict)
      heal()
      await flows(engine)
    })
  }

  for (const [api, step] of [
    ['endTxn', 'end the transaction'],
    ['txnOffsetCommit', 'take the offsets of what was read'],
    ['produce', 'take the results'],
  ] as const) {
    test(`commits for which the broker takes long to ${step} are told with step, figures and broker`, async (t) => {
      const engine = await start(t)
      const heal = delayed(t, api, 2500)
      const { first, answer } = await meanwhile(feed, () =>
        found(engine, 'COMMITS_SLOW', ({ sentence }) => sentence.includes('the broker 1 at')),
      )
      const told =
        /^Each commit takes (\d+) ms; one is due every (\d+) ms\. (\d+) ms of that is spent waiting for (.+)\.$/
      const [, takes, due, waits, who] = told.exec(first.sentence) ?? []
      assert.equal(who, `the broker 1 at ${proxy.bootstrap} to ${step}`, first.sentence)
      assert.equal(Number(due), intervalMs)
      assert.ok(Number(takes) >= Number(waits) && Number(waits) >= 2000, first.sentence)
      assert.deepEqual(first.place, { broker: proxy.bootstrap })
      assert.deepEqual(causesIn(answer), ['COMMITS_SLOW'])
      heal()
      // Commits show that they are quick again.
      await meanwhile(feed, () => flows(engine))
    })
  }

  test('the open transaction of another producer is told with partition, offset, age, producer and what it withholds', async (t) => {
    const engine = await start(t)
    const at = { topic: 'works', partition: 1 }
    const [end] = await direct.listOffsets([at], 'latest')
    const other = await TestProducer.open(direct, 'nightly-import')
    t.after(() => other.end(false).catch(() => undefined))
    const openedAtMs = Date.now()
    await other.write('works', 1, [{ key: 'k', value: '{}' }])
    await feed([{ key: 'k', value: {}, partition: 1 }])
    const { first, answer } = await found(engine, 'TRANSACTION_OPEN', ({ sentence }) =>
      sentence.includes('nightly-import'),
    )
    const begins = `The producer with the transactional id 'nightly-import' (producer id ${other.identity.producerId}) has had a transaction open on works/1 for at least `
    assert.ok(first.sentence.startsWith(begins), first.sentence)
    assert.match(first.sentence, new RegExp(`at offset ${end?.offset}\\..*cannot read the 2 records from there on`))
    assert.deepEqual(first.place, { ...at, offset: end?.offset })
    assert.ok(Date.parse(first.since) >= openedAtMs, 'since when it has been so')
    assert.deepEqual(causesIn(answer), ['TRANSACTION_OPEN'])
    await other.end(false)
    await flows(engine)
    await engine.idle()
  })
})
