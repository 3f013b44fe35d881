/** Windows that close while nothing comes: a record that waits has come, and a pause is no quiet. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { eventually } from '../support/millrace.ts'
import { byKey, firstTime, type In, produce, TestEngine } from './support/engine.ts'

const config = { 'broker.embedded.partitions': 1, 'watermark.idleness-timeout': '200ms' }

const inOneWindow = (count: number): In[] =>
  Array.from({ length: count }, (_, i) => ({ key: 'a', value: i, timestamp: firstTime + i }))

for (const split of ['in-process', 'repartition-topics'] as const)
  test(`behind a function that takes longer than the quiet, every record of a window is counted, ${split}`, async (t) => {
    const engine = await TestEngine.start(t, 'quiet-or-slow', { ...config, 'topology.sub-topology-split': split })
    await engine.put('blocked', inOneWindow(20))
    await engine.put('called', inOneWindow(21))
    const told = async (): Promise<number> => {
      const topics = ['blocked-counts', 'called-counts', 're-keyed-counts']
      return (await Promise.all(topics.map((topic) => engine.read(topic)))).flat().length
    }
    await eventually('five windows are told', async () => (await told()) >= 5, 60_000)
    assert.deepEqual(byKey(await engine.read('blocked-counts')), { a: [20] })
    assert.deepEqual(byKey(await engine.read('called-counts')), { a: [21] })
    assert.deepEqual(byKey(await engine.read('re-keyed-counts')), { 'third-0': [7], 'third-1': [7], 'third-2': [7] })
    assert.equal(engine.dropped('late'), 0)
  })

test('what comes during a pause is in its windows behind it', async (t) => {
  const engine = await TestEngine.start(t, 'quiet-or-slow', config)
  const ticks = (from: number, count: number): In[] =>
    Array.from({ length: count }, (_, i) => ({ key: 'a', value: i, timestamp: firstTime + 100 * (from + i) }))
  await engine.put('ticks', ticks(0, 5))
  await engine.idle()
  engine.runtime.commands.pause()
  await eventually('it is paused', () => engine.state === 'PAUSED')
  await sleep(1500)
  await engine.put('ticks', ticks(5, 25))
  await sleep(500)
  engine.runtime.commands.unpause()
  await eventually('three windows are told', async () => (await engine.read('per-second')).length >= 3, 60_000)
  assert.deepEqual(byKey(await engine.read('per-second')), { a: [10, 10, 10] })
  assert.equal(engine.dropped('late'), 0)
})

for (const split of ['in-process', 'repartition-topics'] as const)
  test(`windows that would close sooner than those before them wait for these, ${split}`, async (t) => {
    const engine = await TestEngine.start(t, 'quiet-or-slow', { ...config, 'topology.sub-topology-split': split })
    // The last one closes the first window, and its own stays open while nothing comes.
    const times = [0, 100, 200, 1500].map((ms) => Math.ceil(firstTime / 3000) * 3000 + ms)
    await engine.put(
      'ticks',
      times.map((timestamp) => ({ key: 'a', value: 1, timestamp })),
    )
    await eventually('all is told', async () => (await engine.read('soon-elsewhere')).length >= 1, 60_000)
    assert.deepEqual(byKey(await engine.read('soon-elsewhere')), { a: [4] })
    const [first, second] = times.map((ms) => String(Math.floor(ms / 1000) * 1000)).slice(2)
    await eventually('all is told', async () => (await engine.read('soon-in-task')).length >= 2, 60_000)
    assert.deepEqual(byKey(await engine.read('soon-in-task')), { [first as string]: [3], [second as string]: [1] })
    assert.equal(engine.dropped('late'), 0)
  })

for (const [split, lanes] of [
  ['in-process', 4],
  ['repartition-topics', 2],
] as const)
  test(`of 20,000 records of few keys, in the topic at the start, none is missing in windows of windows, ${split}`, async (t) => {
    const broker = await startEmbeddedBroker({ partitions: 4 })
    t.after(() => broker.close())
    const start = Math.ceil(firstTime / 3000) * 3000
    const ticks = Array.from({ length: 20_000 }, (_, i) => ({
      key: `k${Math.floor(((i * 7919) % 1000) ** 3 / 1e8)}`,
      value: i,
      timestamp: start + i * 15,
    }))
    await produce(broker.client(), 'ticks', ticks)
    const expected = new Map<string, number>()
    for (const { key, timestamp } of ticks) {
      const window = `${key} ${Math.floor(timestamp / 3000)}`
      expected.set(window, (expected.get(window) ?? 0) + 1)
    }
    const own = { 'engine.lanes.count': lanes, 'topology.sub-topology-split': split }
    const engine = await TestEngine.start(t, 'quiet-or-slow', { 'watermark.idleness-timeout': '200ms', ...own }, broker)
    const told = () => engine.read('soon-elsewhere')
    await eventually('all is told', async () => (await told()).length >= expected.size, 90_000)
    // In the order of time for each key.
    const byTime = Object.groupBy([...expected.keys()], (window) => window.slice(0, window.indexOf(' ')))
    const counts = Object.entries(byTime).map(([key, windows = []]) => [key, windows.map((each) => expected.get(each))])
    assert.deepEqual(byKey(await told()), Object.fromEntries(counts))
    assert.equal(engine.dropped('late'), 0)
  })

async function twoProcesses(t: TestContext): Promise<TestEngine[]> {
  const broker = await startEmbeddedBroker({ partitions: 4 })
  t.after(() => broker.close())
  return Promise.all(
    ['a', 'b'].map((id) => {
      const own = { 'engine.instance-id': id, 'topology.sub-topology-split': 'repartition-topics' }
      return TestEngine.start(t, 'quiet-or-slow', { 'watermark.idleness-timeout': '200ms', ...own }, broker)
    }),
  )
}

test('windows wait for those before them in another process', async (t) => {
  const processes = await twoProcesses(t)
  const [engine] = processes as [TestEngine, TestEngine]
  const ticksOf = ({ runtime }: TestEngine): number[] =>
    Object.keys(runtime.view.consumer()?.assignment ?? {})
      .flatMap((name) => /^ticks[:/-](\d+)$/.exec(name)?.[1] ?? [])
      .map(Number)
  await eventually('both have some of the input', () => processes.every((each) => ticksOf(each).length > 0))
  // What the other one reads leaves it to that one alone to say what it holds back.
  const partition = processes.map(ticksOf).find((read) => !read.includes(0))?.[0] as number
  const keys = Array.from({ length: 12 }, (_, n) => `k${n}`)
  const start = Math.ceil(firstTime / 3000) * 3000
  await engine.put(
    'ticks',
    [0, 100, 200, 1500].flatMap((ms) => keys.map((key) => ({ key, value: 1, timestamp: start + ms, partition }))),
  )
  await eventually('all is told', async () => (await engine.read('soon-elsewhere')).length >= keys.length, 60_000)
  assert.deepEqual(byKey(await engine.read('soon-elsewhere')), Object.fromEntries(keys.map((key) => [key, [4]])))
  assert.deepEqual(
    processes.map((each) => each.dropped('late')),
    [0, 0],
  )
})

test('what another process has yet to hand over through a topic is in its windows', async (t) => {
  const processes = await twoProcesses(t)
  const [first, second] = processes as [TestEngine, TestEngine]
  const partitionOf = (engine: TestEngine): number | undefined => {
    const read = Object.keys(engine.runtime.view.consumer()?.assignment ?? {})
    return read
      .map((name) => /^called[:/-](\d+)$/.exec(name)?.[1])
      .flatMap((found) => found ?? [])
      .map(Number)[0]
  }
  await eventually('both have some of the input', () => processes.every((engine) => partitionOf(engine) !== undefined))
  const partition = partitionOf(second) as number
  const records = (from: number): In[] =>
    Array.from({ length: 42 }, (_, i) => ({ key: `k${i}`, value: i, timestamp: firstTime + from + i }))
  await first.put('called', records(0))
  await eventually('the first windows are told', async () => (await first.read('re-keyed-counts')).length >= 3, 60_000)
  second.runtime.commands.pause()
  await eventually('one is paused', () => second.state === 'PAUSED')
  await first.put(
    'called',
    records(100).map((record) => ({ ...record, partition })),
  )
  await sleep(4000)
  second.runtime.commands.unpause()
  await eventually('the long windows are told', async () => (await first.read('long-counts')).length >= 3, 60_000)
  assert.deepEqual(byKey(await first.read('long-counts')), { 'third-0': [28], 'third-1': [28], 'third-2': [28] })
})

test('the last window of windows has what the last of those before it tells', async (t) => {
  const engine = await TestEngine.start(t, 'quiet-or-slow', config)
  await engine.put(
    'ticks',
    Array.from({ length: 94 }, (_, i) => ({ key: 'a', value: i, timestamp: firstTime + 100 * i })),
  )
  await eventually('five windows are told', async () => (await engine.read('per-two-seconds')).length >= 5, 60_000)
  assert.deepEqual(byKey(await engine.read('per-two-seconds')), { a: [20, 20, 20, 20, 14] })
})
