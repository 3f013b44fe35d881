/** Records that one process has written wait for older ones of another: these are not late then. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { eventually } from '../support/millrace.ts'
import { firstTime, TestEngine } from './support/engine.ts'

test('what waits for the records of another process makes none of them late', async (t) => {
  const broker = await startEmbeddedBroker({ partitions: 2 })
  t.after(() => broker.close())
  const member = (id: string): Promise<TestEngine> =>
    TestEngine.start(
      t,
      'joined-behind',
      {
        'broker.embedded.partitions': 2,
        'topology.sub-topology-split': 'repartition-topics',
        'engine.instance-id': id,
        'consumer.session.timeout.ms': 60_000,
      },
      broker,
    )
  const client = broker.client()
  await client.createTopics(['left', 'right', 'pairs'].map((topic) => ({ topic, partitions: 2 })))
  const members = [await member('one'), await member('other')]
  const reads = (engine: TestEngine | undefined): string[] =>
    Object.keys(engine?.runtime.view.consumer()?.assignment ?? {}).filter((key) => /^(left|right):/.test(key))
  await eventually('each has its part of the input', () => members.every((each) => reads(each).length === 2))
  const [prompt, paused] = members as [TestEngine, TestEngine]
  const partitionOf = (engine: TestEngine): number => Number(reads(engine)[0]?.split(':')[1])
  // It has its part before it is ready to be paused.
  await paused.reaches('RUNNING')
  paused.runtime.commands.pause()
  await paused.reaches('PAUSED')

  const put = (partition: number, at: number, topic: string, value: number): Promise<void> =>
    prompt.put(topic, [{ key: `${partition}`, value, timestamp: firstTime + at, partition }])
  const [ahead, behind] = [partitionOf(prompt), partitionOf(paused)]
  // Only what lay in its input when others came is waited for.
  await put(behind, 10, 'left', 1)
  await put(behind, 50, 'right', 2)
  // The one that is not paused is far ahead.
  for (const [topic, value] of [
    ['left', 3],
    ['right', 4],
  ] as const)
    await put(ahead, 5000, topic, value)
  const between = async (): Promise<number> => {
    const topics = (await client.topics(null)).filter(({ topic }) => topic.endsWith('-repartition'))
    const all = topics.flatMap(({ topic, partitions }) =>
      Array.from({ length: partitions }, (_, partition) => ({ topic, partition })),
    )
    return (await client.listOffsets(all, 'stable')).reduce((sum, { offset }) => sum + offset, 0)
  }
  await eventually('both records of the one ahead are on their way', async () => (await between()) >= 2)
  await new Promise((done) => setTimeout(done, 1000))
  paused.runtime.commands.unpause()
  await Promise.all(members.map((each) => each.idle()))
  const told = (await prompt.read('pairs')).map(({ value }) => value).sort()
  assert.deepEqual(told, ['1 and 2', '3 and 4'])
  assert.equal(
    members.reduce((sum, each) => sum + each.dropped('late'), 0),
    0,
  )
})
