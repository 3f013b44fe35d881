/** Partitions that go to another process: event time goes with them, and stays what it was for those that were there. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type EmbeddedBroker, startEmbeddedBroker } from '../../src/runtime/index.ts'
import { eventually } from '../support/millrace.ts'
import { byKey, firstTime, type In, produce, TestEngine } from './support/engine.ts'

const clicks = (partition: number, ...seconds: readonly number[]): In[] =>
  seconds.map((second) => ({
    key: `of-${partition}`,
    value: { page: 'p' },
    timestamp: firstTime + second * 1000,
    partition,
  }))

interface Group {
  readonly broker: EmbeddedBroker
  start(id: string): Promise<TestEngine>
}

/** Processes that share two partitions of each topic; the broker goes last. */
async function group(t: TestContext, application = 'counted-windows'): Promise<Group> {
  const broker = await startEmbeddedBroker({ partitions: 2 })
  const engines: TestEngine[] = []
  t.after(async () => {
    for (const engine of engines) await engine.stop()
    await broker.close()
  })
  const start = async (id: string): Promise<TestEngine> => {
    const engine = await TestEngine.open(
      application,
      {
        'topology.sub-topology-split': 'repartition-topics',
        'engine.instance-id': id,
        // The group waits so long for a member that has an instance id.
        'consumer.session.timeout.ms': 15_000,
        'consumer.heartbeat.interval.ms': 1000,
      },
      broker,
    )
    engines.push(engine)
    return engine
  }
  return { broker, start }
}

for (const stopped of ['ahead', 'behind'] as const) {
  test(`what is in time stays in time where a process takes over from one that is ${stopped}`, async (t) => {
    const { broker, start } = await group(t)
    const client = broker.client()
    const committed = async (): Promise<number[]> => {
      const partitions = [0, 1].map((partition) => ({ topic: 'clicks', partition }))
      const offsets = await client.committedOffsets('counted-windows', partitions, true)
      return offsets.map(({ offset }) => offset)
    }
    await produce(client, 'clicks', [], 2)
    const engines = new Map<string, TestEngine>()
    for (const id of ['a', 'b']) engines.set(id, await start(id))
    const owned = (engine: TestEngine): string[] => Object.keys(engine.runtime.view.consumer()?.assignment ?? {})
    await eventually('each has a partition', () => [...engines.values()].every((each) => owned(each).length === 1))
    // One is ten minutes ahead of the other.
    await produce(client, 'clicks', [...clicks(0, 600, 640), ...clicks(1, 10, 40)])
    await eventually('both are done', async () => (await committed()).every((offset) => offset === 2))
    const ahead = [...engines].find(([, each]) => owned(each)[0]?.endsWith('0'))?.[0]
    const [goes, stays] = [...engines].sort(([id]) => ((id === ahead) === (stopped === 'ahead') ? -1 : 1))
    await goes?.[1].stop()
    const left = stays?.[1] as TestEngine
    await eventually('the other has both', () => owned(left).length === 2)
    await produce(client, 'clicks', [...clicks(0, 641, 700), ...clicks(1, 41, 42, 300, 700)])
    await left.idle()
    assert.equal(left.dropped('late'), 0)
    const at = (second: number, count: number) => ({ at: firstTime + second * 1000, count })
    assert.deepEqual(byKey(await left.read('counts')), {
      'of-0': [at(600, 1), at(640, 2)],
      'of-1': [at(10, 1), at(40, 3), at(300, 1)],
    })
  })
}

for (const ahead of ['clicks', 'views']) {
  test(`a task that moves goes on by the topic that is behind where ${ahead} are ahead`, async (t) => {
    const { broker, start } = await group(t, 'merged-windows')
    const client = broker.client()
    const behind = ahead === 'clicks' ? 'views' : 'clicks'
    const partitions = [ahead, behind].flatMap((topic) => [0, 1].map((partition) => ({ topic, partition })))
    const areDone = async (count: number): Promise<boolean> => {
      const offsets = await client.committedOffsets('merged-windows', partitions, true)
      return offsets.every(({ offset }) => offset === count)
    }
    await produce(client, ahead, [...clicks(0, 10, 600), ...clicks(1, 10, 600)], 2)
    await produce(client, behind, [...clicks(0, 11, 20), ...clicks(1, 11, 20)], 2)
    const first = await start('a')
    await eventually('all is done', () => areDone(2), 180_000)
    const second = await start('b')
    const owned = ({ runtime }: TestEngine): number => Object.keys(runtime.view.consumer()?.assignment ?? {}).length
    await eventually('each has a task', () => owned(first) === 2 && owned(second) === 2, 180_000)
    await produce(client, behind, [...clicks(0, 25, 300, 700), ...clicks(1, 25, 300, 700)])
    await produce(client, ahead, [...clicks(0, 700), ...clicks(1, 700)])
    await Promise.all([first.idle(), second.idle()])
    assert.equal(first.dropped('late') + second.dropped('late'), 0)
    const at = (second: number, count: number) => ({ at: firstTime + second * 1000, count })
    const counts = [at(10, 2), at(20, 2), at(300, 1), at(600, 1)]
    assert.deepEqual(byKey(await first.read('counts')), { 'of-0': counts, 'of-1': counts })
  })
}

test('a process that has no partition yet is not idle while the others of its group have input', async (t) => {
  const { broker, start } = await group(t)
  const client = broker.client()
  const records = Array.from({ length: 20_000 }, (_, i) => clicks(i % 2, i)[0] as In)
  await produce(client, 'clicks', records, 2)
  const first = await start('a')
  const second = await start('b')
  await second.idle()
  const partitions = [0, 1].map((partition) => ({ topic: 'clicks', partition }))
  const [committed, ends] = await Promise.all([
    client.committedOffsets('counted-windows', partitions, true),
    client.listOffsets(partitions, 'stable'),
  ])
  assert.deepEqual(
    committed.map(({ offset }) => offset),
    ends.map(({ offset }) => offset),
  )
  await first.idle()
})
