/**
 * Random programs whose sub-topologies exchange records through topics, in virtual time: windows, sessions, joins and processors
 * behind one another, everything in the input before the start, one to three processes that are killed, stores on disks that
 * are written late, commits seldom or often. What is committed in the end is what the model says, as far as that is promised
 * there, and all come to the end of the input soon: nobody waits for somebody who waits for him.
 */
import { Random } from '../../src/base/random.ts'
import { defineApp } from '../../src/dsl/app.ts'
import type { EngineFact } from '../../src/engine/protocol.ts'
import { Positions } from '../../src/engine/input/positions.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import type { WriteBehindOptions } from '../../src/lanes/stores/store-writer.ts'
import { counterLayout } from '../../src/runtime/settings.ts'
import type { CompiledTopology } from '../../src/topology/compiled.ts'
import { splitTopology } from '../../src/topology/split.ts'
import { Gates } from '../../src/time/gates.ts'
import { buildProgram } from '../reference/build.ts'
import { generate } from '../reference/generate.ts'
import type { Program } from '../reference/program.ts'
import { expectedOf } from '../reference/results.ts'
import { fill, readResults } from '../reference/run-engine.ts'
import { forTopics, topicFaults } from '../reference/through-topics.ts'
import { SimulatedCluster } from './cluster.ts'
import { settingsFor } from './derived.ts'
import { DiskBackend, DurableBackends } from './durable-backends.ts'
import { type BrokerFaults, faultyBroker } from './faulty-broker.ts'
import { IdentityRules } from './identity-rules.ts'
import { type Broken, replaced } from './level-order.ts'
import { limitsOf } from './limits.ts'
import { SimulatedProcess } from './process.ts'
import type { Verdict } from './run-seed.ts'
import { Scheduler, settleSome } from './scheduler.ts'

const faultsEndMs = 4000
/** Less than after which a gate that does not move lets go what it holds. */
const longestMs = 50_000
const mostSteps = 3_000_000

interface Derived {
  readonly records: number
  readonly lanes: number
  readonly processes: number
  readonly commitMs: number
  readonly idleCommitMs: number
  readonly messageMs: number
  readonly brokerMs: number
  readonly fetchMaxWaitMs: number
  /** Chance that a fetch is answered without a partition. */
  readonly leftOut: number
  readonly lost: number
  /** Everything is committed without anybody waiting until nothing is left to do. */
  readonly isUnasked: boolean
  /** Partitions end at different times. */
  readonly endsOpen: boolean
  readonly kills: number
  readonly slowLane: number
  /** When the lanes write their stores to the disk; null: these are kept in memory that outlives the process. */
  readonly disk: WriteBehindOptions | null
  readonly limits: Partial<EngineSettings>
}

function derive(seed: number): Derived {
  const random = new Random(seed ^ 0x70bc)
  const commitMs = random.pick([5, 20, 100, 500])
  return {
    records: random.pick([60, 150, 400]),
    lanes: 1 + random.int(3),
    processes: random.pick([1, 1, 2, 3]),
    commitMs,
    idleCommitMs: random.pick([5, commitMs]),
    messageMs: random.pick([0.1, 1, 10]),
    brokerMs: random.pick([0.5, 3, 20]),
    fetchMaxWaitMs: random.pick([20, 100, 500]),
    leftOut: random.pick([0, 0, 0.3]),
    lost: random.pick([0, 0, 0.005, 0.02]),
    isUnasked: seed % 6 === 0,
    endsOpen: seed % 6 === 3,
    kills: random.pick([0, 0, 1, 3]),
    slowLane: random.int(4) - 1,
    disk: random.pick([
      null,
      { bytes: 0, intervalMs: 0, rowsPerStep: Number.POSITIVE_INFINITY },
      { bytes: 600, intervalMs: 200, rowsPerStep: 3 },
      { bytes: 100_000, intervalMs: 3000, rowsPerStep: 1000 },
    ]),
    // Records that wait for those who write take a quarter of a megabyte a partition before one of them goes.
    limits: { ...limitsOf(seed), bufferedMaxBytes: 1 << 24, bufferedRecordsPerPartition: random.pick([20, 1000]) },
  }
}

export class ProgramWorld {
  readonly scheduler: Scheduler
  readonly derived: Derived
  readonly program: Program
  readonly violations: string[] = []
  readonly story: string[] = []
  readonly #settings: Partial<EngineSettings>
  readonly #cluster: SimulatedCluster
  readonly #running: Array<SimulatedProcess | undefined> = []
  readonly #members: readonly number[]
  readonly #stores: DurableBackends[]
  #owner = 0
  #isQuiet = false

  constructor(seed: number, settings: Partial<EngineSettings> = {}, world: Partial<Derived> = {}) {
    this.scheduler = new Scheduler(new Random(seed), settleSome)
    this.derived = { ...derive(seed), ...world }
    const { records, endsOpen } = this.derived
    this.program = { ...forTopics(generate(seed, { records })), endsOpen }
    this.#settings = settings
    this.#members = Array.from({ length: this.derived.processes }, (_, n) => n)
    const disk = this.derived.disk ? (): DiskBackend => new DiskBackend() : undefined
    this.#stores = this.#members.map(() => new DurableBackends(disk))
    this.#cluster = new SimulatedCluster(this.scheduler, seed + 1, this.program.partitions)
  }

  /** When all had come to the end of the input. */
  get now(): number {
    return this.scheduler.now
  }

  async run(): Promise<void> {
    const { random } = this.scheduler
    const { kills } = this.derived
    await fill(this.#cluster.client(), this.program)
    for (const n of this.#members) this.scheduler.at(random.pick([0, random.int(1000)]), 0, () => this.#start(n))
    for (let i = 0; i < kills; i++)
      this.scheduler.at(random.next() * faultsEndMs, 0, () => this.#kill(random.pick(this.#members)))
    if (kills > 0) await this.#until(() => this.scheduler.now > faultsEndMs, longestMs)
    await this.#until(() => this.#members.every((n) => this.#running[n] !== undefined), longestMs)
    this.#isQuiet = true
    if (this.derived.isUnasked) {
      const end = this.scheduler.now + longestMs - 10_000
      await this.#until(() => this.scheduler.now > end, longestMs)
      await this.#check('before anybody asked: ')
    }
    let idle = 0
    for (const n of this.#members) void this.#running[n]?.engine.untilIdle().then(() => idle++)
    await this.#until(() => idle === this.#members.length, longestMs)
    for (const n of this.#members) this.#running[n]?.kill()
    if (this.violations.length === 0) await this.#check()
  }

  async #until(done: () => boolean, withinMs: number): Promise<void> {
    const limit = this.scheduler.steps + mostSteps
    const end = this.scheduler.now + withinMs
    while (!done() && this.violations.length === 0) {
      if (this.scheduler.steps > limit || this.scheduler.now > end)
        this.violations.push(`not done at ${Math.round(this.scheduler.now)} ms`)
      else if (!(await this.scheduler.step())) this.violations.push('nothing is planned any more')
    }
  }

  #kill(n: number): void {
    const going = this.#running[n]
    if (going === undefined) return
    this.story.push(`${Math.round(this.scheduler.now)}: process ${n} is killed`)
    going.kill()
    this.#running[n] = undefined
    this.scheduler.at(this.scheduler.random.int(500), 0, () => this.#start(n))
  }

  #start(n: number): void {
    if (this.#running[n] !== undefined) return
    const owner = ++this.#owner
    const { scheduler, derived, program } = this
    const { lanes, messageMs, brokerMs, lost, leftOut, limits } = derived
    const wait = (ms: number): Promise<void> => new Promise((resolve) => scheduler.at(ms, owner, resolve))
    const build = (topology: Parameters<typeof buildProgram>[1]): void => buildProgram(program, topology, wait)
    const compiled = defineApp({ applicationId: 'sim', build }).compile()
    const topology: CompiledTopology = splitTopology(compiled, 'repartition-topics')
    const stores = (this.#stores[n] as DurableBackends).survivors()
    this.#stores[n] = stores
    const faults = (): BrokerFaults =>
      this.#isQuiet
        ? { slowestMs: brokerMs, lostAnswer: 0, lostRequest: 0, leftOut: () => leftOut }
        : { slowestMs: brokerMs, lostAnswer: lost, lostRequest: lost, leftOut: () => leftOut }
    const rules = new IdentityRules((what) => this.violations.push(`process ${owner}: ${what}`))
    const process = new SimulatedProcess({
      scheduler,
      owner,
      broker: faultyBroker(
        this.#cluster.cluster,
        scheduler,
        owner,
        faults,
        () => this.#cluster.wake(),
        rules.watching(),
      ),
      settings: {
        ...settingsFor({ lanes, partitions: program.partitions, split: 'repartition-topics' }, topology),
        ...limits,
        instanceId: `process-${n}`,
        groupInstanceId: `sim-process-${n}`,
        commitIntervalMs: derived.commitMs,
        commitIdleIntervalMs: derived.idleCommitMs,
        fetchMaxWaitMs: derived.fetchMaxWaitMs,
        ...this.#settings,
      },
      compile: () => topology,
      backends: () => stores.factory(),
      layout: counterLayout(topology),
      ...(derived.disk && { writeBehind: derived.disk }),
      messageMs,
      slowLane: lanes > 1 ? derived.slowLane : -1,
      tamper: {},
      fact: (fact) => this.#fact(n, owner, fact),
    })
    this.story.push(`${Math.round(scheduler.now)}: process ${n} starts`)
    this.#running[n] = process
    process.start()
  }

  #fact(n: number, owner: number, fact: EngineFact): void {
    const at = Math.round(this.scheduler.now)
    if (fact.type === 'restarting') this.story.push(`${at}: process ${n}: ${fact.cause}`)
    if (fact.type === 'failed')
      this.violations.push(`process ${owner} failed: ${fact.error.code} ${fact.error.message}`)
  }

  async #check(when = ''): Promise<void> {
    const found = readResults(this.#cluster.client(), this.program)
    if (!(await this.scheduler.drive(found.then(() => undefined)))) {
      this.violations.push('a transaction of the end stays open')
      return
    }
    const faults = topicFaults(this.program, expectedOf(this.program).results, await found)
    this.violations.push(...faults.map((fault) => `${when}${fault}`))
  }
}

export const mutants: readonly Broken[] = [
  { name: 'takes-what-comes', settings: { maxTaskIdleMs: -1 } },
  {
    name: 'gates-stay-closed',
    // What waits for those who write does not hear how far they have come.
    breaks: () => replaced(Gates.prototype, 'move', { value: () => undefined }),
  },
  {
    name: 'tells-no-end',
    // Nobody hears that a task has come to the end of its input without a record.
    breaks: () => replaced(Positions.prototype, 'owes', { value: () => undefined }),
  },
]

export async function runSeed(
  seed: number,
  mutant?: Broken,
): Promise<Omit<Verdict, 'restarts' | 'derived'> & { readonly derived: object }> {
  const world = new ProgramWorld(seed, mutant?.settings)
  const mend = mutant?.breaks?.()
  try {
    await world.run()
  } finally {
    mend?.()
  }
  const { violations, derived, story } = world
  return { seed, derived, violations, story: story.join('\n') }
}
