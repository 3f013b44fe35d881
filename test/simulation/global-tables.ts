/**
 * A stream that meets global tables while their topics are written to, some of it in transactions that stay open for a while or
 * are aborted, by a broker that answers with a little at a time. A run that begins must have all that the topics showed when
 * it began; no row goes back to what it was, none is told that was never committed, and in the end all lanes have the newest.
 */
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { type Application, defineApp } from '../../src/dsl/app.ts'
import { Producer } from '../../src/engine/commit/producer.ts'
import { GlobalTables } from '../../src/engine/restore/global-tables.ts'
import { Restorer } from '../../src/engine/restore/restorer.ts'
import type { EngineFact } from '../../src/engine/protocol.ts'
import { serdes } from '../../src/serde/index.ts'
import { byKey, committed } from './checkers.ts'
import type { Tamper } from './faulty-broker.ts'
import { type Broken, played, replaced } from './level-order.ts'
import type { Verdict } from './run-seed.ts'
import type { Delays } from './workload.ts'
import { partitionOf, World } from './world.ts'

const rates = 3
const rateOf = (n: number): string => `r${n % rates}`
const rows = { key: serdes.string, value: serdes.json<number>() }
const writesEndMs = 3000
/** A follower that was cut off comes back within this time. */
const followedMs = 1500

/** What a partition of the topic was given, in its order. */
interface Row {
  readonly key: string
  readonly version: number | null
  readonly offset: number
  isAborted: boolean
}

/** What a process has to have: offsets up to which the topic showed itself when its run began, by partition. */
interface Life {
  floor: readonly number[]
  /** Where the next run begins. */
  next: readonly number[] | undefined
  /** Newest row that each key of the stream has met, by that key and the row's. */
  readonly met: Map<string, number>
}

class GlobalWorld extends World {
  readonly #rows: Row[][] = []
  #version = 0
  #life: Life | undefined
  #writer: Producer | undefined
  #isFollowed = false
  readonly #partsOfFetches = this.scheduler.random.chance(0.6)

  protected override application(delays: Delays): Application {
    const life: Life = { floor: this.#shown(), next: undefined, met: new Map() }
    this.#life = life
    return defineApp({
      applicationId: 'sim',
      build: (topology) => {
        const table = topology.globalTable('rates', rows)
        const fees = topology.globalTable('fees', rows)
        topology
          .stream('in', rows)
          .mapValues((n) => {
            const wait = delays.next(n)
            return wait ? wait.then(() => n) : n
          })
          .leftJoin(table, (n, version, key) => [n, this.#met(life, key, rateOf(n), version)], { on: rateOf })
          .join(fees, ([n = -1, version = null], fee) => [n, version, fee], { on: () => 'fee' })
          .to('rated-out', { value: serdes.json<Array<number | null>>() })
      },
    })
  }

  protected override tamper(): Tamper | undefined {
    const known = super.tamper()
    if (!this.#partsOfFetches) return known
    return (name, args, call, other) => {
      const asked = name === 'fetch' ? [inParts(args[0] as Fetch, this.scheduler.random.pick([1, 150, 1 << 20]))] : args
      return known ? known(name, asked, call, other) : call(asked)
    }
  }

  protected override async feed(): Promise<void> {
    const { random } = this.scheduler
    await this.client.createTopics([
      { topic: 'rates', partitions: this.#partitions },
      { topic: 'fees', partitions: 1 },
    ])
    for (let p = 0; p < this.#partitions; p++) this.#rows.push([])
    await this.client.produce({ transactionalId: null, batches: [{ topic: 'fees', ...batchOf('fee', 7) }] })
    this.#writer = new Producer(this.client, 'rates-writer', 60_000)
    await this.#writer.init()
    for (let write = random.int(8); write > 0; write--) await this.#write(false)
    for (let write = 10 + random.int(20); write > 0; write--)
      this.scheduler.at(random.next() * writesEndMs, 0, () => void this.#write(random.chance(0.3)))
    await super.feed()
  }

  get #partitions(): number {
    return 1 + (this.derived.keys % 3)
  }

  /** Up to where the topic shows what is in it. */
  #shown(): number[] {
    const all = this.#rows.map((_, partition) => ({ topic: 'rates', partition }))
    return all.length === 0 ? [] : this.cluster.listOffsets(all, 'stable').map(({ offset }) => offset)
  }

  #isOpen = false

  async #write(inTransaction: boolean): Promise<void> {
    const { random } = this.scheduler
    const key = `r${random.int(rates)}`
    const partition = partitionOf(key, this.#partitions)
    const version = random.chance(0.15) ? null : ++this.#version
    const { records } = batchOf(key, version)
    const transacts = inTransaction && !this.#isOpen
    if (!transacts) {
      const [produced] = await this.client.produce({
        transactionalId: null,
        batches: [{ topic: 'rates', partition, records }],
      })
      this.#rows[partition]?.push({ key, version, offset: produced?.baseOffset ?? -1, isAborted: false })
      return
    }
    this.#isOpen = true
    const row = { key, version, offset: -1, isAborted: random.chance(0.5) }
    const writer = this.#writer as Producer
    writer.send([{ topic: 'rates', partition, records, count: 1 }], 0, (_, offset) => {
      this.#rows[partition]?.push({ ...row, offset })
    })
    await writer.flush()
    this.scheduler.at(random.next() * 700, 0, () => {
      void writer.end(!row.isAborted).then(() => {
        this.#isOpen = false
      })
    })
  }

  protected override heard({ type }: EngineFact): void {
    const life = this.#life
    if (life === undefined) return
    if (type === 'restarting') life.next = this.#shown()
    if (type !== 'running' || life.next === undefined) return
    // The lanes have begun anew.
    life.floor = life.next
    life.next = undefined
    life.met.clear()
  }

  #met(life: Life, streamKey: string, key: string, version: number | null): number | null {
    const partition = partitionOf(key, this.#partitions)
    const all = (this.#rows[partition] ?? []).filter((row) => row.key === key && !row.isAborted)
    const floor = this.#isFollowed ? Number.POSITIVE_INFINITY : (life.floor[partition] ?? 0)
    const least = all.findLastIndex(({ offset }) => offset < floor)
    const id = `${streamKey}/${key}`
    // While a run ends and the next one begins nobody knows which of them it is.
    const from = Math.max(least, life.next === undefined ? (life.met.get(id) ?? -1) : -1)
    const at = from < 0 && version === null ? -1 : all.findIndex((row, i) => i >= from && row.version === version)
    if (at < 0 && !(from < 0 && version === null))
      this.violate(`${streamKey} meets ${key} as ${version}, and has to meet one from ${all[from]?.version} on`)
    if (life.next === undefined) life.met.set(id, at)
    return version
  }

  /** What is written is followed: from here on everybody meets the newest rows. */
  protected override async settle(): Promise<void> {
    await super.settle()
    const until = this.scheduler.now + followedMs
    await this.until(() => this.scheduler.now > until, this.mostSteps)
    this.#isFollowed = true
    for (let n = 0; n < 4 * rates; n++) this.put(`k${n % this.derived.keys}`, 2_000_000)
    await super.settle()
  }

  async check(): Promise<void> {
    const records = await committed(this.cluster, 'rated-out')
    const told = byKey(records, ({ key }) => String(key))
    for (const [key, inputs] of byKey(this.inputs, (input) => input.key)) {
      const expected = inputs.map(({ value }) => value)
      const values = (told.get(key) ?? []).map(({ value }) => JSON.parse(String(value)) as Array<number | null>)
      if (JSON.stringify(values.map(([n]) => n)) !== JSON.stringify(expected))
        this.violate(`rated-out of ${key}: expected ${expected}, found ${values.map(([n]) => n)}`)
      if (values.some(([, , fee]) => fee !== 7)) this.violate(`rated-out of ${key}: not all have met the fee`)
    }
  }
}

interface Fetch {
  readonly partitions: ReadonlyArray<{ readonly maxBytes: number }>
}

/** As a broker that has little room answers: a batch of each partition, or some. */
function inParts(fetch: Fetch, mostBytes: number): Fetch {
  const partitions = fetch.partitions.map((each) => ({ ...each, maxBytes: Math.min(each.maxBytes, mostBytes) }))
  return { ...fetch, partitions }
}

function batchOf(key: string, value: number | null): { partition: number; records: Uint8Array } {
  const builder = new RecordBatchBuilder()
  builder.append(1_000_000, Buffer.from(key), value === null ? null : Buffer.from(JSON.stringify(value)), noHeaders)
  return { partition: 0, records: builder.finish() }
}

const world = { split: 'in-process', foldsMs: 0, asks: 0, breaks: null, diskFaults: null } as const

export const mutants: readonly Broken[] = [
  {
    name: 'a-partition-is-read-once',
    breaks: () => {
      const { loadGlobal } = Restorer.prototype
      return replaced(Restorer.prototype, 'loadGlobal', {
        // What a fetch answers is taken for all there is.
        value(this: Restorer, ...args: Parameters<typeof loadGlobal>) {
          const [run, ...others] = args
          let asked = 0
          const once = Object.create(run, { isOver: { get: () => asked++ > 2 || run.isOver } }) as typeof run
          return loadGlobal.call(this, once, ...others)
        },
      })
    },
  },
  {
    name: 'tables-stay-as-they-were',
    // A reset takes them away, and nobody fills them again.
    world: { crashes: 0, lostAnswer: 0.02, lostRequest: 0.02 },
    breaks: () => {
      const { load } = GlobalTables.prototype
      const seen = new WeakSet<GlobalTables>()
      return replaced(GlobalTables.prototype, 'load', {
        value(this: GlobalTables, ...args: Parameters<typeof load>) {
          if (seen.has(this)) return Promise.resolve()
          seen.add(this)
          return load.call(this, ...args)
        },
      })
    },
  },
]

export async function runSeed(seed: number, mutant?: Broken): Promise<Omit<Verdict, 'restarts'>> {
  const all = { name: 'none', ...mutant, world: { ...world, ...mutant?.world } }
  return played(seed, new GlobalWorld({ seed, mutant: all }), mutant)
}
