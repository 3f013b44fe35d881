/** A stream joined with itself: `topology.optimization` makes one memory of the join's two, and changes no result. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Random } from '../../src/base/random.ts'
import { defineApp, serdes } from '../../src/index.ts'
import { TopologyTestDriver } from '../../src/testing/index.ts'

interface Case {
  readonly kind: 'join' | 'leftJoin' | 'outerJoin'
  readonly before: number
  readonly after: number
  readonly grace: number
}

interface Event {
  readonly key: string
  readonly value: number
  readonly timestamp: number
}

interface Outcome {
  readonly pairs: readonly string[]
  readonly late: number
}

async function outcomeOf(shape: Case, events: readonly Event[], optimization: 'none' | 'all'): Promise<Outcome> {
  const { kind, before, after, grace } = shape
  const app = defineApp({
    applicationId: 'self-join',
    build(topology) {
      const events = topology.stream('events', { key: serdes.string, value: serdes.json<number>() })
      const pair = (left: number | null | undefined, right: number | null | undefined) => `${left}-${right}`
      const options = { within: { before, after }, grace }
      const pairs = {
        join: () => events.join(events, pair, options),
        leftJoin: () => events.leftJoin(events, pair, options),
        outerJoin: () => events.outerJoin(events, pair, options),
      }
      pairs[kind]().to('pairs')
    },
  })
  const driver = new TopologyTestDriver(app, { config: { 'topology.optimization': optimization } })
  const input = driver.input('events')
  for (const { key, value, timestamp } of events) await input.pipe(key, value, { timestamp })
  const pairs = driver.readAllOutputs().map(({ key, value, timestamp }) => `${key} ${value} @${timestamp}`)
  const late = new Set(driver.dropped().map(({ reason, value }) => `${reason} ${value}`)).size
  driver.close()
  return { pairs, late }
}

function eventsOf(random: Random, count: number): Event[] {
  return Array.from({ length: count }, (_, i) => ({
    key: random.pick(['a', 'b']),
    value: i,
    timestamp: 1_000_000 + Math.max(0, i * 3 - (random.chance(0.3) ? random.int(60) : 0)),
  }))
}

describe('a stream that is joined with itself', () => {
  test('drops a record whose window is over, optimized or not', async () => {
    const shape: Case = { kind: 'join', before: 10, after: 10, grace: 0 }
    const events = [
      { key: 'a', value: 1, timestamp: 1_000_100 },
      { key: 'b', value: 2, timestamp: 1_000_200 },
      { key: 'a', value: 3, timestamp: 1_000_105 },
    ]
    for (const optimization of ['none', 'all'] as const) {
      const { pairs, late } = await outcomeOf(shape, events, optimization)
      assert.deepEqual(pairs, ['a 1-1 @1000100', 'b 2-2 @1000200'], optimization)
      assert.equal(late, 1, optimization)
    }
  })

  for (const kind of ['join', 'leftJoin', 'outerJoin'] as const) {
    test(`gives the same pairs optimized: ${kind}, late records among them`, async () => {
      let dropped = 0
      for (let seed = 1; seed <= 8; seed++) {
        const random = new Random(seed)
        const before = random.int(30)
        // Late for one side alone: an optimized left join has nobody who waits, there the record meets itself.
        const after = kind === 'join' ? random.int(30) : before
        const shape = { kind, before, after, grace: random.pick([0, 0, 5, 20]) }
        const events = eventsOf(random, 40)
        const plain = await outcomeOf(shape, events, 'none')
        const optimized = await outcomeOf(shape, events, 'all')
        assert.deepEqual(optimized.pairs, plain.pairs, `seed ${seed}: ${JSON.stringify(shape)}`)
        if (before === after) assert.equal(optimized.late, plain.late, `seed ${seed}`)
        dropped += optimized.late
      }
      assert.ok(dropped > 0)
    })
  }
})
