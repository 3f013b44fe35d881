/**
 * `GET /why` of real processes in one group over a real Kafka: nothing is found in a start with a backlog and a rolling
 * update, and a broker that stands still is named by its number.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { LocalKafka } from '../../scripts/kafka/local-kafka.ts'
import type { WhyAnswer } from '../../src/view/diagnosis/answer.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { type In, produce, TestEngine } from '../engine/support/engine.ts'
import { flows, found, meanwhile, quiet, watched } from '../engine/support/why.ts'
import { startBrowser } from '../console/support/browser.ts'
import { pageNames, Visit } from '../console/support/visit.ts'
import { refreshConsole } from '../../scripts/console.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually } from '../support/millrace.ts'
import { EngineProcess } from './verifier/harness.ts'

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false
const backlog = 10_000
/**
 * What a process that starts or stops says of itself; and a broker that shares a busy machine takes long for commits, which
 * is so and is told.
 */
const trueHere = ['RESTORING', 'STOPPING', 'COMMITS_SLOW']

const asked = async (member: EngineProcess): Promise<WhyAnswer | undefined> => {
  const text = await member.ask('/why')
  return text === undefined ? undefined : (JSON.parse(text) as WhyAnswer)
}

/** Members of the group that a test before left behind keep their places for a while. */
const onKafka = (broker: LocalKafka): Readonly<Record<string, unknown>> => ({
  ...quiet,
  'engine.state.store': 'memory',
  'topology.sub-topology-split': 'repartition-topics',
  'broker.bootstrap-servers': broker.bootstrap,
  'broker.request-timeout': '20s',
  'commit-barrier.interval-ms': 100,
})

describe('why, on a real Kafka', { skip }, () => {
  const broker = ('skip' in kafka ? undefined : kafka.broker) as LocalKafka
  const folder = mkdtempSync(join(tmpdir(), 'millrace-why-'))
  const port = connectKafka({ bootstrapServers: [broker?.bootstrap ?? 'nowhere:1'], clientId: 'feed' })

  before(async () => {
    const topics = ['works', 'worked', 'calls', 'called', 'stamped', 'stamped-out', 'events', 'counted']
    await port.createTopics(topics.map((topic) => ({ topic, partitions: 6 })))
  })
  after(async () => {
    await port.close()
    rmSync(folder, { recursive: true, force: true })
    if (!('skip' in kafka)) await kafka.stop()
  })

  test('a start with a backlog and two rolling updates of three processes are no standstill', async (t) => {
    const members = ['one', 'two', 'three'].map(
      (name) =>
        new EngineProcess({
          prefix: 'rolling',
          bootstrap: broker.bootstrap,
          stateFolder: join(folder, name),
          application: join('..', '..', 'engine', 'apps', 'standing.ts'),
          settings: {
            'engine.instance-id': name,
            'topology.sub-topology-split': 'repartition-topics',
            'engine.lanes.count': '1',
            'watermark.idleness-timeout': '1s',
          },
        }),
    )
    t.after(() => {
      for (const each of members) each.dispose()
    })
    const records = (count: number): In[] =>
      Array.from({ length: count }, (_, n): In => ({ key: `k${n}`, value: {}, timestamp: Date.now() }))
    const feed = async (count: number): Promise<void> => {
      for (const topic of ['works', 'events']) await produce(port, topic, records(count))
    }
    await feed(backlog)
    const { falseAlarms, answers } = await watched(
      trueHere,
      () => members.map(asked),
      async () => {
        for (const each of members) await each.start()
        for (const each of members) await each.untilReady(240_000)
        await meanwhile(
          () => feed(50),
          async () => {
            for (const each of [...members, ...members]) {
              assert.equal(await each.stop(), 0, each.log.slice(-2000))
              await each.start()
              await each.untilReady(240_000)
            }
          },
        )
        await eventually(
          'nothing is left to do',
          async () => {
            const offsets = await Promise.all(members.map((each) => each.ask('/offsets')))
            return offsets.every((text) => text !== undefined && JSON.parse(text).totalLag === 0)
          },
          180_000,
        )
      },
    )
    t.diagnostic(`${answers} answers`)
    assert.ok(answers > 20)
    assert.deepEqual([...new Set(falseAlarms)], [])
  })

  test('the console shows every page of a process on Kafka', async (t) => {
    await refreshConsole()
    const browser = await startBrowser()
    if (typeof browser === 'string') return t.skip(browser)
    t.after(() => browser.close())
    const engine = await TestEngine.start(t, 'standing', onKafka(broker))
    await engine.reaches('RUNNING')
    await engine.put('works', [{ key: 'k', value: {} }])
    await engine.idle()
    const visit = await Visit.to(browser, String(engine.runtime.url), { mayRefuse: [404] })
    t.after(() => visit.close())
    for (const name of pageNames) {
      await visit.open(name)
      await visit.settled()
    }
    await visit.open('config')
    await visit.page.getByRole('searchbox', { name: 'Search' }).fill('bootstrap-servers')
    await visit.page.getByText(broker.bootstrap).first().waitFor()
    visit.blameless()
  })

  test('a broker that stands still is told with its number and its address, long before its calls are given up', async (t) => {
    const engine = await TestEngine.start(t, 'standing', { ...onKafka(broker), 'broker.request-timeout': 600_000 })
    await engine.reaches('RUNNING')
    await engine.put('works', [{ key: 'k', value: {} }])
    await engine.idle()
    broker.pause()
    t.after(() => broker.resume())
    const { first } = await found(engine, 'BROKER_GONE', ({ sentence }) => /broker \d+ at /.test(sentence))
    assert.match(first.place.broker ?? '', /^\S+:\d+$/)
    broker.resume()
    await flows(engine)
  })
})
