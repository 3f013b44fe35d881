/** The thread that holds the embedded broker: serves any number of message ports. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../base/assert.ts'
import { systemClock } from '../../base/clock.ts'
import { Random } from '../../base/random.ts'
import { ClusterTimer } from './cluster-timer.ts'
import { EmbeddedCluster } from './core/cluster.ts'
import { MemoryStorage } from './core/memory-storage.ts'
import { openDiskStorage } from './disk-storage.ts'
import {
  asBrokerError,
  type Cancel,
  type CancelRequest,
  type OperationName,
  perform,
  type Request,
  type Response,
} from './operations.ts'

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
  parent.on('message', (message: ToHost) => {
    if ('connect' in message) serve(cluster, timer, message.connect)
    else stop(cluster, timer)
  })
  parent.postMessage({ ready: true } satisfies FromHost)
} catch (error) {
  const { code, message } = asBrokerError(error)
  parent.postMessage({ failed: { code, message } } satisfies FromHost)
}

function serve(cluster: EmbeddedCluster, timer: ClusterTimer, port: MessagePort): void {
  const cancels = new Map<number, Cancel>()
  ports.add(port)
  port.on('message', (message: Request | CancelRequest) => {
    if ('cancel' in message) cancels.get(message.cancel)?.()
    else answerTo(cluster, port, cancels, message)
    timer.arm()
  })
  port.on('close', () => {
    ports.delete(port)
    for (const cancel of cancels.values()) cancel()
    cancels.clear()
  })
}

function answerTo<K extends OperationName>(
  cluster: EmbeddedCluster,
  port: MessagePort,
  cancels: Map<number, Cancel>,
  { id, name, args }: Request<K>,
): void {
  let settled = false
  const settle = (response: Response, transfer: readonly ArrayBuffer[]): void => {
    settled = true
    cancels.delete(id)
    port.postMessage(response, transfer)
  }
  const cancel = perform(cluster, name, args, {
    done: (answer) => {
      settle({ id, answer }, name === 'fetch' ? recordBuffers(answer) : [])
    },
    fail: ({ code, message, errorClass }) => {
      settle({ id, code, message, errorClass }, [])
    },
  })
  if (!settled) cancels.set(id, cancel)
}

/** Fetched records are made for their receiver: they change hands without a copy. */
function recordBuffers(answer: unknown): ArrayBuffer[] {
  const fetched = answer as ReadonlyArray<{ readonly records: Uint8Array<ArrayBuffer> }>
  return fetched.flatMap(({ records }) => (records.length === 0 ? [] : [records.buffer]))
}

function stop(cluster: EmbeddedCluster, timer: ClusterTimer): void {
  timer.stop()
  for (const port of ports) port.close()
  cluster.close()
  parent.postMessage({ closed: true } satisfies FromHost)
  parent.close()
}
