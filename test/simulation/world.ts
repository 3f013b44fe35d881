/**
 * A whole run under a seed: the real engine, lanes, commit machine and embedded broker, with crashes, lost messages,
 * slow lanes and clock jumps, and at the end a quiet time in which everything must come right.
 */
import { Random } from '../../src/base/random.ts'
import type { EmbeddedCluster } from '../../src/broker/embedded/core/cluster.ts'
import type { TopicPartition } from '../../src/base/ids.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import type { Application } from '../../src/dsl/app.ts'
import type { EngineFact, EngineSnapshot } from '../../src/engine/protocol.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import type { WireError } from '../../src/base/errors.ts'
import type { ErrorPolicies } from '../../src/lanes/tasks/error-policy.ts'
import type { Checkpoint } from '../../src/state/contract.ts'
import { type Frontier, isAhead } from '../../src/lanes/levels/place.ts'
import { keySlot } from '../../src/base/hash.ts'
import { dropReasons, dropSlot } from '../../src/base/counters.ts'
import { counterLayout } from '../../src/runtime/settings.ts'
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { Asks } from './asks.ts'
import { SimulatedCluster } from './cluster.ts'
import { type Derived, derive, settingsFor } from './derived.ts'
import { DiskBackend, type DiskTamper, DurableBackends } from './durable-backends.ts'
import { FailingDisk } from './failing-disk.ts'
import { type BrokerFaults, faultyBroker, type Tamper } from './faulty-broker.ts'
import { type MessageTamper, SimulatedProcess } from './process.ts'
import { CommitsGivenUp } from './given-up.ts'
import type { Leaders } from './flights.ts'
import { type FeedHost, OrderedFeed } from './ordered-feed.ts'
import { IdentityRules } from './identity-rules.ts'
import { Scheduler, settleSome } from './scheduler.ts'
import { application, type Delays, type Input } from './workload.ts'

export interface WorldOptions {
  readonly seed: number
  /** A change to the protocol that the checkers must notice. */
  readonly mutant?: Mutant
}

/** Made anew for every simulated process. */
export interface Mutant {
  readonly name: string
  readonly messages?: () => MessageTamper
  readonly broker?: () => Tamper
  readonly disk?: DiskTamper
  /** What a lane tells of itself in shared memory, after each of its turns. */
  readonly counters?: (block: Float64Array) => void
  readonly settings?: Partial<EngineSettings>
  /** A mistake in the operators themselves; gives what undoes it. */
  readonly patch?: () => () => void
  /** What its runs have more or less of than others, so that what it takes for the mistake to show comes together. */
  readonly world?: Partial<Derived>
}

/** What a crash left of a store on the disk. */
export interface Remains {
  readonly id: string
  readonly backend: DiskBackend
}

export class World {
  readonly scheduler: Scheduler
  readonly #broker: SimulatedCluster
  readonly derived: Derived
  readonly inputs: Input[] = []
  stores: DurableBackends
  readonly remains: Remains[] = []
  readonly facts: EngineFact[] = []
  readonly violations: string[] = []
  #mutant: Mutant | undefined
  #process: SimulatedProcess | undefined
  #zombie: SimulatedProcess | undefined
  readonly #asks: Asks
  #givenUp: CommitsGivenUp | undefined
  #rules: IdentityRules | undefined
  #owner = 0
  #quiet = false
  #cuts = 2
  #restarting = false
  #lastGlobal = Number.NEGATIVE_INFINITY

  constructor({ seed, mutant }: WorldOptions) {
    const random = new Random(seed)
    this.scheduler = new Scheduler(random, settleSome)
    this.#mutant = mutant
    this.derived = { ...derive(seed, random), ...mutant?.world }
    const disk = (): DiskBackend => new DiskBackend(mutant?.disk, (checkpoint) => this.#written(checkpoint))
    const { diskFaults } = this.derived
    const failing = diskFaults && new FailingDisk(diskFaults, this.scheduler)
    this.stores = new DurableBackends(this.derived.disk ? disk : undefined, failing)
    this.#broker = new SimulatedCluster(this.scheduler, seed + 1, this.derived.partitions)
    this.#asks = new Asks({
      scheduler: this.scheduler,
      inputs: this.inputs,
      process: () => this.#process,
      committed: async () => new Map((await this.#committed()).map(({ partition, offset }) => [partition, offset])),
      startAgain: () => this.start(),
      violate: (what) => this.violate(what),
    })
  }

  get cluster(): EmbeddedCluster {
    return this.#broker.cluster
  }

  /** Runs to the end; the violations found on the way and at the end. */
  async run(): Promise<string[]> {
    await this.feed()
    this.start()
    this.#planFaults()
    const fed = (): boolean => this.inputs.length === this.derived.records
    const isOver = (): boolean => this.scheduler.now > faultsEndMs + longestZombieMs && !this.#asks.isStopping
    await this.until(() => fed() && isOver(), this.mostSteps)
    this.#quiet = true
    this.stores.isSound = true
    await this.settle()
    await this.until(() => this.#asks.areAnswered, this.mostSteps)
    this.#asks.end()
    this.end()
    return this.violations
  }

  /** The process is through, and what it has done is judged: nothing may be added to it meanwhile. */
  protected end(): void {
    // What is still held in memory is written, as a process does that is stopped.
    if (this.violations.length === 0 && this.derived.disk) for (const lane of this.#process?.lanes ?? []) lane.close()
    this.#process?.kill()
  }

  get failures(): EngineFact[] {
    return this.facts.filter((fact) => fact.type === 'failed' || fact.type === 'lane-stuck')
  }

  violate(what: string): void {
    if (this.violations.length < 5) this.violations.push(what)
  }

  protected async until(done: () => boolean, mostSteps: number): Promise<void> {
    const limit = this.scheduler.steps + mostSteps
    while (!done() && this.violations.length === 0) {
      if (this.scheduler.steps > limit) {
        this.violate(`no progress: not done after ${mostSteps} steps, at ${Math.round(this.scheduler.now)} ms`)
        return
      }
      if (!(await this.scheduler.step())) {
        this.violate('nothing is planned any more, and the run is not done')
        return
      }
      this.#checkQueues()
    }
  }

  /** Faults have stopped: everything fed must come out, within bounds. */
  protected async settle(): Promise<void> {
    if (this.violations.length > 0) return
    await this.#committedUnasked()
    let idle = false
    const process = this.#process
    void process?.engine.untilIdle().then(() => {
      idle = true
    })
    await this.until(() => idle || this.#process !== process, this.mostSteps)
    if (!idle) await this.settle()
  }

  /** By its own pace: whoever waits until nothing is left to do asks for a commit. */
  async #committedUnasked(): Promise<void> {
    let committed = false
    const look = async (): Promise<void> => {
      committed = await this.#isCommitted()
      if (!committed) this.scheduler.at(lookEveryMs, 0, () => void look())
    }
    void look()
    await this.until(() => committed, this.mostSteps)
  }

  async #isCommitted(): Promise<boolean> {
    const ends = await this.client.listOffsets(this.#inputPartitions, 'latest')
    const committed = await this.#committed()
    return committed.every(({ offset }, i) => offset === (ends[i]?.offset ?? 0))
  }

  get #inputPartitions(): TopicPartition[] {
    const count = this.cluster.topics([inputTopic])[0]?.partitions ?? 0
    return Array.from({ length: count }, (_, partition) => ({ topic: inputTopic, partition }))
  }

  async #committed(): Promise<Array<TopicPartition & { readonly offset: number }>> {
    const committed = await this.client.committedOffsets('sim', this.#inputPartitions, true)
    return committed.map(({ topic, partition, offset }) => ({ topic, partition, offset: Math.max(0, offset) }))
  }

  /** A connection without faults. */
  protected get client(): BrokerPort {
    return this.#broker.client()
  }

  /** Topics of tables serve as changelogs. */
  protected get optimizes(): boolean {
    return false
  }

  /** In which partition a key lies. A topic that serves as changelog has it where Kafka's own partitioner puts it. */
  protected placeOf(key: string): number {
    const { partitions } = this.derived
    return this.optimizes ? keySlot(Buffer.from(key)) % partitions : partitionOf(key, partitions)
  }

  protected application(delays: Delays): Application {
    return application(delays, this.derived.foldsMs > 0)
  }

  /** How long a call of the asynchronous function takes; undefined: it answers at once. */
  protected delay(owner: number): Promise<void> | undefined {
    const { random } = this.scheduler
    if (!random.chance(this.derived.asyncShare)) return undefined
    return new Promise((resolve) => {
      this.scheduler.at(random.next() * 50, owner, resolve)
    })
  }

  /** A run that is not done after so many events does not come further. */
  protected get mostSteps(): number {
    return 400_000
  }

  /** The newest process has failed, and it was to. */
  protected isRefused(_error: WireError): boolean {
    return false
  }

  /** What the newest process tells, and the process. */
  protected heard(_fact: EngineFact, _process: SimulatedProcess): void {
    // Worlds that answer it do so in their own way.
  }

  /** The engine of the newest process shows itself. */
  protected shown(_snapshot: EngineSnapshot): void {
    // Worlds that look at it do so in their own way.
  }

  protected settings(): Partial<EngineSettings> {
    const { foldsMs } = this.derived
    return foldsMs > 0 ? { commitIntervalMs: foldsMs, commitIdleIntervalMs: foldsMs } : {}
  }

  /** What becomes of records that fail, where not everything is to fail with them. */
  protected policies(): Partial<ErrorPolicies> {
    return {}
  }

  /** What the broker makes of a call, beside losing it. */
  protected tamper(): Tamper | undefined {
    return this.#mutant?.broker?.()
  }

  /** What it writes is the input. */
  protected orderedFeed(pauses: Pick<FeedHost, 'longestPauseMs' | 'firstPauseMs'> = {}): OrderedFeed {
    const { scheduler, client, inputs } = this
    return new OrderedFeed({
      ...pauses,
      client,
      random: scheduler.random,
      after: (ms, call) => scheduler.at(ms, 0, call),
      written: ({ key, timestamp, partition }) => inputs.push({ key, value: inputs.length, timestamp, partition }),
    })
  }

  /** Plans what comes in, or brings it at once. */
  protected async feed(): Promise<void> {
    const { records, keys, asks } = this.derived
    const { random } = this.scheduler
    let at = 0
    let time = 1_000_000
    if (asks > 0) this.#asks.plan(asks, faultsEndMs)
    for (let i = 0; i < records; i++) {
      at += random.next() * (feedMs / records) * 2
      time += random.int(40)
      const key = `k${random.int(keys)}`
      const timestamp = time - random.int(90)
      this.scheduler.at(at, 0, () => this.put(key, timestamp))
    }
  }

  protected put(key: string, timestamp: number): void {
    const value = this.inputs.length
    const partition = partitionOf(key, this.derived.partitions)
    this.inputs.push({ key, value, timestamp, partition })
    const builder = new RecordBatchBuilder()
    builder.append(timestamp, Buffer.from(key), Buffer.from(JSON.stringify(value)), noHeaders)
    this.#broker.wake()
    const batches = [{ topic: inputTopic, partition, records: builder.finish() }]
    void this.client.produce({ transactionalId: null, batches })
  }

  #planFaults(): void {
    const { random } = this.scheduler
    const { crashes, pauses, clockJumps } = this.derived
    for (let i = 0; i < crashes; i++) {
      this.scheduler.at(random.next() * faultsEndMs, 0, () => this.crash())
    }
    for (let i = 0; !this.#asks.isAsked && i < pauses; i++) {
      this.scheduler.at(random.next() * faultsEndMs, 0, () => {
        this.#process?.engine.pause(i + 1)
        this.scheduler.at(random.next() * 300, 0, () => this.#process?.engine.unpause())
      })
    }
    for (let i = 0; i < clockJumps; i++) {
      this.scheduler.at(random.next() * faultsEndMs, 0, () =>
        this.scheduler.clock.jump(random.int(7_200_000) - 3_600_000),
      )
    }
  }

  /** Some crashes come between two steps of writing a store, where chance alone would seldom put one. */
  #written(checkpoint: Checkpoint | undefined): void {
    if (checkpoint?.ahead === undefined || this.#cuts === 0 || this.scheduler.now > faultsEndMs) return
    this.#cuts--
    this.scheduler.at(0, 0, () => this.crash())
  }

  /** What comes again may be late: its windows have told of it, and are closed. */
  protected get repeats(): boolean {
    return false
  }

  /** Things may still go wrong. */
  protected get isFaulty(): boolean {
    return !this.#quiet && this.scheduler.now < faultsEndMs
  }

  protected crash(): void {
    const dying = this.#process
    if (this.scheduler.random.chance(this.derived.zombies)) {
      this.#zombie = dying
      // Stopped and woken, or cut off: it does not know that it has a successor.
      this.scheduler.at(this.scheduler.random.next() * longestZombieMs, 0, () => dying?.kill())
    } else {
      dying?.kill()
    }
    if (this.derived.losesStores && this.scheduler.random.chance(0.3)) this.stores.lose()
    this.scheduler.at(this.scheduler.random.next() * 200, 0, () => this.start())
  }

  protected start(): void {
    // Two crashes in a row: what the first brought up is still there.
    if (this.#process !== this.#zombie) this.#process?.kill()
    const stores = this.stores.survivors()
    this.stores = stores
    for (const [id, backend] of stores.entries()) {
      if (backend instanceof DiskBackend) this.remains.push({ id, backend: backend.copy() })
    }
    const owner = ++this.#owner
    const { lanes, messageMs, slowLane } = this.derived
    const next = (value?: number): Promise<void> | undefined => {
      if (value !== undefined && owner === this.#owner) this.#asks.saw(value)
      return this.delay(owner)
    }
    const delays = { next }
    // One for all lanes of a process: they are on one thread, and compiling takes as long as a hundred events.
    const emit = this.derived.foldsMs > 0 ? 'per-commit' : 'on-update'
    const topology = this.application(delays).compile({ emit, optimize: this.optimizes })
    const usual = { ...settingsFor(this.derived, topology), ...this.derived.limits }
    const settings = { ...usual, ...this.settings(), ...this.#mutant?.settings }
    this.#lastGlobal = Number.NEGATIVE_INFINITY
    this.#restarting = false
    const violate = (what: string): void => this.violate(what)
    const givenUp = new CommitsGivenUp(() => this.client, violate)
    const rules = new IdentityRules(violate)
    this.#rules = rules
    this.#givenUp = givenUp
    this.#process = new SimulatedProcess({
      scheduler: this.scheduler,
      owner,
      broker: faultyBroker(
        this.cluster,
        this.scheduler,
        owner,
        () => this.#faults(),
        () => this.#broker.wake(),
        rules.watching(givenUp.watching(this.tamper())),
      ),
      passed: (step) => {
        if (step === 'S5') givenUp.applied()
      },
      settings,
      compile: () => topology,
      backends: () => stores.factory(),
      layout: counterLayout(topology),
      ...(this.derived.disk && { writeBehind: this.derived.disk }),
      messageMs,
      slowLane: lanes > 1 ? slowLane : -1,
      policies: this.policies(),
      tamper: this.#watched(this.#mutant?.messages?.() ?? {}),
      ...(this.#mutant?.counters && { tamperCounters: this.#mutant.counters }),
      fact: (fact) => this.#fact(owner, fact),
    })
    this.#asks.begun()
    this.#process.start()
  }

  /** A lane that has come no further tells nobody that it has: each such message is a turn of the lane that it goes to. */
  #watched(tamper: MessageTamper): MessageTamper {
    const told = new Map<string, Frontier>()
    const { laneToLane } = tamper
    return {
      ...tamper,
      laneToLane: (message, send, to) => {
        if (message.type === 'hand-watermark') {
          const { run, from, level, watermark, seq } = message
          const channel = `run ${run}, level ${level}: lane ${from} to lane ${to}`
          const before = told.get(channel)
          if (before !== undefined && !isAhead(watermark, seq, before))
            this.violate(`${channel} is told again that ${seq} at ${watermark} is done`)
          told.set(channel, { watermark, seq })
        }
        if (laneToLane) laneToLane(message, send, to)
        else send(message)
      },
    }
  }

  #fact(owner: number, fact: EngineFact): void {
    // A zombie finds out that it was fenced, in one way or another. One that was cut off in its start fences the newest.
    if (owner !== this.#owner) {
      if (fact.type === 'restoring' || fact.type === 'running') this.#asks.overtaken()
      return
    }
    if (fact.type === 'snapshot') {
      // Between two runs the last one's watermark is shown, from which the next one goes back to its last commit.
      if (!this.#restarting) this.#checkWatermark(fact.snapshot.watermarks?.globalMs ?? null)
      this.shown(fact.snapshot)
      return
    }
    this.facts.push(fact)
    this.#asks.told(fact)
    if (this.#process) this.heard(fact, this.#process)
    if (fact.type === 'restarting') {
      this.#lastGlobal = Number.NEGATIVE_INFINITY
      this.#rules?.restarting()
      if (this.derived.split === 'in-process') void this.#givenUp?.restarting()
    }
    if (fact.type === 'restarting' || fact.type === 'running') this.#restarting = fact.type === 'restarting'
    if (fact.type === 'failed') {
      // A process that has used up its restarts is started again, as its supervisor would.
      const fencedByZombie = fact.error.code === 'FENCED' && this.derived.zombies > 0
      if (fact.error.code === 'RESTARTS_EXHAUSTED' || fencedByZombie) {
        this.#process?.kill()
        this.scheduler.at(10, 0, () => this.start())
      } else if (!this.isRefused(fact.error)) {
        this.violate(`process ${owner} failed: ${fact.error.code} ${fact.error.message}\n${fact.error.stack ?? ''}`)
      }
    }
    if (fact.type === 'lane-stuck') this.violate(`lane ${fact.lane} of process ${owner} did not reset`)
  }

  #faults(): BrokerFaults {
    const { brokerMs, lostAnswer, lostRequest, breaks } = this.derived
    return this.#quiet
      ? { slowestMs: 1, lostAnswer: 0, lostRequest: 0 }
      : {
          slowestMs: brokerMs,
          lostAnswer,
          lostRequest,
          breaks: breaks ?? undefined,
          leftOut: (topic) => this.leftOut(topic),
          readsAtOnce: this.readsAtOnce,
          leaders: this.leaders,
        }
  }

  /** Several brokers that are asked for themselves; undefined: one. */
  protected get leaders(): Leaders | undefined {
    return undefined
  }

  /** Chance that a fetch reads all partitions at one moment. */
  protected get readsAtOnce(): number {
    return 0.7
  }

  /** Chance that a fetch is answered without a partition of this topic. */
  protected leftOut(topic: string): number {
    return topic === inputTopic ? 0 : this.derived.lateBoundaries
  }

  /** Null while it is undecided: a partition of which nothing was dispatched yet has the next record. */
  #checkWatermark(globalMs: number | null): void {
    if (globalMs === null) return
    if (globalMs < this.#lastGlobal)
      this.violate(`the watermark fell from ${this.#lastGlobal} to ${globalMs} without a restart`)
    this.#lastGlobal = Math.max(this.#lastGlobal, globalMs)
  }

  /** All of the input comes in time, and so does what is told late. */
  #checkLateness(process: SimulatedProcess): void {
    const { layout } = process
    for (const block of process.laneCounters) {
      for (let subtopology = 0; subtopology < layout.subtopologies; subtopology++) {
        const late = block[dropSlot(layout, subtopology, dropReasons.indexOf('late'))] as number
        if (late > 0 && !this.repeats)
          this.violate(`${late} records of sub-topology ${subtopology} are late, though all come in time`)
      }
    }
  }

  #checkQueues(): void {
    if (this.#process !== undefined) this.#checkLateness(this.#process)
    for (const lane of this.#process?.lanes ?? []) {
      const { inFlight, parked } = lane.backlog
      if (inFlight > 8 + 300 || parked > 8 * 16 + 300)
        this.violate(`a lane's queue is out of bounds: ${inFlight} in flight, ${parked} parked`)
    }
  }
}

const inputTopic = 'in'
const feedMs = 2000
const faultsEndMs = 3000
const lookEveryMs = 20
/** Longer than the time until a crashed process is started again: at the end there is one process, and nothing to come. */
const longestZombieMs = 600

export function partitionOf(key: string, partitions: number): number {
  let sum = 0
  for (const c of key) sum = (sum * 31 + c.charCodeAt(0)) >>> 0
  return sum % partitions
}
