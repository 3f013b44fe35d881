/**
 * Clients whose library is loaded in a thread of their own. Loading it takes a quarter of the CPU of a start, seconds on a
 * busy machine, and the control thread has to answer meanwhile.
 */
import { MessageChannel, Worker } from 'node:worker_threads'
import { type Link, LinkedBroker } from '../../calls/linked-broker.ts'
import { PortLink } from '../../calls/port-link.ts'
import type { Answer, Arguments, OperationName } from '../../calls/protocol.ts'
import { BrokerError, isBroken } from '../../port.ts'
import type { KafkaOptions } from '../options.ts'

/** The thread begins with the first call: most processes need none. */
export class KafkaClientsApart {
  readonly #options: KafkaOptions
  #worker: Worker | undefined
  #closed = false

  constructor(options: KafkaOptions) {
    this.#options = options
  }

  /** A client with connections of its own. */
  client(): LinkedBroker {
    return new KafkaClient(new LateLink(() => this.#link()), this.#options.clientId)
  }

  async close(): Promise<void> {
    this.#closed = true
    // One that is ended while it loads its library may fail on a module that is there by half.
    this.#worker?.on('error', () => undefined)
    await this.#worker?.terminate()
  }

  #link(): Link {
    if (this.#closed) throw closed()
    this.#worker ??= this.#start()
    const { port1, port2 } = new MessageChannel()
    this.#worker.postMessage(port2, [port2])
    return new PortLink(port1, closed)
  }

  #start(): Worker {
    const worker = new Worker(new URL('./thread.ts', import.meta.url), {
      name: 'kafka-client',
      workerData: this.#options,
    })
    // Whoever waits for an answer keeps the process alive; the thread alone does not.
    worker.unref()
    return worker
  }
}

class KafkaClient extends LinkedBroker {
  readonly kind = 'kafka'
}

/** A connection that begins with its first call, and knows how the last one went. */
class LateLink implements Link {
  connected = false
  fault: string | undefined
  readonly #open: () => Link
  #link: Link | undefined
  #closed = false

  constructor(open: () => Link) {
    this.#open = open
  }

  async call<K extends OperationName>(
    name: K,
    args: Arguments<K>,
    transfer?: readonly ArrayBuffer[],
    signal?: AbortSignal,
  ): Promise<Answer<K>> {
    if (this.#closed) throw closed()
    this.#link ??= this.#open()
    try {
      const answer = await this.#link.call(name, args, transfer, signal)
      this.connected = true
      this.fault = undefined
      return answer
    } catch (error) {
      this.connected = error instanceof BrokerError && !isBroken(error)
      this.fault = this.connected ? undefined : (error as Error).message
      throw error
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.connected = false
    await this.#link?.close()
  }
}

function closed(): BrokerError {
  return new BrokerError('CLOSED', 'The client of Kafka is closed; start the application again.', 'unreachable')
}
