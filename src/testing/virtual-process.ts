/** The engine and its lanes, as a process runs them, on one loop: the same cores, messages and order of messages. */
import {
  type CounterLayout,
  engineBlockLength,
  engineIndex,
  functionSlot,
  laneBlockLength,
  newBlock,
} from '../base/counters.ts'
import type { LogLevel } from '../base/logger.ts'
import type { Timers } from '../base/timers.ts'
import type { BrokerPort } from '../broker/port.ts'
import { EngineCore } from '../engine/engine-core.ts'
import type { EngineFact } from '../engine/protocol.ts'
import type { EngineSettings } from '../engine/settings.ts'
import { extractorsOf } from '../lanes/extraction.ts'
import { LaneCore } from '../lanes/lane-core.ts'
import { type FunctionLine, LogLines } from '../lanes/tasks/log-lines.ts'
import type { LaneOptions } from '../lanes/lane-options.ts'
import type { FromLane, Held, ToLane } from '../lanes/protocol.ts'
import { heldByTasks } from '../lanes/tasks/held-tasks.ts'
import type { ErrorPolicies } from '../lanes/tasks/error-policy.ts'
import { nothing } from '../operators/quiet/held-back.ts'
import type { AnyStore } from '../state/contract.ts'
import { memoryBackends } from '../state/backends/memory-backend.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { nodesElsewhere } from '../topology/plan.ts'
import type { Caller, CallWaits } from './call-waits.ts'
import type { VirtualLoop } from './virtual-loop.ts'

/** A lane's turn takes some time, if next to none: how much is let in ahead follows from how fast a lane has been. */
const turnMs = 0.0001

export interface VirtualProcessOptions {
  readonly loop: VirtualLoop
  readonly waits: CallWaits
  readonly broker: BrokerPort
  readonly settings: EngineSettings
  readonly policies: ErrorPolicies
  readonly layout: CounterLayout
  readonly maxInFlight: number
  /** Compiled anew for every lane: what `build` keeps in its closure is not shared by lanes. */
  readonly compile: (lane: number) => CompiledTopology
  /** Gets what functions write to the log, from this level on. */
  readonly log?: ((line: FunctionLine) => void) | undefined
  readonly logLevel: LogLevel
  readonly fact: (fact: EngineFact) => void
  readonly dropped: NonNullable<LaneOptions['dropped']>
}

export class VirtualProcess implements Caller {
  readonly engine: EngineCore
  readonly #o: VirtualProcessOptions
  readonly #lanes: LaneCore[] = []
  readonly #planned: boolean[]
  readonly #counters: Float64Array
  readonly #laneCounters: readonly Float64Array[]
  readonly #nodes: CompiledTopology['nodes']
  readonly #timers: Timers
  /** Functions of scheduled sources that have not answered. */
  #ticks = 0
  #alive = true
  /** What operators held back when the clock came to this moment. */
  #held: readonly Held[] = []

  constructor(options: VirtualProcessOptions) {
    this.#o = options
    const { loop, settings, layout, broker } = options
    this.#planned = Array.from({ length: settings.lanes }, () => false)
    this.#counters = newBlock(engineBlockLength(layout))
    this.#timers = loop.timers(() => this.#alive)
    this.#laneCounters = Array.from({ length: settings.lanes }, () => newBlock(laneBlockLength(layout)))
    const topologies = this.#laneCounters.map((_, lane) => options.compile(lane))
    const [first] = topologies as [CompiledTopology]
    this.#nodes = first.nodes
    for (const [lane, topology] of topologies.entries())
      this.#lanes.push(this.#lane(lane, topology, this.#laneCounters[lane] as Float64Array))
    this.engine = new EngineCore({
      settings,
      broker,
      clock: loop,
      timers: this.#timers,
      layout,
      counters: this.#counters,
      laneCounters: [...this.#laneCounters],
      nodeNames: first.nodes.map((node) => node.name),
      extractors: extractorsOf(first.sources),
      send: (lane, message) => this.#toLane(lane, message),
      fact: (fact) => {
        if (this.#alive) options.fact(fact)
      },
    })
  }

  /** Records let in so far. */
  get dispatched(): number {
    return this.#counters[engineIndex.recordsDispatched] as number
  }

  /** What is at hand waits until lanes have done more of what they have. */
  get awaitsLanes(): boolean {
    return this.engine.awaitsLanes
  }

  /** What is at hand waits for those who write to a topic between sub-topologies. */
  get awaitsWriters(): boolean {
    return this.engine.awaitsWriters
  }

  /** Some function of the application has not come back. */
  get waitsForApplication(): boolean {
    return this.#alive && (this.#ticks > 0 || this.#lanes.some((lane) => lane.backlog.inFlight > 0))
  }

  /** A call that waits before it is made, or made again, is none that somebody has. */
  get isCalling(): boolean {
    if (this.#ticks > 0 || this.#lanes.some(({ backlog }) => backlog.calls.oldest !== undefined)) return true
    const { layout } = this.#o
    // Of a record that is in several branches at once only one call is told above.
    return this.#laneCounters.some((counters) =>
      this.#nodes.some(({ index }) => counters[functionSlot(layout, index, 'calls')] !== 0),
    )
  }

  get finished(): number {
    return this.#lanes.reduce((sum, { backlog }) => sum + backlog.calls.finished, 0)
  }

  get oldestCall(): Caller['oldestCall'] {
    const [call] = this.#lanes.flatMap(({ backlog }) => backlog.calls.oldest ?? [])
    return call && { name: this.#nameOf(call.node), call }
  }

  get oldestFailing(): Caller['oldestFailing'] {
    const [failing] = this.#lanes.flatMap(({ backlog }) => backlog.calls.oldestFailing ?? [])
    return failing && { ...failing, name: this.#nameOf(failing.node) }
  }

  store(name: string, partition: number): AnyStore | undefined {
    const lane = this.#lanes[partition % this.#lanes.length] as LaneCore
    return lane.tasks.store(name, partition)
  }

  openPartitions(name: string): number {
    return this.#lanes.reduce((count, lane) => count + lane.tasks.queried(name).length, 0)
  }

  globalStore(name: string): AnyStore | undefined {
    return (this.#lanes[0] as LaneCore).tasks.queried(name)[0]
  }

  /** Earliest wall-clock time at which a timer of the application is due. */
  nextWallClock(): number {
    return Math.min(...this.#lanes.map((lane) => lane.nextWallClock()))
  }

  /** Fires the application's wall-clock timers that are due. */
  tick(): void {
    const now = this.#o.loop.now()
    this.#mark()
    for (const [index, lane] of this.#lanes.entries()) {
      if (lane.nextWallClock() > now) continue
      lane.tick(now)
      this.#wake(index)
    }
  }

  /** As `kill -9`: nothing that was planned happens, and what is not committed is void. */
  kill(): void {
    this.#alive = false
    for (const lane of this.#lanes) lane.close()
  }

  #nameOf(node: number): string {
    return this.#nodes[node]?.name ?? 'a function'
  }

  #lane(lane: number, topology: CompiledTopology, counters: Float64Array): LaneCore {
    const { loop, waits, settings, policies, layout, maxInFlight, dropped, log, logLevel } = this.#o
    return new LaneCore({
      lane,
      lanes: settings.lanes,
      applicationId: settings.applicationId,
      topology,
      clock: loop,
      backends: memoryBackends(),
      policies,
      maxInFlight,
      timers: waits.timers(() => this.#alive),
      // Pauses differ by chance in production, where many begin together; a test is to be the same each time.
      random: () => 0.5,
      uncommittedMaxBytes: settings.uncommittedMaxBytes,
      maxDirtyRows: settings.maxDirtyRows,
      layout,
      counters,
      heldAbove: (node) => this.#heldAbove(node),
      toEngine: (message) => this.#fromLane(message),
      toLane: (to, message) => this.#push(() => (this.#lanes[to] as LaneCore).receiveFromLane(message)),
      wake: () => this.#wake(lane),
      dropped,
      log: log && new LogLines(logLevel, lane, loop, log, Number.POSITIVE_INFINITY),
    })
  }

  /** As of when the clock came to this moment: what is told at this moment is on its way until the next one. */
  #heldAbove(node: number): number {
    const above = nodesElsewhere(this.#o.settings.plan, node)
    let least = nothing
    for (const held of this.#held) if (above.has(held.node)) least = Math.min(least, held.from)
    return least
  }

  #mark(): void {
    for (const { tasks } of this.#lanes) for (const { task } of tasks.all()) task.held?.mark()
    this.#held = this.#lanes.flatMap(({ tasks }) => heldByTasks(tasks.all()) ?? [])
  }

  #push(job: () => void): void {
    this.#o.loop.push(() => {
      if (this.#alive) job()
    })
  }

  #wake(lane: number): void {
    if (this.#planned[lane]) return
    this.#planned[lane] = true
    this.#push(() => {
      this.#planned[lane] = false
      this.#o.loop.spend(turnMs)
      if ((this.#lanes[lane] as LaneCore).run()) this.#wake(lane)
    })
  }

  #toLane(lane: number, message: ToLane): void {
    if (message.type === 'tick') this.#ticks++
    if (message.type === 'reset') this.#ticks = 0
    this.#push(() => {
      ;(this.#lanes[lane] as LaneCore).receive(message)
      this.#wake(lane)
    })
  }

  #fromLane(message: FromLane): void {
    if (message.type === 'emitted') this.#ticks = Math.max(0, this.#ticks - 1)
    this.#push(() => this.engine.laneMessage(message))
  }
}
