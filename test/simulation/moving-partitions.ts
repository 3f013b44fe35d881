/**
 * Processes of a group that come, stop and crash, are cut off or frozen for longer than the group waits for them, so that partitions
 * move from one to the other, while records of two topics meet that are far apart in time, or out of its order. All of them come in time: each window must tell once, when it closes, all that
 * belongs to it, and so must the windows behind a topic between sub-topologies.
 */
import { keySlot } from '../../src/base/hash.ts'
import { Random } from '../../src/base/random.ts'
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { defineApp } from '../../src/dsl/app.ts'
import { tumbling } from '../../src/dsl/windows.ts'
import { Flow } from '../../src/engine/input/flow.ts'
import type { EngineFact } from '../../src/engine/protocol.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import type { WriteBehindOptions } from '../../src/lanes/stores/store-writer.ts'
import { serdes } from '../../src/serde/index.ts'
import type { CompiledTopology } from '../../src/topology/compiled.ts'
import { byKey, checkEnds, committed } from './checkers.ts'
import { DiskBackend } from './durable-backends.ts'
import type { BrokerFaults } from './faulty-broker.ts'
import { IdentityRules } from './identity-rules.ts'
import { type Broken, replaced } from './level-order.ts'
import type { SimulatedProcess } from './process.ts'
import type { Verdict } from './run-seed.ts'
import { SimulatedGroup } from './simulated-group.ts'
import type { Delays } from './workload.ts'
import { settingsFor } from './derived.ts'

const windowMs = 500
const groups = 3
const faultsEndMs = 6000
const longestTroubleMs = 5000
const mostSteps = 600_000

interface Derived {
  readonly lanes: number
  readonly partitions: number
  readonly records: number
  /** By so much one topic lies behind the other. */
  readonly behindMs: number
  readonly behind: 'first' | 'second'
  readonly messageMs: number
  readonly brokerMs: number
  readonly asyncShare: number
  readonly moves: number
  /** The group keeps the place of a process that is gone for a while. */
  readonly hasPlaces: boolean
  readonly members: number
  readonly sessionMs: number
  /** Processes say where they are to be asked, at another place with each start. */
  readonly hasAddresses: boolean
  /** Chance that a call is lost, and as much for its answer. */
  readonly lost: number
  /** Times at which a process is cut off from the broker, and at which one stands still. */
  readonly cuts: number
  readonly freezes: number
  /** When the lanes write their stores to the disk; null: these are kept in memory that outlives the process. */
  readonly disk: WriteBehindOptions | null
  /** By so much records of a partition come out of the order of their time. */
  readonly disorderMs: number
  /** Partitions are silent at times, for longer than they are waited for. */
  readonly falls?: 'silent'
}

type Trouble = Pick<Derived, 'members' | 'sessionMs' | 'hasAddresses' | 'lost' | 'cuts' | 'freezes' | 'disk'>

/** Half of the seeds. Drawn by a generator of its own: the other draws of a seed stay what they were. */
function troubleOf(seed: number): Trouble {
  if (seed % 2 === 0)
    return { members: 2, sessionMs: 10_000, hasAddresses: false, lost: 0, cuts: 0, freezes: 0, disk: null }
  const random = new Random(seed ^ 0x6e0)
  return {
    members: 2 + random.int(3),
    sessionMs: random.pick([1500, 3000, 10_000]),
    hasAddresses: random.chance(0.5),
    lost: random.pick([0, 0.003, 0.01]),
    cuts: random.int(4),
    freezes: random.int(3),
    disk: random.pick([
      null,
      { bytes: 0, intervalMs: 0, rowsPerStep: Number.POSITIVE_INFINITY },
      { bytes: 600, intervalMs: 200, rowsPerStep: 3 },
    ]),
  }
}

function derive(random: Random, seed: number): Derived {
  return {
    lanes: 1 + random.int(2),
    partitions: 2 + random.int(2),
    records: 40 + random.int(40),
    behindMs: random.pick([0, 2000, 6000]),
    behind: random.pick(['first', 'second']),
    messageMs: random.pick([0.1, 1, 10]),
    brokerMs: random.pick([0.5, 3, 10]),
    asyncShare: random.pick([0, 0.2]),
    moves: random.int(4),
    hasPlaces: random.chance(0.5),
    disorderMs: new Random(seed ^ 0xd15).pick([0, 0, 20, 300]),
    ...troubleOf(seed),
  }
}

/** What partitions that are silent at times are waited for, and what they bring at most between two of its records. */
const idlenessMs = 300
const mostBetweenMs = 100
/** By so much one that has something again may be read later than others. */
const graceMs = 200

function application(delays: Delays, disorderMs: number, grace = 0) {
  return defineApp({
    applicationId: 'sim',
    build(topology) {
      const watermark = { maxOutOfOrderness: disorderMs }
      const source = { key: serdes.string, value: serdes.json<number>(), watermark }
      const both = topology
        .stream('first', source)
        .merge(topology.stream('second', source))
        .mapValues((value) => {
          const wait = delays.next()
          return wait ? wait.then(() => value) : value
        })
      const final = { emit: 'on-close' } as const
      const fold = [() => [] as number[], (list: number[], value: number) => [...list, value]] as const
      both
        .groupByKey()
        .windowedBy(tumbling(windowMs, { grace }), final)
        .aggregate(...fold)
        .toStream()
        .map((list, { key, start }) => [`${key}@${start}`, list])
        .to('by-key', { key: serdes.string, value: serdes.json() })
      both
        .groupBy((value) => `g${value % groups}`)
        .windowedBy(tumbling(windowMs, { grace }), final)
        .aggregate(...fold)
        .toStream()
        .map((list, { key, start }) => [`${key}@${start}`, list])
        .to('by-group', { key: serdes.string, value: serdes.json() })
    },
  })
}

interface Given {
  readonly topic: string
  readonly key: string
  readonly partition: number
  readonly timestamp: number
  readonly value: number
}

const byNumber = (a: number, b: number): number => a - b

class Group extends SimulatedGroup {
  readonly derived: Derived
  readonly #rules: IdentityRules[] = []
  /** Those that were asked to stop: it takes as long as the group needs to go on without one that was killed before. */
  readonly #stopping = new Set<SimulatedProcess>()
  readonly #members: readonly number[]
  /** Processes that are cut off, by their owners. */
  readonly #cut = new Set<number>()
  readonly #expected = new Map<string, number[]>()
  readonly #owners: number[] = []
  readonly #disorder: Random
  #isQuiet = false

  constructor(seed: number, falls?: 'silent') {
    const random = new Random(seed)
    const drawn = derive(random, seed)
    const derived = falls ? { ...drawn, falls, behindMs: 0 } : drawn
    const disk = derived.disk ? (): DiskBackend => new DiskBackend() : undefined
    super(random, seed, mostSteps, { ...derived, disk })
    this.derived = derived
    this.#disorder = new Random(seed ^ 0xd15)
    this.#members = Array.from({ length: derived.members }, (_, n) => n)
  }

  async run(): Promise<void> {
    const { random } = this.scheduler
    await this.#feed()
    this.#start(0)
    for (const n of this.#members.slice(1)) this.scheduler.at(random.int(3000), 0, () => this.#start(n))
    const { moves, cuts, freezes } = this.derived
    const times = (count: number, what: (n: number) => void): void => {
      for (let i = 0; i < count; i++)
        this.scheduler.at(random.next() * faultsEndMs, 0, () => what(random.pick(this.#members)))
    }
    times(moves, (n) => this.#move(n))
    times(cuts, (n) => this.#cutOff(n))
    times(freezes, (n) => this.#freeze(n))
    await this.until(
      () => this.scheduler.now > faultsEndMs + longestTroubleMs && this.#members.every((n) => this.#stays(n)),
    )
    this.#isQuiet = true
    await this.untilIdle()
    if (this.violations.length > 0) return
    // One that was idle may have begun another commit by then: what was committed is told once that is given up.
    if (!(await this.scheduler.drive(this.#check()))) this.violations.push('nobody says what was committed')
  }

  /** What each partition is given comes in the order of its time, less what it may be out of it; one topic lies behind the other. */
  async #feed(): Promise<void> {
    const { partitions, records, behindMs, behind, falls } = this.derived
    const { random } = this.scheduler
    await this.cluster.client().createTopics(['first', 'second'].map((topic) => ({ topic, partitions })))
    const feedMs = faultsEndMs - 1000
    if (falls) this.#feedAtTimes(feedMs)
    for (let n = 0; n < (falls ? 0 : records); n++) {
      const topic = random.pick(['first', 'second'])
      const key = `k${random.int(5)}`
      const at = (feedMs / records) * n
      const timestamp = 1_000_000 + Math.floor(at) - (topic === behind ? behindMs : 0)
      this.#give(at, { topic, key, partition: keySlot(Buffer.from(key)) % partitions, timestamp, value: n })
    }
    for (const topic of ['first', 'second'])
      for (let partition = 0; partition < partitions; partition++)
        this.#produce(feedMs + 1, { topic, key: 'end', partition, timestamp: 9_000_000, value: groups * 1000 })
  }

  /** Each partition by itself: records close to one another, then none for longer than it is waited for. */
  #feedAtTimes(feedMs: number): void {
    const { random } = this.scheduler
    let value = 0
    for (const topic of ['first', 'second']) {
      for (let partition = 0; partition < this.derived.partitions; partition++) {
        let at = random.next() * 2000
        while (at < feedMs) {
          const ends = at + 100 + random.next() * 1000
          for (; at < Math.min(ends, feedMs); at += random.next() * mostBetweenMs) {
            const key = `k${partition}${random.int(2)}`
            this.#give(at, { topic, key, partition, timestamp: 1_000_000 + Math.floor(at), value: value++ })
          }
          at += 2 * idlenessMs + random.next() * 2000
        }
      }
    }
  }

  #give(at: number, given: Given): void {
    const { key, value } = given
    const timestamp = given.timestamp - this.#disorder.int(this.derived.disorderMs + 1)
    this.#produce(at, { ...given, timestamp })
    const start = timestamp - (timestamp % windowMs)
    for (const id of [`by-key ${key}@${start}`, `by-group g${value % groups}@${start}`])
      this.#expected.set(id, [...(this.#expected.get(id) ?? []), value].sort(byNumber))
  }

  #produce(at: number, { topic, key, partition, timestamp, value }: Given): void {
    this.scheduler.at(at, 0, () => {
      const builder = new RecordBatchBuilder()
      builder.append(timestamp, Buffer.from(key), Buffer.from(JSON.stringify(value)), noHeaders)
      this.cluster.wake()
      const batches = [{ topic, partition, records: builder.finish() }]
      void this.cluster.client().produce({ transactionalId: null, batches })
    })
  }

  #stays(n: number): boolean {
    const process = this.running[n]
    return process !== undefined && !this.#stopping.has(process)
  }

  /** A process goes, of itself or not, and comes again a while later. One that is about to stop may be killed at that. */
  #move(n: number): void {
    const going = this.running[n]
    if (going === undefined) return
    const { random } = this.scheduler
    const again = (): void => {
      going.kill()
      if (this.running[n] !== going) return
      this.running[n] = undefined
      this.scheduler.at(random.int(3000), 0, () => this.#start(n))
    }
    const stops = random.chance(0.6)
    if (stops && this.#stopping.has(going)) return
    this.tell(`process ${n} ${stops ? 'stops' : 'is killed'}`)
    if (!stops) again()
    else {
      this.#stopping.add(going)
      void going.engine.stop().then(() => {
        // What is still held in memory is written then.
        if (this.derived.disk && !this.#isKilled(n, going)) for (const lane of going.lanes) lane.close()
        again()
      })
    }
  }

  #isKilled(n: number, process: SimulatedProcess): boolean {
    return this.running[n] !== process
  }

  /** The group may go on without it, and it learns that only later. */
  #cutOff(n: number): void {
    const owner = this.running[n] === undefined ? undefined : this.#owners[n]
    if (owner === undefined) return
    this.tell(`process ${n} is cut off`)
    this.#cut.add(owner)
    this.scheduler.at(this.scheduler.random.next() * longestTroubleMs, 0, () => this.#cut.delete(owner))
  }

  #freeze(n: number): void {
    const owner = this.running[n] === undefined ? undefined : this.#owners[n]
    if (owner === undefined) return
    this.tell(`process ${n} stands still`)
    this.scheduler.stop(owner)
    this.scheduler.at(this.scheduler.random.next() * longestTroubleMs, 0, () => this.scheduler.cont(owner))
  }

  #start(n: number): void {
    if (this.running[n] !== undefined) return
    const owner = this.nextOwner()
    this.#owners[n] = owner
    const { scheduler, derived } = this
    const { lanes, messageMs, brokerMs, asyncShare, lost, disk } = derived
    const wait = (): Promise<void> | undefined => {
      if (!scheduler.random.chance(asyncShare)) return undefined
      return new Promise((resolve) => scheduler.at(scheduler.random.next() * 50, owner, resolve))
    }
    const topology = application({ next: wait }, derived.disorderMs, derived.falls && graceMs).compile()
    const faults = (): BrokerFaults => {
      if (this.#isQuiet) return { slowestMs: 1, lostAnswer: 0, lostRequest: 0 }
      const lostRequest = this.#cut.has(owner) ? 1 : lost
      return { slowestMs: brokerMs, lostAnswer: lost, lostRequest }
    }
    const rules = new IdentityRules((what) => this.violations.push(`process ${owner}: ${what}`))
    this.#rules[n] = rules
    this.start(n, owner, {
      topology,
      settings: this.#settings(n, owner, topology),
      ...(disk && { writeBehind: disk }),
      messageMs,
      slowLane: lanes > 1 ? 0 : -1,
      faults,
      tamper: rules.watching(),
      fact: (fact) => this.#fact(n, owner, fact),
    })
  }

  #settings(n: number, owner: number, topology: CompiledTopology): EngineSettings {
    const { derived } = this
    const { falls, sessionMs, hasAddresses, hasPlaces } = derived
    return {
      ...settingsFor({ ...derived, split: 'repartition-topics' }, topology),
      instanceId: `process-${n}`,
      ...(falls && { idlenessMs }),
      sessionTimeoutMs: sessionMs,
      heartbeatIntervalMs: Math.min(1000, sessionMs / 3),
      ...(hasAddresses && { advertisedAddress: `http://process-${n}.${owner}` }),
      groupInstanceId: hasPlaces ? `sim-process-${n}` : null,
    }
  }

  #fact(n: number, owner: number, fact: EngineFact): void {
    if (fact.type === 'restarting') {
      this.#rules[n]?.restarting()
      this.tell(`process ${n}: ${fact.cause}`)
    }
    if (fact.type === 'failed')
      this.violations.push(`process ${owner} failed: ${fact.error.code} ${fact.error.message}`)
  }

  async #check(): Promise<void> {
    const told = new Map<string, number[][]>()
    for (const topic of ['by-key', 'by-group']) {
      for (const [key, records] of byKey(await committed(this.cluster.cluster, topic), (each) => each.key.toString()))
        told.set(
          `${topic} ${key}`,
          records.map(({ value }) => (JSON.parse(String(value)) as number[]).sort(byNumber)),
        )
    }
    for (const id of new Set([...this.#expected.keys(), ...told.keys()])) {
      const [expected, found] = [this.#expected.get(id), told.get(id) ?? []]
      if (JSON.stringify(found) === JSON.stringify(expected ? [expected] : [])) continue
      this.violations.push(`${id}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`)
    }
    const { stores } = application({ next: () => undefined }, this.derived.disorderMs).compile()
    await checkEnds(this.cluster.cluster, stores.values(), (what) => this.violations.push(what))
  }
}

export const mutants: readonly Broken[] = [
  {
    name: 'partitions-go-one-by-one',
    // What is left of a task for a moment is taken for all of it.
    breaks: () => {
      const { revoke } = Flow.prototype
      return replaced(Flow.prototype, 'revoke', {
        value(this: Flow, partitions: Parameters<typeof revoke>[0]) {
          for (const each of partitions) revoke.call(this, [each])
        },
      })
    },
  },
]

export async function runSeed(
  seed: number,
  mutant?: Broken,
  falls?: 'silent',
): Promise<Omit<Verdict, 'restarts' | 'derived'> & { readonly derived: object }> {
  const group = new Group(seed, falls)
  const mend = mutant?.breaks?.()
  try {
    await group.run()
  } finally {
    mend?.()
  }
  const { violations, derived, story } = group
  return { seed, derived, violations, story: story.join('\n') }
}
