/**
 * A whole application on one thread: the engine, its lanes and the embedded broker, on a loop with a clock of its own.
 * It is led from one settled state to the next: whoever feeds it or moves its clock gets it back when nothing is left to
 * do but what time brings.
 */
import { EngineError, fromWireError } from '../base/errors.ts'
import { Random } from '../base/random.ts'
import { EmbeddedCluster } from '../broker/embedded/core/cluster.ts'
import { MemoryStorage } from '../broker/embedded/core/memory-storage.ts'
import { directClient } from '../broker/embedded/direct-client.ts'
import type { Headers } from '../broker/wire/headers.ts'
import { RecordBatchBuilder } from '../broker/wire/record-batch.ts'
import type { Config } from '../config/config.ts'
import type { EngineFact } from '../engine/protocol.ts'
import type { EngineSettings } from '../engine/settings.ts'
import type { FunctionLine } from '../lanes/tasks/log-lines.ts'
import { levelOf } from '../runtime/log.ts'
import { counterLayout, engineSettings, policiesOf } from '../runtime/settings.ts'
import type { AnyStore } from '../state/contract.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import type { ConsumerSnapshot, WatermarkSnapshot } from '../view/view.ts'
import type { DroppedRecord } from './contract.ts'
import { VirtualLoop } from './virtual-loop.ts'
import { VirtualProcess } from './virtual-process.ts'
import { Written } from './written.ts'

export interface VirtualApplicationOptions {
  readonly applicationId: string
  readonly config: Config
  readonly topology: CompiledTopology
  /** Compiled anew for another lane. */
  readonly compile: () => CompiledTopology
  readonly startAt: number
  readonly lanes: number
  readonly partitions: (topic: string) => number
  readonly commitsEach: boolean
  /** See `DriverOptions.log`. */
  readonly log?: ((line: FunctionLine) => void) | undefined
}

export interface FedRecord {
  readonly partition: number
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly timestamp: number
  readonly headers: Headers
}

/** Longer than any test: nobody is waited for by these. */
const forever = 2 ** 45
/** More than that no broker allows; a commit comes long before. */
const longestTransactionMs = 900_000
/** Of records that are fed at once. */
const batchBytes = 128 * 1024
/** So long after something has happened every timer is kept to; later the engine's housekeeping is passed over. */
const attentiveMs = 5000
/** So often those who write to a topic are looked at for what waits for them, and so often a commit is tried for it. */
const mostRounds = 8
const mostSkips = 100_000

export class VirtualApplication {
  readonly loop: VirtualLoop
  readonly written: Written
  readonly drops: DroppedRecord[] = []
  readonly warnings: string[] = []
  readonly settings: EngineSettings
  readonly #o: VirtualApplicationOptions
  readonly #cluster: EmbeddedCluster
  #process: VirtualProcess | undefined
  #broker: { close(): Promise<void> } | undefined
  #running = false
  #failure: EngineError | undefined
  #watermarks: WatermarkSnapshot | null = null
  #consumer: ConsumerSnapshot | null = null
  #clusterTick = Number.POSITIVE_INFINITY

  constructor(options: VirtualApplicationOptions) {
    this.#o = options
    const { applicationId, config, topology, lanes } = options
    this.loop = new VirtualLoop(options.startAt)
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
    this.#cluster = new EmbeddedCluster({
      clock: this.loop,
      random: new Random(1),
      storage: new MemoryStorage(),
      partitions: options.partitions(''),
    })
    this.written = new Written(this.#cluster, (topic) => this.#isInternal(topic))
    const named = topology.sources.flatMap((source) => (source.kind === 'boundary' ? [] : source.topics))
    for (const topic of [...named, ...this.settings.sinkTopics]) this.create(topic)
  }

  get isStarted(): boolean {
    return this.#process !== undefined
  }

  /** True where the topic is new: a running engine does not know it yet. */
  create(topic: string): boolean {
    if (this.#cluster.topics([topic]).length > 0) return false
    this.#cluster.createTopics([{ topic, partitions: this.#o.partitions(topic) }])
    return true
  }

  partitionsOf(topic: string): number {
    return this.#cluster.topics([topic])[0]?.partitions ?? this.#o.partitions(topic)
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

  /** Starts the application, if it does not run. */
  async start(): Promise<void> {
    if (this.#failure) throw this.#ended(this.#failure)
    if (this.#process) return
    const { config, applicationId, topology, compile } = this.#o
    const broker = directClient(this.#cluster, { afterCall: () => this.#planTick() })
    this.#broker = broker
    this.#process = new VirtualProcess({
      loop: this.loop,
      broker: this.written.noticing(broker),
      settings: this.settings,
      policies: policiesOf(config, applicationId),
      layout: counterLayout(topology),
      maxInFlight: config.get('lane.max-in-flight'),
      compile: (lane) => (lane === 0 ? topology : compile()),
      log: this.#o.log,
      logLevel: levelOf('app', config),
      fact: (fact) => this.#fact(fact),
      dropped: ({ key, value, timestamp }, reason, node) =>
        this.drops.push({ reason, node: node ?? '', key, value, timestamp }),
    })
    void this.#process.engine.start()
    await this.#steady()
  }

  /**
   * As a process that is killed and started again, on another disk: stores come from their changelogs. `leaves`: its
   * place in the group is given up, so that topics are shared out anew.
   */
  async restart(leaves = false): Promise<void> {
    this.#process?.engine.show()
    if (leaves && this.#consumer) this.#cluster.leaveGroup(this.#consumer)
    this.close()
    this.#failure = undefined
    await this.start()
    await this.#settled()
  }

  /** Puts records into topics, all at the same moment; `settle` has them processed. */
  append(records: ReadonlyMap<string, readonly FedRecord[]>): void {
    const batches: ToAppend[] = []
    for (const [topic, fed] of records) pack(topic, fed, batches)
    const packed = batches.map(({ topic, partition, builder }) => ({ topic, partition, records: builder.finish() }))
    const produced = this.#cluster.produce({ transactionalId: null, batches: packed })
    for (const [i, { topic, partition, count }] of batches.entries())
      this.written.fed(topic, partition, produced[i]?.baseOffset ?? 0, count)
    this.#planTick()
  }

  /** Has all that is there processed and, unless commits have their own pace, committed. */
  async settle(): Promise<void> {
    await this.start()
    await this.#settled()
  }

  async commit(): Promise<void> {
    await this.start()
    await this.#steady()
    await this.#commit()
    this.written.collect()
  }

  /** Moves both clocks, from one timer to the next. */
  async advance(durationMs: number): Promise<void> {
    await this.start()
    await this.#steady()
    const { loop } = this
    const end = loop.time + durationMs
    let attentive = loop.time + attentiveMs
    while (loop.time < end) {
      const process = this.#process as VirtualProcess
      const isAttentive = loop.time < attentive
      const wallClock = loop.time + Math.max(0, process.nextWallClock() - loop.now())
      const next = Math.max(loop.time, Math.min(end, loop.nextTimer(!isAttentive), wallClock))
      const before = loop.done
      loop.moveTo(next)
      process.tick()
      await this.#steady()
      if (loop.done > before) attentive = loop.time + attentiveMs
    }
    await this.#settled()
  }

  /** Ends at once; what is not committed is void. */
  close(): void {
    this.#process?.kill()
    this.#process = undefined
    this.#running = false
    void this.#broker?.close()
  }

  async #settled(): Promise<void> {
    await this.#steady()
    const process = this.#process as VirtualProcess
    let before = -1
    for (let held = 0; this.#o.commitsEach && (process.dispatched !== before || held > 0); ) {
      held = process.dispatched === before ? held - 1 : mostRounds
      before = process.dispatched
      // What goes from task to task through a topic comes with a commit, as new input.
      await this.#commit()
      await this.#comeThrough(process, before)
      if (!process.awaitsWriters) held = 0
    }
    this.written.collect()
  }

  /** What comes through a topic goes on once those who write to it have told how far they have come, now and then. */
  async #comeThrough(process: VirtualProcess, before: number): Promise<void> {
    for (let left = mostRounds; left > 0 && process.awaitsWriters && process.dispatched === before; left--) {
      this.loop.skip()
      await this.#steady()
    }
  }

  async #commit(): Promise<void> {
    let done = false
    void this.#process?.engine.commit().then(() => {
      done = true
    })
    await this.#until(() => done && this.#running)
  }

  /** All is done that can be, and the application runs. */
  #steady(): Promise<void> {
    return this.#until(() => this.#running)
  }

  /** What does not come about otherwise is given time, on the monotonic clock: the pause before a restart. */
  async #until(holds: () => boolean): Promise<void> {
    const { loop } = this
    for (let skips = 0; ; skips++) {
      await loop.settle(() => this.#failure === undefined && this.#process?.waitsForApplication === true)
      if (this.#failure) throw this.#failure
      if (holds()) return
      if (skips > mostSkips || !loop.skip())
        throw new EngineError('INVARIANT_BROKEN', 'the application stands still; this is a mistake of the test driver')
    }
  }

  #ended(failure: EngineError): EngineError {
    return new EngineError(
      'USAGE',
      `The application has failed and processes nothing any more (${failure.message}); ` +
        'restart() starts it again from its last commit.',
      { cause: failure },
    )
  }

  #fact(fact: EngineFact): void {
    switch (fact.type) {
      case 'running':
        this.#running = true
        return
      case 'restarting':
        this.#running = false
        this.warnings.push(`restarting: ${fact.cause}`)
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
        if (fact.level === 'warn' || fact.level === 'error') this.warnings.push(fact.message)
        return
      default:
    }
  }

  /** The broker's own deadlines are timers too. */
  #planTick(): void {
    const at = this.#cluster.nextDeadline()
    if (at >= this.#clusterTick) return
    this.#clusterTick = at
    this.loop
      .timers(() => true)
      .after(Math.max(0, at - this.loop.monotonic()), () => {
        this.#clusterTick = Number.POSITIVE_INFINITY
        this.#cluster.tick()
        this.#planTick()
      })
  }

  #isInternal(topic: string): boolean {
    const { applicationId, topology } = this.#o
    if (topology.boundaries.some((boundary) => topic === `${applicationId}-${boundary.topic}`)) return true
    return topic.startsWith(`${applicationId}-`) && /-(changelog|repartition)$/.test(topic)
  }
}

interface ToAppend {
  readonly topic: string
  readonly partition: number
  readonly builder: RecordBatchBuilder
  readonly count: number
}

function pack(topic: string, records: readonly FedRecord[], into: ToAppend[]): void {
  const open = new Map<number, RecordBatchBuilder>()
  const close = (partition: number, builder: RecordBatchBuilder): void => {
    into.push({ topic, partition, builder, count: builder.count })
    open.delete(partition)
  }
  for (const { partition, key, value, timestamp, headers } of records) {
    const builder = open.get(partition) ?? new RecordBatchBuilder()
    open.set(partition, builder)
    builder.append(timestamp, key, value, headers)
    if (builder.bytes >= batchBytes) close(partition, builder)
  }
  for (const [partition, builder] of open) close(partition, builder)
}
