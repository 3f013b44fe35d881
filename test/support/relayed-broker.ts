/** An embedded broker whose connections can be slowed down, silenced for single calls, and cut, as a network's can. */
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { EmbeddedBroker } from '../../src/runtime/index.ts'

interface Asked {
  readonly id?: number
  readonly name?: string
}

export class RelayedBroker implements EmbeddedBroker {
  /** Every call of such a name takes so much longer. */
  delayMs: Readonly<Record<string, number>> = {}
  readonly #broker: EmbeddedBroker
  readonly #links: Array<readonly [MessagePort, MessagePort]> = []

  constructor(broker: EmbeddedBroker) {
    this.#broker = broker
  }

  connect(): MessagePort {
    const inner = this.#broker.connect()
    const { port1: outer, port2: given } = new MessageChannel()
    this.#links.push([inner, outer])
    outer.on('message', (message: Asked) => {
      const delayMs = this.delayMs[message.name ?? ''] ?? 0
      if (delayMs === Number.POSITIVE_INFINITY) return
      if (delayMs === 0) inner.postMessage(message)
      else setTimeout(() => inner.postMessage(message), delayMs)
    })
    inner.on('message', (message: unknown) => outer.postMessage(message))
    inner.on('close', () => outer.close())
    outer.on('close', () => inner.close())
    return given
  }

  client(clientId?: string): ReturnType<EmbeddedBroker['client']> {
    return this.#broker.client(clientId)
  }

  /** Ends the connections that went through here. */
  cut(): void {
    for (const [inner, outer] of this.#links.splice(0)) {
      inner.close()
      outer.close()
    }
  }

  close(): Promise<void> {
    this.cut()
    return this.#broker.close()
  }
}
