/** Windows and joins behind windows: nothing is late that those above tell, and no longer is waited than they need. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Random } from '../../../src/base/random.ts'
import {
  compile,
  defineApp,
  hopping,
  serdes,
  session,
  sliding,
  type Stream,
  type Topology,
  tumbling,
  type Windowed,
} from '../../../src/index.ts'
import { type InputRecord, TopologyTestDriver } from '../../../src/testing/index.ts'
import { toldLate } from '../../../src/topology/levels/told-late.ts'
import { sayWait, waitForAbove } from '../../../src/topology/levels/wait-for-above.ts'

type Counts = Stream<string, number>

const close = { emit: 'on-close' } as const
const asCount = (value: number | null): [string, number] => ['all', value ?? 0]
const types = { key: serdes.string, value: serdes.json<number>() }

type Fixed = ReturnType<typeof tumbling> | ReturnType<typeof hopping> | ReturnType<typeof sliding>
/** Sessions have an overload of their own, which does the same here. */
const asFixed = (windows: ReturnType<typeof session>): Fixed => windows as unknown as Fixed

const holders: Readonly<Record<string, (input: Counts) => Counts>> = {
  'tumbling without a grace': (input) => counted(input, tumbling('10s')),
  'tumbling with a grace': (input) => counted(input, tumbling('10s', { grace: '1s' })),
  hopping: (input) => counted(input, hopping('60s', '20s')),
  sliding: (input) => counted(input, sliding('7s', { grace: '2s' })),
  session: (input) => counted(input, asFixed(session('3s', { grace: '1s' }))),
  'suppressed windows': (input) =>
    input
      .groupByKey()
      .windowedBy(tumbling('10s', { grace: '2s' }))
      .count()
      .suppress({ until: 'window-closes' })
      .toStream()
      .map(asCount, types),
  'windows that tell updates, and the last of them after a time': (input) =>
    input.groupByKey().windowedBy(tumbling('2s')).count().suppress({ until: '5s' }).toStream().map(asCount, types),
  'a join that waits for rows': (input) =>
    input
      .leftJoin<number, number>(
        input.toTable({ store: { name: 'rows', type: 'versioned', historyRetention: '1h' } }),
        (left) => left,
        { grace: '2s' },
      )
      .map(asCount, types),
  'a left join': (input) =>
    input
      .leftJoin<number, number>(
        input.filter(() => false),
        (left) => left,
        { within: '4s', grace: '1s', key: serdes.string, left: types.value, right: types.value },
      )
      .map(asCount, types),
}
const followers: Readonly<Record<string, (graceMs: number) => Fixed>> = {
  'tumbling 10 s': (grace) => tumbling('10s', { grace }),
  'tumbling 15 s': (grace) => tumbling('15s', { grace }),
  'tumbling 20 s': (grace) => tumbling('20s', { grace }),
  'hopping 60 s by 20 s': (grace) => hopping('60s', '20s', { grace }),
  'sliding 5 s': (grace) => sliding('5s', { grace }),
  'session 1 s': (grace) => asFixed(session('1s', { grace })),
}

function counted(input: Counts, windows: Fixed): Counts {
  return input.groupByKey().windowedBy(windows, close).count().toStream().map(asCount, types)
}

function chain(holder: string, follower: string, graceMs: number): (topology: Topology) => void {
  return (topology) => {
    const input = topology.stream<string, number>('in', types)
    const held = (holders[holder] as (input: Counts) => Counts)(input)
    const windows = (followers[follower] as (graceMs: number) => Fixed)(graceMs)
    held.groupByKey().windowedBy(windows, close).count({ store: 'behind' }).toStream().to('out')
  }
}

/** How long the windows behind wait beside their grace. */
function waitOf(holder: string, follower: string, graceMs: number): number {
  const { topology, waits } = waitForAbove(compile(chain(holder, follower, graceMs)), false)
  assert.deepEqual(toldLate(topology, false), [])
  assert.ok(waits.length <= 1, waits.map(sayWait).join('\n'))
  return waits[0]?.byMs ?? 0
}

/** What the windows behind have counted of the results of the first ones, by start; and how many results were dropped. */
async function counts(holder: string, follower: string, graceMs: number): Promise<[number, Map<string, unknown>]> {
  const driver = new TopologyTestDriver(
    defineApp({ applicationId: 'wait-for-above', build: chain(holder, follower, graceMs) }),
  )
  try {
    const random = new Random(7)
    const input = driver.input<string, number>('in')
    const records: InputRecord<string, number>[] = []
    for (let at = 0; at < 100_000; at += 1 + random.int(2500)) {
      records.push({ key: `k${random.int(3)}`, value: 1, timestamp: at })
    }
    await input.pipeAll(records)
    for (const at of [1_000_000, 2_000_000, 3_000_000]) await input.pipe('z', 1, { timestamp: at })
    const told = driver.output<Windowed<string>, number>('out').readAll()
    const before = told.filter(({ key }) => key.start < 1_000_000 - 120_000)
    return [driver.dropped().length, new Map(before.map(({ key, value }) => [`${key.start} ${key.end}`, value]))]
  } finally {
    await driver.close()
  }
}

/** Milliseconds that the windows behind wait, without a grace of their own, in the order of `followers`. */
const waits: Readonly<Record<string, readonly number[]>> = {
  'tumbling without a grace': [0, 9999, 0, 0, 9999, 9999],
  'tumbling with a grace': [1000, 10_999, 1000, 1000, 10_999, 10_999],
  hopping: [59_999, 59_999, 40_000, 40_000, 59_999, 59_999],
  sliding: [9000, 9000, 9000, 9000, 9000, 9000],
  session: [4000, 4000, 4000, 4000, 4000, 4000],
  'suppressed windows': [2000, 11_999, 2000, 2000, 11_999, 11_999],
  'windows that tell updates, and the last of them after a time': [4999, 4999, 4999, 4999, 4999, 4999],
  'a join that waits for rows': [2000, 2000, 2000, 2000, 2000, 2000],
  'a left join': [5000, 5000, 5000, 5000, 5000, 5000],
}

describe('results that are told late', () => {
  for (const holder of Object.keys(holders)) {
    for (const [i, follower] of Object.keys(followers).entries()) {
      test(`${holder}, and behind it ${follower}`, async () => {
        assert.equal(waitOf(holder, follower, 0), waits[holder]?.[i])
        // A grace of one's own counts: who has given what is missing waits no longer than before.
        assert.equal(waitOf(holder, follower, 3000), Math.max(0, (waits[holder]?.[i] as number) - 3000))
        const [dropped, told] = await counts(holder, follower, 0)
        assert.equal(dropped, 0)
        const [, all] = await counts(holder, follower, 600_000)
        assert.deepEqual(told, all)
      })
    }
  }
})

/** Joined with the input itself, or with results that are told as late. */
function joined(holder: string, isOuter: boolean, withFinals: boolean, graceMs: number): (topology: Topology) => void {
  return (topology) => {
    const hold = holders[holder] as (input: Counts) => Counts
    const left = hold(topology.stream<string, number>('in', types))
    const beside = topology.stream<string, number>('beside', types)
    const right = withFinals ? hold(beside) : beside.map(asCount, types)
    const settings = { within: '3s', grace: graceMs, key: types.key, left: types.value, right: types.value } as const
    // Each result is known by its time.
    const timed = (stream: Counts): Counts => stream.mapValues((_value, _key, { timestamp }) => timestamp)
    const join = (one: number, other: number | null): string => `${one} ${other}`
    const both = isOuter
      ? timed(left).leftJoin<number, string>(timed(right), join, settings)
      : timed(left).join<number, string>(timed(right), join, settings)
    both.to('out', { key: serdes.string, value: serdes.json<string>() })
  }
}

async function pairs(
  build: (topology: Topology) => void,
  config: Readonly<Record<string, string>> = {},
): Promise<{ pairs: string[]; alone: string[] }> {
  const driver = new TopologyTestDriver(defineApp({ applicationId: 'wait-for-above', build, config }))
  try {
    const random = new Random(3)
    const [input, beside] = [driver.input<string, number>('in'), driver.input<string, number>('beside')]
    for (let at = 0; at < 60_000; at += 1 + random.int(1500)) {
      await (random.chance(0.5) ? input : beside).pipe(`k${random.int(3)}`, 1, { timestamp: at })
    }
    for (const at of [1_000_000, 9_000_000]) {
      for (const each of [input, beside]) await each.pipe('z', 1, { timestamp: at })
    }
    const told = driver
      .output<string, string>('out')
      .readAll()
      .map(({ value }) => value as string)
    const alone = told.filter((each) => each.endsWith(' null')).map((each) => each.slice(0, -5))
    return { pairs: told.filter((each) => !each.endsWith(' null')).sort(), alone }
  } finally {
    await driver.close()
  }
}

describe('results that are told late, and a join behind them', () => {
  for (const holder of Object.keys(holders).filter((each) => each !== 'a left join')) {
    for (const isOuter of [false, true]) {
      // A store of its own has its name once.
      for (const withFinals of holder === 'a join that waits for rows' ? [false] : [false, true]) {
        const name = `${holder}, ${isOuter ? 'left join' : 'join'} with ${withFinals ? 'final results' : 'the input'}`
        test(name, async () => {
          const build = (graceMs: number) => joined(holder, isOuter, withFinals, graceMs)
          const [all, needed] = [await pairs(build(3_600_000)), await pairs(build(0))]
          assert.ok(needed.pairs.length > 0)
          assert.deepEqual(needed.pairs, all.pairs)
          const partnered = new Set(needed.pairs.map((each) => each.split(' ')[0]))
          assert.deepEqual(
            needed.alone.filter((each) => partnered.has(each) && !all.alone.includes(each)),
            [],
          )
        })
      }
    }
  }
})

/** Pairs with those of up to 3 s before, of one stream. */
function joinedWithItself(graceMs: number): (topology: Topology) => void {
  return (topology) => {
    const finals = counted(topology.stream<string, number>('in', types), hopping('10s', '5s'))
    const times = finals.mapValues((_value, _key, { timestamp }) => timestamp)
    const settings = { within: { before: '3s' }, grace: graceMs, key: types.key, left: types.value, right: types.value }
    times.join<number, string>(times, (one, other) => `${one} ${other}`, settings as never).to('out')
    topology.stream<string, number>('beside', types).to('nowhere')
  }
}

test('results that are told late, and a join with themselves in one memory', async () => {
  const config = { 'topology.optimization': 'all' } as const
  const optimized = compile(joinedWithItself(0), { optimize: true })
  assert.deepEqual(
    optimized.nodes.filter(({ spec }) => spec.op.endsWith('Join')).map(({ spec }) => spec.op),
    ['selfJoin'],
  )
  const needed = await pairs(joinedWithItself(0), config)
  assert.ok(needed.pairs.length > 0)
  assert.deepEqual(needed.pairs, (await pairs(joinedWithItself(3_600_000), config)).pairs)
  assert.deepEqual(needed.pairs, (await pairs(joinedWithItself(0))).pairs)
})

/** One operator of a chain, with its grace. */
type Link = (input: Counts, random: Random, graceMs: number, beside: Counts) => Counts

const windowed =
  (windows: (random: Random, grace: number) => Fixed): Link =>
  (input, random, graceMs) =>
    counted(input, windows(random, graceMs))

const joining =
  (way: 'join' | 'leftJoin'): Link =>
  (input, random, graceMs, beside) => {
    const within = { before: 500 * random.int(4), after: 500 * random.int(4) }
    const settings = { within, grace: graceMs, key: types.key, left: types.value, right: types.value }
    const sum = (left: number, right: number | null): number => left * 10 + (right ?? 0)
    return way === 'join' ? input.join(beside, sum, settings) : input.leftJoin(beside, sum, settings)
  }

const links: readonly Link[] = [
  windowed((random, grace) => tumbling(1000 * (1 + random.int(9)), { grace })),
  windowed((random, grace) => {
    const advanceMs = 1000 * (1 + random.int(4))
    return hopping(advanceMs * (2 + random.int(2)), advanceMs, { grace })
  }),
  windowed((random, grace) => sliding(1000 * (1 + random.int(5)), { grace })),
  windowed((random, grace) => asFixed(session(300 * (1 + random.int(5)), { grace }))),
  (input, random, grace) => {
    const table = input
      .groupByKey()
      .windowedBy(tumbling(1000 * (1 + random.int(9)), { grace }))
      .count()
    return table.suppress({ until: 'window-closes' }).toStream().map(asCount, types)
  },
  joining('join'),
  joining('leftJoin'),
  (input) => input.process<string, number>((context) => (value, key) => context.forward(key, value)),
]

/** `graceMs`: of all operators behind the first one. */
function drawn(seed: number, graceMs: number): (topology: Topology) => void {
  return (topology) => {
    const random = new Random(seed)
    const beside = topology.stream<string, number>('beside', types).map(asCount, types)
    const first = random.pick(Object.keys(holders))
    let stream = (holders[first] as (input: Counts) => Counts)(topology.stream<string, number>('in', types))
    for (let i = 1 + random.int(3); i > 0; i--) stream = random.pick(links)(stream, random, graceMs, beside)
    stream.mapValues((value, _key, { timestamp }) => `${timestamp}: ${value}`).to('out', { key: types.key })
  }
}

async function results(seed: number, graceMs: number): Promise<readonly string[]> {
  const app = defineApp({ applicationId: 'wait-for-above', build: drawn(seed, graceMs) })
  const driver = new TopologyTestDriver(app, { lanes: 1 + (seed % 2) })
  try {
    const random = new Random(seed)
    const [input, beside] = [driver.input<string, number>('in'), driver.input<string, number>('beside')]
    for (let at = 0; at < 60_000; at += 1 + random.int(1500)) {
      await (random.chance(0.6) ? input : beside).pipe(`k${random.int(3)}`, 1, { timestamp: at })
    }
    // Far enough for all graces, one after the other.
    for (const at of [1e9, 2e9, 3e9, 4e9, 5e9, 6e9, 7e9])
      for (const each of [input, beside]) await each.pipe('z', 1, { timestamp: at })
    assert.deepEqual(driver.dropped(), [])
    const told = driver.output<string, string>('out').readAll()
    return told.flatMap(({ value, timestamp }) => (timestamp < 1_000_000 ? [value as string] : [])).sort()
  } finally {
    await driver.close()
  }
}

const seeds = Number(process.env.WAIT_SEEDS ?? 40)
const firstSeed = Number(process.env.WAIT_FROM ?? 1)

describe('results that are told late, and whatever comes behind them', () => {
  for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
    test(`seed ${seed}`, async () => {
      assert.deepEqual(await results(seed, 0), await results(seed, 100_000_000))
    })
  }
})
