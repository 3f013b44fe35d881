/** Topics of the application's own that were made by hand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TopicSpec } from '../../src/broker/port.ts'
import { defineApp, serdes } from '../../src/index.ts'
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
  assert.match(message, /it holds what was shared out by that number/)
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

test('one that deletes nothing is taken, whatever its policy is', async () => {
  const engine = await over({ partitions: 3, config: { 'cleanup.policy': 'delete', 'retention.ms': '-1' } })
  await engine.runs()
})
