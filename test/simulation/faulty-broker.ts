/** A connection to the simulated broker: every call takes time both ways, and may be cut on either. */
import type { EmbeddedCluster } from '../../src/broker/embedded/core/cluster.ts'
import { directClient } from '../../src/broker/embedded/direct-client.ts'
import { BrokerError, type BrokerPort, type FetchedPartition } from '../../src/broker/port.ts'
import type { Scheduler } from './scheduler.ts'

export interface BrokerFaults {
  /** Chance that a request is lost on its way, or its answer on the way back. */
  readonly lostRequest: number
  readonly lostAnswer: number
  readonly slowestMs: number
  /** A connection that broke breaks again for a while. */
  readonly breaks?: Breaks | undefined
  /** Chance that a fetch is answered without a partition of this topic, as where its leader is the slower one. */
  readonly leftOut?: (topic: string) => number
}

export interface Breaks {
  /** Chance that the request to end a transaction is lost, and as much for its answer. */
  readonly atEnd: number
  /** Chance that a call is lost within so long of one that was. */
  readonly again: number
  readonly forMs: number
}

/** A change to the protocol, to see whether the checkers notice: may replace a call. */
export type Tamper = (
  name: keyof BrokerPort,
  args: unknown[],
  call: (args: unknown[]) => Promise<unknown>,
  other: (name: keyof BrokerPort, args: unknown[]) => Promise<unknown>,
) => Promise<unknown>

const passive = new Set<string>(['close', 'connected', 'fault', 'kind', 'then'])

export function faultyBroker(
  cluster: EmbeddedCluster,
  scheduler: Scheduler,
  owner: number,
  faults: () => BrokerFaults,
  wake: () => void,
  tamper: Tamper | undefined,
): BrokerPort {
  const client = directClient(cluster, { afterCall: wake })
  const delay = (): Promise<void> =>
    new Promise((resolve) => {
      scheduler.at(scheduler.random.next() * faults().slowestMs, owner, resolve)
    })
  const lost = (name: string): BrokerError => new BrokerError('UNREACHABLE', `the connection broke during ${name}`)
  let brokeAt = Number.NEGATIVE_INFINITY
  const loses = (name: string, chance: number): boolean => {
    const { breaks } = faults()
    const { now, random } = scheduler
    const atEnd = name === 'endTransaction' ? (breaks?.atEnd ?? 0) : 0
    const again = breaks && now - brokeAt < breaks.forMs ? breaks.again : 0
    if (!random.chance(Math.max(chance, atEnd, again))) return false
    // A stretch does not go on for ever by what is lost in it.
    if (again === 0) brokeAt = now
    return true
  }
  const remote = async (name: keyof BrokerPort, args: unknown[]): Promise<unknown> => {
    await delay()
    if (loses(name, faults().lostRequest)) throw lost(name)
    const answer = await (client as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>)[name]?.(
      ...args,
    )
    await delay()
    const { lostAnswer, leftOut } = faults()
    if (loses(name, lostAnswer)) throw lost(name)
    if (name !== 'fetch' || !leftOut) return answer
    return (answer as FetchedPartition[]).filter(({ topic }) => !scheduler.random.chance(leftOut(topic)))
  }
  return intercepted(client, (name, args) => {
    const call = (changed: unknown[]): Promise<unknown> => remote(name, changed)
    return tamper ? tamper(name, args, call, remote) : call(args)
  })
}

/** The same connection, each of whose calls goes through `call`. */
export function intercepted(
  client: BrokerPort,
  call: (name: keyof BrokerPort, args: unknown[]) => Promise<unknown>,
): BrokerPort {
  return new Proxy(client, {
    get(target, property) {
      const value = Reflect.get(target, property, target) as unknown
      if (passive.has(String(property)) || typeof value !== 'function') return value
      return (...args: unknown[]) => call(property as keyof BrokerPort, args)
    },
  })
}
