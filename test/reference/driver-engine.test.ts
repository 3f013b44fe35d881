/**
 * Random programs of any operators: the test driver and the running engine, on threads, write the same about each key, in its order,
 * and the rows of their stores are the same. DRIVER_SEEDS: how many; DRIVER_FROM: the first seed; DRIVER_RECORDS: how long the
 * input is.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Random } from '../../src/base/random.ts'
import { rowsOfDriver, rowsOfEngine, type StoreRows } from '../engine/support/store-rows.ts'
import { type Generated, generateAny } from './generate-more.ts'
import type { ProgramNode } from './program.ts'
import { differences, type Results } from './results.ts'
import { runEngine, type Setting } from './run-engine.ts'
import { runTestDriver } from './run-test-driver.ts'
import { titleOf } from './seed.ts'
import { ownersOf, storeDifferences } from './stores.ts'

const seeds = Number(process.env.DRIVER_SEEDS ?? 4)
const from = Number(process.env.DRIVER_FROM ?? 1)
const records = Number(process.env.DRIVER_RECORDS ?? 300)

interface Made {
  readonly results: Results
  readonly stores: StoreRows
}

interface MadeByDriver extends Made {
  readonly owners: ReadonlyMap<string, string>
}

/** Records without a key lie in no one's order: several tasks write them. */
function withoutOrder(results: Results): Results {
  for (const byKey of results.values()) byKey.get('null')?.sort()
  return results
}

async function byDriver(program: Generated, lanes: number): Promise<MadeByDriver> {
  let owners = new Map<string, string>()
  let stores: StoreRows = {}
  const { results, warnings } = await runTestDriver(program, lanes, (driver) => {
    owners = ownersOf(driver)
    stores = rowsOfDriver(driver, program.partitions)
  })
  assert.deepEqual(warnings, [])
  return { results: withoutOrder(results), stores, owners }
}

async function byEngine(program: Generated, setting: Setting, names: Iterable<string>): Promise<Made> {
  let stores: StoreRows = {}
  const { results, problems } = await runEngine(program, setting, undefined, async (runtime) => {
    stores = await rowsOfEngine(runtime, names)
  })
  assert.deepEqual(problems, [])
  return { results: withoutOrder(results), stores }
}

function settingOf(seed: number): Setting {
  const random = new Random(seed)
  const lanes = random.pick([1, 2, 2, 4])
  const store = random.pick(['memory', 'memory', 'lmdb'] as const)
  return { lanes, store, commitMs: random.pick([5, 20, 100]) }
}

/** Of which `generate.ts` and `generate-more.ts` make programs. */
const operators = [
  ...[
    'mapValues',
    'filter',
    'filterNot',
    'map',
    'flatMap',
    'flatMapValues',
    'selectKey',
    'split',
    'merge',
    'repartition',
  ],
  ...['process', 'processValues', 'join', 'leftJoin', 'outerJoin', 'globalTable', 'table', 'toTable', 'toStream'],
  ...['groupByKey', 'groupBy', 'count', 'reduce', 'aggregate', 'cogroup', 'windowedBy', 'suppress', 'transformValues'],
]

/** What a node is a kind of, beside its operator. */
function kindsOf({ op, window, store, until, foreignKey, grace, slow, processor, emit }: ProgramNode): string[] {
  const of = window !== undefined && 'type' in window ? `windows: ${window.type}` : op
  const kinds = { versioned: store?.type, foreignKey, grace, slow, emit }
  const named = Object.entries(kinds).flatMap(([name, value]) => (value === undefined ? [] : [name]))
  return [op, of, ...named, ...(until ? [until] : []), ...(processor ? [processor.type] : [])]
}

describe('the test driver against the running engine, with any operators', () => {
  test('is asked about all of them', () => {
    const drawn = new Set<string>()
    for (let seed = 1; seed <= 200; seed++)
      for (const node of generateAny(seed, records).nodes) for (const kind of kindsOf(node)) drawn.add(kind)
    const windows = ['tumbling', 'hopping', 'session', 'sliding', 'unlimited'].map((type) => `windows: ${type}`)
    const kinds = ['versioned', 'foreignKey', 'grace', 'slow', 'emit', 'windowCloses', 'timeLimit']
    const processors = ['dedupe', 'countSeen', 'spans']
    const missing = [...operators, ...windows, ...kinds, ...processors].filter((kind) => !drawn.has(kind))
    assert.deepEqual(missing, [])
  })

  for (let seed = from; seed < from + seeds; seed++) {
    test(`makes what the engine makes: seed ${seed}`, async () => {
      const program = generateAny(seed, records)
      const setting = settingOf(seed)
      const one = await byDriver(program, 1)
      const other = await byDriver(program, 3)
      const engine = await byEngine(program, setting, Object.keys(one.stores))
      assert.ok(one.results.size > 0)
      for (const [found, who] of [
        [other, 'the driver with 3 lanes'],
        [engine, titleOf(setting)],
      ] as const) {
        const faults = [
          ...differences(program, one.results, found.results),
          ...storeDifferences(program.orders, one.owners, one.stores, found.stores),
        ]
        assert.deepEqual(faults, [], who)
      }
    })
  }
})
