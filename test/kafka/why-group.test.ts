/**
 * Standstills among processes on a real Kafka, asked over a socket: one that takes another's identity, and members of the
 * group that come and go without end.
 */
import assert from 'node:assert/strict'
import { hostname, tmpdir } from 'node:os'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { type In, produce, TestEngine } from '../engine/support/engine.ts'
import { causesIn, flows, found, meanwhile, patienceMs, quiet, why } from '../engine/support/why.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually } from '../support/millrace.ts'
import { EngineProcess } from './verifier/harness.ts'

const kafka = await kafkaForTests({ own: true, settings: { 'group.min.session.timeout.ms': '1000' } })
const skip = 'skip' in kafka ? kafka.skip : false
const servers = 'skip' in kafka ? 'nowhere:1' : kafka.bootstrap

const settings = {
  ...quiet,
  'engine.state.store': 'memory',
  'broker.bootstrap-servers': servers,
  'commit-barrier.interval-ms': 50,
}

describe('why, among processes on Kafka', { skip }, () => {
  const port = connectKafka({ bootstrapServers: [servers], clientId: 'feed' })
  const folder = mkdtempSync(join(tmpdir(), 'millrace-why-'))
  let fed = 0
  const feed = (): Promise<void> =>
    produce(
      port,
      'works',
      Array.from({ length: 5 }, (): In => ({ key: `k${fed++}`, value: {} })),
    )

  before(async () => {
    const topics = ['works', 'worked', 'calls', 'called', 'stamped', 'stamped-out', 'events', 'counted']
    await port.createTopics(topics.map((topic) => ({ topic, partitions: 4 })))
  })
  after(async () => {
    await port.close()
    rmSync(folder, { recursive: true, force: true })
    if (!('skip' in kafka)) await kafka.stop()
  })

  // With records, commits are refused first; without, heartbeats.
  for (const [what, action] of [
    ['at work', feed],
    ['at rest', () => Promise.resolve()],
  ] as const) {
    test(`a process ${what} that was fenced tells by whom, and the one that took over from whom`, async (t) => {
      const older = await TestEngine.start(t, 'standing', { ...settings, 'runtime.fenced-linger': '20s' })
      await older.reaches('RUNNING')
      const ownId = older.runtime.view.consumer()?.memberId
      await meanwhile(action, async () => {
        const newer = await TestEngine.start(t, 'standing', { ...settings, 'broker.client-id': 'the-newer-one' })
        const { first, answer } = await found(older, 'FENCED', ({ sentence }) => sentence.includes('the client'))
        assert.equal(answer.status, 'FAILED')
        await newer.reaches('RUNNING')
        const newId = newer.runtime.view.consumer()?.memberId
        assert.ok(
          first.sentence.includes(
            `the client the-newer-one on ${hostname()} (member ${newId}) runs under the same identity standing-main.`,
          ),
          first.sentence,
        )
        assert.deepEqual(first.place, { group: 'standing', pod: 'standing-main' })
        const code = first.evidence.find(({ field }) => field === 'failure.code')
        assert.deepEqual(code, { at: '/state', field: 'failure.code', value: 'FENCED' })
        const { status, verdict } = await why(newer)
        assert.equal(status, 'FLOWING', verdict)
        const from = `it took the identity standing-main over from the client standing on ${hostname()} (member ${ownId}).`
        assert.ok(verdict.includes(from), verdict)
        let ended: number | undefined
        void older.runtime.ended.then((exitCode) => {
          ended = exitCode
        })
        // For as long as it answers, and nothing else is claimed.
        while (ended === undefined) {
          const later = await why(older)
          assert.deepEqual(causesIn(later), ['FENCED'], later.verdict)
          assert.deepEqual(
            later.findings.map((each) => each.code),
            ['FENCED', 'FAILED'],
          )
          assert.equal(later.since, first.since)
          await new Promise((done) => setTimeout(done, 200))
        }
        assert.equal(ended, 3)
        await newer.stop()
      })
    })
  }

  test('members that are killed and come back under another name are told, with how often and how long they stayed', async (t) => {
    const split = { 'topology.sub-topology-split': 'repartition-topics', 'engine.lanes.count': '1' }
    const engine = await TestEngine.start(t, 'standing', { ...settings, ...split, 'engine.instance-id': 'steady' })
    await engine.reaches('RUNNING')
    const changes = () => engine.runtime.view.consumer()?.changes ?? []
    let number = 0
    const comesAndGoes = async (): Promise<void> => {
      const name = `restless-${number++}`
      const restless = new EngineProcess({
        prefix: name,
        bootstrap: servers,
        stateFolder: join(folder, name),
        application: join('..', '..', 'engine', 'apps', 'standing.ts'),
        settings: {
          ...split,
          'engine.instance-id': name,
          'engine.state.store': 'memory',
          'consumer.session.timeout.ms': '3000',
          'consumer.heartbeat.interval.ms': '500',
        },
      })
      try {
        await restless.start()
        const isHere = (member: string): boolean => member.startsWith(`standing-${name}`)
        await eventually(
          'the engine has seen it come',
          () => changes().some(({ came }) => came.some(isHere)),
          patienceMs,
        )
        restless.kill()
        await eventually(
          'the engine has seen it go',
          () => changes().some(({ went }) => went.some(({ member }) => isHere(member))),
          patienceMs,
        )
      } finally {
        restless.dispose()
      }
    }
    const { first, answer } = await meanwhile(comesAndGoes, () => found(engine, 'GROUP_UNSTEADY'))
    const told =
      /^The members of the consumer group standing keep changing: (\d+) changes within .+\. (\d+) members left again, on average (\d+) s after they had joined: (.+)\. While/
    const [, times, left, , who] = told.exec(first.sentence) ?? []
    assert.ok(Number(times) >= 2 * Number(left) && Number(left) >= 3, first.sentence)
    for (const each of [0, 1, 2]) assert.ok(who?.includes(`standing-restless-${each}`), first.sentence)
    assert.ok(who?.includes(` on ${hostname()}`), first.sentence)
    assert.deepEqual(first.place, { group: 'standing' })
    assert.deepEqual(causesIn(answer), ['GROUP_UNSTEADY'])
    await flows(engine)
  })
})
