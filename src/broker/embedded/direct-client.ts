import { BrokerError } from '../port.ts'
import type { Link } from '../calls/linked-broker.ts'
import type { Answer, Arguments, OperationName } from '../calls/protocol.ts'
import type { EmbeddedCluster } from './core/cluster.ts'
import { EmbeddedClient } from './embedded-client.ts'
import { perform } from './operations.ts'

class DirectLink implements Link {
  connected = true
  readonly #cluster: EmbeddedCluster
  readonly #afterCall: () => void
  readonly #rejects = new Set<(error: BrokerError) => void>()

  constructor(cluster: EmbeddedCluster, afterCall: () => void) {
    this.#cluster = cluster
    this.#afterCall = afterCall
  }

  call<K extends OperationName>(
    name: K,
    args: Arguments<K>,
    _transfer?: readonly ArrayBuffer[],
    signal?: AbortSignal,
  ): Promise<Answer<K>> {
    return new Promise((resolve, reject) => {
      if (!this.connected) {
        reject(closed())
        return
      }
      this.#rejects.add(reject)
      let cancel: (() => void) | undefined
      const onAbort = (): void => cancel?.()
      const settled = (): void => {
        this.#rejects.delete(reject)
        signal?.removeEventListener('abort', onAbort)
      }
      cancel = perform(this.#cluster, name, args, {
        done: (answer) => {
          settled()
          resolve(answer)
        },
        fail: (error) => {
          settled()
          reject(error)
        },
      })
      if (signal?.aborted) cancel()
      else if (this.#rejects.has(reject)) signal?.addEventListener('abort', onAbort)
      this.#afterCall()
    })
  }

  async close(): Promise<void> {
    this.connected = false
    for (const reject of this.#rejects) reject(closed())
    this.#rejects.clear()
  }
}

/**
 * A client in the same thread, without ports or timers: for the simulator and the test driver. Waits that end by time do
 * so in `cluster.tick()`; `afterCall` is told after every call, so that a caller with a real clock can set a timer for
 * `cluster.nextDeadline()`.
 */
export function directClient(
  cluster: EmbeddedCluster,
  options: { readonly clientId?: string; readonly afterCall?: () => void } = {},
): EmbeddedClient {
  const link = new DirectLink(cluster, options.afterCall ?? (() => undefined))
  return new EmbeddedClient(link, options.clientId ?? 'millrace')
}

export function closed(): BrokerError {
  return new BrokerError('UNREACHABLE', 'The connection to the embedded broker is closed; start the broker again.')
}
