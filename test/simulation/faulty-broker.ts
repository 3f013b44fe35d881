/** A connection to the simulated broker: every call takes time both ways, and may be cut on either. */
import type { EmbeddedCluster } from '../../src/broker/embedded/core/cluster.ts'
import { directClient } from '../../src/broker/embedded/direct-client.ts'
import { type PartitionKey, partitionKey } from '../../src/base/ids.ts'
import type { Random } from '../../src/base/random.ts'
import { BrokerError, type BrokerPort, type FetchedPartition, type FetchRequest } from '../../src/broker/port.ts'
import { Flights, type Leaders } from './flights.ts'
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
  /** Chance that a fetch reads all partitions at one moment. Default 0.7. */
  readonly readsAtOnce?: number
  /** Several brokers, each of which answers for itself. `leftOut` counts for nothing then. */
  readonly leaders?: Leaders | undefined
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

interface LateAnswer {
  readonly offset: number
  readonly answer: FetchedPartition
}

/** A broker reads one partition after the other, in the order in which it is asked for them: much may happen in between. */
async function readInParts(
  client: BrokerPort,
  request: FetchRequest,
  random: Random,
  readsAtOnce: number,
  delay: () => Promise<void>,
): Promise<FetchedPartition[]> {
  const { partitions } = request
  if (partitions.length < 2 || random.chance(readsAtOnce)) return await client.fetch(request)
  const first = 1 + random.int(partitions.length - 1)
  const answer: FetchedPartition[] = []
  for (const part of [partitions.slice(0, first), partitions.slice(first)]) {
    answer.push(...(await client.fetch({ ...request, partitions: part, maxWaitMs: 0 })))
    if (answer.length === first) await delay()
  }
  // Where nothing lies in any of them it waits, and begins anew.
  return answer.some(({ records }) => records.length > 0) ? answer : await client.fetch(request)
}

/** What such a connection tells of itself. */
export const traits: Pick<BrokerPort, 'readsInTurn'> = { readsInTurn: true }

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
    if (name === 'fetch' && faults().leftOut !== undefined) return await fetched(args[0] as FetchRequest)
    const answer = await (client as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>)[name]?.(
      ...args,
    )
    await delay()
    if (loses(name, faults().lostAnswer)) throw lost(name)
    return answer
  }
  const late = new Map<PartitionKey, LateAnswer>()
  const read = (request: FetchRequest): Promise<FetchedPartition[]> =>
    readInParts(client, request, scheduler.random, faults().readsAtOnce ?? 0.7, delay)
  const flights = new Flights(scheduler, owner, read)
  /**
   * As a client of several brokers gives it, and of one that has several requests under way: some partitions are left
   * out, and what would have been said of them comes later, beside newer things.
   */
  const fetched = async (request: FetchRequest): Promise<FetchedPartition[]> => {
    const { random } = scheduler
    const { lostAnswer, slowestMs, leaders, leftOut = () => 0 } = faults()
    const answer = leaders ? await flights.fetch(request, leaders, slowestMs) : await read(request)
    if (!leaders) await delay()
    if (loses('fetch', lostAnswer)) throw lost('fetch')
    if (leaders) return answer
    const offsets = new Map(request.partitions.map((each) => [partitionKey(each.topic, each.partition), each.offset]))
    const given: FetchedPartition[] = []
    let isApart = false
    for (const each of answer) {
      const key = partitionKey(each.topic, each.partition)
      const before = late.get(key)
      late.delete(key)
      if (before !== undefined && before.offset === offsets.get(key)) {
        given.push(before.answer)
        isApart = true
      } else if (!random.chance(leftOut(each.topic))) given.push(each)
      else if (random.chance(0.5)) late.set(key, { offset: offsets.get(key) as number, answer: each })
    }
    return isApart ? given.map((each) => ({ ...each, isApart })) : given
  }
  return intercepted(
    client,
    (name, args) => {
      const call = (changed: unknown[]): Promise<unknown> => remote(name, changed)
      return tamper ? tamper(name, args, call, remote) : call(args)
    },
    traits,
  )
}

/** The same connection, each of whose calls goes through `call`, and which tells of itself what it is said to. */
export function intercepted(
  client: BrokerPort,
  call: (name: keyof BrokerPort, args: unknown[]) => Promise<unknown>,
  ofItself: Pick<BrokerPort, 'readsInTurn'> = {},
): BrokerPort {
  return new Proxy(client, {
    get(target, property) {
      if (property === 'readsInTurn') return ofItself.readsInTurn
      const value = Reflect.get(target, property, target) as unknown
      if (passive.has(String(property)) || typeof value !== 'function') return value
      return (...args: unknown[]) => call(property as keyof BrokerPort, args)
    },
  })
}
