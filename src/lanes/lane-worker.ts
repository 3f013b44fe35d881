/** Thread of one lane: channels and timers around `LaneCore`. */
import { performance } from 'node:perf_hooks'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../base/clock.ts'
import { type CounterLayout, laneIndex } from '../base/counters.ts'
import { failpointOfProcess } from '../base/failpoint.ts'
import type { LogLevel } from '../base/logger.ts'
import { systemRandom } from '../base/random.ts'
import { systemTimers } from '../base/timers.ts'
import { EngineError, messageOf, toWireError } from '../base/errors.ts'
import type { StoreBackendFactory } from '../state/contract.ts'
import { memoryBackends } from '../state/backends/memory-backend.ts'
import { describeText } from '../topology/describe.ts'
import { type SplitMode, splitTopology } from '../topology/split.ts'
import { type Compiling, loadApplication } from './application.ts'
import type { ErrorPolicies } from './tasks/error-policy.ts'
import { LaneCore } from './lane-core.ts'
import { LogLines } from './tasks/log-lines.ts'
import type { FromLane, LaneAbandoned, LanePeer, LaneQuery, LaneToLane, ToLane } from './protocol.ts'
import type { RecordTracing } from './telemetry/record-tracing.ts'
import { connectSchemas } from './schema-port.ts'
import type { WriteBehindOptions } from './stores/store-writer.ts'

export interface LaneWorkerData {
  readonly lane: number
  readonly lanes: number
  readonly application: string
  readonly applicationId: string
  readonly compiling: Compiling
  /** Description of the topology as the control thread compiled it. */
  readonly described: string
  readonly split: SplitMode
  readonly stateDir: string | null
  readonly policies: ErrorPolicies
  readonly maxInFlight: number
  readonly uncommittedMaxBytes: number
  readonly maxDirtyRows: number
  readonly writeBehind: WriteBehindOptions
  /** From which level on the application's functions write to the log. */
  readonly logLevel: LogLevel
  /** With OpenTelemetry: the share of records without a context that are traced; null without. */
  readonly traceRoots: number | null
  readonly layout: CounterLayout
  readonly counters: Float64Array
  readonly engine: MessagePort
  /** Channels to the other lanes; null at the own place. */
  readonly peers: ReadonlyArray<MessagePort | null>
  /** Where schemas are asked for; null where no serde uses a registry. */
  readonly schemas: MessagePort | null
}

const data = workerData as LaneWorkerData
const { lane, engine } = data
/** Channels to the other lanes, of the threads that they have now. */
const peers = [...data.peers]
/** What the threads that this lane had before have used. */
const cpuMsBefore = data.counters[laneIndex.cpuMs] as number

function send(message: FromLane, transfer: ArrayBuffer[] = []): void {
  engine.postMessage(message, transfer)
}

function fault(error: unknown, run = -1): void {
  send({ type: 'fault', lane, run, error: toWireError(error) })
}

/** Gives the core its turns: after every message, and when a wall-clock timer is due. */
class Turns {
  readonly #core: () => LaneCore
  #scheduled = false
  #cancelTimer: (() => void) | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #stopped = false

  constructor(core: () => LaneCore) {
    this.#core = core
  }

  wake(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    systemTimers.soon(() => this.#turn())
  }

  stop(): void {
    this.#stopped = true
    this.#cancelTimer?.()
  }

  #turn(): void {
    this.#scheduled = false
    if (this.#stopped) return
    const core = this.#core()
    if (core.run()) this.wake()
    this.#arm()
  }

  /** One timer for the earliest wall-clock deadline of all tasks. */
  #arm(): void {
    const core = this.#core()
    const next = core.nextWallClock()
    if (next === this.#timerAt) return
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#timerAt = next
    if (next === Number.POSITIVE_INFINITY) return
    const delay = Math.min(Math.max(0, next - systemClock.now()), longestTimerMs)
    this.#cancelTimer = systemTimers.after(delay, () => {
      this.#timerAt = Number.POSITIVE_INFINITY
      core.tick(systemClock.now())
      this.wake()
      this.#arm()
    })
  }
}

const measureEveryMs = 2000
/** What a lane does that was let go of may come to its end. */
const openHandlesMs = 200
const longestTimerMs = 2 ** 31 - 1

async function main(): Promise<void> {
  const compiled = (await loadApplication(data.application)).compile(data.compiling)
  const topology = splitTopology(compiled, data.split)
  refuseOther(data.described, describeText(topology))
  const { lanes, stateDir, applicationId } = data
  const turns = new Turns(() => core)
  const telemetry = data.traceRoots === null ? undefined : await startTracing(data.traceRoots)
  // At once, before anything behind it is acknowledged: a function of the application may catch the error.
  const stored = await backends(stateDir, applicationId, lane, (error) => core.fault(error))
  const core = new LaneCore({
    lane,
    lanes,
    applicationId,
    topology,
    clock: systemClock,
    backends: stored,
    policies: data.policies,
    maxInFlight: data.maxInFlight,
    timers: { turns: systemTimers, pauses: systemTimers, timeouts: systemTimers },
    random: systemRandom,
    uncommittedMaxBytes: data.uncommittedMaxBytes,
    maxDirtyRows: data.maxDirtyRows,
    writeBehind: data.writeBehind,
    layout: data.layout,
    counters: data.counters,
    tellsInput: true,
    toEngine: send,
    toLane: (to, message, transfer) => (peers[to] as MessagePort).postMessage(message, transfer),
    wake: () => turns.wake(),
    failpoint: failpointOfProcess(),
    log: new LogLines(data.logLevel, lane, systemClock, (line) => {
      const fields = { ...line.fields, ...telemetry?.tracing.fields() }
      send({ type: 'log', lane, line: { ...line, fields } })
    }),
    tracing: telemetry?.tracing,
  })
  // However the thread ends: the one that takes its place opens the same files.
  process.on('exit', () => stored.close())
  const take = serve(core, stored, turns, () => void telemetry?.flush())
  // Nothing can be read or written before the serdes know their schemas: what the engine asks for waits until then.
  let held: ToLane[] | undefined = data.schemas === null ? undefined : []
  engine.on('message', (message: ToLane | LanePeer) => {
    if (message.type === 'peer') replacePeer(core, message)
    else if (held === undefined || message.type === 'stop' || message.type === 'reset') take(message)
    else held.push(message)
  })
  sampleUsage()
  setInterval(() => core.tasks.measure(), measureEveryMs).unref()
  await connectSchemas(topology, data.schemas)
  send({ type: 'ready', lane })
  const waiting = held ?? []
  held = undefined
  for (const message of waiting) take(message)
}

/** Connects the core with other threads; gives what takes the engine's messages. */
function serve(
  core: LaneCore,
  stored: StoreBackendFactory,
  turns: Turns,
  flushTracing: () => void,
): (message: ToLane) => void {
  for (const peer of peers) peer?.on('message', (message: LaneToLane) => core.receiveFromLane(message))
  const end = (): void => {
    turns.stop()
    for (const peer of peers) peer?.close()
    engine.close()
    data.schemas?.close()
    parentPort?.close()
  }
  parentPort?.on('message', (message: LaneQuery | LaneAbandoned) => {
    if (message.type === 'query') {
      parentPort?.postMessage(core.query(message))
      return
    }
    end()
    core.tasks.discard()
    stored.close()
    // What the application has open would keep the thread: nobody needs it any more.
    setTimeout(() => process.exit(0), openHandlesMs).unref()
  })
  return (message) => {
    core.receive(message)
    if (message.type === 'stop') {
      end()
      // The thread ends when this has ended.
      flushTracing()
    } else {
      turns.wake()
    }
  }
}

function replacePeer(core: LaneCore, { lane: other, port }: LanePeer): void {
  peers[other]?.close()
  peers[other] = port
  port.on('message', (message: LaneToLane) => core.receiveFromLane(message))
}

async function startTracing(roots: number): Promise<{ tracing: RecordTracing; flush: () => Promise<void> }> {
  const { flushSpans, loadOtelApi } = await import('./telemetry/api.ts')
  const { RecordTracing } = await import('./telemetry/record-tracing.ts')
  const api = await loadOtelApi()
  const { applicationId } = data
  return {
    tracing: new RecordTracing({ api, applicationId, roots, random: systemRandom }),
    flush: () => flushSpans(api),
  }
}

/** Threads name nodes and stores to one another: each has to have the same ones, or state gets lost without a word. */
function refuseOther(described: string, here: string): void {
  if (described === here) return
  const lines = here.split('\n')
  const at = described.split('\n').findIndex((line, i) => line !== lines[i])
  throw new EngineError(
    'APPLICATION_INVALID',
    `the build function gives another topology in each thread: "${described.split('\n')[at]?.trim()}" on the control thread is ` +
      `"${lines[at]?.trim()}" in lane-${lane}. Names must not depend on chance, time or the thread`,
  )
}

/** The database is loaded only where stores are durable: that takes a tenth of a lane's start. */
async function backends(
  stateDir: string | null,
  applicationId: string,
  lane: number,
  onLost: (error: EngineError) => void,
): Promise<StoreBackendFactory> {
  if (stateDir === null) return memoryBackends()
  const { lmdbBackends } = await import('../state/backends.ts')
  const onQuarantine = (folder: string, reason: string): void => {
    const message = `files of stores were set aside as ${folder}, and the stores are rebuilt from their changelogs: ${reason}`
    send({ type: 'notice', lane, message })
  }
  const isAbandoned = (): boolean => data.counters[laneIndex.abandoned] !== 0
  return lmdbBackends({ dir: stateDir, applicationId, lane, onQuarantine, onLost, isAbandoned })
}

let lastLoop = performance.eventLoopUtilization()

/** CPU and heap of this thread, for the metrics. */
function sampleUsage(): void {
  const usage = process.threadCpuUsage()
  data.counters[laneIndex.cpuMs] = (usage.user + usage.system) / 1000 + cpuMsBefore
  data.counters[laneIndex.heapUsedBytes] = process.memoryUsage().heapUsed
  const loop = performance.eventLoopUtilization()
  data.counters[laneIndex.loopUtilization] = performance.eventLoopUtilization(loop, lastLoop).utilization
  lastLoop = loop
  setTimeout(sampleUsage, 1000).unref()
}

process.on('unhandledRejection', (reason) => {
  // Of a record, where a processor did not wait for what `context.forward` promised: the policy let none go further.
  if (EngineError.is(reason) && reason.recovery === 'abort-epoch') return fault(reason)
  // It ends the thread like an error that nothing catches; `src/runtime/engine/lane-end.ts` knows it by its code.
  const ends = new EngineError('LANE_FAILED', messageOf(reason), { lane })
  ends.stack = (reason instanceof Error ? reason.stack : undefined) ?? ''
  throw ends
})

main().catch((error) => fault(error))
