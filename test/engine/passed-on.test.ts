/**
 * Records that come to an operator twice, at once and by way of a hop to another task: what the operator makes of both goes on
 * in the order in which it made it, whichever of the ways was declared first.
 */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { defineApp, keyValueStore, type Stream, serdes, type Topology } from '../../src/index.ts'
import { TopologyTestDriver } from '../../src/testing/index.ts'

interface Order {
  readonly group: string
  readonly n: number
}

const json = { key: serdes.string, value: serdes.json<Order>() }
const ordersOf = (topology: Topology): Stream<string, Order> => topology.stream('orders', json)

/** The last of all, and each as it came by. */
function toLast<V>(topology: Stream<string, V>): void {
  topology.to('seen')
  topology
    .groupBy(() => 'all')
    .reduce((_, next) => next, { store: 'last' })
    .toStream()
    .to('last')
}

/** How many came of a key, the one at hand included. */
function numbered(stream: Stream<string, Order>): Stream<string, number> {
  const counts = keyValueStore('counts', { key: serdes.string, value: serdes.json<number>() })
  return stream.processValues(
    (context) => {
      const rows = context.store(counts)
      return {
        process(_, key) {
          const count = (rows.get(key) ?? 0) + 1
          rows.put(key, count)
          return context.forward(count)
        },
      }
    },
    { stores: [counts] },
  )
}

const shapes: Readonly<Record<string, (topology: Topology) => void>> = {
  'a join with what was counted of the same records'(topology) {
    const orders = ordersOf(topology)
    const counted = orders.groupBy(({ group }) => group).count()
    toLast(
      orders
        .toTable()
        .leftJoin(counted, ({ n }, count) => ({ n, count: count ?? null }))
        .toStream(),
    )
  },
  'an inner join with that'(topology) {
    const orders = ordersOf(topology)
    const counted = orders.groupBy(({ group }) => group).count()
    toLast(
      orders
        .toTable()
        .join(counted, ({ n }, count) => ({ n, count }))
        .toStream(),
    )
  },
  'a merge'(topology) {
    const orders = ordersOf(topology)
    const hopped = orders.repartition().mapValues((order) => ({ ...order, group: 'hopped' }))
    toLast(orders.merge(hopped))
  },
  'a merge, numbered by a processor'(topology) {
    const orders = ordersOf(topology)
    toLast(numbered(orders.merge(orders.repartition().mapValues((order) => order))))
  },
  'two hops, one behind the other'(topology) {
    const orders = ordersOf(topology)
    const once = orders.repartition({ name: 'once' }).mapValues((order) => ({ ...order, group: 'once' }))
    const twice = once.repartition({ name: 'twice' }).mapValues((order) => ({ ...order, group: 'twice' }))
    toLast(numbered(twice.merge(once).merge(orders)))
  },
}

describe('what an operator makes of a record goes on in the order in which it made it', () => {
  for (const [name, build] of Object.entries(shapes))
    for (const lanes of [1, 4])
      test(`${name}, with ${lanes} lane${lanes > 1 ? 's' : ''}`, async (t) => {
        const driver = new TopologyTestDriver(defineApp({ applicationId: 'passed-on', build }), { lanes })
        t.after(() => driver.close())
        for (let n = 1; n <= 3; n++) await driver.input('orders', json).pipe('x', { group: 'x', n }, { timestamp: n })
        const valuesOf = (topic: string): unknown[] =>
          driver
            .output(topic, { key: serdes.string, value: serdes.json() })
            .readAll()
            .map(({ value }) => value)
        const seen = valuesOf('seen')
        assert.ok(seen.length > 3)
        assert.deepEqual(valuesOf('last'), seen)
      })
})

test('a table that is joined with its own join by a foreign key takes out of a count what it has put into it', async (t) => {
  const app = defineApp({
    applicationId: 'passed-on',
    build(topology) {
      const orders = topology.table('orders', json)
      const names = topology.table('names', { key: serdes.string, value: serdes.json<string>() })
      const named = orders.join(names, (_, name) => ({ name }), { on: ({ group }) => group })
      orders
        .leftJoin(named, ({ group }, right) => ({ group, name: right?.name }))
        .groupBy((row) => [row.group, row])
        .count({ store: 'by-group' })
    },
  })
  const driver = new TopologyTestDriver(app)
  t.after(() => driver.close())
  await driver.input('names', { key: serdes.string, value: serdes.json<string>() }).pipe('y', 'Y', { timestamp: 0 })
  const orders = driver.input<string, Order | null>('orders')
  const counted = (): number | undefined => {
    const store = driver.store<{ get(key: string): { value: number } | undefined }>('by-group')
    return store.get('y')?.value
  }
  await orders.pipe('x', { group: 'y', n: 1 }, { timestamp: 1 })
  await orders.pipe('x', { group: 'y', n: 2 }, { timestamp: 2 })
  assert.equal(counted(), 1)
  await orders.pipe('x', null, { timestamp: 3 })
  assert.equal(counted(), 0)
})

/** 'old' becomes many records, 'new' one; then all go from task to task, `each` times, and one of these goes on. */
async function lastOfMany(
  t: TestContext,
  { many, hops, each }: { many: number; hops: number; each: number },
): Promise<{ last: unknown; warnings: string[] }> {
  const text = { key: serdes.string, value: serdes.string }
  const app = defineApp({
    applicationId: 'passed-on',
    build(topology) {
      let stream = topology
        .stream('in', text)
        .repartition({ name: 'first' })
        .flatMapValues(() => ['old', 'new'])
        .repartition({ name: 'second' })
        .flatMapValues((value) => Array.from({ length: value === 'old' ? many : 1 }, () => value))
      for (let hop = 0; hop < hops; hop++) {
        stream = stream
          .flatMapValues((value) => Array.from({ length: each }, (_, at) => (at === each - 1 ? value : '')))
          .repartition({ name: `hop-${hop}` })
          .filter((value) => value !== '')
      }
      stream.to('out')
    },
  })
  const warnings: string[] = []
  const driver = new TopologyTestDriver(app, {
    log: ({ level, message }) => {
      if (level === 'warn') warnings.push(message)
    },
  })
  t.after(() => driver.close())
  await driver.input('in', text).pipe('k', 'v', { timestamp: 1 })
  return {
    last: driver
      .output('out', { ...text, value: serdes.json<string>() })
      .readAll()
      .at(-1)?.value,
    warnings,
  }
}

for (const [many, hops, each] of [
  [100, 3, 1],
  [20_000, 7, 1],
  [3000, 9, 2],
  [300, 5, 8],
] as const) {
  test(`a record that becomes ${many} keeps its place among others through ${hops} more hops, ${each} by each`, async (t) => {
    assert.deepEqual(await lastOfMany(t, { many, hops, each }), { last: 'new', warnings: [] })
  })
}

test('so many that no more are told apart are told of', async (t) => {
  const { warnings } = await lastOfMany(t, { many: 100, hops: 8, each: 9 })
  assert.equal(warnings.length, 1)
  assert.match(
    warnings[0] ?? '',
    /^what the record at in\/0, offset 0, has become was handed on too often for all of it to be told apart/,
  )
})
