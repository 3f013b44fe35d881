/** Folds that change the aggregate they are given, as many do: what is told of it is what it was, and what it is. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Random } from '../../../src/base/random.ts'
import {
  defineApp,
  hopping,
  serdes,
  session,
  sliding,
  type Table,
  type Topology,
  tumbling,
} from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

interface Sum {
  n: number
  total: number
}
type Fold = (sum: Sum, amount: Sum) => Sum
type LateFold = (sum: Sum, amount: Sum) => Promise<Sum>

const inPlace: Fold = (sum, amount) => {
  sum.n += amount.n
  sum.total += amount.total
  return sum
}
/** Changes what the old one and the new one have in common. */
const below: Fold = (sum, amount) => ({ ...inPlace(sum, amount) })
const takeOut: Fold = (sum, amount) => inPlace(sum, { n: -amount.n, total: -amount.total })
const none = (): Sum => ({ n: 0, total: 0 })

const serde = { key: serdes.string, value: serdes.json<Sum>() }
const serdes1 = { key: serdes.string, value: serdes.json<number>() }
const grace = '1h'

/** Both ways from a table to its sums. */
function tell<K, D extends null>(table: Table<K, Sum, D>): void {
  table
    .toStream()
    .map((sum, key) => [JSON.stringify(key), sum])
    .to('rows', { key: serdes.string, value: serdes.json() })
  table
    .groupBy((sum) => [sum.total % 2 === 0 ? 'even' : 'odd', sum], serde)
    .aggregate(none, inPlace, takeOut)
    .toStream()
    .to('groups')
}

const grouped = (topology: Topology) => topology.stream('in', serde).groupByKey()
const kinds: Readonly<Record<string, (topology: Topology, fold: Fold) => void>> = {
  aggregate: (topology, fold) => tell(grouped(topology).aggregate(none, fold)),
  reduce: (topology, fold) => tell(grouped(topology).reduce(fold)),
  cogroup: (topology, fold) => tell(grouped(topology).cogroup<Sum>(fold).aggregate(none)),
  'tumbling windows': (topology, fold) =>
    tell(grouped(topology).windowedBy(tumbling('1s', { grace })).aggregate(none, fold)),
  'hopping windows': (topology, fold) =>
    tell(
      grouped(topology)
        .windowedBy(hopping('1s', '200ms', { grace }))
        .aggregate(none, fold),
    ),
  'sliding windows': (topology, fold) =>
    tell(grouped(topology).windowedBy(sliding('300ms', { grace })).aggregate(none, fold)),
  sessions: (topology, fold) =>
    tell(
      grouped(topology)
        .windowedBy(session('50ms', { grace }))
        .aggregate(none, fold, (a, b) => inPlace(b, a)),
    ),
  'a table by group': (topology, fold) =>
    tell(
      topology
        .table('in', serde)
        .groupBy((amount, key) => [key.slice(-1), amount], serde)
        .aggregate(none, fold, takeOut),
    ),
}

/** All of the table's last values, summed up apart, and what the groups below it say. */
async function sums(kind: string, fold: Fold, emit: 'on-update' | 'per-commit'): Promise<[apart: Sum, below: Sum]> {
  const build = (topology: Topology): void => kinds[kind]?.(topology, fold)
  const app = defineApp({ applicationId: 'in-place', build })
  const driver = new TopologyTestDriver(app, { config: { 'topology.emit': emit } })
  const random = new Random(7)
  const input = driver.input<string, Sum>('in')
  for (let i = 0; i < 150; i++) {
    const value = { n: 1, total: random.int(100) }
    await input.pipe(`k${random.int(12)}`, value, { timestamp: 10_000 + i * 10 + random.int(500) })
    if (emit === 'per-commit' && random.chance(0.2)) await driver.commit()
  }
  await driver.commit()
  const lastOf = (topic: string): Sum =>
    [
      ...new Map(
        driver
          .output<string, Sum | null>(topic)
          .readAll()
          .map(({ key, value }) => [key, value]),
      ).values(),
    ]
      .filter((value) => value !== null)
      .reduce((all, value) => inPlace(all, value), none())
  const found: [Sum, Sum] = [lastOf('rows'), lastOf('groups')]
  driver.close()
  return found
}

describe('an aggregate that its fold changes in place', () => {
  for (const kind of Object.keys(kinds)) {
    for (const emit of ['on-update', 'per-commit'] as const) {
      test(`${kind}, told ${emit}: groups of the table have what its rows have`, async () => {
        const fresh: Fold = (sum, amount) => ({ n: sum.n + amount.n, total: sum.total + amount.total })
        const [expected] = await sums(kind, fresh, emit)
        assert.ok(expected.n > 0)
        for (const fold of [fresh, inPlace, below])
          assert.deepEqual(await sums(kind, fold, emit), [expected, expected], fold.name)
      })
    }
  }
})

test('a joiner that changes the row it is given tells the same, whoever is below', async () => {
  for (const isGrouped of [false, true]) {
    const app = defineApp({
      applicationId: 'joined-in-place',
      build(topology) {
        const left = topology.table('left', { key: serdes.string, value: serdes.json<{ n: number; of?: number }>() })
        const right = topology.table('right', { key: serdes.string, value: serdes.json<number>() })
        const joined = left.join(right, (row, of) => Object.assign(row, { of }))
        joined.toStream().to('out')
        if (isGrouped)
          joined
            .groupBy(({ of }) => ['all', of], serdes1)
            .count()
            .toStream()
            .to('counts')
      },
    })
    const driver = new TopologyTestDriver(app)
    await driver.input('left').pipe('k', { n: 1 })
    for (const rate of [10, 20, 30]) await driver.input<string, number>('right').pipe('k', rate)
    await driver.input('left').pipe('k', { n: 2 })
    const told = driver.output('out').readAll()
    assert.deepEqual(
      told.map(({ value }) => value),
      [
        { n: 1, of: 10 },
        { n: 1, of: 20 },
        { n: 1, of: 30 },
        { n: 2, of: 30 },
      ],
    )
    driver.close()
  }
})

function intoRows<K, D extends null>(table: Table<K, Sum, D>): void {
  table
    .toStream()
    .map((sum) => ['k', sum])
    .to('rows')
}
const again = { breaker: {} }
const late: Readonly<Record<string, (topology: Topology, fold: LateFold) => void>> = {
  aggregate: (topology, fold) => intoRows(grouped(topology).aggregate(none, fold, again)),
  'tumbling windows': (topology, fold) =>
    intoRows(grouped(topology).windowedBy(tumbling('1s')).aggregate(none, fold, again)),
  'sliding windows': (topology, fold) =>
    intoRows(grouped(topology).windowedBy(sliding('300ms')).aggregate(none, fold, again)),
  sessions: (topology, fold) =>
    intoRows(
      grouped(topology)
        .windowedBy(session('50ms'))
        .aggregate(none, fold, (a, b) => inPlace(b, a), again),
    ),
}

for (const [kind, build] of Object.entries(late))
  test(`a fold that fails, and is called again, begins with what is stored: ${kind}`, async () => {
    let calls = 0
    const fold: LateFold = async (sum, amount) => {
      inPlace(sum, amount)
      await undefined
      if (++calls % 2 === 1) throw new Error('not this time')
      return sum
    }
    const app = defineApp({ applicationId: 'again', build: (topology) => build(topology, fold) })
    const driver = new TopologyTestDriver(app)
    for (let i = 0; i < 3; i++)
      await driver.input<string, Sum>('in').pipe('k', { n: 1, total: 10 ** i }, { timestamp: 10_000 })
    const told = driver.output<string, Sum>('rows').readAll()
    assert.deepEqual(
      told.map(({ value }) => value),
      [1, 11, 111].map((total, i) => ({ n: i + 1, total })),
    )
    driver.close()
  })
