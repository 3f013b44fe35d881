/** Windows and joins behind windows, with full topics at the start and skewed keys: all that was told above is in them, as computed apart. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Random } from '../../src/base/random.ts'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { eventually } from '../support/millrace.ts'
import { firstTime, type In, produce, TestEngine } from './support/engine.ts'

const partitions = 4
/** So many that no partition is without records. */
const groups = 16
const start = Math.ceil(firstTime / 60_000) * 60_000
/** From here on records only close what was before. */
const flush = start + 3_600_000

interface Told {
  readonly key: string
  readonly value: number
  readonly timestamp: number
}

interface Expected {
  readonly second: string[]
  readonly third: string[]
  readonly sessions: string[]
  readonly joined: string[]
}

function inputs(): { readonly clicks: In[]; readonly prices: In[] } {
  const random = new Random(11)
  // Half of all are of one key.
  const clicks = Array.from({ length: 20_000 }, (_, i): In => {
    const key = random.chance(0.5) ? 'k0' : `k${random.int(400)}`
    return { key, value: 1, timestamp: start + i * 30 }
  })
  const prices = Array.from({ length: 4000 }, (_, i): In => {
    return { key: `group-${random.int(groups)}`, value: i, timestamp: start + i * 150 }
  })
  return { clicks, prices }
}

/** A record of each partition, by which event time comes to this instant. */
function everywhere(timestamp: number): In[] {
  return Array.from({ length: partitions }, (_, partition): In => {
    return { key: `flush-${partition}`, value: -1, timestamp, partition }
  })
}

const flushes = [0, 1, 2, 3].flatMap((hour) => everywhere(flush + hour * 3_600_000))

/** Folds into rows by name; the time of a row is that of its newest part. */
function folded(parts: readonly (readonly [name: string, value: number, timestamp: number])[]): Map<string, Told> {
  const rows = new Map<string, Told>()
  for (const [name, value, timestamp] of parts) {
    const row = rows.get(name)
    const key = name.split(' ')[0] as string
    rows.set(name, { key, value: (row?.value ?? 0) + value, timestamp: Math.max(row?.timestamp ?? 0, timestamp) })
  }
  return rows
}

const floor = (time: number, to: number): number => time - (time % to)

function computed({ clicks, prices }: ReturnType<typeof inputs>): Expected {
  const firsts = folded(clicks.map(({ key, timestamp = 0 }) => [`${key} ${floor(timestamp, 10_000)}`, 1, timestamp]))
  const results = [...firsts.values()].map(({ key, ...rest }) => ({
    ...rest,
    key: `group-${Number(key.slice(1)) % groups}`,
  }))
  const seconds = folded(
    results.flatMap(({ key, value, timestamp }) => {
      const last = floor(timestamp, 15_000)
      return [last - 15_000, last].map((begins) => [`${key} ${begins}`, value, timestamp] as const)
    }),
  )
  const thirds = folded(
    [...seconds.values()].map(({ value, timestamp }) => [`all ${floor(timestamp, 60_000)}`, value, timestamp]),
  )
  const sessions: { key: string; from: number; to: number; count: number }[] = []
  for (const { key, timestamp } of [...seconds.values()].sort((a, b) => a.timestamp - b.timestamp)) {
    const open = sessions.findLast((each) => each.key === key)
    if (open === undefined || timestamp - open.to > 6000)
      sessions.push({ key, from: timestamp, to: timestamp, count: 1 })
    else Object.assign(open, { to: timestamp, count: open.count + 1 })
  }
  const joined = results.flatMap(({ key, value, timestamp }) =>
    prices
      .filter((price) => price.key === key && Math.abs((price.timestamp ?? 0) - timestamp) <= 2000)
      .map((price) => `${key} ${JSON.stringify([value, price.value])}`),
  )
  const rows = (of: Map<string, Told>): string[] =>
    [...of].map(([name, { key, value }]) => `${key} ${JSON.stringify([Number(name.split(' ')[1]), value])}`).sort()
  return {
    second: rows(seconds),
    third: rows(thirds),
    sessions: sessions.map(({ key, from, to, count }) => `${key} ${JSON.stringify([from, to, count])}`).sort(),
    joined: joined.sort(),
  }
}

async function told(engine: TestEngine, topic: keyof Expected): Promise<string[]> {
  const all = await engine.read(topic)
  return all
    .filter(({ key, timestamp }) => key !== 'group-NaN' && !key?.startsWith('flush') && timestamp < flush)
    .map(({ key, value }) => `${key} ${JSON.stringify(value)}`)
    .sort()
}

async function run(t: TestContext, lanes: number, split: string): Promise<void> {
  const given = inputs()
  const broker = await startEmbeddedBroker({ partitions })
  t.after(() => broker.close())
  const config = {
    'engine.lanes.count': lanes,
    'topology.sub-topology-split': split,
    'broker.embedded.partitions': partitions,
  }
  for (const [topic, records] of Object.entries(given)) await produce(broker.client(), topic, records, partitions)
  const before = await TestEngine.open('chained-windows', config, broker)
  await eventually('some of it is done', async () => (await before.read('second')).length > 50)
  await before.stop()
  const engine = await TestEngine.start(t, 'chained-windows', config, broker)
  for (const topic of ['clicks', 'prices']) await engine.put(topic, flushes)
  const expected = computed(given)
  await engine.idle()
  await eventually(
    'the last windows are told',
    async () => (await told(engine, 'third')).length >= expected.third.length,
  )
  await engine.idle()
  assert.equal(engine.dropped('late') + engine.dropped('late_window'), 0)
  for (const topic of ['second', 'third', 'sessions', 'joined'] as const) {
    assert.ok(expected[topic].length > 5, topic)
    assert.deepEqual(await told(engine, topic), expected[topic], topic)
  }
}

for (const split of ['in-process', 'repartition-topics']) {
  for (const lanes of [1, 4]) {
    test(`windows and a join behind windows miss nothing: ${lanes} lanes, ${split}, stopped on the way`, async (t) => {
      await run(t, lanes, split)
    })
  }
}
