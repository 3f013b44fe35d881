/**
 * The threads of an engine, as the control thread holds them: it makes them, links them, talks to them and ends them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { MessageChannel, type MessagePort, type Transferable, Worker } from 'node:worker_threads'
import { type CounterLayout, type CountersView, laneIndex } from '../../base/counters.ts'
import { systemClock } from '../../base/clock.ts'
import type { LogFields, LogLevel } from '../../base/logger.ts'
import type { BrokerAddress } from '../../broker/connect.ts'
import type { EngineWorkerData } from '../../engine/engine-worker.ts'
import type { EngineFact, ToEngine } from '../../engine/protocol.ts'
import type { EngineSettings } from '../../engine/settings.ts'
import type { ErrorPolicies } from '../../lanes/tasks/error-policy.ts'
import type { Compiling } from '../../lanes/application.ts'
import { threadEnded } from '../../lanes/lane-counters.ts'
import type { LaneWorkerData } from '../../lanes/lane-worker.ts'
import type { LaneAbandoned, LaneAnswer } from '../../lanes/protocol.ts'
import type { WriteBehindOptions } from '../../lanes/stores/store-writer.ts'
import { LaneQueries } from '../data/store-queries.ts'
import type { DumpedThread } from '../threads/thread-dump.ts'
import { AskedBroker } from '../why/asked-broker.ts'
import { describeText } from '../../topology/describe.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import { type Uncaught, whyEnded } from './lane-end.ts'
import { memoryBytes } from './memory.ts'

/**
 * Most mebibytes of a thread for objects that have just been made. Where there is much memory V8 takes several times as
 * much in each thread, nearly all of it garbage while a long changelog is read; records are processed as fast with this.
 */
const mostYoungMebibytes = 24
/** V8's own share of the memory that a process may have: where that is little, it is not to become more. */
const youngShare = 1 / 32
/** A thread that is told to end does so at once, unless it is in native code. */
const terminateMs = 5000
/** Lanes that are told to let go of their stores do so behind what they are at. */
const abandonedMs = 1000

export interface EngineThreadsOptions {
  readonly applicationId: string
  readonly application: string
  readonly compiling: Compiling
  readonly topology: CompiledTopology
  readonly settings: EngineSettings
  readonly policies: ErrorPolicies
  /** From which level on the application's functions write to the log. */
  readonly logLevel: LogLevel
  /** With OpenTelemetry: the share of traces that begin here; null without. */
  readonly traceRoots: number | null
  readonly layout: CounterLayout
  readonly stateDir: string | null
  readonly maxInFlight: number
  /** For each lane: how much committed state it may hold in front of durable stores. */
  readonly writeBehind: WriteBehindOptions
  /** A new way for a thread to ask for schemas; null where no serde of the application uses a registry. */
  readonly schemaPort: () => MessagePort | null
}

export interface EngineThreadsHost {
  fact(fact: EngineFact): void
  /** An uncaught error has ended the engine's thread. */
  engineFailed(error: Error): void
  /** The threads are ended, or have been: a lane that ends does so with them, and none takes its place. */
  ending(): boolean
  /** A line for the log. */
  error(message: string, fields: LogFields): void
}

export class EngineThreads {
  readonly #o: EngineThreadsOptions
  readonly #counters: CountersView
  readonly #host: EngineThreadsHost
  readonly lanes: Worker[] = []
  readonly queries = new LaneQueries(this.lanes)
  readonly broker = new AskedBroker((id, question) => this.send({ type: 'question', id, question }))
  #engine: Worker | undefined
  #terminated = false
  /** Lanes whose thread has ended; until another one takes its place. */
  readonly #gone = new Set<number>()
  readonly #ended = Promise.withResolvers<void>()
  readonly #laneEnds: Promise<void>[] = []

  constructor(options: EngineThreadsOptions, counters: CountersView, host: EngineThreadsHost) {
    this.#o = options
    this.#counters = counters
    this.#host = host
  }

  get started(): boolean {
    return this.#engine !== undefined
  }

  get lanesAlive(): number {
    return this.lanes.length - this.#gone.size
  }

  /** Resolves when all threads have ended. */
  get over(): Promise<unknown> {
    return Promise.all([this.#ended.promise, ...this.#laneEnds])
  }

  /** For a dump of what they are doing. */
  list(): DumpedThread[] {
    const engine = this.#engine
    return [
      ...(engine ? [{ name: 'engine', role: 'engine' as const, threadId: engine.threadId }] : []),
      ...this.lanes.map(({ threadId }, lane) => {
        const ended = this.#gone.has(lane)
        return { name: `lane-${lane}`, role: 'lane' as const, threadId, ended }
      }),
    ]
  }

  /** `broker` is made for the engine's thread, to which its port is transferred. */
  start(broker: BrokerAddress): void {
    const { lanes } = this.#o.settings
    const engineChannels = Array.from({ length: lanes }, () => new MessageChannel())
    const peers = channelsBetween(lanes)
    engineChannels.forEach(({ port2 }, lane) => {
      this.lanes.push(this.#startLane(lane, port2, peers[lane] as Array<MessagePort | null>))
    })
    this.#startEngine(
      broker,
      engineChannels.map((channel) => channel.port1),
    )
    for (const [lane, worker] of this.lanes.entries()) this.#watch(worker, lane)
  }

  #watch(worker: Worker, lane: number): void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#laneEnds.push(promise)
    let uncaught: Uncaught | undefined
    worker.on('message', (answer: LaneAnswer) => this.queries.answered(lane, answer))
    // What ends it is known before it has ended.
    worker.on('error', (error: unknown) => {
      uncaught = { error }
    })
    worker.on('exit', (code) => {
      this.#laneEnded(lane, whyEnded(code, uncaught), uncaught)
      resolve()
    })
  }

  #laneEnded(lane: number, reason: string, uncaught: Uncaught | undefined): void {
    this.#gone.add(lane)
    if (this.#terminated || this.#host.ending()) return
    const stack = uncaught?.error instanceof Error ? uncaught.error.stack : undefined
    this.#host.error(`lane-${lane} has ended: ${reason}`, { code: 'LANE_FAILED', ...(stack && { stack }) })
    threadEnded(this.#o.layout, this.#counters.lanes[lane] as Float64Array, systemClock)
    this.queries.laneEnded(lane)
    this.send({ type: 'lane-lost', lane, reason })
  }

  /** A new thread in place of one that has ended. The engine tells the other lanes which way leads to it. */
  #replaceLane(lane: number): void {
    if (this.#terminated || this.#host.ending() || !this.#gone.delete(lane)) return
    const { port1, port2 } = new MessageChannel()
    const channels = this.lanes.map((_, other) => (other === lane ? null : new MessageChannel()))
    const own = channels.map((channel) => channel?.port1 ?? null)
    const peers = channels.map((channel) => channel?.port2 ?? null)
    const worker = this.#startLane(lane, port2, own)
    this.lanes[lane] = worker
    this.queries.laneMade(lane)
    this.#watch(worker, lane)
    const transfer = [port1, ...peers].filter((port) => port !== null)
    this.send({ type: 'lane-made', lane, port: port1, peers }, transfer)
  }

  send(message: ToEngine, transfer: readonly Transferable[] = []): void {
    this.#engine?.postMessage(message, transfer)
  }

  /** Ends the threads where they are. One that does not end within a moment ends with the process. */
  async terminate(): Promise<void> {
    this.#terminated = true
    const ended = this.#engine?.terminate()
    const patience = sleep(terminateMs, undefined, { ref: false })
    await Promise.race([ended, patience])
    this.#engine?.unref()
    if (this.#o.stateDir === null) await Promise.all(this.lanes.map((worker) => worker.terminate()))
    else await this.#abandonLanes()
  }

  /**
   * To terminate a thread that holds a native store may crash the process, so such threads end by themselves. One that is in a
   * function goes on until it returns, or to the end of the process. It writes nothing any more: the files may be another runtime's.
   */
  async #abandonLanes(): Promise<void> {
    const message: LaneAbandoned = { type: 'abandoned' }
    for (const [lane, worker] of this.lanes.entries()) {
      ;(this.#counters.lanes[lane] as Float64Array)[laneIndex.abandoned] = 1
      worker.postMessage(message)
    }
    await Promise.race([Promise.all(this.#laneEnds), sleep(abandonedMs, undefined, { ref: false })])
    for (const worker of this.lanes) worker.unref()
  }

  #startLane(lane: number, engine: MessagePort, peers: ReadonlyArray<MessagePort | null>): Worker {
    const { settings, application, applicationId, compiling, policies, layout, stateDir, maxInFlight, writeBehind } =
      this.#o
    const data: LaneWorkerData = {
      described: describeText(this.#o.topology),
      lane,
      lanes: settings.lanes,
      application,
      applicationId,
      compiling,
      split: settings.split,
      stateDir,
      policies,
      maxInFlight,
      uncommittedMaxBytes: settings.uncommittedMaxBytes,
      maxDirtyRows: settings.maxDirtyRows,
      writeBehind,
      logLevel: this.#o.logLevel,
      traceRoots: this.#o.traceRoots,
      layout,
      counters: this.#counters.lanes[lane] as Float64Array,
      engine,
      peers,
      schemas: this.#o.schemaPort(),
    }
    const transfer = [engine, data.schemas, ...peers].filter((port) => port !== null)
    return startWorker(new URL('../../lanes/lane-worker.ts', import.meta.url), `lane-${lane}`, data, transfer)
  }

  #startEngine(broker: BrokerAddress, lanes: MessagePort[]): void {
    const { settings, layout, topology, application, compiling } = this.#o
    const data: EngineWorkerData = {
      application,
      compiling,
      settings,
      broker,
      lanes,
      layout,
      counters: this.#counters.engine,
      laneCounters: this.#counters.lanes,
      nodeNames: topology.nodes.map((node) => node.name),
      traceRoots: this.#o.traceRoots,
      schemas: this.#o.schemaPort(),
    }
    const ports = [...lanes, data.schemas].filter((port) => port !== null)
    const transfer: Transferable[] = [...ports, ...(broker.kind === 'embedded' ? [broker.port] : [])]
    const engine = startWorker(new URL('../../engine/engine-worker.ts', import.meta.url), 'engine', data, transfer)
    this.#engine = engine
    // A thread that is ended while it loads its modules may fail on one that is there by half, and may still say so itself.
    engine.on('message', (fact: EngineFact) => {
      if (fact.type === 'answer') this.broker.answered(fact.id, fact.answer)
      else if (fact.type === 'lane-wanted') this.#replaceLane(fact.lane)
      else if (fact.type !== 'failed' || !this.#terminated) this.#host.fact(fact)
    })
    engine.on('error', (error) => {
      if (!this.#terminated) this.#host.engineFailed(error)
    })
    engine.on('exit', () => this.#ended.resolve())
  }
}

/** For every lane its ports to the others; null at its own index. */
function channelsBetween(lanes: number): Array<Array<MessagePort | null>> {
  const peers = Array.from({ length: lanes }, () => new Array<MessagePort | null>(lanes).fill(null))
  for (let a = 0; a < lanes; a++) {
    for (let b = a + 1; b < lanes; b++) {
      const channel = new MessageChannel()
      ;(peers[a] as Array<MessagePort | null>)[b] = channel.port1
      ;(peers[b] as Array<MessagePort | null>)[a] = channel.port2
    }
  }
  return peers
}

function startWorker(file: URL, name: string, data: unknown, transfer: readonly Transferable[]): Worker {
  // Published code is JavaScript in the same folder.
  const entry = import.meta.url.endsWith('.ts') ? file : new URL(file.href.replace(/\.ts$/, '.js'))
  return new Worker(entry, {
    name,
    workerData: data,
    transferList: transfer as Transferable[],
    stdout: false,
    stderr: false,
    resourceLimits: { maxYoungGenerationSizeMb: Math.min(mostYoungMebibytes, (memoryBytes() * youngShare) / 2 ** 20) },
  })
}
