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
