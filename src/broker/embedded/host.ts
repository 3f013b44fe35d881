/** The thread that holds the embedded broker: serves any number of message ports. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../base/assert.ts'
import { systemClock } from '../../base/clock.ts'
import { Random } from '../../base/random.ts'
import { servePort } from '../calls/serve-port.ts'
import type { BrokerTrouble } from '../port.ts'
import { ClusterTimer } from './cluster-timer.ts'
import { EmbeddedCluster } from './core/cluster.ts'
import { MemoryStorage } from './core/memory-storage.ts'
import { openDiskStorage } from './disk-storage.ts'
import { HeldWrites } from './held-writes.ts'
import { asBrokerError, perform } from './operations.ts'

export interface HostOptions {
  readonly folder: string | null
  readonly partitions: number
  readonly autoCreateTopics: boolean
  readonly fsync: boolean
  readonly seed: number
  readonly initialRebalanceDelayMs: number
}
export type ToHost = { readonly connect: MessagePort } | { readonly close: true }
export type FromHost =
  | { readonly ready: true }
  | { readonly closed: true }
  | { readonly trouble: BrokerTrouble | null }
  | { readonly failed: { readonly code: string; readonly message: string } }

assert(parentPort !== null, 'the host of the embedded broker runs as a worker thread')
const parent: MessagePort = parentPort as unknown as MessagePort
const options = workerData as HostOptions
const ports = new Set<MessagePort>()

try {
  const { partitions, autoCreateTopics, initialRebalanceDelayMs } = options
  const storage =
    options.folder === null ? new MemoryStorage() : openDiskStorage(options.folder, { fsync: options.fsync })
  const random = new Random(options.seed)
  const common = { clock: systemClock, random, storage, partitions, autoCreateTopics, initialRebalanceDelayMs }
  const cluster = new EmbeddedCluster(common)
  const timer = new ClusterTimer(cluster, systemClock)
  const held = new HeldWrites({
    perform: (name, args, reply, done) => perform(cluster, name, args, reply, done),
    tried: () => handled(),
    told: (error) => tell(error === null ? null : { isWaiting: true, sentence: error.message }),
  })
  let isStopped = false
  const handled = (): void => {
    timer.arm()
    if (isStopped || cluster.stopped === undefined) return
    isStopped = true
    tell({ isWaiting: false, sentence: cluster.stopped.message })
  }
  parent.on('message', (message: ToHost) => {
    if ('connect' in message) serve(message.connect, held, handled)
    else {
      timer.stop()
      held.close()
      stop(cluster)
    }
  })
  parent.postMessage({ ready: true } satisfies FromHost)
} catch (error) {
  const { code, message } = asBrokerError(error)
  parent.postMessage({ failed: { code, message } } satisfies FromHost)
}

function tell(trouble: BrokerTrouble | null): void {
  parent.postMessage({ trouble } satisfies FromHost)
}

function serve(port: MessagePort, held: HeldWrites, handled: () => void): void {
  ports.add(port)
  servePort(port, held.perform, { handled, closed: () => ports.delete(port) })
}

function stop(cluster: EmbeddedCluster): void {
  for (const port of ports) port.close()
  cluster.close()
  parent.postMessage({ closed: true } satisfies FromHost)
  parent.close()
}
