/** Functions of tables that fail at some rows, with a policy that lets these go: groups are what the other rows make of them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Random } from '../../../src/base/random.ts'
import { defineApp, serdes, type Table, type Topology } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

interface Row {
  readonly n: number
  readonly isBad: boolean
}
interface Group {
  readonly count: number
  readonly sum: number
}

const serde = { key: serdes.string, value: serdes.json<Row>() }
const pick = <T>(isBad: boolean, value: T): T => {
  if (isBad) throw new RangeError('a bad row')
  return value
}
const late = async <T>(isBad: boolean, value: T): Promise<T> => {
  await undefined
  return pick(isBad, value)
}

function grouped(table: Table<string, number>): void {
  table
    .groupBy((n) => ['all', n], { key: serdes.string, value: serdes.json<number>() })
    .aggregate(
      (): Group => ({ count: 0, sum: 0 }),
      ({ count, sum }, n) => ({ count: count + 1, sum: sum + n }),
      ({ count, sum }, n) => ({ count: count - 1, sum: sum - n }),
    )
    .toStream()
    .to('groups')
}

const kinds: Readonly<Record<string, (topology: Topology) => void>> = {
  mapValues: (topology) => grouped(topology.table('rows', serde).mapValues(({ n, isBad }) => pick(isBad, n))),
  'mapValues with a promise': (topology) =>
    grouped(topology.table('rows', serde).mapValues(({ n, isBad }) => late(isBad, n))),
  'mapValues with a store': (topology) =>
    grouped(topology.table('rows', serde).mapValues(({ n, isBad }) => pick(isBad, n), { store: 'mapped' })),
  filter: (topology) =>
    grouped(
      topology
        .table('rows', serde)
        .filter(({ isBad }) => pick(isBad, true))
        .mapValues(({ n }) => n),
    ),
  groupBy: (topology) =>
    topology
      .table('rows', serde)
      .groupBy(({ n, isBad }) => ['all', pick(isBad, n)], { key: serdes.string, value: serdes.json<number>() })
      .aggregate(
        (): Group => ({ count: 0, sum: 0 }),
        ({ count, sum }, n) => ({ count: count + 1, sum: sum + n }),
        ({ count, sum }, n) => ({ count: count - 1, sum: sum - n }),
      )
      .toStream()
      .to('groups'),
  join: (topology) =>
    grouped(
      topology
        .table('rows', serde)
        .join(topology.table('partners', { key: serdes.string, value: serdes.json<number>() }), (row, one) =>
          pick(row.isBad, row.n * one),
        ),
    ),
  'join of mapped rows': (topology) =>
    grouped(
      topology
        .table('rows', serde)
        .mapValues(({ n, isBad }) => pick(isBad, n))
        .join(topology.table('partners', { key: serdes.string, value: serdes.json<number>() }), (n, one) => n * one),
    ),
  'foreign-key join of mapped rows': (topology) =>
    grouped(
      topology
        .table('rows', serde)
        .mapValues(({ n, isBad }) => pick(isBad, n))
        .join(topology.table('partners', { key: serdes.string, value: serdes.json<number>() }), (n, one) => n * one, {
          on: () => 'k0',
        }),
    ),
  'foreign-key join': (topology) =>
    grouped(
      topology
        .table('rows', serde)
        .join(
          topology.table('partners', { key: serdes.string, value: serdes.json<number>() }),
          (row, one) => row.n * one,
          { on: ({ isBad }) => pick(isBad, 'k0') },
        ),
    ),
}

describe('rows at which a function of a table fails', () => {
  for (const [kind, build] of Object.entries(kinds)) {
    test(`${kind}: are none below, and those behind them count`, async () => {
      const config = { 'errors.processing': 'skip' } as const
      const driver = new TopologyTestDriver(defineApp({ applicationId: 'failing-rows', build }), { config })
      if (kind.includes('join'))
        for (let i = 0; i < 10; i++) await driver.input<string, number>('partners').pipe(`k${i}`, 1)
      const input = driver.input<string, Row | null>('rows')
      const random = new Random(3)
      // With a store of its own a table keeps what it has told, and a row that fails changes nothing of it.
      const keepsOld = kind.endsWith('store')
      const rows = new Map<string, number>()
      let bad = 0
      const put = async (key: string, row: Row | null): Promise<void> => {
        if (row?.isBad) bad++
        if (row !== null && !row.isBad) rows.set(key, row.n)
        else if (!(keepsOld && row?.isBad)) rows.delete(key)
        await input.pipe(key, row)
      }
      const told = (): Group | undefined => driver.output<string, Group>('groups').readAll().at(-1)?.value
      for (let i = 0; i < 200; i++) {
        // The other side looks the rows up.
        if (kind.includes('join') && i % 3 === 0)
          await driver.input<string, number>('partners').pipe(`k${random.int(10)}`, 1)
        const row = { n: random.int(50), isBad: random.chance(0.2) }
        await put(`k${random.int(10)}`, random.chance(0.9) ? row : null)
      }
      const expected = { count: rows.size, sum: [...rows.values()].reduce((sum, n) => sum + n, 0) }
      assert.deepEqual(told(), expected)
      // A joiner fails at a row again whenever its partner changes.
      if (kind === 'join') assert.ok(driver.dropped().length > bad)
      else assert.equal(driver.dropped().length, bad, 'each of them, and no other')
      for (let i = 0; i < 10; i++) await put(`k${i}`, null)
      assert.deepEqual(told() ?? expected, { count: 0, sum: 0 })
      driver.close()
    })
  }
})
