/**
 * Windows that close in quiet over windows over windows: the first of them wait for long, those behind them next to not at
 * all. And windows that lie behind a change of key in the sub-topology of the first ones, which so feeds itself, as it does
 * by a way that leads to no windows. With commits that are far apart, and crashes in the silence in which all of them
 * close. Each window has to tell all of its records, once.
 */
import { Random } from '../../src/base/random.ts'
import { type Application, defineApp } from '../../src/dsl/app.ts'
import type { Stream } from '../../src/dsl/stream.ts'
import { tumbling } from '../../src/dsl/windows.ts'
import { Upstream } from '../../src/engine/input/repartition/upstream.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import { serdes, type Windowed } from '../../src/serde/index.ts'
import { type Broken, played, replaced } from './level-order.ts'
import { eachToldOnce } from './quiet-windows.ts'
import type { Verdict } from './run-seed.ts'
import { type Mutant, World, type WorldOptions } from './world.ts'

const numbers = { key: serdes.string, value: serdes.json<number>() }
const firstTimestamp = 1_000_000
const stepMs = 8
const [soon, late] = [50, 12_000]
const lastWindowMs = 2000
/** In which all windows close: what the first ones wait for, and looks behind that, five seconds apart at each level. */
const silenceMs = 60_000
const crashesEndMs = 20_000

const sum = (a: number, b: number): number => a + b
const named = (of: Stream<Windowed<string>, number>): Stream<string, number> => of.map((count, { key }) => [key, count])

class LevelsWorld extends World {
  readonly #commitMs: number | undefined
  readonly #crashesAt: readonly number[]

  constructor(options: WorldOptions) {
    super(options)
    const random = new Random(options.seed ^ 0x51)
    this.#commitMs = random.pick([undefined, 100, 1000])
    const crashes = this.derived.crashes > 0 ? random.int(3) : 0
    this.#crashesAt = Array.from({ length: crashes }, () => random.next() * crashesEndMs)
  }

  protected override application(): Application {
    return defineApp({
      applicationId: 'sim',
      build(topology) {
        const quietly = (sizeMs: number, idleMs: number) => tumbling(sizeMs, { closeAfterIdle: idleMs })
        const input = topology.stream('in', numbers)
        const first = (store: string) =>
          named(input.groupByKey().windowedBy(quietly(100, late), { emit: 'on-close' }).count({ store }).toStream())
        const told = (counts: Stream<string, number>, store: string): void => {
          counts
            .groupByKey(numbers)
            .windowedBy(quietly(lastWindowMs, soon), { emit: 'on-close' })
            .reduce(sum, { store })
            .toStream()
            .map((count, { key, start }) => [`${key}@${start}`, count])
            .to(store, numbers)
        }
        const second = first('first')
          .map((count, key) => [key, count])
          .groupByKey(numbers)
          .windowedBy(quietly(100, soon), { emit: 'on-close' })
          .reduce(sum, { store: 'second' })
          .toStream()
        told(
          named(second).map((count, key) => [key, count]),
          'deep',
        )
        told(input.filter(() => false).merge(first('own').repartition(numbers)), 'self')
        const beside = input.map((n, key) => [`beside ${key}`, n])
        input
          .filter(() => false)
          .merge(beside.repartition(numbers))
          .to('beside', numbers)
      },
    })
  }

  protected override settings(): Partial<EngineSettings> {
    const every = this.#commitMs
    return every === undefined ? super.settings() : { commitIntervalMs: every, commitIdleIntervalMs: every }
  }

  protected override get mostSteps(): number {
    return 3_000_000
  }

  protected override async feed(): Promise<void> {
    const { records, keys, partitions } = this.derived
    await this.client.createTopics([{ topic: 'in', partitions }])
    for (let i = 1; i <= records; i++) {
      const key = `k${this.scheduler.random.int(keys)}`
      this.scheduler.at(i * stepMs, 0, () => this.put(key, firstTimestamp + i * stepMs))
    }
    for (const at of this.#crashesAt) this.scheduler.at(at, 0, () => this.crash())
  }

  protected override async settle(): Promise<void> {
    await super.settle()
    await this.until(() => this.scheduler.now > silenceMs, this.mostSteps)
  }

  async check(): Promise<void> {
    const expected = new Map<string, number>()
    for (const { key, timestamp } of this.inputs) {
      const window = `${key}@${timestamp - (timestamp % lastWindowMs)}`
      expected.set(window, (expected.get(window) ?? 0) + 1)
    }
    for (const output of ['deep', 'self']) await eachToldOnce(this, output, expected)
  }
}

/** Not a mistake: no time is told by a clock that jumps, and there is enough for each window. */
const steady = { foldsMs: 0, clockJumps: 0, asks: 0, asyncShare: 0, records: 120, keys: 5, partitions: 3, lanes: 2 }
const plain: Mutant = { name: 'plain', world: steady }

export const mutants: readonly Broken[] = [
  {
    name: 'last-round-alone',
    // What was let go since the round before lies in a topic, and is held by nobody.
    world: { split: 'repartition-topics', crashes: 0, pauses: 0, brokerMs: 3 },
    settings: { commitIntervalMs: 1000, commitIdleIntervalMs: 1000 },
    breaks: () => replaced(Upstream.prototype, 'roundsHeld', { get: () => 1 }),
  },
]

export function runSeed(seed: number, mutant?: Broken): Promise<Omit<Verdict, 'restarts'>> {
  return played(
    seed,
    new LevelsWorld({ seed, mutant: { ...plain, ...mutant, world: { ...steady, ...mutant?.world } } }),
    mutant,
  )
}
