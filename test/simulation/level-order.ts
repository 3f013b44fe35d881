/**
 * Records that change their key and then meet a table, a table that meets itself behind a re-key, and timers behind a
 * re-key, everything in the topics before the start: results must be those of one record at a time, the oldest first,
 * whatever crashes, however slow functions and lanes are.
 */
import { RowsBehind } from '../../src/operators/defer.ts'
import type { ProcessorContext } from '../../src/dsl/process.ts'
import { keyValueStore } from '../../src/dsl/stores.ts'
import { TaskSlot } from '../../src/lanes/tasks/task-slot.ts'
import { WaitingRecords } from '../../src/lanes/tasks/waiting.ts'
import { LevelState } from '../../src/lanes/levels/level-state.ts'
import { OrderedInput } from '../../src/lanes/levels/ordered-input.ts'
import { TransferWriter } from '../../src/lanes/transfer.ts'
import { type Application, defineApp } from '../../src/dsl/app.ts'
import { serdes } from '../../src/serde/index.ts'
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import type { LaneToLane } from '../../src/lanes/protocol.ts'
import { byKey, committed } from './checkers.ts'
import { usualLimits } from './limits.ts'
import type { Verdict } from './run-seed.ts'
import type { Delays } from './workload.ts'
import { type Mutant, World } from './world.ts'

const timerMs = 45

interface Ask {
  readonly n: number
  readonly product: string
}

const asksAs = { key: serdes.string, value: serdes.json<Ask>() }
const noted = keyValueStore('noted', { key: serdes.string, value: serdes.json<number>() })
const rowsAs = { key: serdes.string, value: serdes.json<number>() }

/** Changes code for the time of a run, where a message cannot make the mistake. */
export interface Broken extends Mutant {
  readonly breaks?: () => () => void
}

class LevelWorld extends World {
  notes = 0
  readonly expected = new Map<string, Map<string, string[]>>()

  protected override get optimizes(): boolean {
    return this.derived.optimizes
  }

  protected override application(delays: Delays): Application {
    return defineApp({
      applicationId: 'sim',
      build(topology) {
        const rows = topology.table('rows', rowsAs)
        // Where nothing comes in here the watermark stays unknown, and records are in order all the same.
        topology
          .stream('silent', asksAs)
          .selectKey((ask) => ask.product)
          .leftJoin(rows, (ask) => ask.n, asksAs)
          .to('silent-out')
        const asks = topology.stream('asks', asksAs)
        const late = asks.mapValues((ask) => {
          const wait = delays.next()
          return wait ? wait.then(() => ask) : ask
        })
        const byProduct = late.selectKey((ask) => ask.product)
        // The row as it was at the time of the ask.
        byProduct.leftJoin(rows, (ask, row) => [ask.n, row ?? null], asksAs).to('priced-out')
        // Fed by its own records twice: directly, and by way of another lane and back.
        asks
          .groupByKey()
          .reduce((_, ask) => ask, { store: 'last-ask' })
          .leftJoin(asks.groupBy((ask) => `k${ask.n % 3}`, asksAs).count({ store: 'asked' }), (ask, count) => [
            ask.n,
            count === null ? null : 'counted',
          ])
          .toStream()
          .filter((pair) => pair !== null)
          .to('own-out')
        // Written at two levels, one of which feeds the other: the task cannot be parted.
        const noting = (context: ProcessorContext<string, string, Ask>) => ({
          process: (ask: Ask, key: string): void => {
            const kept = context.store(noted)
            kept.put(key, (kept.get(key) ?? 0) + 1)
            void context.forward(key, ask)
          },
        })
        const stores = { stores: [noted], ...asksAs }
        const first = topology.stream('notes', asksAs).process<string, Ask>(noting, stores)
        first.to('noted-out')
        // Heads wait for one another where their records may meet.
        first
          .selectKey((ask) => ask.product)
          .leftJoin(rows, (ask) => ask.n, asksAs)
          .to('silent-out')
        first
          .selectKey((ask) => `k${ask.n % 3}`)
          .repartition(asksAs)
          .process<string, Ask>(noting, stores)
          .to('noted-out')
        // A timer behind a re-key, which each record moves: it fires only where nothing came for a while.
        byProduct
          .repartition(asksAs)
          .process<string, number>(
            (context) => ({
              process: (_ask, key, record) => context.timers.set(key, record.timestamp + timerMs),
              onTimer: (key, at) => context.forward(key, at),
            }),
            { timers: true, key: serdes.string, value: serdes.json<number>() },
          )
          .to('quiet-out')
      },
    })
  }

  protected override async feed(): Promise<void> {
    const { records, keys, partitions } = this.derived
    const { random } = this.scheduler
    const rows = new Map<string, number>()
    const quiet = new Map<string, number>()
    const asks = new Map<string, number>()
    const counted = new Set<string>()
    const builders = new Map<string, RecordBatchBuilder>()
    await this.client.createTopics(['rows', 'asks', 'notes', 'silent'].map((topic) => ({ topic, partitions })))
    let timestamp = 1_000_000
    const isSilent = random.chance(0.4)
    const fire = (upTo: number): void => {
      if (isSilent) return
      for (const [key, at] of [...quiet].sort(([, a], [, b]) => a - b)) {
        if (at > upTo) continue
        quiet.delete(key)
        this.#expect('quiet-out', key, String(at))
      }
    }
    const put = (topic: string, key: string, partition: number, value: unknown): void => {
      const at = `${topic}:${partition}`
      const builder = builders.get(at) ?? new RecordBatchBuilder()
      builders.set(at, builder)
      builder.append(timestamp, Buffer.from(key), Buffer.from(JSON.stringify(value)), noHeaders)
    }
    for (let n = 0; n < records; n++) {
      // All of it is there from the start: the watermark has come to the record before this one when it is dispatched.
      fire(timestamp)
      timestamp += 1 + random.int(20)
      const product = `p${random.int(4)}`
      const key = `k${random.int(keys)}`
      if (random.chance(0.4)) {
        rows.set(product, n)
        put('rows', product, this.placeOf(product), n)
        this.inputs.push({ key: product, value: n, timestamp, partition: 0 })
        continue
      }
      if (random.chance(0.2)) {
        this.notes++
        put('notes', key, this.placeOf(key), { n, product })
        this.inputs.push({ key, value: n, timestamp, partition: 0 })
        continue
      }
      put('asks', key, this.placeOf(key), { n, product })
      this.inputs.push({ key, value: n, timestamp, partition: 0 })
      quiet.set(product, timestamp + timerMs)
      this.#expect('priced-out', product, JSON.stringify([n, rows.get(product) ?? null]))
      this.#ownTable(key, n, asks, counted)
    }
    // Everywhere a last record far ahead, so that all timers fire.
    timestamp += 1_000_000
    fire(timestamp)
    for (let partition = 0; partition < partitions; partition++) {
      put('rows', this.#keyIn(partition), partition, -1)
      put('asks', 'end', partition, { n: -1, product: 'end' })
      put('notes', 'end', partition, { n: -1, product: 'end' })
      this.notes++
      if (!isSilent) put('silent', 'end', partition, { n: -1, product: 'end' })
      timestamp += 1
    }
    for (const [at, builder] of builders) {
      const [topic, partition] = at.split(':') as [string, string]
      const batches = [{ topic, partition: Number(partition), records: builder.finish() }]
      await this.client.produce({ transactionalId: null, batches })
    }
  }

  #keyIn(partition: number): string {
    let n = 0
    while (this.placeOf(`end${n}`) !== partition) n++
    return `end${n}`
  }

  async check(): Promise<void> {
    for (const topic of ['priced-out', 'quiet-out', 'own-out']) await this.#sameAsExpected(topic)
    const noted = (await committed(this.cluster, 'noted-out')).length
    if (noted !== 2 * this.notes) this.violate(`noted-out: ${noted} of ${2 * this.notes}`)
  }

  /** What joins itself behind a lane tells each of its records at once, and again when its count comes back. */
  #ownTable(key: string, n: number, asks: Map<string, number>, counted: Set<string>): void {
    asks.set(key, n)
    this.#expect('own-out', key, JSON.stringify([n, counted.has(key) ? 'counted' : null]))
    const third = `k${n % 3}`
    counted.add(third)
    const last = asks.get(third)
    if (last !== undefined) this.#expect('own-out', third, JSON.stringify([last, 'counted']))
  }

  async #sameAsExpected(topic: string): Promise<void> {
    const outputs = byKey(await committed(this.cluster, topic), (record) => record.key.toString())
    for (const [key, expected] of this.expected.get(topic) ?? []) {
      const actual = (outputs.get(key) ?? []).map((record) => String(record.value))
      const at = expected.findIndex((each, i) => each !== actual[i])
      if (at >= 0 || actual.length !== expected.length)
        this.violate(`${topic} of ${key}: at ${at} expected ${expected[at]}, found ${actual[at]} of ${actual.length}`)
    }
  }

  #expect(topic: string, key: string, result: string): void {
    const keys = this.expected.get(topic) ?? new Map<string, string[]>()
    this.expected.set(topic, keys)
    keys.set(key, [...(keys.get(key) ?? []), result])
  }
}

/** Records handed from lane to lane, changed on their way. */
const handedOver = (change: (message: LaneToLane) => LaneToLane): Pick<Mutant, 'messages'> => ({
  messages: () => ({ laneToLane: (message, send) => send(change(message)) }),
})

/** A property of a class, replaced while a run lasts. */
export function replaced(target: object, name: string, descriptor: PropertyDescriptor): () => void {
  const before = Object.getOwnPropertyDescriptor(target, name) as PropertyDescriptor
  Object.defineProperty(target, name, { ...before, ...descriptor })
  return () => Object.defineProperty(target, name, before)
}

const manyLanes = { lanes: 3, partitions: 3, split: 'in-process' } as const

export const mutants: readonly Broken[] = [
  {
    name: 'one-queue-for-two-epochs',
    // Records of the epoch that is being closed wait behind those of the next one.
    world: { ...manyLanes, asyncShare: 0.3 },
    breaks: () =>
      replaced(TaskSlot.prototype, 'parkedOf', {
        value(this: TaskSlot) {
          return this.parked[0]
        },
      }),
  },
  {
    name: 'takes-what-comes',
    world: manyLanes,
    ...handedOver((message) => (message.type === 'handoff' ? { ...message, isOrdered: false } : message)),
  },
  {
    name: 'progress-ahead',
    // A lane says that it has come further than it has.
    world: manyLanes,
    ...handedOver((message) =>
      message.type === 'hand-barrier'
        ? message
        : { ...message, watermark: message.watermark + 60, seq: message.seq + 20 },
    ),
  },
  {
    name: 'disorder-taken-for-order',
    // Of records that go over one by one none is out of order.
    world: { ...manyLanes, asyncShare: 0.5, limits: usualLimits },
    ...handedOver((message) => (message.type === 'handoff' ? { ...message, isInOrder: true } : message)),
  },
  {
    name: 'waiting-records-forgotten',
    // What waits for a function holds nobody back.
    world: { ...manyLanes, asyncShare: 0.5 },
    breaks: () => replaced(WaitingRecords.prototype, 'oldestSeq', { get: () => Number.POSITIVE_INFINITY }),
  },
  {
    name: 'timers-pass-waiting-records',
    world: { ...manyLanes, asyncShare: 0.5 },
    breaks: () => replaced(WaitingRecords.prototype, 'oldestAt', { get: () => Number.POSITIVE_INFINITY }),
  },
  {
    name: 'frontier-before-what-is-left',
    // A level is called done up to what the channels say, although records of that are still to be taken.
    world: manyLanes,
    breaks: () => {
      const { drain } = OrderedInput.prototype
      const slowly = replaced(OrderedInput.prototype, 'drain', {
        value(
          this: OrderedInput,
          _budget: number,
          ...rest: Parameters<typeof drain> extends [number, ...infer R] ? R : never
        ) {
          return drain.call(this, 1, ...rest)
        },
      })
      const early = replaced(OrderedInput.prototype, 'doneUpTo', {
        get(this: OrderedInput) {
          return this.frontier
        },
      })
      return () => {
        early()
        slowly()
      }
    },
  },
  {
    name: 'reports-what-was-given',
    // Everything that a level was given counts as done.
    world: { ...manyLanes, asyncShare: 0.5 },
    breaks: () =>
      replaced(LevelState.prototype, 'report', {
        value(this: LevelState) {
          this.reported.watermark = this.watermark
          this.reported.seq = this.seq
          return true
        },
      }),
  },
  {
    name: 'timers-behind-records',
    // Records do not say which watermark came before them.
    world: manyLanes,
    breaks: () => {
      const { setLast } = TransferWriter.prototype
      return replaced(TransferWriter.prototype, 'setLast', {
        value(this: TransferWriter, watermark: number, _at: number, seq: number) {
          setLast.call(this, watermark, Number.NEGATIVE_INFINITY, seq)
        },
      })
    },
  },
  {
    name: 'rows-of-the-future',
    // A deeper stage of a task reads rows that a shallower one has changed before their turn.
    world: manyLanes,
    breaks: () => replaced(RowsBehind.prototype, 'changed', { value: () => false }),
  },
  { name: 'takes-what-is-there', world: manyLanes, settings: { maxTaskIdleMs: -1 } },
]

export async function runSeed(seed: number, mutant?: Broken): Promise<Omit<Verdict, 'restarts'>> {
  const world = new LevelWorld({
    seed,
    mutant: { ...inProcess, ...mutant, world: { ...inProcess.world, ...mutant?.world } },
  })
  return played(seed, world, mutant)
}

/** Runs a world with what is broken in it, and checks what came of it. */
export async function played(
  seed: number,
  world: World & { check(): Promise<void> },
  mutant: Broken | undefined,
): Promise<Omit<Verdict, 'restarts'>> {
  const mend = mutant?.breaks?.()
  try {
    await world.run()
    if (world.violations.length === 0) await world.check()
  } finally {
    mend?.()
  }
  const { violations, derived } = world
  return { seed, derived, violations, story: '' }
}

/** Not a mistake: in process is where lanes hand records to one another. */
const inProcess: Mutant = { name: 'in-process', world: { split: 'in-process' } }
