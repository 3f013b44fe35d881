/**
 * Timers of a task in which functions take their time: a record must not come to its operators before the timers that were
 * due before it, whoever holds event time back, whatever crashes.
 */
import { type Application, defineApp } from '../../src/dsl/app.ts'
import { TaskSlot } from '../../src/lanes/tasks/task-slot.ts'
import { serdes } from '../../src/serde/index.ts'
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { byKey, committed } from './checkers.ts'
import { type Broken, played, replaced } from './level-order.ts'
import type { Verdict } from './run-seed.ts'
import type { Delays } from './workload.ts'
import { type Mutant, partitionOf, World } from './world.ts'

const asSteps = { key: serdes.string, value: serdes.json<number>() }
const text = { key: serdes.string, value: serdes.string }
const patienceMs = 1000
const flushAt = 10_000_000
const flushes = 2

interface Step {
  readonly key: string
  readonly n: number
  readonly timestamp: number
}

class TimersWorld extends World {
  readonly #expected = new Map<string, string[]>()

  protected override application(delays: Delays): Application {
    const slowly = <T>(value: T): T | Promise<T> => {
      const wait = delays.next()
      return wait ? wait.then(() => value) : value
    }
    return defineApp({
      applicationId: 'sim',
      build(topology) {
        // Behind a hand-over the heads of all partitions wait for one another: event time is the same in every run.
        const steps = topology.stream('steps', asSteps).repartition(asSteps)
        steps.mapValues(slowly).to('looked-up', asSteps)
        steps
          .process<string, string>(
            (context) => ({
              process: (n, key, record) => {
                context.timers.set(key, record.timestamp + patienceMs)
                return context.forward(key, `step ${n}`)
              },
              onTimer: (key, at) => context.forward(key, `alone at ${at}`),
            }),
            { timers: true, ...text },
          )
          .to('told', text)
        steps
          .groupByKey()
          .reduce((_, n) => n)
          .suppress({ until: patienceMs })
          .toStream()
          .mapValues((n) => String(n))
          .to('settled', text)
      },
    })
  }

  protected override async feed(): Promise<void> {
    const { records, keys, partitions } = this.derived
    const { random } = this.scheduler
    await this.client.createTopics([{ topic: 'steps', partitions }])
    const byOwner: Step[][] = Array.from({ length: keys }, () => [])
    for (let n = 0; n < records - flushes * partitions; n++) {
      const k = random.int(keys)
      const own = byOwner[k] as Step[]
      // Either before its timer is due, or after. No two records have one time.
      const pause = 1 + (random.chance(0.5) ? random.int(100) : random.int(600))
      own.push({ key: `k${k}`, n, timestamp: (own.at(-1)?.timestamp ?? 1_000_000 + k) + pause * keys })
    }
    const steps = byOwner.flat()
    steps.sort((a, b) => a.timestamp - b.timestamp || a.n - b.n)
    await this.#produce(steps, partitions)
  }

  /** And what moves event time on in each partition when all has come. */
  async #produce(steps: readonly Step[], partitions: number): Promise<void> {
    const batches = []
    const all: Step[][] = []
    for (let partition = 0; partition < partitions; partition++) {
      const builder = new RecordBatchBuilder()
      const own = steps.filter(({ key }) => partitionOf(key, partitions) === partition)
      for (let i = 0; i < flushes; i++) {
        // No two of one time: which of them is dispatched first would be open.
        own.push({ key: `end-${partition}`, n: -1, timestamp: flushAt + i * partitions + partition })
      }
      for (const { key, n, timestamp } of own) {
        builder.append(timestamp, Buffer.from(key), Buffer.from(String(n)), noHeaders)
        this.inputs.push({ key, value: n, timestamp, partition })
      }
      all.push(own)
      batches.push({ topic: 'steps', partition, records: builder.finish() })
    }
    await this.client.produce({ transactionalId: null, batches })
    this.#expect(all)
  }

  /** One record after the other, as they are dispatched; timers fire before the first that finds their time reached. */
  #expect(partitions: ReadonlyArray<readonly Step[]>): void {
    const timers = new Map<string, number>()
    const held = new Map<string, { readonly until: number; n: number }>()
    for (const { step, before } of inOrderOfHeads(partitions)) {
      for (const [key, at] of timers) {
        if (at > before) continue
        this.#tell(`told ${key}`, `alone at ${at}`)
        timers.delete(key)
      }
      for (const [key, { until, n }] of held) {
        if (until > before) continue
        this.#tell(`settled ${key}`, String(n))
        held.delete(key)
      }
      const { key, n, timestamp } = step
      this.#tell(`told ${key}`, `step ${n}`)
      timers.set(key, timestamp + patienceMs)
      held.set(key, { until: held.get(key)?.until ?? timestamp + patienceMs, n })
    }
  }

  #tell(key: string, what: string): void {
    const known = this.#expected.get(key)
    if (known) known.push(what)
    else this.#expected.set(key, [what])
  }

  async check(): Promise<void> {
    for (const topic of ['told', 'settled']) {
      const found = byKey(await committed(this.cluster, topic), (record) => `${topic} ${record.key.toString()}`)
      for (const [key, expected] of [...this.#expected].filter(([key]) => key.startsWith(`${topic} `))) {
        const actual = (found.get(key) ?? []).map((record) => record.value?.toString())
        const at = expected.findIndex((each, i) => each !== actual[i])
        if (at >= 0 || actual.length !== expected.length)
          this.violate(`${key}: at ${at} expected ${expected[at]}, found ${actual[at]} of ${actual.length}`)
      }
    }
  }
}

/** Always the oldest of the records that are first in their partitions; `before`: the watermark before it. */
function* inOrderOfHeads(partitions: ReadonlyArray<readonly Step[]>): Generator<{ step: Step; before: number }> {
  const left = partitions.map((steps) => ({ steps: [...steps], watermark: Number.NEGATIVE_INFINITY }))
  let reached = Number.NEGATIVE_INFINITY
  for (;;) {
    const [first] = left
      .filter(({ steps }) => steps.length > 0)
      .toSorted((a, b) => a.steps[0]!.timestamp - b.steps[0]!.timestamp)
    const step = first?.steps[0]
    if (first === undefined || step === undefined) return
    const least = (): number =>
      Math.min(
        ...left.map((one) =>
          one === first ? one.watermark : Math.max(one.watermark, one.steps[0]?.timestamp ?? one.watermark),
        ),
      )
    reached = Math.max(reached, least())
    yield { step, before: reached }
    first.watermark = Math.max(first.watermark, step.timestamp)
    first.steps.shift()
    reached = Math.max(reached, least())
  }
}

const overtaking: Broken = {
  name: 'records-overtake-timers',
  // A timer that waits for an older record is passed by newer ones, as it was once.
  breaks: () => replaced(TaskSlot.prototype, 'holdsBack', { value: () => false }),
}

const behindItsKey: Broken = {
  name: 'parked-behind-later-ones',
  // What waited for its key, and then for a timer, goes behind all that came after it.
  breaks: () =>
    replaced(TaskSlot.prototype, 'park', {
      value(this: TaskSlot, parked: Parameters<TaskSlot['park']>[0]) {
        this.parkedOf(parked.rec.origin.epoch).push(parked)
      },
    }),
}

export const mutants: readonly Broken[] = [overtaking, behindItsKey]

export function runSeed(seed: number, mutant?: Broken): Promise<Omit<Verdict, 'restarts'>> {
  return played(seed, new TimersWorld({ seed, mutant: { ...inProcess, ...mutant } }), mutant)
}

/** Not a mistake. What is folded until the commit holds timers until then, and records pass them meanwhile: not here. */
const inProcess: Mutant = {
  name: 'in-process',
  world: { split: 'in-process', lanes: 2, partitions: 3, asyncShare: 0.5, foldsMs: 0 },
}
