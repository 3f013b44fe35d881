/** What a start says of windows behind windows: with the grace that it names nothing is late, without it something is. */
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
} from '../../../src/index.ts'
import { type InputRecord, TopologyTestDriver } from '../../../src/testing/index.ts'
import { sayToldLate, type ToldLate, toldLate } from '../../../src/topology/levels/told-late.ts'

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

function lateOf(holder: string, follower: string, graceMs: number): ToldLate | undefined {
  const told = toldLate(compile(chain(holder, follower, graceMs)), false)
  assert.ok(told.length <= 1)
  return told[0]
}

/** How many results are dropped behind the first windows. */
async function dropped(holder: string, follower: string, graceMs: number): Promise<number> {
  const driver = new TopologyTestDriver(
    defineApp({ applicationId: 'told-late', build: chain(holder, follower, graceMs) }),
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
    return driver.dropped().length
  } finally {
    await driver.close()
  }
}

/** What these records do not show: a window behind that has nothing yet is made, although its time is over. */
const unharmed = new Set([
  'tumbling without a grace, and behind it session 1 s',
  'tumbling with a grace, and behind it session 1 s',
  'tumbling with a grace, and behind it tumbling 10 s',
])

describe('results that are told late', () => {
  for (const holder of Object.keys(holders)) {
    for (const follower of Object.keys(followers)) {
      const name = `${holder}, and behind it ${follower}`
      test(name, async () => {
        const late = lateOf(holder, follower, 0)
        if (late === undefined) {
          assert.equal(await dropped(holder, follower, 0), 0)
          return
        }
        if (!unharmed.has(name)) assert.notEqual(await dropped(holder, follower, 0), 0, sayToldLate(late))
        const graceMs = late.neededMs - late.graceMs
        assert.equal(lateOf(holder, follower, graceMs), undefined)
        assert.equal(await dropped(holder, follower, graceMs), 0, sayToldLate(late))
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

async function pairs(build: (topology: Topology) => void): Promise<{ pairs: string[]; alone: string[] }> {
  const driver = new TopologyTestDriver(defineApp({ applicationId: 'told-late', build }))
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
      for (const withFinals of [false, true]) {
        const name = `${holder}, ${isOuter ? 'left join' : 'join'} with ${withFinals ? 'final results' : 'the input'}`
        test(name, async () => {
          const build = (graceMs: number) => joined(holder, isOuter, withFinals, graceMs)
          const told = toldLate(compile(build(0)), false)
          const graceMs = Math.max(...told.map((each) => each.neededMs - each.graceMs))
          assert.deepEqual(toldLate(compile(build(graceMs)), false), [])
          const [all, without, needed] = [
            await pairs(build(3_600_000)),
            await pairs(build(0)),
            await pairs(build(graceMs)),
          ]
          assert.ok(without.pairs.length < all.pairs.length, 'without a grace pairs are missing')
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
