/** Standstills around the functions of an application: what comes in, the broker, commits, operators, earlier runs. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import type { WhyAnswer } from '../../src/view/diagnosis/answer.ts'
import { TestProducer } from '../support/broker-io.ts'
import { eventually } from '../support/millrace.ts'
import { RelayedBroker } from '../support/relayed-broker.ts'
import { type In, produce, TestEngine } from './support/engine.ts'
import { causesIn, flows, found, lagOf, meanwhile, quiet, web, why } from './support/why.ts'

const start = 1_700_000_000_000
const some = Array.from({ length: 20 }, (_, n): In => ({ key: `k${n}`, value: {} }))

async function relayed(t: TestContext): Promise<RelayedBroker> {
  const broker = new RelayedBroker(await startEmbeddedBroker({ partitions: 2 }))
  t.after(() => broker.close())
  return broker
}

describe('what comes in', () => {
  test('an alignment group tells what it holds, and whom it waits for', async (t) => {
    const engine = await TestEngine.start(t, 'aligned', { ...web, 'broker.embedded.partitions': 1 })
    await engine.put('slow', [{ key: 'k', value: 0, timestamp: start }])
    await eventually('the slow source has begun', async () => (await engine.read('slow-out')).length === 1)
    const ahead = Array.from({ length: 60 }, (_, i): In => ({ key: 'k', value: i, timestamp: start + i * 1000 }))
    await engine.put('fast', ahead)
    const { first } = await found(engine, 'ALIGNMENT_HELD')
    assert.deepEqual(first.place, { group: 'both', topic: 'fast', partition: 0 })
    assert.match(
      first.sentence,
      /^fast\/0 has not been read for \d+ s\. The alignment group 'both' makes it wait for slow\/0/,
    )
    await engine.put('slow', [{ key: 'k', value: 1, timestamp: start + 60_000 }])
    await flows(engine)
  })

  test('an open transaction of another producer is told with partition, offset and what lies behind it', async (t) => {
    const broker = await startEmbeddedBroker({ partitions: 2 })
    t.after(() => broker.close())
    const engine = await TestEngine.start(t, 'standing', { ...quiet, 'broker.embedded.partitions': 2 }, broker)
    await engine.put('works', some)
    await engine.idle()
    const [end] = await engine.broker.listOffsets([{ topic: 'works', partition: 1 }], 'latest')
    const other = await TestProducer.open(engine.broker, 'other')
    await other.write('works', 1, [{ key: 'k', value: '{}' }])
    await engine.put('works', [{ key: 'k', value: {}, partition: 1 }])
    const { first } = await found(engine, 'TRANSACTION_OPEN', ({ sentence }) => sentence.includes('(producer id '))
    assert.deepEqual(first.place, { topic: 'works', partition: 1, offset: end?.offset })
    assert.match(
      first.sentence,
      /^The producer with the transactional id 'other' \(producer id \d+\) has had a transaction open on works\/1 .+ at offset \d+/,
    )
    assert.match(first.sentence, /cannot read the 2 records from there on/)
    // On Kafka it names the commands, which an embedded broker does not answer.
    assert.match(first.next, /writes as 'other'.+Kafka’s own tools cannot ask/)
    await other.end(false)
    await flows(engine)
  })

  test('a timestamp extractor that does not return is told as a thread without a sign of life', async (t) => {
    const engine = await TestEngine.start(t, 'standing', { ...quiet, 'broker.embedded.partitions': 2 })
    await engine.put('stamped', some)
    await engine.idle()
    await engine.put('stamped', [{ key: 'k', value: { do: 'loop' }, partition: 1 }])
    const { first } = await found(engine, 'ENGINE_SILENT')
    assert.match(first.next, /timestamp extractor/)
  })

  test('a full buffer is an effect of what it is full behind', async (t) => {
    const engine = await TestEngine.start(t, 'standing', {
      ...quiet,
      'broker.embedded.partitions': 2,
      'engine.processing.buffered-records-per-partition': 50,
    })
    await engine.put('works', [{ key: 'k', value: { do: 'loop' }, partition: 1 }])
    await eventually('a lane is in it', () =>
      (engine.runtime.view.barriers()?.lanes ?? []).some(({ node }) => node !== null),
    )
    await engine.put(
      'works',
      Array.from({ length: 30_000 }, (): In => ({ key: 'k', value: {}, partition: 1 })),
    )
    const { first } = await found(engine, 'LANE_DOES_NOT_RETURN', ({ leadsTo }) => leadsTo.includes('BUFFER_FULL'))
    assert.ok(first.leadsTo.includes('BUFFER_FULL'))
    const full = (await why(engine)).findings.find(({ code }) => code === 'BUFFER_FULL')
    assert.deepEqual(full?.place, { topic: 'works', partition: 1 })
  })
})

describe('the broker', () => {
  test('that is gone is told with its address and the last error', async (t) => {
    const broker = await relayed(t)
    const engine = await TestEngine.start(t, 'standing', quiet, broker)
    await engine.put('works', some)
    await engine.idle()
    broker.cut()
    const { first } = await found(engine, 'BROKER_GONE')
    assert.equal(first.place.broker, 'embedded:')
    assert.match(first.sentence, /has not answered for \d+ s\. The last error: \S/)
  })

  test('that never answered is told from the start', async (t) => {
    const engine = await TestEngine.start(t, 'standing', { ...quiet, 'broker.bootstrap-servers': '127.0.0.1:1' })
    const { first } = await found(engine, 'BROKER_GONE')
    assert.equal(first.place.broker, '127.0.0.1:1')
  })

  test('that is silent at the end of a transaction is told with the call and its age', async (t) => {
    const broker = await relayed(t)
    const engine = await TestEngine.start(t, 'standing', quiet, broker)
    await engine.put('works', some)
    await engine.idle()
    broker.delayMs = { endTransaction: Number.POSITIVE_INFINITY }
    await engine.put('works', some)
    const { first } = await found(engine, 'COMMIT_UNANSWERED')
    assert.match(
      first.sentence,
      /^The embedded broker \(embedded:\) has not answered for \d+ s\. The engine asked it to end the transaction/,
    )
  })

  test('that is silent at the end of a transaction is the one cause, also where tasks wait for what it holds back', async (t) => {
    const broker = await relayed(t)
    const settings = {
      ...quiet,
      'engine.state.store': 'memory',
      'topology.sub-topology-split': 'repartition-topics',
      'producer.transaction.timeout.ms': 120_000,
    }
    const engine = await TestEngine.start(t, 'running-sum', settings, broker)
    const numbers = Array.from({ length: 50 }, (_, n): In => ({ key: `k${n}`, value: n }))
    await engine.put('numbers', numbers)
    await engine.idle()
    broker.delayMs = { endTransaction: Number.POSITIVE_INFINITY }
    await engine.put('numbers', numbers)
    await found(engine, 'COMMIT_UNANSWERED')
    const end = Date.now() + 4000
    while (Date.now() < end) {
      const answer = await why(engine)
      assert.deepEqual(causesIn(answer), ['COMMIT_UNANSWERED'], answer.verdict)
      await new Promise((done) => setTimeout(done, 100))
    }
  })

  test('that commits slowly is told with the step that takes the time', async (t) => {
    const broker = await relayed(t)
    // Slow, and not too late: on a busy machine a commit takes its time besides.
    const settings = { ...quiet, 'producer.transaction.timeout.ms': 120_000 }
    const engine = await TestEngine.start(t, 'standing', settings, broker)
    broker.delayMs = { endTransaction: 2500 }
    const steadily = (): Promise<void> => engine.put('works', some)
    const { first } = await meanwhile(steadily, () => found(engine, 'COMMITS_SLOW'))
    assert.match(
      first.sentence,
      /ms of that is spent waiting for the embedded broker \(embedded:\) to end the transaction/,
    )
    broker.delayMs = {}
    await flows(engine)
  })
})

describe('an operator', () => {
  test('who paused is told, and since when', async (t) => {
    const engine = await TestEngine.start(t, 'standing', quiet)
    await engine.reaches('RUNNING')
    const answer = await fetch(`${engine.runtime.url}/pause`, { method: 'POST' })
    assert.equal(answer.status, 200)
    const { first, answer: told } = await found(engine, 'PAUSED')
    assert.equal(told.status, 'NOT_MEANT_TO_RUN')
    assert.match(first.sentence, /An operator over HTTP from \S*127\.0\.0\.1 asked for it/)
    await fetch(`${engine.runtime.url}/unpause`, { method: 'POST' })
    await flows(engine)
  })
})

test('a process that was told to end says so until it has', async (t) => {
  const engine = await TestEngine.start(t, 'standing', { ...quiet, 'runtime.shutdown.timeout': '60s' })
  await engine.reaches('RUNNING')
  await engine.put('works', [{ key: 'k', value: { ms: 4000 } }])
  await eventually('a lane is in it', () =>
    (engine.runtime.view.barriers()?.lanes ?? []).some(({ node }) => node !== null),
  )
  const stopped = engine.stop()
  const { first, answer } = await found(engine, 'STOPPING')
  assert.equal(answer.status, 'NOT_MEANT_TO_RUN')
  assert.match(first.sentence, /was told to end \d+ s ago\. .+ commits those that it has finished\./)
  assert.equal(await stopped, 0)
})

describe('a poison record', () => {
  test('is told with the attempt, also by the next run of the process, until it is passed', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-why-'))
    const broker = await startEmbeddedBroker({ partitions: 1 })
    t.after(async () => {
      await broker.close()
      rmSync(folder, { recursive: true, force: true })
    })
    const settings = {
      ...quiet,
      'engine.state.store': 'lmdb',
      'engine.state.dir': folder,
      'broker.embedded.partitions': 1,
    }
    const first = await TestEngine.start(t, 'standing', settings, broker)
    await first.put('works', [...some, { key: 'bad', value: { do: 'throw' } }])
    const one = await found(first, 'POISON_RECORD')
    assert.deepEqual(one.first.place, { topic: 'works', partition: 0, offset: 20 })
    assert.match(one.first.sentence, /this record is wrong/)
    assert.equal(one.answer.status, 'FAILED')
    await first.stop()
    const second = await TestEngine.start(t, 'standing', settings, broker)
    const two = await found(second, 'POISON_RECORD', ({ sentence }) => sentence.includes('2 attempts'))
    assert.deepEqual(two.first.place, one.first.place)
    await second.stop()
    const cured = await TestEngine.start(t, 'standing', { ...settings, 'errors.processing': 'skip' }, broker)
    await cured.idle()
    await flows(cured)
  })
})

describe('a healthy application', () => {
  test('has no finding: at its start with a backlog, at full load, and when it is quiet', async (t) => {
    const broker = await startEmbeddedBroker({ partitions: 2 })
    t.after(() => broker.close())
    const many = Array.from({ length: 5000 }, (_, n): In => {
      return { key: `k${n % 500}`, value: { n }, timestamp: start + n * 10 }
    })
    const load = async (): Promise<void> => {
      for (const topic of ['works', 'calls', 'events']) await put(broker, topic, many)
    }
    await load()
    await load()
    const engine = await TestEngine.start(t, 'standing', quiet, broker)
    const seen = new Map<string, WhyAnswer>()
    const look = async (): Promise<void> => {
      const answer = await why(engine)
      for (const { code } of answer.findings) seen.set(code, answer)
      assert.ok(answer.findings.length > 0 || answer.status === 'FLOWING')
    }
    // Longer than anything has to last to be a finding, and never without a backlog.
    await engine.reaches('RUNNING')
    const fullUntil = Date.now() + 12_000
    while (Date.now() < fullUntil) {
      if (lagOf(engine) < 5000) await load()
      await look()
    }
    let busy = true
    const idle = engine.idle().finally(() => {
      busy = false
    })
    while (busy) await look()
    await idle
    const end = Date.now() + 8000
    while (Date.now() < end) {
      await look()
      await new Promise((done) => setTimeout(done, 200))
    }
    assert.deepEqual([...seen], [])
  })
})

async function put(broker: Awaited<ReturnType<typeof startEmbeddedBroker>>, topic: string, records: readonly In[]) {
  const client = broker.client()
  await produce(client, topic, records, 2)
  await client.close()
}
