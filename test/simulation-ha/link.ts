/** One client's connection to the simulated broker: it takes time, may be cut, and may lose answers. */
import type { EmbeddedCluster } from '../../src/broker/embedded/core/cluster.ts'
import { directClient } from '../../src/broker/embedded/direct-client.ts'
import { BrokerError, type BrokerPort } from '../../src/broker/port.ts'
import { intercepted } from '../simulation/faulty-broker.ts'
import type { Scheduler } from '../simulation/scheduler.ts'

/** What is the matter with a connection at this moment. */
export interface Weather {
  readonly slowestMs: number
  /** Chance of a long delay, as of a retransmission. */
  readonly hiccup: number
  readonly lostRequest: number
  readonly lostAnswer: number
  /** Nothing comes through. */
  readonly cut: boolean
  /** Requests arrive, answers do not. */
  readonly deaf: boolean
  /** The broker reads, and cannot write: too few replicas are in sync. */
  readonly readOnly: boolean
  /** The broker refuses what this client writes, for its clock is hours off, say. */
  readonly mute?: boolean
}

/** What somebody beside the caller wants to know of the calls, or to do to them. */
export interface Watch {
  /** The broker has done it, whether or not the answer arrives. */
  readonly done?: (name: keyof BrokerPort, args: readonly unknown[]) => void
  /** The error with which a call fails before it leaves. */
  readonly refuse?: (name: keyof BrokerPort) => BrokerError | undefined
  /** Another answer than the broker's. */
  readonly answer?: (name: keyof BrokerPort, args: readonly unknown[], answer: unknown) => unknown
}

const writes = new Set<string>(['produce', 'endTransaction', 'commitOffsetsInTransaction', 'createTopics'])
const requestTimeoutMs = 300

export function link(
  cluster: EmbeddedCluster,
  scheduler: Scheduler,
  owner: number,
  weather: () => Weather,
  wake: () => void,
  watch: Watch = {},
): BrokerPort {
  const client = directClient(cluster, { afterCall: wake })
  const wait = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      scheduler.at(ms, owner, resolve)
    })
  const delay = (): number => {
    const { slowestMs, hiccup } = weather()
    return scheduler.random.next() * (scheduler.random.chance(hiccup) ? slowestMs * 40 : slowestMs)
  }
  const unreachable = (name: string): BrokerError => new BrokerError('UNREACHABLE', `no answer to ${name}`)
  const lostWithin = async (name: string, started: number): Promise<never> => {
    await wait(Math.max(1, requestTimeoutMs - (scheduler.now - started)))
    throw unreachable(name)
  }
  const remote = async (name: keyof BrokerPort, args: unknown[]): Promise<unknown> => {
    const started = scheduler.now
    await wait(delay())
    const going = weather()
    if (going.cut || scheduler.random.chance(going.lostRequest)) return lostWithin(name, started)
    if (going.readOnly && writes.has(name)) {
      await wait(delay())
      throw new BrokerError('NOT_ENOUGH_REPLICAS', `${name}: too few replicas are in sync`)
    }
    if (going.mute === true && name === 'produce') {
      await wait(delay())
      throw new BrokerError('INVALID_TIMESTAMP', 'the timestamp of the record is out of the acceptable range')
    }
    const refusal = watch.refuse?.(name)
    if (refusal) throw refusal
    const answer = await (client as unknown as Record<string, (...a: unknown[]) => Promise<unknown>>)[name]?.(...args)
    watch.done?.(name, args)
    await wait(delay())
    const coming = weather()
    if (coming.cut || coming.deaf || scheduler.random.chance(coming.lostAnswer)) return lostWithin(name, started)
    return watch.answer ? watch.answer(name, args, answer) : answer
  }
  return intercepted(client, remote)
}
