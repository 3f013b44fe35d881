/** Tasks that feed themselves through topics, where no record does: their time comes as it does in the process, and never stands still. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { compile, defineApp, serdes, type Topology, tumbling } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'
import { planOf } from '../../../src/topology/plan.ts'
import { splitTopology } from '../../../src/topology/split.ts'

interface Event {
  readonly id: string
}

const typed = { key: serdes.string, value: serdes.json<Event>() }
const splits = ['in-process', 'repartition-topics'] as const
const start = 1_000_000

/** Of each topic between sub-topologies, the sources that tell its time in a circle. */
function told(build: (topology: Topology) => void): Record<string, readonly number[] | undefined> {
  const { boundaries } = planOf(splitTopology(compile(build), 'repartition-topics'))
  return Object.fromEntries(boundaries.map(({ topic, fedBy }) => [topic, fedBy]))
}

function driverOf(
  t: TestContext,
  build: (topology: Topology) => void,
  split: (typeof splits)[number],
): TopologyTestDriver {
  const application = defineApp({ applicationId: 'circles', build })
  const driver = new TopologyTestDriver(application, {
    partitions: 2,
    config: { 'topology.sub-topology-split': split },
  })
  t.after(() => driver.close())
  return driver
}

const ids = (driver: TopologyTestDriver, topic: string): string[] =>
  driver
    .output(topic, typed)
    .readAll()
    .map(({ value }) => value?.id ?? '')
    .toSorted()

function merged(topology: Topology): void {
  const visits = topology.stream('visits', typed)
  const counted = visits
    .groupBy(({ id }) => id, typed)
    .windowedBy(tumbling('10s'), { emit: 'on-close' })
    .count()
    .toStream()
    .selectKey((_, { key }) => key, { key: serdes.string })
    .mapValues((count): Event => ({ id: String(count) }))
  counted.merge(visits).to('all', typed)
}

/** What comes back was held back on its way, two topics before. */
function heldAbove(topology: Topology): void {
  const visits = topology.stream('visits', typed)
  const counted = visits
    .groupByKey()
    .windowedBy(tumbling('10s'), { emit: 'on-close' })
    .count()
    .toStream()
    .selectKey((_, { key }) => key, { key: serdes.string })
    .mapValues((count): Event => ({ id: String(count) }))
  const again = counted
    .repartition({ name: 'one', ...typed })
    .mapValues((value) => value)
    .repartition({ name: 'two', ...typed })
  visits
    .join(again, (visit, count) => ({ id: `${visit.id}/${count.id}` }), { within: '10s', grace: '1h' })
    .to('all', typed)
}

/** Orders are left out of event time after a while without any. */
function paid(topology: Topology): void {
  const orders = topology.stream('orders', { ...typed, watermark: { idleness: '5s' } })
  const payments = topology.stream('payments', typed)
  const byId = ({ id }: Event): string => id
  const all = orders
    .selectKey(byId, { key: serdes.string })
    .outerJoin(
      payments.selectKey(byId, { key: serdes.string }),
      (order, payment) => ({ id: `${order?.id ?? 'none'}/${payment?.id ?? 'none'}` }),
      { within: '1s', left: typed.value, right: typed.value },
    )
  all.merge(orders).to('all', typed)
}

describe('tasks that feed themselves through topics', () => {
  test('are told the time of what comes back where nothing was held back on its way', () => {
    assert.deepEqual(told(merged), { 'KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition': [0] })
    assert.deepEqual(Object.values(told(heldAbove)), [undefined, undefined])
  })

  for (const split of splits) {
    test(`${split}: windows that are merged with their own records`, async (t) => {
      const driver = driverOf(t, merged, split)
      const visits = driver.input('visits', typed)
      for (let n = 0; n < 60; n++) {
        await visits.pipe(`k${n % 7}`, { id: `g${n % 3}` }, { timestamp: start + 1000 * n })
      }
      const counts = ids(driver, 'all').filter((id) => !id.startsWith('g'))
      assert.deepEqual(counts, [...Array(10).fill('3'), ...Array(5).fill('4')].toSorted())
    })

    test(`${split}: time goes on where what comes back is held back until it does`, async (t) => {
      const driver = driverOf(t, heldAbove, split)
      const visits = driver.input('visits', typed)
      for (let n = 0; n < 40; n++) {
        await visits.pipe('k', { id: `v${n}` }, { timestamp: start + 1000 * n, partition: 0 })
        await visits.pipe('k', { id: `w${n}` }, { timestamp: start + 1000 * n, partition: 1 })
        await driver.advanceWallClock('2s')
      }
      // In a circle what comes back late is lost or not as it comes by; that any of it does is what is asked for.
      assert.ok(ids(driver, 'all').length > 0)
    })

    test(`${split}: time goes on where those who feed the topic are idle`, async (t) => {
      const driver = driverOf(t, paid, split)
      await driver.input('orders', typed).pipe('k', { id: 'first' }, { timestamp: start, partition: 0 })
      await driver.input('orders', typed).pipe('k', { id: 'second' }, { timestamp: start, partition: 1 })
      for (let n = 1; n < 30; n++) {
        for (const partition of [0, 1]) {
          const at = { timestamp: start + 1000 * n, partition }
          await driver.input('payments', typed).pipe('k', { id: `p${n}-${partition}` }, at)
        }
        await driver.advanceWallClock('1s')
      }
      const alone = ids(driver, 'all').filter((id) => id.startsWith('none/'))
      assert.ok(alone.length >= 40, `${alone.length} payments without an order were told`)
    })
  }
})
