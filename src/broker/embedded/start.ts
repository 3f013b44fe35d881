/** Starting the embedded broker in a thread of its own. */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { EngineError } from '../../base/errors.ts'
import { BrokerError, type BrokerTrouble } from '../port.ts'
import type { EmbeddedClient } from './embedded-client.ts'
import type { FromHost, HostOptions, ToHost } from './host.ts'
import { clientOverPort } from './client.ts'

/** How an embedded broker keeps its data. */
export interface EmbeddedBrokerOptions {
  /** Where it keeps its data. Default: in memory alone. */
  readonly folder?: string
  /** How many partitions a topic gets that is made at its first use. Topics that an application makes have `broker.embedded.partitions`. */
  readonly partitions: number
  /** Whether a topic that does not exist is made at its first use. Default: true. */
  readonly autoCreateTopics?: boolean
  /**
   * Whether bytes are forced to the disk when a transaction ends. Without, what was acknowledged survives the end of
   * the process, by whatever signal, but not that of the machine. Default: false.
   */
  readonly fsync?: boolean
  /** Fixes the ids that the broker makes up, for tests. Default: by chance. */
  readonly seed?: number
  /** How long a group that was empty waits for further members, milliseconds. Default: 0. */
  readonly initialRebalanceDelayMs?: number
}

/** A broker in a thread of this process. */
export interface EmbeddedBroker {
  /** Where it keeps its data; left out, in memory alone. */
  readonly folder?: string
  /** Why nothing is stored at present, in a sentence; null: all is well. While the disk is full, writes wait for room. */
  readonly trouble?: { readonly isWaiting: boolean; readonly sentence: string } | null
  /** A new connection, to be sent to another thread and used there with `clientOverPort`. */
  connect(): MessagePort
  /** A new connection for this thread. */
  client(clientId?: string): EmbeddedClient
  /** Ends all connections, then the thread. What was acknowledged is stored. */
  close(): Promise<void>
}

/**
 * Starts an embedded broker in a thread of its own. Applications start one by themselves; start one to share it between
 * several. Rejects with a `BrokerError` where the folder cannot be used, for example because another process holds it, and
 * with an `EngineError` where files of it are damaged.
 *
 * @throws EngineError `BROKER_FILES_DAMAGED`
 * @example
 * const broker = await startEmbeddedBroker({ partitions: 4 })
 * const first = await startRuntime({ application: './orders.ts', broker, config: { 'runtime.http.enabled': false } })
 */
export async function startEmbeddedBroker(options: EmbeddedBrokerOptions): Promise<EmbeddedBroker> {
  const workerData: HostOptions = {
    folder: options.folder ?? null,
    partitions: options.partitions,
    autoCreateTopics: options.autoCreateTopics ?? true,
    fsync: options.fsync ?? false,
    seed: options.seed ?? crypto.getRandomValues(new Uint32Array(1))[0] ?? 0,
    initialRebalanceDelayMs: options.initialRebalanceDelayMs ?? 0,
  }
  const worker = new Worker(new URL('./host.ts', import.meta.url), { workerData, name: 'embedded-broker' })
  const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
  await ready(worker, exited)
  let trouble: BrokerTrouble | null = null
  worker.on('message', (message: FromHost) => {
    if ('trouble' in message) trouble = message.trouble
  })
  // Whoever waits for an answer keeps the process alive; the broker alone does not.
  worker.unref()
  const connect = (): MessagePort => {
    const { port1, port2 } = new MessageChannel()
    worker.postMessage({ connect: port2 } satisfies ToHost, [port2])
    return port1
  }
  return {
    ...(options.folder !== undefined && { folder: options.folder }),
    get trouble() {
      return trouble
    },
    connect,
    client: (clientId) => clientOverPort(connect(), clientId === undefined ? {} : { clientId }),
    close: async () => {
      worker.ref()
      worker.postMessage({ close: true } satisfies ToHost)
      await exited
    },
  }
}

async function ready(worker: Worker, exited: Promise<void>): Promise<void> {
  const message = await new Promise<FromHost>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  if (!('failed' in message)) return
  await exited
  if (message.failed.code === 'BROKER_FILES_DAMAGED') {
    throw new EngineError('BROKER_FILES_DAMAGED', message.failed.message)
  }
  throw new BrokerError(message.failed.code, message.failed.message, 'config')
}
