/** Topics of the application's own that were made by hand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BrokerError, type TopicSpec } from '../../src/broker/port.ts'
import {
  defineApp,
  keyValueStore,
  type StoreDeclaration,
  serdes,
  versionedStore,
  windowStore,
} from '../../src/index.ts'
import { produce } from './support/engine.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const application = defineApp({
  applicationId: 'sim',
  build: (topology) =>
    topology
      .stream('in', { key: serdes.string, value: serdes.json<number>() })
      .groupByKey()
      .count({ store: 'kept' })
      .toStream()
      .to('out'),
})

const changelog = 'sim-kept-changelog'

async function over(made: Omit<TopicSpec, 'topic'>, isWritten = false): Promise<VirtualEngine> {
  const engine = new VirtualEngine({
    compile: () => application.compile(),
    settings: { split: 'repartition-topics' },
  })
  await engine.broker.createTopics([
    { topic: 'in', partitions: 3 },
    { topic: changelog, ...made },
  ])
  if (isWritten) await produce(engine.broker, changelog, [{ key: 'a', value: 1 }], made.partitions)
  await engine.start()
  return engine
}

async function failureOver(
  made: Omit<TopicSpec, 'topic'>,
  isWritten = false,
): Promise<{ code: string; message: string }> {
  const engine = await over(made, isWritten)
  await engine.until('it has failed', () => engine.count('failed') > 0)
  const failed = engine.facts.find((fact) => fact.type === 'failed')
  assert.ok(failed)
  return failed.error
}

test('a changelog with another number of partitions is refused, with the topic that asks for it', async () => {
  const { code, message } = await failureOver({ partitions: 2 }, true)
  assert.equal(code, 'PARTITIONS_CHANGED')
  assert.match(
    message,
    /sim-kept-changelog has 2 partitions where the source topics now ask for 3 \(as many as in has\)/,
  )
  assert.match(message, /, and it is not empty: the number of partitions of a stateful/)
})

test('one that was never written to is told so: it can be deleted', async () => {
  const { code, message } = await failureOver({ partitions: 2 })
  assert.equal(code, 'PARTITIONS_CHANGED')
  assert.match(message, /Nothing was ever written to it: delete it/)
})

const forgetful: ReadonlyArray<readonly [Readonly<Record<string, string>>, RegExp]> = [
  [
    { 'cleanup.policy': 'delete', 'retention.ms': '86400000' },
    /cleanup.policy is delete, and retention.ms is 86400000/,
  ],
  [{ 'cleanup.policy': 'compact,delete', 'retention.ms': '-1', 'retention.bytes': '1000' }, /retention.bytes is 1000/],
  [{ 'cleanup.policy': 'compact', 'message.timestamp.type': 'LogAppendTime' }, /the times of rows would be lost/],
]
for (const [config, sentence] of forgetful) {
  test(`a changelog with ${JSON.stringify(config)} is refused: a store would come back with less than it had`, async () => {
    const { code, message } = await failureOver({ partitions: 3, config })
    assert.equal(code, 'CONFIG_INVALID')
    assert.match(message, sentence)
  })
}

const day = 86_400_000
const kinds: ReadonlyArray<readonly [what: string, StoreDeclaration<object>, 'taken' | 'refused']> = [
  ['rows that live for a day', keyValueStore('kept', { ttl: day }), 'taken'],
  ['rows that live for longer', keyValueStore('kept', { ttl: 9 * day }), 'refused'],
  ['windows', windowStore('kept', { windowSize: day, retention: 3 * day }), 'taken'],
  ['versions, of which the newest stays', versionedStore('kept', { historyRetention: day }), 'refused'],
]
for (const [what, store, outcome] of kinds) {
  test(`a changelog that keeps rows for a week is ${outcome} for ${what}`, async () => {
    const app = defineApp({
      applicationId: 'sim',
      build: (topology) =>
        topology
          .stream('in', { key: serdes.string, value: serdes.json<number>() })
          .process(() => ({ process: () => undefined }), { stores: [store] })
          .to('out'),
    })
    const engine = new VirtualEngine({ compile: () => app.compile() })
    const config = { 'cleanup.policy': 'compact,delete', 'retention.ms': String(7 * day) }
    await engine.broker.createTopics([{ topic: changelog, partitions: 2, config }])
    await engine.start()
    await engine.until('it runs or has failed', () => engine.count('running') + engine.count('failed') > 0)
    assert.equal(engine.count('failed') > 0 ? 'refused' : 'taken', outcome)
  })
}

test('one that deletes nothing is taken, whatever its policy is', async () => {
  const engine = await over({ partitions: 3, config: { 'cleanup.policy': 'delete', 'retention.ms': '-1' } })
  await engine.runs()
})

for (const isOld of [false, true]) {
  test(`the dead-letter topic takes the times of all records${isOld ? ', as far as an old broker knows of them' : ''}`, async () => {
    const asked: TopicSpec[] = []
    const engine = new VirtualEngine({
      compile: () => application.compile(),
      settings: { sinkTopics: ['out', 'letters'], deadLetterTopic: 'letters' },
      tamper: async (name, args, call) => {
        if (name !== 'createTopics') return call(args)
        const specs = args[0] as readonly TopicSpec[]
        asked.push(...specs)
        const isNew = specs.some(({ config = {} }) => 'message.timestamp.before.max.ms' in config)
        if (isOld && isNew) throw new BrokerError('INVALID_CONFIG', 'unknown topic config name')
        return call(args)
      },
    })
    for (const topic of ['in', 'out']) await engine.broker.createTopics([{ topic, partitions: 2 }])
    await engine.start()
    await engine.runs()
    const configs = asked.flatMap(({ topic, config }) => (topic === 'letters' ? [config ?? {}] : []))
    assert.deepEqual(
      configs.map((config) => config['message.timestamp.type']),
      isOld ? ['CreateTime', 'CreateTime'] : ['CreateTime'],
    )
    for (const side of ['before', 'after'])
      assert.equal(configs[0]?.[`message.timestamp.${side}.max.ms`], '9223372036854775807')
    assert.equal((await engine.broker.topics(['letters'])).length, 1)
  })
}
