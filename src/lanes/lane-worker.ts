/** Thread of one lane: channels and timers around `LaneCore`. */
import { performance } from 'node:perf_hooks'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../base/clock.ts'
import { type CounterLayout, laneIndex } from '../base/counters.ts'
import { failpointOfProcess } from '../base/failpoint.ts'
import { systemTimers } from '../base/timers.ts'
import { EngineError, messageOf, toWireError } from '../errors.ts'
import type { StoreBackendFactory } from '../state/contract.ts'
import { memoryBackends } from '../state/memory-backend.ts'
import { type SplitMode, splitTopology } from '../topology/split.ts'
import { loadApplication } from './application.ts'
import type { ErrorPolicies } from './error-policy.ts'
import { LaneCore } from './lane-core.ts'
import type { FromLane, LaneQuery, LaneToLane, ToLane } from './protocol.ts'
import type { WriteBehindOptions } from './store-writer.ts'

export interface LaneWorkerData {
  readonly lane: number
  readonly lanes: number
  readonly application: string
  readonly applicationId: string
  readonly optimize: boolean
  readonly split: SplitMode
  readonly stateDir: string | null
  readonly policies: ErrorPolicies
  readonly maxInFlight: number
  readonly uncommittedMaxBytes: number
  readonly writeBehind: WriteBehindOptions
  readonly layout: CounterLayout
  readonly counters: Float64Array
  readonly engine: MessagePort
  /** Channels to the other lanes; null at the own place. */
  readonly peers: ReadonlyArray<MessagePort | null>
}

const data = workerData as LaneWorkerData
const { lane, engine } = data

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

  constructor(core: () => LaneCore) {
    this.#core = core
  }

  wake(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    systemTimers.soon(() => this.#turn())
  }

  stop(): void {
    this.#cancelTimer?.()
  }

  #turn(): void {
    this.#scheduled = false
    const core = this.#core()
    const before = performance.now()
    const more = core.run()
    core.counters.add(laneIndex.busyMs, performance.now() - before)
    if (more) this.wake()
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
const longestTimerMs = 2 ** 31 - 1

async function main(): Promise<void> {
  const compiled = (await loadApplication(data.application)).compile({ optimize: data.optimize })
  const { lanes, stateDir, applicationId, peers } = data
  const turns = new Turns(() => core)
  const core = new LaneCore({
    lane,
    lanes,
    applicationId,
    topology: splitTopology(compiled, data.split),
    clock: systemClock,
    backends: await backends(stateDir, applicationId, lane),
    policies: data.policies,
    maxInFlight: data.maxInFlight,
    uncommittedMaxBytes: data.uncommittedMaxBytes,
    writeBehind: data.writeBehind,
    layout: data.layout,
    counters: data.counters,
    toEngine: send,
    toLane: (to, message, transfer) => (peers[to] as MessagePort).postMessage(message, transfer),
    wake: () => turns.wake(),
    failpoint: failpointOfProcess(),
  })
  for (const peer of peers) peer?.on('message', (message: LaneToLane) => core.receiveFromLane(message))
  parentPort?.on('message', (query: LaneQuery) => parentPort?.postMessage(core.query(query)))
  engine.on('message', (message: ToLane) => {
    core.receive(message)
    if (message.type === 'stop') {
      turns.stop()
      for (const peer of peers) peer?.close()
      engine.close()
      parentPort?.close()
    } else {
      turns.wake()
    }
  })
  process.on('unhandledRejection', (cause) => {
    const message = `a promise in the application was rejected and nobody handled it: ${messageOf(cause)}`
    fault(new EngineError('PROCESSING_FAILED', message, { cause, lane }))
  })
  sampleUsage()
  setInterval(() => core.tasks.measure(), measureEveryMs).unref()
  send({ type: 'ready', lane })
}

/** The database is loaded only where stores are durable: that takes a tenth of a lane's start. */
async function backends(stateDir: string | null, applicationId: string, lane: number): Promise<StoreBackendFactory> {
  if (stateDir === null) return memoryBackends()
  const { lmdbBackends } = await import('../state/backends.ts')
  return lmdbBackends({ dir: stateDir, applicationId, lane })
}

const startedAt = performance.now()
let lastLoop = performance.eventLoopUtilization()

/** CPU and heap of this thread, for the metrics. */
function sampleUsage(): void {
  const usage = process.threadCpuUsage()
  data.counters[laneIndex.cpuMs] = (usage.user + usage.system) / 1000
  const busy = data.counters[laneIndex.busyMs] ?? 0
  data.counters[laneIndex.idleMs] = Math.max(0, performance.now() - startedAt - busy)
  data.counters[laneIndex.heapUsedBytes] = process.memoryUsage().heapUsed
  const loop = performance.eventLoopUtilization()
  data.counters[laneIndex.loopUtilization] = performance.eventLoopUtilization(loop, lastLoop).utilization
  lastLoop = loop
  setTimeout(sampleUsage, 1000).unref()
}

main().catch((error) => fault(error))
