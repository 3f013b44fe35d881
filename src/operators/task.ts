/** All operators of one sub-topology at work for one partition. */
import type { LogPort } from '../base/logger.ts'
import { assert } from '../base/assert.ts'
import { smallest } from '../base/smallest.ts'
import type { AnyStore, StoreSpec } from '../state/contract.ts'
import type { CompiledNode, CompiledSource, CompiledTopology } from '../topology/compiled.ts'
import { type Deferral, type Stage, stagesOf } from '../topology/levels/stages.ts'
import { knownSerdes } from '../topology/serdes/known-serdes.ts'
import { timersMet } from '../topology/levels/timers-met.ts'
import type { Headers } from '../broker/wire/headers.ts'
import type { CallGate, DropReason, Maybe, Operator, Origin, Rec, TaskContext, Tracing } from './contract.ts'
import { createOperator, type TaskParts } from './create.ts'
import { decodeBytes } from './decode.ts'
import { DeferOperator, type RowsBehind, RowsReached, sharedRows } from './defer.ts'
import { type Emission, Emissions, type Telling } from './emission.ts'
import { type HeldBack, heldBackOf, toldTo } from './quiet/held-back.ts'
import { type Arrivals, type HostInput, inputOf } from './quiet/input-knowledge.ts'
import { type OperatorEnv, type Probe, processingFailed, toldOrigin } from './node-operator.ts'

/** What a task asks of the lane it runs in. */
export interface TaskHost extends Pick<TaskContext, 'returned' | 'called'> {
  readonly emit: TaskContext['emit']
  readonly handOff: TaskContext['handOff']
  /** Passes a record on to a deeper stage of the same task, when all before it has come there. */
  defer?(deferral: Deferral, rec: Rec): void
  dropped(rec: Rec, reason: DropReason, node: string): void
  isPassedOver?(rec: Rec, error: unknown, isTold?: boolean): boolean
  wallClock(): number
  timerEpoch?(): number
  readonly input?: HostInput | undefined
  requestCommit(): void
  fencingToken?(): number
  readonly log?: LogPort | undefined
  /** What the operators above call instead of an operator. */
  readonly around?: Tracing['around'] | undefined
  gate?(node: CompiledNode): CallGate | undefined
  /** Counts updates that were folded into one with others of their row. */
  folded?(updates: number): void
  /** Counts timers that fired. */
  timerFired?(kind: 'event-time' | 'wall-clock'): void
  /** Where the node at work and the records of each node are noted, when given: memory that other threads read. */
  readonly probe?: Probe
}

export interface TaskOptions {
  readonly topology: CompiledTopology
  readonly subtopology: number
  /** The part of the sub-topology that it does. Default: all of it. */
  readonly stage?: Stage
  /** What stages of one task show each other of their rows, by deferral. */
  readonly rowsBehind?: ReadonlyMap<number, RowsBehind>
  /** Shallower stages of the same task. */
  readonly before?: readonly Task[]
  /** The changelog partition, or the lane's index in a sub-topology without stores. */
  readonly partition: number
  readonly stores: ReadonlyMap<string, AnyStore>
  readonly globalStores: ReadonlyMap<string, AnyStore>
  readonly host: TaskHost
  readonly applicationId?: string
  /** See `TaskContext.operatorTime`. */
  readonly operatorTime?: boolean
}

const never = Number.POSITIVE_INFINITY

type Firing = 'onWatermark' | 'onAdvanced' | 'onWallClock'

export class Task {
  readonly subtopology: number
  readonly partition: number
  readonly #topology: CompiledTopology
  readonly #host: TaskHost
  readonly #probe: Probe
  readonly #context: TaskContext
  /** In node order: parents before children. */
  readonly #operators: Operator[] = []
  /** By source; behind them by deferral. */
  readonly #entries: Operator[] = []
  readonly #position = new Map<Operator, number>()
  /** What is told once per commit. */
  readonly emissions: Emissions
  /** Event time, end of an advance, and wall-clock time at which each operator wants to be called. */
  readonly #wakes: Float64Array
  readonly #schedules: Float64Array
  readonly #wallWakes: Float64Array
  /** By operator: records wait for its timers. Undefined: for none. */
  readonly #met: Uint8Array | undefined
  #streamTime = Number.NEGATIVE_INFINITY
  #advancedTo = Number.NEGATIVE_INFINITY
  #settledTo = Number.NEGATIVE_INFINITY
  #firing = Number.NaN
  /** Largest timestamp of the records that came while no watermark was known. */
  #newest = Number.NEGATIVE_INFINITY
  readonly #arrivals: Arrivals = { at: 0, isNoted: false }
  readonly held: HeldBack | undefined
  /** Earliest event time, and wall-clock time, at which there is something to do. */
  nextWake = never
  nextWallClock = never

  constructor(options: TaskOptions) {
    const { topology, subtopology, host } = options
    this.#topology = topology
    this.#host = host
    this.subtopology = subtopology
    this.partition = options.partition
    this.#probe = host.probe ?? { currentNode: -1, steps: 0, counts: new Float64Array(topology.nodes.length) }
    this.#context = this.#makeContext(options)
    const nodes = options.stage?.nodes ?? topology.subtopologies[subtopology]?.nodes ?? []
    this.#wakes = new Float64Array(nodes.length).fill(never)
    this.#schedules = new Float64Array(nodes.length).fill(never)
    this.#wallWakes = new Float64Array(nodes.length).fill(never)
    const met = options.stage && timersMet(topology, options.stage)
    if (met?.includes(1)) this.#met = met
    const made = nodes.map((index) => topology.nodes[index] as CompiledNode)
    this.emissions = new Emissions(made, topology.perCommit, options.stores, () => this.#advancedTo)
    this.#make(made, options)
    this.held = heldBackOf(options, made, this.#operators)
  }

  /** Largest watermark seen; -Infinity before the first. */
  get streamTime(): number {
    return this.#streamTime
  }

  /**
   * Time for rows that a store forgets. While partitions are silent no watermark is known; then the records' own time
   * stands in for it, or rows would be as old as time itself.
   */
  get rowTime(): number {
    return this.#streamTime === Number.NEGATIVE_INFINITY ? this.#newest : this.#streamTime
  }

  /**
   * Time by which windows and sessions are forgotten: the watermark of which all timers have fired. What it makes old has
   * been told, and nothing that finds it in time is still to come: before a record is processed the task is advanced to
   * the watermark before its dispatch, and never past a record that waits for a function.
   */
  get settledTo(): number {
    return this.#settledTo
  }

  /** Event time to which timers have been fired, or are being fired. */
  get advancedTo(): number {
    return this.#advancedTo
  }

  /** When the next timer fires that records must not overtake; Infinity: none is asked for. */
  get nextTimerMet(): number {
    const met = this.#met
    if (met === undefined) return never
    let next = never
    for (let i = 0; i < met.length; i++) if (met[i] === 1) next = Math.min(next, this.#wakes[i] as number)
    return Math.max(next, this.#advancedTo + 1)
  }

  /** Node at work: a plain field, read by other threads' views through the lane's counters. */
  get currentNode(): number {
    return this.#probe.currentNode
  }

  #make(nodes: readonly CompiledNode[], options: TaskOptions): void {
    const { topology } = options
    /** What others call: the operator, or what the host has put around it. */
    const made = new Map<number, Operator>()
    const { around } = this.#host
    const boundaries = new Set(topology.sources.filter(({ kind }) => kind === 'boundary').map(({ node }) => node))
    const waiting: TaskParts['waiting'] = new Map()
    const known = knownSerdes(topology.nodes, topology.sources)
    const context = this.#context
    const clocks: OperatorEnv['clocks'] = new Map()
    const emissions = this.emissions.byStore
    for (let i = nodes.length - 1; i >= 0; i--) {
      const node = nodes[i] as CompiledNode
      const children = this.#childrenOf(node, made, options)
      const env: OperatorEnv = { context, node, probe: this.#probe, clocks, emissions }
      const parts: TaskParts = {
        specOf: (store) => topology.stores.get(store) as StoreSpec,
        known: known.get(node.index) ?? { key: undefined, value: undefined },
        waiting,
      }
      const operator = createOperator(node.spec, env, children, parts)
      this.#operators[i] = operator
      made.set(node.index, around?.(operator, node, boundaries.has(node.index)) ?? operator)
    }
    for (const [i, operator] of this.#operators.entries()) this.#position.set(operator, i)
    for (const source of topology.sources) {
      const entry = source.subtopology === this.subtopology ? made.get(source.node) : undefined
      if (entry !== undefined) this.#entries[source.index] = entry
    }
    if (options.stage === undefined) return
    for (const { index, to, stage, store } of stagesOf(topology).deferrals) {
      if (stage !== options.stage.index) continue
      const rows = options.rowsBehind?.get(index)
      this.#entries[topology.sources.length + index] =
        store === undefined ? (made.get(to) as Operator) : new RowsReached(rows as RowsBehind)
    }
  }

  /** What follows a node here; and the way to deeper stages, rows first, so that these find them changed. */
  #childrenOf(node: CompiledNode, made: ReadonlyMap<number, Operator>, options: TaskOptions): Operator[] {
    const { topology, stage, host, rowsBehind } = options
    if (stage === undefined) return node.children.map((child) => made.get(child) as Operator)
    const ways = stagesOf(topology).deferrals.filter(({ from }) => from === node.index)
    const defer = (way: Deferral): Operator => new DeferOperator(way, host, rowsBehind?.get(way.index))
    return [
      ...ways.filter(({ store }) => store !== undefined).map(defer),
      ...node.children.map((child) => {
        const way = ways.find(({ to, store }) => to === child && store === undefined)
        return way === undefined ? (made.get(child) as Operator) : defer(way)
      }),
    ]
  }

  #makeContext(options: TaskOptions): TaskContext {
    const { host, stores, globalStores } = options
    const views = sharedRows(options)
    return {
      subtopology: options.subtopology,
      partition: options.partition,
      applicationId: options.applicationId ?? '',
      operatorTime: options.operatorTime ?? false,
      store: (name) => {
        const store = views.get(name) ?? stores.get(name) ?? globalStores.get(name)
        assert(store !== undefined, `the store ${name} is not connected to sub-topology ${options.subtopology}`)
        return store
      },
      streamTime: () => this.#streamTime,
      settledTo: () => this.#settledTo,
      timerTime: () => (Number.isNaN(this.#firing) ? this.#advancedTo : this.#firing),
      timerEpoch: () => host.timerEpoch?.() ?? 0,
      wallClock: () => host.wallClock(),
      input: inputOf(options, this.#arrivals, () => this.held),
      wakeAt: (operator, time) => this.#wakeAt(this.#wakes, operator, time),
      wakeAfter: (operator, time) => this.#wakeAt(this.#schedules, operator, time),
      wakeAtWallClock: (operator, time) => this.#wakeAtWallClock(operator, time),
      dropped: (rec, reason, node) => host.dropped(rec, reason, node),
      isPassedOver: (rec, error, isTold) => host.isPassedOver?.(rec, error, isTold) === true,
      emit: (topic, key, value, rec, partitionKey) => host.emit(topic, key, value, rec, partitionKey),
      handOff: (boundary, key, value, rec, to) => host.handOff(boundary, key, value, rec, to),
      requestCommit: () => host.requestCommit(),
      fencingToken: () => host.fencingToken?.() ?? 0,
      log: host.log,
      gate: (node) => host.gate?.(node),
      returned: (origin) => host.returned?.(origin),
      called: (origin, node) => host.called?.(origin, node),
    }
  }

  #wakeAt(wakes: Float64Array, operator: Operator, time: number): void {
    const at = this.#position.get(operator) as number
    if (time < (wakes[at] as number)) wakes[at] = time
    if (time < this.nextWake) this.nextWake = time
  }

  #wakeAtWallClock(operator: Operator, time: number): void {
    const at = this.#position.get(operator) as number
    if (time < (this.#wallWakes[at] as number)) this.#wallWakes[at] = time
    if (time < this.nextWallClock) this.nextWallClock = time
  }

  /** To be called once its stores are filled. Nothing fires: what is due was asked for too late, and comes at the next instant. */
  init(watermark = Number.NEGATIVE_INFINITY): void {
    for (const operator of this.#operators) operator.init?.(this.#context)
    this.#reached(Math.min(watermark, toldTo(this.#operators)))
  }

  /**
   * Makes a record of its bytes with the serdes of its source.
   *
   * @throws EngineError `DECODE_FAILED`
   */
  decode(
    source: number,
    key: Uint8Array | null,
    value: Uint8Array | null,
    timestamp: number,
    headers: Headers,
    origin: Origin,
  ): Rec {
    return decodeBytes(this.#topology.sources[source] as CompiledSource, key, value, timestamp, headers, origin)
  }

  /**
   * Runs a record through everything below its source. Where a function gives a promise whoever waits for it is to say
   * what came of it: `returned`, and `failed` where it was not kept.
   */
  process(source: number, rec: Rec): Maybe {
    if (this.#arrivals.isNoted) this.#arrivals.at = this.#host.wallClock()
    const { watermark } = rec.origin
    if (watermark > this.#streamTime) this.#streamTime = watermark
    else if (watermark === Number.NEGATIVE_INFINITY && rec.timestamp > this.#newest) this.#newest = rec.timestamp
    let pending: Maybe
    try {
      pending = (this.#entries[source] as Operator).process(rec)
    } catch (error) {
      throw this.failed(error, rec)
    }
    if (pending === undefined) this.#probe.currentNode = -1
    return pending
  }

  /** The promise that `process` gave was settled. */
  returned(): void {
    this.#probe.currentNode = -1
  }

  /** What went wrong, and at which node. */
  failed(error: unknown, rec: Rec | undefined): unknown {
    const node = this.#topology.nodes[this.#probe.currentNode]
    this.#probe.currentNode = -1
    return processingFailed(error, node?.name ?? '', rec)
  }

  /**
   * Event time has come this far: windows close, timers fire, in the order of their times, each as if event time had come to
   * it and no further: in how many steps the watermark came here does not matter. It stops at what is still to be told to them
   * (`Emissions.heldTo`).
   */
  advance(to: number): Maybe {
    const watermark = this.#allowed(to)
    if (watermark < this.nextWake) return this.#reached(watermark)
    // What was asked for at a time that had passed comes at the first instant after it.
    const isOverdue = smallest(this.#wakes) <= this.#advancedTo
    const first = isOverdue ? Math.min(watermark, this.#advancedTo + 1) : this.#nextStep()
    return this.#advanceInSteps(first, watermark)
  }

  #advanceInSteps(first: number, to: number): Maybe {
    let watermark = this.#allowed(to)
    for (let time = first; time <= watermark; time = this.#nextStep()) {
      this.#see(time)
      const pending = this.#fireAt(time, this.#wakes, 'onWatermark')
      if (pending !== undefined) {
        return pending.then(() => {
          this.#reached(time)
          return this.#advanceInSteps(this.#nextStep(), to)
        })
      }
      this.#reached(time)
      watermark = this.#allowed(to)
    }
    this.#see(watermark)
    const isDue = smallest(this.#schedules) <= watermark
    const pending = isDue ? this.#fireAt(watermark, this.#schedules, 'onAdvanced') : undefined
    if (pending !== undefined) return pending.then(() => this.#reached(watermark))
    this.#reached(watermark)
  }

  /** What timers have changed is told to those behind it first. */
  #allowed(watermark: number): number {
    return Math.min(watermark, this.emissions.heldTo)
  }

  /** The earliest time asked for that has not passed. */
  #nextStep(): number {
    return smallest(this.#wakes, this.#advancedTo)
  }

  #fireAt(time: number, wakes: Float64Array, how: Firing): Maybe {
    this.#firing = time
    const pending = this.#fire(wakes, time, 0, how)
    if (pending === undefined) this.#firing = Number.NaN
    return pending?.then(() => {
      this.#firing = Number.NaN
    })
  }

  #see(watermark: number): void {
    if (watermark > this.#streamTime) this.#streamTime = watermark
    if (watermark > this.#advancedTo) this.#advancedTo = watermark
  }

  /** All that was due up to this time has been told. */
  #reached(watermark: number): void {
    this.#see(watermark)
    if (watermark > this.#settledTo) this.#settledTo = watermark
  }

  /**
   * Tells what was folded, operator after operator. `failed` is told of each row that a function below did not take; so
   * many functions are called at once.
   */
  tell(failed: (rec: Rec, error: unknown) => void, mostCalls: number): Maybe {
    // All that the task tells stands at one time, so that what its timers put out afterwards comes behind it.
    const at = Math.min(this.emissions.least, this.#advancedTo)
    let row = 0
    const origin = (): Origin => toldOrigin(this.subtopology, this.partition, at, row++)
    return this.#tellFrom(0, { origin, failed, mostCalls, probe: this.#probe })
  }

  #tellFrom(from: number, telling: Telling): Maybe {
    this.#probe.currentNode = -1
    const { all } = this.emissions
    for (let i = from; i < all.length; i++) {
      const emission = all[i] as Emission
      const { index, name } = emission.teller
      this.#probe.currentNode = index
      const told = (rec: Rec, error: unknown): void => {
        const node = this.#topology.nodes[this.#probe.currentNode]
        telling.failed(rec, processingFailed(error, node?.name ?? name, rec))
      }
      const pending = emission.tell({ ...telling, failed: told })
      this.#probe.currentNode = -1
      if (pending !== undefined) return pending.then(() => this.#tellFrom(i + 1, telling))
    }
  }

  /** The epoch is sealed: what comes from now on belongs to the next one. */
  sealed(): void {
    const folded = this.emissions.sealed()
    if (folded > 0) this.#host.folded?.(folded)
  }

  wallClock(now: number): Maybe {
    if (now >= this.nextWallClock) return this.#fire(this.#wallWakes, now, 0, 'onWallClock')
  }

  /** Calls the operators that are due, in node order, so that what one lets out meets the next before its turn. */
  #fire(wakes: Float64Array, time: number, from: number, how: Firing): Maybe {
    for (let i = from; i < wakes.length; i++) {
      if ((wakes[i] as number) > time) continue
      wakes[i] = never
      this.#probe.steps++
      const operator = this.#operators[i] as Operator
      this.#host.timerFired?.(how === 'onWallClock' ? 'wall-clock' : 'event-time')
      let pending: Maybe
      try {
        this.#probe.currentNode = (operator as { index?: number }).index ?? -1
        pending = operator[how]?.(time)
      } catch (error) {
        this.#refresh()
        throw this.failed(error, undefined)
      }
      if (pending !== undefined) return pending.then(() => this.#fire(wakes, time, i + 1, how))
    }
    this.#probe.currentNode = -1
    this.#refresh()
  }

  #refresh(): void {
    this.nextWake = Math.min(smallest(this.#wakes), smallest(this.#schedules))
    this.nextWallClock = smallest(this.#wallWakes)
  }

  close(): void {
    for (const operator of this.#operators) operator.close?.()
  }
}
