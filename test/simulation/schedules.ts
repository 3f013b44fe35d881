/**
 * Schedules of a task without state, behind slow functions, whose ticks are handed over and counted in windows that tell
 * their final result. Each tick that is committed must be counted in its window, and each window told once, wherever
 * barriers fall and whatever crashes. Half of the seeds have schedules in event time, half by the wall clock: these put out
 * what is of the task's event time.
 */
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { type Application, defineApp } from '../../src/dsl/app.ts'
import { tumbling } from '../../src/dsl/windows.ts'
import { TaskSlot } from '../../src/lanes/tasks/task-slot.ts'
import { Task } from '../../src/operators/task.ts'
import { serdes } from '../../src/serde/index.ts'
import { committed } from './checkers.ts'
import { type Broken, played, replaced } from './level-order.ts'
import type { Verdict } from './run-seed.ts'
import type { Delays } from './workload.ts'
import { type Mutant, partitionOf, World, type WorldOptions } from './world.ts'

const windowMs = 10
const endMs = 5_000_000
const numbers = { key: serdes.string, value: serdes.json<number>() }

class ScheduleWorld extends World {
  readonly clock: 'event-time' | 'wall-clock'

  constructor(options: WorldOptions) {
    super(options)
    this.clock = options.seed % 2 === 0 ? 'event-time' : 'wall-clock'
  }

  protected override application(delays: Delays): Application {
    const clock = this.clock
    return defineApp({
      applicationId: 'sim',
      build(topology) {
        const ticks = topology
          .stream('in', numbers)
          .mapValues((n) => {
            const wait = delays.next()
            return wait ? wait.then(() => n) : n
          })
          .process<string, number>((context) => {
            if (clock === 'event-time') context.schedule('20ms', clock, (now) => context.forward('tick', now))
            else
              context.schedule('3ms', clock, () => {
                const now = context.streamTime()
                if (now > 0) return context.forward('tick', now, { timestamp: now })
              })
            return { process: () => undefined }
          }, numbers)
        ticks.to('ticks')
        ticks
          .groupByKey()
          .windowedBy(tumbling(windowMs), { emit: 'on-close' })
          .count()
          .toStream()
          .map((count, { start }) => [String(start), count])
          .to('windows', numbers)
      },
    })
  }

  protected override async feed(): Promise<void> {
    const { records, keys, partitions } = this.derived
    const { random } = this.scheduler
    await this.client.createTopics([{ topic: 'in', partitions }])
    const builders = Array.from({ length: partitions }, () => new RecordBatchBuilder())
    let timestamp = 1_000_000
    for (let n = 0; n < records; n++) {
      timestamp += 1 + random.int(20)
      const key = `k${random.int(keys)}`
      const partition = partitionOf(key, partitions)
      builders[partition]?.append(timestamp, Buffer.from(key), Buffer.from(String(n)), noHeaders)
      this.inputs.push({ key, value: n, timestamp, partition })
    }
    for (const [partition, builder] of builders.entries()) {
      builder.append(endMs, Buffer.from('end'), Buffer.from('-1'), noHeaders)
      const batches = [{ topic: 'in', partition, records: builder.finish() }]
      await this.client.produce({ transactionalId: null, batches })
    }
  }

  async check(): Promise<void> {
    const ticks = new Map<string, number>()
    for (const { value } of await committed(this.cluster, 'ticks')) {
      const at = Number(String(value))
      const start = String(at - (at % windowMs))
      // The last windows do not close.
      if (at < endMs - 1000) ticks.set(start, (ticks.get(start) ?? 0) + 1)
    }
    if (ticks.size === 0) this.violate('no schedule has fired')
    const told = new Map<string, number[]>()
    for (const { key, value } of await committed(this.cluster, 'windows'))
      told.set(String(key), [...(told.get(String(key)) ?? []), Number(String(value))])
    for (const start of new Set([...ticks.keys(), ...told.keys()])) {
      const [count, found = []] = [ticks.get(start), told.get(start)]
      if (found.length === 1 && found[0] === count) continue
      this.violate(`window ${start}: ${count} ticks, told as ${JSON.stringify(found)}`)
    }
  }
}

const inProcess = {
  split: 'in-process',
  lanes: 2,
  partitions: 2,
  asyncShare: 0.4,
  keys: 6,
  foldsMs: 0,
  clockJumps: 0,
} as const

/** Not a mistake: these worlds are about levels. */
const plain: Mutant = { name: 'plain', world: inProcess }

export const mutants: readonly Broken[] = [
  {
    name: 'schedules-go-on-to-the-next-epoch',
    // What is due before the barrier is handed over behind it.
    world: inProcess,
    breaks: () =>
      replaced(TaskSlot.prototype, 'keepsEpochsApart', {
        get(this: TaskSlot) {
          return this.stateful
        },
      }),
  },
  {
    name: 'wall-clock-schedules-go-on-to-the-next-epoch',
    world: inProcess,
    breaks: () =>
      replaced(TaskSlot.prototype, 'keepsEpochsApart', {
        get(this: TaskSlot) {
          return this.stateful || this.task.nextWake !== Number.POSITIVE_INFINITY
        },
      }),
  },
  {
    name: 'wall-clock-schedules-fire-while-lanes-begin',
    world: { ...inProcess, crashes: 3, messageMs: 60, lanes: 3 },
    messages: () => ({
      toLane: (message, send) => {
        send(message)
        if (message.type === 'start') send({ type: 'begin', run: message.run })
      },
    }),
  },
  {
    name: 'schedules-fire-while-lanes-begin',
    world: { ...inProcess, crashes: 3 },
    breaks: () => {
      const { init } = Task.prototype
      return replaced(Task.prototype, 'init', {
        value(this: Task, watermark: number) {
          init.call(this)
          void this.advance(watermark)
        },
      })
    },
  },
]

export async function runSeed(seed: number, mutant?: Broken): Promise<Omit<Verdict, 'restarts'>> {
  return played(seed, new ScheduleWorld({ seed, mutant: mutant ?? plain }), mutant)
}
