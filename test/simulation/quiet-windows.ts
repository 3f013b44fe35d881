/**
 * Windows that close while nothing comes, over bursts with silence between them: in the sub-topology of a slow function,
 * behind a change of key, and windows of such windows. Records come at the time that they bear. So none may be late, each
 * window has to tell all of its records once, and the last ones must close although nothing comes any more, whatever
 * crashes, pauses or takes its time.
 */
import { Random } from '../../src/base/random.ts'
import { type Application, defineApp } from '../../src/dsl/app.ts'
import { tumbling } from '../../src/dsl/windows.ts'
import { HeldInput } from '../../src/engine/commit/held-input.ts'
import { decodeTag } from '../../src/engine/commit/tag.ts'
import { Upstream } from '../../src/engine/input/repartition/upstream.ts'
import { LaneCounters } from '../../src/lanes/lane-counters.ts'
import { HeldBack } from '../../src/operators/quiet/held-back.ts'
import { QuietInput } from '../../src/operators/quiet/quiet-input.ts'
import { serdes } from '../../src/serde/index.ts'
import { committed as results } from './checkers.ts'
import { type Broken, played, replaced } from './level-order.ts'
import type { Verdict } from './run-seed.ts'
import type { Delays } from './workload.ts'
import { type Mutant, World, type WorldOptions } from './world.ts'

const numbers = { key: serdes.string, value: serdes.json<number>() }
const windowMs = 100
const laterWindowMs = 500
const outputs = { own: windowMs, later: windowMs, group: windowMs, all: laterWindowMs } as const
const firstTimestamp = 1_000_000
/** Longer than the last windows of the deepest level may take: their own time, the slack, and what leads to each look. */
const lastQuietMs = 40_000

/** By window as it is named in the output: how many records it has. */
export async function eachToldOnce(world: World, output: string, expected: ReadonlyMap<string, number>): Promise<void> {
  const told = new Map<string, number[]>()
  for (const { key, value } of await results(world.cluster, output))
    told.set(String(key), [...(told.get(String(key)) ?? []), Number(String(value))])
  for (const window of new Set([...expected.keys(), ...told.keys()])) {
    const [count, found = []] = [expected.get(window), told.get(window)]
    if (found.length === 1 && found[0] === count) continue
    world.violate(`${output}: window ${window} of ${count} records is told as ${JSON.stringify(found)}`)
  }
}

class QuietWorld extends World {
  /** Shorter than a slow function takes, and longer; of windows of windows shorter than of those above them, and longer. */
  readonly #idleMs: readonly [number, number, number, number]

  constructor(options: WorldOptions) {
    super(options)
    const random = new Random(options.seed ^ 0x9b)
    const some = (): number => random.pick([50, 200, 1000, 4000])
    this.#idleMs = [some(), some(), some(), some()]
  }

  /** One goes on all the time; of the others one falls silent halfway, when the next begins. */
  readonly #groupOf = (value: number): string => {
    if (value % 2 === 0) return 'g0'
    return value < this.derived.records / 2 ? 'g1' : 'g2'
  }

  protected override application(delays: Delays): Application {
    const [own, group, all, later] = this.#idleMs
    const groupOf = this.#groupOf
    return defineApp({
      applicationId: 'sim',
      build(topology) {
        const quietly = (sizeMs: number, idleMs: number) => tumbling(sizeMs, { closeAfterIdle: idleMs })
        const input = topology.stream('in', numbers).mapValues((n) => {
          const wait = delays.next(n)
          return wait ? wait.then(() => n) : n
        })
        const named = ({ key, start }: { key: string; start: number }): string => `${key}@${start}`
        const counted = input
          .groupByKey()
          .windowedBy(quietly(windowMs, own), { emit: 'on-close' })
          .count({ store: 'own' })
          .toStream()
        counted.map((count, window) => [named(window), count]).to('own', numbers)
        // Windows of a window each, in the same task.
        counted
          .groupByKey({ key: serdes.windowed(serdes.string, windowMs), value: serdes.json<number>() })
          .windowedBy(quietly(laterWindowMs, later), { emit: 'on-close' })
          .reduce((a, b) => a + b, { store: 'later' })
          .toStream()
          .map((count, window) => [named(window.key), count])
          .to('later', numbers)
        const grouped = input
          .groupBy((n) => groupOf(n), numbers)
          .windowedBy(quietly(windowMs, group), { emit: 'on-close' })
          .count({ store: 'grouped' })
          .toStream()
        grouped.map((count, window) => [named(window), count]).to('group', numbers)
        grouped
          .map((count) => ['all', count])
          .groupByKey(numbers)
          .windowedBy(quietly(laterWindowMs, all), { emit: 'on-close' })
          .reduce((a, b) => a + b, { store: 'all' })
          .toStream()
          .map((count, window) => [named(window), count])
          .to('all', numbers)
      },
    })
  }

  protected override delay(owner: number): Promise<void> | undefined {
    const { random } = this.scheduler
    if (!random.chance(this.derived.asyncShare)) return undefined
    const longestMs = random.chance(0.1) ? 800 : 50
    return new Promise((resolve) => {
      this.scheduler.at(random.next() * longestMs, owner, resolve)
    })
  }

  protected override async feed(): Promise<void> {
    const { records, keys, partitions } = this.derived
    const { random } = this.scheduler
    await this.client.createTopics([{ topic: 'in', partitions }])
    // Some of them lie in the topic when it starts.
    const before = random.chance(0.5) ? random.int(records) : 0
    let at = -before * 10
    for (let i = 0; i < records; i++) {
      at += random.chance(0.06) ? 200 + random.next() * 1300 : random.next() * 20
      const timestamp = firstTimestamp + Math.floor(at)
      const key = `k${random.int(keys)}`
      if (i < before) this.put(key, Math.min(timestamp, firstTimestamp))
      else this.scheduler.at(Math.max(0, at), 0, () => this.put(key, timestamp))
    }
  }

  /** Everything is committed, but for what only time can bring. */
  protected override async settle(): Promise<void> {
    await super.settle()
    const over = this.scheduler.now + lastQuietMs
    await this.until(() => this.scheduler.now > over, this.mostSteps)
  }

  async check(): Promise<void> {
    const places = Array.from({ length: this.derived.partitions }, (_, partition) => ({ topic: 'in', partition }))
    const committed = await this.client.committedOffsets('sim', places, true)
    if (!committed.some(({ metadata }) => decodeTag(metadata)?.stores !== undefined))
      this.violate('no commit says which stores there are')
    for (const [output, sizeMs] of Object.entries(outputs)) {
      const expected = new Map<string, number>()
      for (const { key, value, timestamp } of this.inputs) {
        const of = output === 'own' || output === 'later' ? key : output === 'group' ? this.#groupOf(value) : 'all'
        const window = `${of}@${timestamp - (timestamp % sizeMs)}`
        expected.set(window, (expected.get(window) ?? 0) + 1)
      }
      await eachToldOnce(this, output, expected)
    }
  }
}

/** Not a mistake: no time is told by a clock that jumps. */
const steady = { foldsMs: 0, clockJumps: 0, asks: 0 } as const
const plain: Mutant = { name: 'plain', world: steady }
/** Some lanes are at work while others have nothing to do. */
const busy = { partitions: 3, lanes: 3, keys: 2, records: 160, crashes: 0, pauses: 0, asyncShare: 0, brokerMs: 3 }

export const mutants: readonly Broken[] = [
  {
    name: 'clock-for-what-is-known',
    // Where no record has come for a time by the clock, none is under way.
    world: { asyncShare: 1, split: 'in-process' },
    breaks: () => {
      let now = 0
      const { timeAt } = QuietInput.prototype
      const looks = replaced(QuietInput.prototype, 'timeAt', {
        value(this: QuietInput, nowMs: number) {
          now = nowMs
          return timeAt.call(this, nowMs)
        },
      })
      const knows = replaced(LaneCounters.prototype, 'inputOf', {
        value: () => ({ knownTo: () => now, blindMs: () => 0, heldFrom: () => Number.POSITIVE_INFINITY }),
      })
      return () => {
        knows()
        looks()
      }
    },
  },
  {
    name: 'held-above-forgotten',
    // Windows of windows close although those before them in their task have not told.
    breaks: () => replaced(HeldBack.prototype, 'above', { value: () => Number.POSITIVE_INFINITY }),
  },
  {
    name: 'held-in-other-lanes-forgotten',
    world: { ...busy, split: 'in-process' },
    breaks: () => {
      const { holds } = HeldInput.prototype
      return replaced(HeldInput.prototype, 'holds', {
        value(this: HeldInput, lane: number) {
          holds.call(this, lane)
        },
      })
    },
  },
  {
    name: 'held-before-topics-forgotten',
    world: { ...busy, split: 'repartition-topics' },
    breaks: () => replaced(Upstream.prototype, 'heldBefore', { value: () => Number.POSITIVE_INFINITY }),
  },
  {
    name: 'windows-forgotten',
    // After those that were due at first nobody looks again.
    breaks: () => replaced(QuietInput.prototype, 'waitsFor', { value: () => undefined }),
  },
]

export function runSeed(seed: number, mutant?: Broken): Promise<Omit<Verdict, 'restarts'>> {
  return played(
    seed,
    new QuietWorld({ seed, mutant: { ...plain, ...mutant, world: { ...steady, ...mutant?.world } } }),
    mutant,
  )
}
