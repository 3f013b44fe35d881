/** One application of a test: its engine and its lanes on the loop that all share, between its starts and its failures. */
import { EngineError, fromWireError } from '../base/errors.ts'
import type { BrokerPort } from '../broker/port.ts'
import type { Config } from '../config/config.ts'
import type { EngineFact } from '../engine/protocol.ts'
import type { EngineSettings } from '../engine/settings.ts'
import type { FunctionLine } from '../lanes/tasks/log-lines.ts'
import { Change } from '../operators/contract.ts'
import { levelOf } from '../runtime/log.ts'
import { counterLayout, engineSettings, policiesOf } from '../runtime/settings.ts'
import type { AnyStore } from '../state/contract.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import type { ConsumerSnapshot, WatermarkSnapshot } from '../view/view.ts'
import type { Caller, CallWaits } from './call-waits.ts'
import type { DroppedRecord } from './contract.ts'
import type { VirtualBroker } from './virtual-broker.ts'
import type { VirtualLoop } from './virtual-loop.ts'
import { VirtualProcess } from './virtual-process.ts'

export interface VirtualApplicationOptions {
  readonly applicationId: string
  readonly config: Config
  readonly topology: CompiledTopology
  /** Compiled anew for another lane. */
  readonly compile: () => CompiledTopology
  readonly lanes: number
  /** See `DriverOptions.log`. */
  readonly log?: ((line: FunctionLine) => void) | undefined
  /** Hears of each record that went no further. */
  readonly dropped: (record: DroppedRecord) => void
  /** Hears of each warning. */
  readonly warned: (message: string) => void
}

/** Longer than any test: nobody is waited for by these. */
const forever = 2 ** 45
/** More than that no broker allows; a commit comes long before. */
const longestTransactionMs = 900_000

export class VirtualApplication {
  readonly settings: EngineSettings
  readonly #o: VirtualApplicationOptions
  #process: VirtualProcess | undefined
  #broker: BrokerPort | undefined
  #running = false
  #failure: EngineError | undefined
  #watermarks: WatermarkSnapshot | null = null
  #consumer: ConsumerSnapshot | null = null
  /** Topics that were there when it started. */
  #found: ReadonlySet<string> = new Set()

  constructor(options: VirtualApplicationOptions) {
    this.#o = options
    const { applicationId, config, topology, lanes } = options
    this.settings = {
      ...engineSettings(config, applicationId, topology),
      // What is piped is there at once.
      fetchPaceMs: 0,
      lanes,
      instanceId: 'main',
      groupInstanceId: `${applicationId}-main`,
      // An answer comes when there is one: to ask again is of no use where nothing is ever lost.
      fetchMaxWaitMs: forever,
      transactionTimeoutMs: longestTransactionMs,
      sessionTimeoutMs: forever,
      rebalanceTimeoutMs: forever,
      heartbeatIntervalMs: forever,
      metadataMaxAgeMs: forever,
    }
  }

  get applicationId(): string {
    return this.#o.applicationId
  }

  /** Topics that it knows by name, to be there before it starts. */
  get topics(): string[] {
    const named = this.#o.topology.sources.flatMap((source) => (source.kind === 'boundary' ? [] : source.topics))
    return [...named, ...this.settings.sinkTopics]
  }

  get isStarted(): boolean {
    return this.#process !== undefined
  }

  /** It runs, and is not on its way back from an error. */
  get isRunning(): boolean {
    return this.#running
  }

  /** Why it processes nothing any more. */
  get failure(): EngineError | undefined {
    return this.#failure
  }

  /** Records let in so far. */
  get dispatched(): number {
    return this.#process?.dispatched ?? 0
  }

  /** Its own topics have a time that those who write tell, and nothing that waits for it. */
  get tellsTimeInCircles(): boolean {
    const { plan, split } = this.settings
    return split === 'repartition-topics' && plan.boundaries.some(({ fedBy }) => fedBy !== undefined)
  }

  get awaitsLanes(): boolean {
    return this.#process?.awaitsLanes === true
  }

  /** What is at hand waits for those who write to a topic between sub-topologies. */
  get awaitsWriters(): boolean {
    return this.#process?.awaitsWriters === true
  }

  /** Some function of the application has not come back. */
  get waitsForApplication(): boolean {
    return this.#process?.waitsForApplication === true
  }

  /** What its functions are at; undefined where it does not run. */
  get caller(): Caller | undefined {
    return this.#process
  }

  /** A store of a task that runs; undefined where none does. */
  store(name: string, partition: number): AnyStore | undefined {
    if (this.#o.topology.globalStores.has(name)) return this.#process?.globalStore(name)
    return this.#process?.store(name, partition)
  }

  /** Partitions of a store of tasks that run: by a pattern, or since an earlier start, they may be more than are named. */
  openPartitions(name: string): number {
    return this.#process?.openPartitions(name) ?? 0
  }

  /** How far event time has come, and what holds it. Null before the start. */
  watermarks(): WatermarkSnapshot | null {
    this.#process?.engine.show()
    return this.#watermarks
  }

  /** Sets off the start, unless it has started: it runs once the loop has done what follows. */
  start(loop: VirtualLoop, broker: VirtualBroker, waits: CallWaits): void {
    if (this.#process) return
    const { config, applicationId, topology, compile, dropped } = this.#o
    this.#found = new Set(broker.topics())
    this.#broker = broker.client(applicationId)
    this.#process = new VirtualProcess({
      loop,
      waits,
      broker: this.#broker,
      settings: this.settings,
      policies: policiesOf(config, applicationId),
      layout: counterLayout(topology),
      maxInFlight: config.get('lane.max-in-flight'),
      compile: (lane) => (lane === 0 ? topology : compile()),
      log: this.#o.log,
      logLevel: levelOf('app', config),
      fact: (fact) => this.#fact(fact),
      dropped: ({ key, value: its, timestamp }, reason, node) => {
        const value = its instanceof Change ? its.newValue : its
        dropped({ reason, node: node ?? '', key, value, timestamp })
      },
    })
    void this.#process.engine.start()
  }

  /** Some topics that it reads by a pattern have come since it started. */
  lacksOneOf(topics: readonly string[]): boolean {
    return topics.some((topic) => !this.#found.has(topic) && this.#readsByPattern(topic))
  }

  commit(): Promise<void> {
    return (this.#process as VirtualProcess).engine.commit()
  }

  /** Earliest wall-clock time at which a timer of the application is due. */
  nextWallClock(): number {
    return this.#process?.nextWallClock() ?? Number.POSITIVE_INFINITY
  }

  /** Fires the application's wall-clock timers that are due. */
  tick(): void {
    this.#process?.tick()
  }

  /** Ends at once; what is not committed is void. */
  close(): void {
    this.#process?.kill()
    this.#process = undefined
    this.#running = false
    void this.#broker?.close()
  }

  /**
   * Ends as a process that is killed, so that it can start again. `leaves`: its place in the group of this broker is given up,
   * so that topics are shared out anew.
   */
  kill(leaves?: VirtualBroker): void {
    this.#process?.engine.show()
    if (leaves && this.#consumer) leaves.leaveGroup(this.#consumer)
    this.close()
    this.#failure = undefined
  }

  /** Nothing but its own, for which nobody looks. */
  isInternal(topic: string): boolean {
    const { applicationId, topology } = this.#o
    if (topology.boundaries.some((boundary) => topic === `${applicationId}-${boundary.topic}`)) return true
    return topic.startsWith(`${applicationId}-`) && /-(changelog|repartition)$/.test(topic)
  }

  #readsByPattern(topic: string): boolean {
    const reads = this.#o.topology.sources.some(({ pattern }) => pattern?.test(topic) === true)
    return reads && !this.isInternal(topic)
  }

  #fact(fact: EngineFact): void {
    switch (fact.type) {
      case 'running':
        this.#running = true
        return
      case 'restarting':
        this.#running = false
        this.#o.warned(`restarting: ${fact.cause}`)
        return
      case 'failed':
        this.#failure = fromWireError(fact.error)
        return
      case 'lane-stuck':
        this.#failure = new EngineError('LANE_STUCK', `lane-${fact.lane} does not come back`)
        return
      case 'snapshot':
        this.#watermarks = fact.snapshot.watermarks
        this.#consumer = fact.snapshot.consumer
        return
      case 'log':
        if (fact.level === 'warn' || fact.level === 'error') this.#o.warned(fact.message)
        return
      default:
    }
  }
}
