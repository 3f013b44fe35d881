/**
 * Records that come late, so that the watermark stands while many go, behind timers and functions that take their time:
 * at the next levels all have to be in the order in which they were dispatched, whatever crashes.
 */
import { type Application, defineApp } from '../../src/dsl/app.ts'
import { LevelState } from '../../src/lanes/levels/level-state.ts'
import { serdes } from '../../src/serde/index.ts'
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { byKey, committed } from './checkers.ts'
import { type Broken, played, replaced } from './level-order.ts'
import type { Verdict } from './run-seed.ts'
import type { Delays } from './workload.ts'
import { type Mutant, partitionOf, World } from './world.ts'

const asSteps = { key: serdes.string, value: serdes.json<number>() }
const outputs = ['second-out', 'third-out'] as const

interface Step {
  readonly key: string
  readonly n: number
  readonly timestamp: number
}

class LateWorld extends World {
  readonly #expected = new Map<string, number[]>()

  protected override application(delays: Delays): Application {
    return defineApp({
      applicationId: 'sim',
      build(topology) {
        const second = topology
          .stream('steps', asSteps)
          .process<string, number>(
            (context) => ({
              process: (n, key, record) => {
                context.timers.set(key, record.timestamp + 15)
                return context.forward(key, n)
              },
              onTimer: () => delays.next(),
            }),
            { timers: true, ...asSteps },
          )
          .mapValues((n) => {
            const wait = delays.next()
            return wait ? wait.then(() => n) : n
          })
          .selectKey((n) => `s${n % 2}`)
          .repartition(asSteps)
        second.to('second-out', asSteps)
        second
          .selectKey(() => 'all')
          .repartition(asSteps)
          .to('third-out', asSteps)
      },
    })
  }

  protected override async feed(): Promise<void> {
    const { records, keys, partitions } = this.derived
    const { random } = this.scheduler
    await this.client.createTopics([{ topic: 'steps', partitions }])
    const steps: Step[][] = Array.from({ length: partitions }, () => [])
    for (let n = 0; n < records; n++) {
      const key = `k${random.int(keys)}`
      const partition = partitionOf(key, partitions)
      const timestamp = 1_000_000 + n * 10
      const own = steps[partition] as Step[]
      // In front of it some of those that came just before it: these are late.
      own.splice(own.length - Math.min(own.length, random.chance(0.4) ? random.int(4) : 0), 0, { key, n, timestamp })
      this.inputs.push({ key, value: n, timestamp, partition })
    }
    for (const [partition, own] of steps.entries()) {
      if (own.length === 0) continue
      const builder = new RecordBatchBuilder()
      for (const { key, n, timestamp } of own)
        builder.append(timestamp, Buffer.from(key), Buffer.from(String(n)), noHeaders)
      const batches = [{ topic: 'steps', partition, records: builder.finish() }]
      await this.client.produce({ transactionalId: null, batches })
    }
    for (const n of inOrderOfHeads(steps)) {
      this.#expect(`second-out s${n % 2}`, n)
      this.#expect('third-out all', n)
    }
  }

  async check(): Promise<void> {
    for (const topic of outputs) {
      const found = byKey(await committed(this.cluster, topic), (record) => `${topic} ${record.key.toString()}`)
      for (const [key, expected] of [...this.#expected].filter(([key]) => key.startsWith(topic))) {
        const actual = (found.get(key) ?? []).map((record) => Number(record.value))
        const at = expected.findIndex((each, i) => each !== actual[i])
        if (at >= 0 || actual.length !== expected.length)
          this.violate(`${key}: at ${at} expected ${expected[at]}, found ${actual[at]} of ${actual.length}`)
      }
    }
  }

  #expect(key: string, n: number): void {
    const known = this.#expected.get(key)
    if (known) known.push(n)
    else this.#expected.set(key, [n])
  }
}

/** Always the oldest of the records that are first in their partitions. */
function inOrderOfHeads(partitions: ReadonlyArray<readonly Step[]>): number[] {
  const left = partitions.map((steps) => [...steps])
  const order: number[] = []
  for (;;) {
    const [first] = left.filter((steps) => steps.length > 0).toSorted(([a], [b]) => a!.timestamp - b!.timestamp)
    const step = first?.shift()
    if (step === undefined) return order
    order.push(step.n)
  }
}

const apart: Broken = {
  name: 'number-apart-from-its-watermark',
  // How many records are done, and up to which time, are told as if each stood for itself.
  breaks: () =>
    replaced(LevelState.prototype, 'report', {
      value(this: LevelState, watermark: number, seq: number) {
        const { reported } = this
        const rose = watermark > reported.watermark || seq > reported.seq
        reported.watermark = Math.max(reported.watermark, watermark)
        reported.seq = Math.max(reported.seq, seq)
        return rose
      },
    }),
}

export const mutants: readonly Broken[] = [apart]

export function runSeed(seed: number, mutant?: Broken): Promise<Omit<Verdict, 'restarts'>> {
  return played(seed, new LateWorld({ seed, mutant: { ...inProcess, ...mutant } }), mutant)
}

/** Not a mistake: in process is where lanes hand records to one another. */
const inProcess: Mutant = {
  name: 'in-process',
  world: { split: 'in-process', lanes: 3, partitions: 3, asyncShare: 0.5 },
}
