/** Thread of the engine: channels around `EngineCore`. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../base/clock.ts'
import { type CounterLayout, engineIndex } from '../base/counters.ts'
import { failpointOfProcess } from '../base/failpoint.ts'
import { systemTimers } from '../base/timers.ts'
import type { BrokerPort } from '../broker/port.ts'
import { type BrokerAddress, connectBroker } from '../broker/connect.ts'
import { EngineError, messageOf, toWireError } from '../errors.ts'
import { loadApplication } from '../lanes/application.ts'
import { type CursorTimestamp, extractorsOf } from '../lanes/extraction.ts'
import type { FromLane } from '../lanes/protocol.ts'
import { EngineCore } from './engine-core.ts'
import type { EngineFact, ToEngine } from './protocol.ts'
import type { EngineSettings } from './settings.ts'

export interface EngineWorkerData {
  readonly application: string
  readonly optimize: boolean
  readonly settings: EngineSettings
  readonly broker: BrokerAddress
  readonly lanes: readonly MessagePort[]
  readonly layout: CounterLayout
  readonly counters: Float64Array
  readonly laneCounters: readonly Float64Array[]
  readonly nodeNames: readonly string[]
}

const data = workerData as EngineWorkerData
const control = parentPort as MessagePort

function fact(message: EngineFact): void {
  control.postMessage(message)
}

async function main(): Promise<void> {
  const broker: BrokerPort = await connectBroker(data.broker)
  const core = new EngineCore({
    settings: data.settings,
    broker,
    clock: systemClock,
    timers: systemTimers,
    layout: data.layout,
    counters: data.counters,
    laneCounters: data.laneCounters,
    nodeNames: data.nodeNames,
    extractors: await extractors(),
    failpoint: failpointOfProcess(),
    send: (lane, message, transfer) => (data.lanes[lane] as MessagePort).postMessage(message, transfer),
    fact,
  })
  for (const port of data.lanes) port.on('message', (message: FromLane) => core.laneMessage(message))
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
          await broker.close()
          for (const port of data.lanes) port.close()
          control.close()
        })
        return
      case 'until-idle':
        void core.untilIdle().then(() => fact({ type: 'idle', id: message.id }))
        return
      case 'lane-lost':
        core.laneLost(message.lane, message.reason)
        return
      default:
        core.haCommand(message)
    }
  })
  sampleUsage()
  fact({ type: 'started' })
}

/** The application is loaded here only where it has timestamp functions of its own. */
async function extractors(): Promise<ReadonlyMap<number, CursorTimestamp>> {
  if (!data.settings.plan.sources.some((source) => source.extractsTimestamp)) return new Map()
  const application = await loadApplication(data.application)
  return extractorsOf(application.compile({ optimize: data.optimize }).sources)
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
