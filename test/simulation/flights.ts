/**
 * Fetches as the client of Kafka makes them: a request to each leader, the first that has something ends the call, and those
 * that are under way then are taken over by the next call that asks for the same. So an answer may be of a time long ago.
 */
import { type PartitionKey, partitionKey, type TopicPartition } from '../../src/base/ids.ts'
import type { FetchedPartition, FetchRequest } from '../../src/broker/port.ts'
import type { Scheduler } from './scheduler.ts'

export interface Leaders {
  /** Names the broker that leads the partition. */
  of(at: TopicPartition): string
  /** How many times as slow as others the way to the leader of this topic is. */
  slowness(topic: string): number
}

type Asked = FetchRequest['partitions'][number]

interface Flight {
  readonly offsets: ReadonlyMap<PartitionKey, number>
  answer: readonly FetchedPartition[] | undefined
  settledAt: number | undefined
  settled: Promise<void>
}

/** One call, and what it has so far. */
interface Gathering {
  readonly request: FetchRequest
  readonly beganAt: number
  readonly wanted: ReadonlyMap<PartitionKey, Asked>
  readonly active: Set<Flight>
  readonly found: Map<PartitionKey, FetchedPartition>
  readonly by: Set<Flight>
  isWorthReturning: boolean
}

const keptMs = 2000
const graceMs = 2000

const keyOf = ({ topic, partition }: TopicPartition): PartitionKey => partitionKey(topic, partition)

export class Flights {
  readonly #scheduler: Scheduler
  readonly #owner: number
  readonly #read: (request: FetchRequest) => Promise<readonly FetchedPartition[]>
  #leftovers: Flight[] = []

  /** `read`: what one broker answers at once, or when its wait is over. */
  constructor(
    scheduler: Scheduler,
    owner: number,
    read: (request: FetchRequest) => Promise<readonly FetchedPartition[]>,
  ) {
    this.#scheduler = scheduler
    this.#owner = owner
    this.#read = read
  }

  async fetch(request: FetchRequest, leaders: Leaders, slowestMs: number): Promise<FetchedPartition[]> {
    const gathering: Gathering = {
      request,
      beganAt: this.#scheduler.now,
      wanted: new Map(request.partitions.map((each) => [keyOf(each), each])),
      active: new Set(),
      found: new Map(),
      by: new Set(),
      isWorthReturning: false,
    }
    const endsAt = gathering.beganAt + request.maxWaitMs
    const { active, by } = gathering
    this.#adopt(gathering)
    for (;;) {
      if (active.size === 0 || this.#scheduler.now < endsAt) this.#launch(gathering, leaders, slowestMs, endsAt)
      await this.#wait(gathering, endsAt + graceMs)
      for (const flight of active) if (flight.answer !== undefined) take(flight, gathering)
      if (gathering.isWorthReturning || request.signal?.aborted) break
      if (this.#scheduler.now >= endsAt + (active.size > 0 ? graceMs : 0)) break
    }
    this.#leftovers.push(...active)
    const isOfOneMoment = by.size <= 1 && [...by].every(({ settledAt = 0 }) => settledAt >= gathering.beganAt)
    const found = [...gathering.found.values()]
    return isOfOneMoment ? found : found.map((each) => ({ ...each, isApart: true }))
  }

  #adopt({ wanted, active, beganAt }: Gathering): void {
    this.#leftovers = this.#leftovers.filter((flight) => {
      if (flight.settledAt !== undefined && beganAt - flight.settledAt > keptMs) return false
      const isWanted = [...flight.offsets].some(([key, offset]) => wanted.get(key)?.offset === offset)
      if (isWanted) active.add(flight)
      return !isWanted
    })
  }

  #launch(
    { wanted, active, request, isWorthReturning }: Gathering,
    leaders: Leaders,
    slowestMs: number,
    endsAt: number,
  ): void {
    const byLeader = new Map<string, Asked[]>()
    for (const [key, each] of wanted) {
      if ([...active].some(({ offsets }) => offsets.get(key) === each.offset)) continue
      const leader = leaders.of(each)
      byLeader.set(leader, [...(byLeader.get(leader) ?? []), each])
    }
    const maxWaitMs = isWorthReturning ? 0 : Math.max(0, endsAt - this.#scheduler.now)
    const { isolation, maxBytes } = request
    for (const partitions of byLeader.values()) {
      const wayMs = slowestMs * leaders.slowness(partitions[0]?.topic as string)
      const offsets = new Map(partitions.map((each) => [keyOf(each), each.offset]))
      const flight: Flight = { offsets, answer: undefined, settledAt: undefined, settled: Promise.resolve() }
      flight.settled = this.#fly(flight, { partitions, maxWaitMs, maxBytes, isolation }, wayMs)
      active.add(flight)
    }
  }

  async #fly(flight: Flight, request: FetchRequest, wayMs: number): Promise<void> {
    const { random } = this.#scheduler
    await this.#pass(random.next() * wayMs)
    const answer = await this.#read(request)
    await this.#pass(random.next() * wayMs)
    flight.answer = answer
    flight.settledAt = this.#scheduler.now
  }

  #pass(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#scheduler.at(ms, this.#owner, resolve)
    })
  }

  /** Until one is back, the time is over, or the caller has no more time. */
  async #wait({ active, request: { signal } }: Gathering, until: number): Promise<void> {
    if (signal?.aborted) return
    const aborted = new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true }))
    const over = this.#pass(Math.max(0, until - this.#scheduler.now))
    await Promise.race([over, aborted, ...[...active].map(({ settled }) => settled)])
  }
}

function take(flight: Flight, gathering: Gathering): void {
  const { active, wanted, found, by } = gathering
  active.delete(flight)
  for (const each of flight.answer ?? []) {
    const key = keyOf(each)
    if (wanted.get(key)?.offset !== flight.offsets.get(key)) continue
    by.add(flight)
    if (each.records.length > 0 || each.error !== undefined) gathering.isWorthReturning = true
    // In the order in which it was read.
    found.delete(key)
    found.set(key, each)
  }
}
