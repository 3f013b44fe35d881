/** What this client has met of each node: whether it answers, what it said last, and which calls it owes an answer. */
import type { BrokerNode, CallKind } from '../port.ts'
import { type Address, addressText } from './options.ts'

export interface CallUnderWay {
  readonly address: string
  readonly kind: CallKind
  readonly what: string
  readonly sinceMs: number
}

interface Seen {
  connected: boolean
  sinceMs: number
  lastError: string | null
  readonly calls: Set<CallUnderWay>
}

export class NodesSeen {
  readonly #seen = new Map<string, Seen>()

  begin(address: Address, kind: CallKind, what: string): CallUnderWay {
    const call = { address: addressText(address), kind, what, sinceMs: Date.now() }
    const seen = this.#seen.get(call.address) ?? {
      connected: false,
      sinceMs: call.sinceMs,
      lastError: null,
      calls: new Set(),
    }
    seen.calls.add(call)
    this.#seen.set(call.address, seen)
    return call
  }

  /** `error`: why there was no answer of the node; null where there was one. */
  end(call: CallUnderWay, error: string | null): void {
    const seen = this.#seen.get(call.address)
    if (seen === undefined) return
    seen.calls.delete(call)
    const connected = error === null
    if (connected !== seen.connected) {
      seen.connected = connected
      seen.sinceMs = Date.now()
    }
    seen.lastError = error
  }

  /** `ids`: of the nodes that belong to the cluster now. One that does not, and is not waited for, is forgotten. */
  list(ids: ReadonlyMap<string, number>): BrokerNode[] {
    const nodes: BrokerNode[] = []
    for (const [address, { connected, sinceMs, lastError, calls }] of this.#seen) {
      const id = ids.get(address) ?? null
      if (id === null && ids.size > 0 && calls.size === 0) {
        this.#seen.delete(address)
        continue
      }
      nodes.push({ id, address, connected, sinceMs, lastError, calls: oldestByKind(calls) })
    }
    return nodes
  }
}

/** A set keeps the order in which calls began. */
function oldestByKind(calls: ReadonlySet<CallUnderWay>): BrokerNode['calls'] {
  const oldest = new Map<CallKind, BrokerNode['calls'][number]>()
  for (const { kind, what, sinceMs } of calls) if (!oldest.has(kind)) oldest.set(kind, { kind, what, sinceMs })
  return [...oldest.values()]
}
