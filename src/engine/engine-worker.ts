/** Thread of the engine: channels around `EngineCore`. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../base/clock.ts'
import { type CounterLayout, engineIndex } from '../base/counters.ts'
import { failpointOfProcess } from '../base/failpoint.ts'
import { systemRandom } from '../base/random.ts'
import { systemTimers } from '../base/timers.ts'
import type { BrokerPort } from '../broker/port.ts'
import { type BrokerAddress, connectBroker } from '../broker/connect.ts'
import { EngineError, messageOf, toWireError } from '../base/errors.ts'
import { type Compiling, loadApplication } from '../lanes/application.ts'
import { type CursorTimestamp, extractorsOf } from '../lanes/extraction.ts'
import type { FromLane, LanePeer } from '../lanes/protocol.ts'
import { connectSchemas } from '../lanes/schema-port.ts'
import type { EngineTracing } from '../lanes/telemetry/engine-tracing.ts'
import { EngineCore } from './engine-core.ts'
import type { EngineFact, ToEngine } from './protocol.ts'
import { BrokerQuestions } from './recovery/broker-questions.ts'
import type { EngineSettings } from './settings.ts'

export interface EngineWorkerData {
  readonly application: string
  readonly compiling: Compiling
  readonly settings: EngineSettings
  readonly broker: BrokerAddress
  readonly lanes: readonly MessagePort[]
  readonly layout: CounterLayout
  readonly counters: Float64Array
  readonly laneCounters: readonly Float64Array[]
  readonly nodeNames: readonly string[]
  /** With OpenTelemetry: the share of polls and commits that are traced; null without. */
  readonly traceRoots: number | null
  /** Where schemas are asked for; null where no serde of a source uses a registry. */
  readonly schemas: MessagePort | null
}

const data = workerData as EngineWorkerData
const control = parentPort as MessagePort
/** By lane; of the thread that it has now. */
const lanes = [...data.lanes]

function fact(message: EngineFact): void {
  control.postMessage(message)
}

async function main(): Promise<void> {
  const telemetry = data.traceRoots === null ? undefined : await startTracing(data.traceRoots)
  const connected: BrokerPort = await connectBroker(data.broker)
  const broker = telemetry?.tracing.around(connected) ?? connected
  const questions = new BrokerQuestions(connected, data.broker)
  const { extractors, known } = await timestamps()
  const core = new EngineCore({
    settings: data.settings,
    broker,
    clock: systemClock,
    timers: systemTimers,
    layout: data.layout,
    counters: data.counters,
    laneCounters: data.laneCounters,
    nodeNames: data.nodeNames,
    extractors,
    failpoint: failpointOfProcess(),
    committed: telemetry && ((report) => telemetry.tracing.commit(report)),
    send: (lane, message, transfer) => (lanes[lane] as MessagePort).postMessage(message, transfer),
    fact,
  })
  const hear = (port: MessagePort): void => {
    port.on('message', (message: FromLane) => {
      // Nothing is fetched before the lanes are ready, and nothing may be before a record's time can be read.
      if (message.type === 'ready') void known.then(() => core.laneMessage(message))
      else core.laneMessage(message)
    })
  }
  lanes.forEach(hear)
  control.on('message', (message: ToEngine) => {
    switch (message.type) {
      case 'start':
        void core.start()
        return
      case 'pause':
        core.pause(message.id)
        return
      case 'unpause':
        core.unpause()
        return
      case 'stop':
        void core.stop().then(async () => {
          await questions.close()
          await broker.close()
          await telemetry?.flush()
          for (const port of lanes) port.close()
          data.schemas?.close()
          control.close()
        })
        return
      case 'until-idle':
        void core.untilIdle().then((isIdle) => isIdle && fact({ type: 'idle', id: message.id }))
        return
      case 'question':
        void questions.answer(message.question).then((answer) => fact({ type: 'answer', id: message.id, answer }))
        return
      case 'lane-lost':
        core.laneLost(message.lane, message.reason)
        return
      case 'lane-made':
        hear(replaceLane(message))
        core.laneMade(message.lane)
        return
      default:
        core.haCommand(message)
    }
  })
  sampleUsage()
  fact({ type: 'started' })
}

/**
 * The other lanes hear of it here, in front of all that the engine tells them of the next run: what they hand over then
 * takes the new way.
 */
function replaceLane({ lane, port, peers }: Extract<ToEngine, { type: 'lane-made' }>): MessagePort {
  lanes[lane]?.close()
  lanes[lane] = port
  for (const [other, peer] of peers.entries()) {
    const message: LanePeer | null = peer && { type: 'peer', lane, port: peer }
    if (message !== null) lanes[other]?.postMessage(message, [message.port])
  }
  return port
}

async function startTracing(roots: number): Promise<{ tracing: EngineTracing; flush: () => Promise<void> }> {
  const { flushSpans, loadOtelApi } = await import('../lanes/telemetry/api.ts')
  const { EngineTracing } = await import('../lanes/telemetry/engine-tracing.ts')
  const api = await loadOtelApi()
  const { applicationId } = data.settings
  const now = (): number => systemClock.now()
  return {
    tracing: new EngineTracing({ api, applicationId, roots, random: systemRandom, now }),
    flush: () => flushSpans(api),
  }
}

/** The application is loaded here only where it has timestamp functions of its own. */
async function timestamps(): Promise<{ extractors: ReadonlyMap<number, CursorTimestamp>; known: Promise<void> }> {
  if (!data.settings.plan.sources.some((source) => source.extractsTimestamp))
    return { extractors: new Map(), known: Promise.resolve() }
  const application = await loadApplication(data.application)
  const topology = application.compile(data.compiling)
  const known = connectSchemas(topology, data.schemas, true)
  // The lanes are told the same, and say so.
  known.catch(() => undefined)
  return { extractors: extractorsOf(topology.sources), known }
}

/** CPU and heap of this thread, for the metrics. */
function sampleUsage(): void {
  const usage = process.threadCpuUsage()
  data.counters[engineIndex.cpuMs] = (usage.user + usage.system) / 1000
  data.counters[engineIndex.heapUsedBytes] = process.memoryUsage().heapUsed
  setTimeout(sampleUsage, 1000).unref()
}

process.on('unhandledRejection', (reason) => {
  const error = EngineError.is(reason)
    ? reason
    : new EngineError('INVARIANT_BROKEN', messageOf(reason), { cause: reason })
  fact({ type: 'failed', error: toWireError(error), restartHelps: true })
})

main().catch((error) => fact({ type: 'failed', error: toWireError(error), restartHelps: false }))
