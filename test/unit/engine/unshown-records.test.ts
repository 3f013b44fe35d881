/** A start reads on until it has seen all, where the broker says nothing for a while. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokerPort, FetchedPartition } from '../../../src/broker/port.ts'
import { RecordBatchBuilder } from '../../../src/broker/wire/record-batch.ts'
import type { EngineOptions } from '../../../src/engine/engine-options.ts'
import { refuseLeftBehind } from '../../../src/engine/group/left-behind.ts'
import { refuseBesidePods } from '../../../src/engine/group/mixed-mode-guard.ts'
import { boundaryTopic } from '../../../src/engine/group/topics.ts'
import { Runs, RunOver } from '../../../src/engine/run.ts'
import { Schedules } from '../../../src/engine/schedules.ts'
import { fetchingBy, silentAbout } from '../../support/silent-broker.ts'
import { World } from './world.ts'

const forEver = Number.POSITIVE_INFINITY
const never = (): boolean => false

const nothing = (topic: string): FetchedPartition => ({
  topic,
  partition: 0,
  records: new Uint8Array(0),
  highWatermark: 2,
  lastStableOffset: 2,
  logStartOffset: 0,
  aborted: [],
})

function splitParts(world: World) {
  const boundary = { index: 0, topic: 'sums', fromSubtopology: 0, toSubtopology: 1 }
  const settings = { applicationId: 'app', split: 'in-process', plan: { boundaries: [boundary], sources: [] } }
  const topic = boundaryTopic(settings as never, boundary as never)
  const facts: string[] = []
  const fact = ({ message }: { message: string }): number => facts.push(message)
  const parts = (broker: BrokerPort) => ({ settings, broker, timers: world, fact }) as never
  return { topic, facts, parts }
}

test('records left behind refuse the start where the broker shows them late', async () => {
  const world = new World()
  const { topic, parts } = splitParts(world)
  await world.createTopic(topic, 1)
  await world.produce(topic, 0, [1000])
  const looking = refuseLeftBehind(parts(silentAbout(world.broker, topic, 3)), never)
  const refused = assert.rejects(looking, { code: 'STATE_CHANGED' })
  await world.pass(1000)
  await refused
})

test('a start that waits for what is not shown says so, and ends with its run', async () => {
  const world = new World()
  const { topic, facts, parts } = splitParts(world)
  await world.createTopic(topic, 1)
  await world.produce(topic, 0, [1000])
  let isOver = false
  const looking = refuseLeftBehind(parts(silentAbout(world.broker, topic, forEver)), () => isOver)
  const ended = assert.rejects(looking, RunOver)
  await world.pass(10_000)
  assert.match(facts.join(), /^[^,]* has more than the broker shows: the start waits/)
  isOver = true
  await world.pass(1000)
  await ended
})

test('whoever may not look at the records does not refuse the start', async () => {
  const world = new World()
  const { topic, parts } = splitParts(world)
  await world.createTopic(topic, 1)
  await world.produce(topic, 0, [1000])
  const denied = { ...nothing(topic), error: 'TOPIC_AUTHORIZATION_FAILED' }
  await refuseLeftBehind(parts(fetchingBy(world.broker, async () => [denied])), never)
})

test('a scheduled source finds its last firing behind silence, and behind what has been removed meanwhile', async () => {
  const world = new World()
  const topic = 'app-schedules-changelog'
  await world.createTopic(topic, 1)
  const state = new RecordBatchBuilder()
  state.append(1000, Buffer.from('gone'), Buffer.from('{"lastMs":1,"count":1}'), [])
  state.append(1000, Buffer.from('clock'), Buffer.from('{"lastMs":5000,"count":7}'), [])
  const records = state.finish()
  await world.broker.produce({ transactionalId: null, batches: [{ topic, partition: 0, records }] })
  const answers = [[], [{ ...nothing(topic), logStartOffset: 1, error: 'OFFSET_OUT_OF_RANGE' }], []]
  const asked: Array<number | undefined> = []
  const broker = fetchingBy(world.broker, async (request) => {
    asked.push(request.partitions[0]?.offset)
    return answers.shift() ?? world.broker.fetch(request)
  })
  const source = { index: 0, name: 'clock', schedule: { everyMs: 1000, cron: undefined } }
  const settings = { applicationId: 'app', lanes: 1, plan: { sources: [source] } }
  const options = { settings, broker, timers: world, clock: world.clock, fact: () => undefined }
  let changes = 0
  const host = { dispatch: () => undefined, changed: () => changes++ }
  const schedules = new Schedules(options as unknown as EngineOptions, host)
  const restored = schedules.restore(never)
  await world.pass(1000)
  await restored
  assert.deepEqual(asked, [0, 0, 1, 1])
  // One that was never seen to fire would begin now.
  schedules.start(new Runs().next())
  assert.equal(changes, 0)
})

test('a start beside a hot standby reads on behind what has been removed of the topic of its pods', async () => {
  const world = new World()
  const topic = 'app-ha'
  await world.createTopic(topic, 1)
  await world.produce(topic, 0, [1000, 1001])
  const removed = [{ ...nothing(topic), logStartOffset: 1, error: 'OFFSET_OUT_OF_RANGE' }]
  const asked: Array<number | undefined> = []
  const broker = fetchingBy(world.broker, async (request) => {
    const offset = request.partitions[0]?.offset
    asked.push(offset)
    assert.ok(asked.length < 10, 'it asks for the same again and again')
    return offset === 0 ? removed : world.broker.fetch(request)
  })
  const options = {
    settings: { applicationId: 'app' },
    broker,
    timers: world,
    clock: world.clock,
    fact: () => undefined,
  }
  await refuseBesidePods(options as unknown as EngineOptions, never)
  assert.deepEqual(asked, [0, 1])
})
