/** Starting the embedded broker in a thread of its own. */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { BrokerError } from '../port.ts'
import type { EmbeddedClient } from './embedded-client.ts'
import type { FromHost, HostOptions, ToHost } from './host.ts'
import { clientOverPort } from './client.ts'

export interface EmbeddedBrokerOptions {
  /** Where the broker keeps its data; without a folder it keeps them in memory. */
  readonly folder?: string
  /** Partitions of a topic that is made at its first use. */
  readonly partitions: number
  /** Whether producing to a topic that does not exist makes it. On by default. */
  readonly autoCreateTopics?: boolean
  /**
   * Whether bytes are forced to the disk when a transaction ends. Off by default: what was acknowledged survives the end
   * of the process, by whatever signal, but not that of the machine.
   */
  readonly fsync?: boolean
  /** Fixes the ids that the broker makes up, for tests. */
  readonly seed?: number
  /** How long a group that was empty waits for further members. 0 by default. */
  readonly initialRebalanceDelayMs?: number
}

export interface EmbeddedBroker {
  /** A new connection, to be sent to another thread and used there with `clientOverPort`. */
  connect(): MessagePort
  /** A new connection for this thread. */
  client(clientId?: string): EmbeddedClient
  /** Ends all connections, then the thread. What was acknowledged is stored. */
  close(): Promise<void>
}

/** Throws a `BrokerError` where the folder cannot be used, for one because another process holds it. */
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
  // Whoever waits for an answer keeps the process alive; the broker alone does not.
  worker.unref()
  const connect = (): MessagePort => {
    const { port1, port2 } = new MessageChannel()
    worker.postMessage({ connect: port2 } satisfies ToHost, [port2])
    return port1
  }
  return {
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
  throw new BrokerError(message.failed.code, message.failed.message, 'config')
}
