/**
 * Fetch over several brokers: one request per broker, and whichever has something first ends the call. Requests that
 * are then still waiting at their brokers are not thrown away: the next call takes them over where it asks for the
 * same offsets. Otherwise a busy broker would starve a slow one, and every early end of a wait would cost a fetch.
 */
import { type PartitionKey, partitionKey, type TopicPartition } from '../../base/ids.ts'
import { BrokerError, type FetchedPartition, type FetchRequest, type TopicInfo } from '../port.ts'
import { type Cluster, type TopicState, unknownTopicPatienceMs } from './cluster.ts'
import { isTransient, refused } from './errors.ts'
import type { Link } from './connections.ts'
import type { Address } from './options.ts'
import { type FetchAnswer, type FetchAnswerPartition, sendFetch } from './wire-calls.ts'

type Wanted = FetchRequest['partitions'][number]

/** One request under way, or its answer until somebody takes it. */
interface Flight {
  readonly sentAtMs: number
  readonly isolation: FetchRequest['isolation']
  readonly topics: ReadonlyMap<string, string>
  readonly offsets: ReadonlyMap<PartitionKey, number>
  readonly settled: Promise<void>
  answer: readonly FetchAnswerPartition[] | undefined
  failure: unknown
  settledAtMs: number | undefined
}

/** What one call has gathered. */
interface Gathering {
  readonly beganAtMs: number
  readonly wanted: ReadonlyMap<PartitionKey, Wanted>
  readonly found: Map<PartitionKey, FetchedPartition>
  /** Which of them has brought it. */
  readonly by: Map<PartitionKey, Flight>
  /** Something that the caller does not want to wait any longer for. */
  worthReturning: boolean
  answered: boolean
  trouble: BrokerError | undefined
}

const leftoverKeptMs = 2000
/** An answer to a wait that is over comes a little after that. */
const graceMs = 2000
/** With a fault to tell already, what the other partitions have at hand may still come along. */
const hurryMs = 100
const longestPauseMs = 200
const noRecords = new Uint8Array(0)

/** Codes that tell of a topic which is missing, is another one by now, or is not known to this broker yet. */
const missing: ReadonlySet<string> = new Set([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'UNKNOWN_TOPIC_ID',
  'INCONSISTENT_TOPIC_ID',
])

export class Fetcher {
  readonly #cluster: Cluster
  /** The incarnation of a topic that readers mean: the one last described to them, or the first one read. */
  readonly #meant = new Map<string, string>()
  readonly #missingSinceMs = new Map<string, number>()
  #leftovers: Flight[] = []
  #failingSinceMs: number | undefined

  constructor(cluster: Cluster) {
    this.#cluster = cluster
  }

  /** Readers have been told of these incarnations and read them from now on. */
  described(topics: readonly TopicInfo[]): void {
    for (const { topic, topicId } of topics) this.#meant.set(topic, topicId)
  }

  forget(topics: readonly string[]): void {
    for (const topic of topics) this.#meant.delete(topic)
  }

  async fetch(request: FetchRequest): Promise<FetchedPartition[]> {
    const wanted = new Map(request.partitions.map((each) => [partitionKey(each.topic, each.partition), each]))
    const gathering: Gathering = {
      beganAtMs: performance.now(),
      wanted,
      found: new Map(),
      by: new Map(),
      worthReturning: false,
      answered: false,
      trouble: undefined,
    }
    const endsAtMs = performance.now() + request.maxWaitMs
    const active = new Set<Flight>()
    let pauseMs = 5
    try {
      for (;;) {
        gathering.trouble = undefined
        await this.#launch(request, endsAtMs, gathering, active)
        if (active.size) {
          const untilMs = gathering.worthReturning ? performance.now() + hurryMs : endsAtMs + graceMs
          await this.#await(active, untilMs, request.signal)
        }
        for (const flight of active) if (this.#take(flight, gathering)) active.delete(flight)
        const nowMs = performance.now()
        if (gathering.worthReturning || request.signal?.aborted || this.#cluster.retrier.closed) break
        if (nowMs >= endsAtMs + (active.size ? graceMs : 0)) break
        if (gathering.trouble) {
          await this.#cluster.retrier.pause(pauseMs, request.signal)
          pauseMs = Math.min(longestPauseMs, pauseMs * 2)
        }
      }
    } finally {
      this.#leftovers.push(...active)
    }
    this.#judge(gathering, request.signal)
    const found = [...gathering.found.values()]
    return isOfOneMoment(gathering) ? found : found.map((each) => ({ ...each, isApart: true }))
  }

  /** A cluster that does not answer is reported only when that lasts; till then there is just nothing to give. */
  #judge(gathering: Gathering, signal: AbortSignal | undefined): void {
    if (gathering.answered || gathering.found.size) this.#failingSinceMs = undefined
    else if (gathering.trouble && !signal?.aborted) {
      this.#failingSinceMs ??= performance.now()
      const { deliveryTimeoutMs, firstContactMs } = this.#cluster.settings
      const patienceMs = this.#cluster.contacted ? deliveryTimeoutMs : firstContactMs
      if (performance.now() - this.#failingSinceMs >= patienceMs) {
        this.#failingSinceMs = undefined
        throw gathering.trouble
      }
    }
  }

  /** Sees to it that every wanted partition that is not found yet is under way. */
  async #launch(request: FetchRequest, endsAtMs: number, gathering: Gathering, active: Set<Flight>): Promise<void> {
    this.#adopt(request, gathering, active)
    // With no time left to wait, the brokers that have answered would be asked again and again until the last one has.
    if (gathering.answered && active.size > 0 && performance.now() >= endsAtMs) return
    const uncovered: Wanted[] = []
    for (const [key, each] of gathering.wanted) {
      if (!isUnderWay(active, key, each.offset)) uncovered.push(each)
    }
    if (uncovered.length === 0) return
    const trouble = (error: BrokerError): void => {
      gathering.trouble ??= error
    }
    try {
      const groups = await this.#cluster.byLeader(uncovered, (item, error) => {
        const isMeant = item.topicId !== undefined || this.#meant.has(item.topic)
        this.#fault(item, error, gathering, { final: missing.has(error.code) && !isMeant })
      })
      // What the caller has room for is shared by the brokers that are asked.
      const maxBytes = Math.max(1, Math.floor(request.maxBytes / groups.size))
      for (const { address, items } of groups.values()) {
        const flight = await this.#send(address, items, { ...request, maxBytes }, endsAtMs, gathering)
        if (flight) active.add(flight)
      }
    } catch (error) {
      if (!(error instanceof BrokerError) || !isPassing(error)) throw error
      trouble(error)
    }
  }

  #adopt(request: FetchRequest, gathering: Gathering, active: Set<Flight>): void {
    const nowMs = performance.now()
    this.#leftovers = this.#leftovers.filter((flight) => {
      const stale = flight.settledAtMs !== undefined && nowMs - flight.settledAtMs > leftoverKeptMs
      if (stale || flight.isolation !== request.isolation) return !stale
      for (const [key, offset] of flight.offsets) {
        if (gathering.wanted.get(key)?.offset === offset) {
          active.add(flight)
          return false
        }
      }
      return true
    })
  }

  async #send(
    address: Address,
    items: readonly Wanted[],
    request: FetchRequest,
    endsAtMs: number,
    gathering: Gathering,
  ): Promise<Flight | undefined> {
    const topics = new Map<string, string>()
    const asked: Array<Wanted & { topicId: string }> = []
    const states = new Map<string, TopicState | undefined>()
    for (const item of items) {
      if (!states.has(item.topic)) states.set(item.topic, await this.#cluster.topic(item.topic))
      const state = states.get(item.topic)
      const meant = item.topicId ?? this.#meant.get(item.topic)
      if (!state || (meant !== undefined && meant !== state.topicId)) {
        // That the id is another one by now, or that there never was such a topic, the cluster itself said: there is
        // nothing to wait for.
        const error = state
          ? refused(100, `reading ${item.topic}`, 'The topic was deleted and made anew.')
          : refused(3, `reading ${item.topic}`)
        this.#fault(item, error, gathering, { final: state !== undefined || meant === undefined })
        continue
      }
      if (item.topicId === undefined) this.#meant.set(item.topic, state.topicId)
      topics.set(state.topicId, item.topic)
      asked.push({ ...item, topicId: state.topicId })
    }
    if (asked.length === 0) return undefined
    const { requestTimeoutMs } = this.#cluster.settings
    const leftMs = gathering.worthReturning ? 0 : Math.max(0, endsAtMs - performance.now())
    const maxWaitMs = Math.round(Math.min(requestTimeoutMs / 2, leftMs))
    const what = `fetching from ${asked[0]?.topic}${asked.length > 1 ? ' and others' : ''}`
    const limits = { maxWaitMs, maxBytes: request.maxBytes, isolation: request.isolation }
    const fetch = ({ connection }: Link): Promise<FetchAnswer> => sendFetch(connection, limits, asked)
    const sentAtMs = performance.now()
    const answer = this.#cluster.alone(address, requestTimeoutMs, what, fetch, 'fetch')
    const flight: Flight = {
      sentAtMs,
      isolation: request.isolation,
      topics,
      offsets: new Map(asked.map((item) => [partitionKey(item.topic, item.partition), item.offset])),
      answer: undefined,
      failure: undefined,
      settledAtMs: undefined,
      settled: answer.then(
        ({ errorCode, partitions }) => {
          if (errorCode === 0) flight.answer = partitions
          else flight.failure = refused(errorCode, what)
          flight.settledAtMs = performance.now()
        },
        (error: unknown) => {
          flight.failure = error
          flight.settledAtMs = performance.now()
        },
      ),
    }
    return flight
  }

  /** Until one flight is back, the time is over, or the signal fires. */
  async #await(active: ReadonlySet<Flight>, untilMs: number, signal: AbortSignal | undefined): Promise<void> {
    const patience = this.#cluster.retrier.endable(untilMs - performance.now(), signal)
    try {
      await Promise.race([patience.over, ...[...active].map((flight) => flight.settled)])
    } finally {
      patience.end()
    }
  }

  /** Takes over what a flight brought; false while it is still under way. */
  #take(flight: Flight, gathering: Gathering): boolean {
    if (flight.settledAtMs === undefined) return false
    if (flight.answer === undefined) {
      const { failure } = flight
      this.#cluster.forget(flight.topics.values())
      if (!(failure instanceof BrokerError) || !isPassing(failure)) throw failure
      gathering.trouble ??= failure
      return true
    }
    gathering.answered = true
    for (const partition of flight.answer) {
      const topic = flight.topics.get(partition.topicId)
      if (topic === undefined) continue
      const key = partitionKey(topic, partition.partition)
      const wanted = gathering.wanted.get(key)
      if (wanted === undefined || wanted.offset !== flight.offsets.get(key)) continue
      // Left over from when the topic was another one.
      if (wanted.topicId !== undefined && wanted.topicId !== partition.topicId) continue
      gathering.by.set(key, flight)
      const askedBeforeMs = Math.max(0, gathering.beganAtMs - flight.sentAtMs)
      if (partition.errorCode === 0) this.#found(wanted, partition, gathering, askedBeforeMs)
      else this.#fault(wanted, refused(partition.errorCode, `reading ${key}`), gathering, { answer: partition })
    }
    return true
  }

  #found(
    { topic, partition }: TopicPartition,
    answer: FetchAnswerPartition,
    gathering: Gathering,
    askedBeforeMs: number,
  ): void {
    this.#missingSinceMs.delete(topic)
    const { records, highWatermark, lastStableOffset, logStartOffset, aborted } = answer
    if (records.length) gathering.worthReturning = true
    put(gathering, {
      topic,
      partition,
      records,
      highWatermark,
      lastStableOffset,
      logStartOffset,
      aborted,
      ...(askedBeforeMs > 0 && { askedBeforeMs }),
    })
  }

  /** A passing fault of one partition leads to another try, a final one is told. */
  #fault(
    { topic, partition }: TopicPartition,
    error: BrokerError,
    gathering: Gathering,
    { answer, final = false }: { readonly answer?: FetchAnswerPartition; readonly final?: boolean } = {},
  ): void {
    if (isTransient(error.code) || missing.has(error.code)) this.#cluster.forget([topic])
    gathering.trouble ??= error
    if (isTransient(error.code)) return
    if (missing.has(error.code) && !final && !this.#isGoneForGood(topic)) return
    gathering.worthReturning = true
    put(gathering, {
      topic,
      partition,
      records: noRecords,
      highWatermark: answer?.highWatermark ?? -1,
      lastStableOffset: answer?.lastStableOffset ?? -1,
      logStartOffset: answer?.logStartOffset ?? -1,
      aborted: [],
      error: error.code,
    })
  }

  #isGoneForGood(topic: string): boolean {
    const sinceMs = this.#missingSinceMs.get(topic)
    if (sinceMs === undefined) this.#missingSinceMs.set(topic, performance.now())
    return sinceMs !== undefined && performance.now() - sinceMs >= unknownTopicPatienceMs
  }
}

/** Answers stand in the order in which they were read: what was found empty before and asked for again stands last. */
function put({ found }: Gathering, partition: FetchedPartition): void {
  const key = partitionKey(partition.topic, partition.partition)
  found.delete(key)
  found.set(key, partition)
}

function isUnderWay(flights: ReadonlySet<Flight>, key: PartitionKey, offset: number): boolean {
  for (const flight of flights) if (flight.offsets.get(key) === offset) return true
  return false
}

/** One answer of one broker, and none that has lain there since before the call. */
function isOfOneMoment({ by, beganAtMs }: Gathering): boolean {
  const flights = new Set(by.values())
  return flights.size <= 1 && [...flights].every(({ settledAtMs = beganAtMs }) => settledAtMs >= beganAtMs)
}

function isPassing(error: BrokerError): boolean {
  return error.errorClass === 'unreachable' || isTransient(error.code)
}
