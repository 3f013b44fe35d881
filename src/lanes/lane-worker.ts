/** Thread of one lane: channels and timers around `LaneCore`. */
import { performance } from 'node:perf_hooks'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../base/clock.ts'
import { type CounterLayout, laneIndex } from '../base/counters.ts'
import { systemTimers } from '../base/timers.ts'
import { EngineError, messageOf, toWireError } from '../errors.ts'
import { lmdbBackends, memoryBackends } from '../state/backends.ts'
import { type SplitMode, splitTopology } from '../topology/split.ts'
import { loadApplication } from './application.ts'
import type { ErrorPolicies } from './error-policy.ts'
import { LaneCore } from './lane-core.ts'
import type { FromLane, LaneToLane, ToLane } from './protocol.ts'

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

async function main(): Promise<void> {
  const compiled = (await loadApplication(data.application)).compile({ optimize: data.optimize })
  const topology = splitTopology(compiled, data.split)
  let scheduled = false
  let timer: (() => void) | undefined
  let timerAt = Number.POSITIVE_INFINITY
  const loop = (): void => {
    scheduled = false
    const before = performance.now()
    const more = core.run()
    const spent = performance.now() - before
    core.counters.add(laneIndex.busyMs, spent)
    if (more) wake()
    arm()
  }
  const wake = (): void => {
    if (scheduled) return
    scheduled = true
    systemTimers.soon(loop)
  }
  /** One timer for the earliest wall-clock deadline of all tasks. */
  const arm = (): void => {
    const next = core.nextWallClock()
    if (next === timerAt) return
    timer?.()
    timerAt = next
    timer = undefined
    if (next === Number.POSITIVE_INFINITY) return
    timer = systemTimers.after(Math.min(Math.max(0, next - systemClock.now()), 2 ** 31 - 1), () => {
      timerAt = Number.POSITIVE_INFINITY
      core.tick(systemClock.now())
      wake()
      arm()
    })
  }
  const backends =
    data.stateDir === null
      ? memoryBackends()
      : lmdbBackends({ dir: data.stateDir, applicationId: data.applicationId, lane })
  const core = new LaneCore({
    lane,
    lanes: data.lanes,
    applicationId: data.applicationId,
    topology,
    clock: systemClock,
    backends,
    policies: data.policies,
    maxInFlight: data.maxInFlight,
    uncommittedMaxBytes: data.uncommittedMaxBytes,
    layout: data.layout,
    counters: data.counters,
    toEngine: send,
    toLane: (to, message, transfer) => (data.peers[to] as MessagePort).postMessage(message, transfer),
    wake,
  })
  for (const peer of data.peers) peer?.on('message', (message: LaneToLane) => core.receiveFromLane(message))
  engine.on('message', (message: ToLane) => {
    core.receive(message)
    if (message.type === 'stop') {
      timer?.()
      for (const peer of data.peers) peer?.close()
      engine.close()
      parentPort?.close()
      return
    }
    wake()
  })
  process.on('unhandledRejection', (reason) => {
    fault(
      new EngineError(
        'PROCESSING_FAILED',
        `a promise in the application was rejected and nobody handled it: ${messageOf(reason)}`,
        {
          cause: reason,
          lane,
        },
      ),
    )
  })
  sampleUsage()
  send({ type: 'ready', lane })
}

/** CPU and heap of this thread, for the metrics. */
function sampleUsage(): void {
  const usage = process.threadCpuUsage()
  data.counters[laneIndex.cpuMs] = (usage.user + usage.system) / 1000
  data.counters[laneIndex.heapUsedBytes] = process.memoryUsage().heapUsed
  setTimeout(sampleUsage, 1000).unref()
}

main().catch((error) => fault(error))
