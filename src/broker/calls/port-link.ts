/** Calls over a message port, to a broker that another thread serves. */
import type { MessagePort } from 'node:worker_threads'
import { BrokerError } from '../port.ts'
import type { Link } from './linked-broker.ts'
import type { Answer, Arguments, CancelRequest, OperationName, Request, Response } from './protocol.ts'
import { fromWireCause } from './wire-cause.ts'

interface Pending {
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: BrokerError) => void
}

export class PortLink implements Link {
  connected = true
  readonly #port: MessagePort
  readonly #closed: () => BrokerError
  readonly #pending = new Map<number, Pending>()
  #nextId = 1

  /** `closed`: what calls fail with once the connection is. */
  constructor(port: MessagePort, closed: () => BrokerError) {
    this.#port = port
    this.#closed = closed
    port.on('message', (response: Response) => {
      this.#settle(response)
    })
    port.on('close', () => {
      this.#disconnected()
    })
    // Only a call under way keeps the process alive.
    port.unref()
  }

  call<K extends OperationName>(
    name: K,
    args: Arguments<K>,
    transfer: readonly ArrayBuffer[] = [],
    signal?: AbortSignal,
  ): Promise<Answer<K>> {
    if (!this.connected) return Promise.reject(this.#closed())
    const id = this.#nextId++
    const answer = new Promise<Answer<K>>((resolve, reject) => {
      this.#pending.set(id, { resolve: resolve as Pending['resolve'], reject })
    })
    if (this.#pending.size === 1) this.#port.ref()
    this.#port.postMessage({ id, name, args } satisfies Request<K>, transfer)
    return signal === undefined ? answer : this.#cancellable(id, answer, signal)
  }

  async close(): Promise<void> {
    if (!this.connected) return
    this.#port.close()
    this.#disconnected()
  }

  async #cancellable<T>(id: number, answer: Promise<T>, signal: AbortSignal): Promise<T> {
    const cancel = (): void => {
      if (this.connected) this.#port.postMessage({ cancel: id } satisfies CancelRequest)
    }
    if (signal.aborted) cancel()
    else signal.addEventListener('abort', cancel)
    try {
      return await answer
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  }

  #settle(response: Response): void {
    const pending = this.#pending.get(response.id)
    if (pending === undefined) return
    this.#pending.delete(response.id)
    if (this.#pending.size === 0) this.#port.unref()
    if (!('code' in response)) {
      pending.resolve(response.answer)
      return
    }
    const { code, message, errorClass, cause } = response
    pending.reject(new BrokerError(code, message, errorClass, cause && fromWireCause(cause)))
  }

  #disconnected(): void {
    this.connected = false
    for (const { reject } of this.#pending.values()) reject(this.#closed())
    this.#pending.clear()
  }
}
