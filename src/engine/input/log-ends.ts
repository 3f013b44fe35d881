/**
 * Where the logs end that are not fetched just now: of partitions that are paused, full or restoring. What is written to
 * them meanwhile is lag as well, and nobody would know of it before they are fetched again. And of those that are about to
 * turn idle: a fetch that waits at the broker says only when it is over that nothing has come.
 */
import type { Clock } from '../../base/clock.ts'
import { type PartitionKey, partitionKey, type TopicPartition } from '../../base/ids.ts'
import type { Timers } from '../../base/timers.ts'
import type { BrokerPort } from '../../broker/port.ts'
import type { PartitionBuffer } from './partition-buffer.ts'

export interface LogEndsOptions {
  readonly broker: BrokerPort
  readonly clock: Clock
  readonly timers: Timers
}

/** What there is, and what open transactions let be read of it. */
interface Ends {
  readonly ends: ReadonlyMap<PartitionKey, number>
  readonly stable: ReadonlyMap<PartitionKey, number>
}

const byPartition = (
  ends: ReadonlyArray<TopicPartition & { readonly offset: number }>,
): ReadonlyMap<PartitionKey, number> => new Map(ends.map((end) => [partitionKey(end.topic, end.partition), end.offset]))

/** A fetch tells the ends about twice a second, so only those that are not fetched are asked for. */
const everyMs = 1000

export class LogEnds {
  readonly #o: LogEndsOptions
  readonly #buffers: () => readonly PartitionBuffer[]
  readonly #told: (buffer: PartitionBuffer, askedAt: number) => void
  #started = false
  #closed = false
  #cancel: (() => void) | undefined

  /** `told`: whoever goes by what is known to be there has to hear of it as well. */
  constructor(
    options: LogEndsOptions,
    buffers: () => readonly PartitionBuffer[],
    told: (buffer: PartitionBuffer, askedAt: number) => void,
  ) {
    this.#o = options
    this.#buffers = buffers
    this.#told = told
  }

  start(): this {
    if (!this.#started) this.#later()
    this.#started = true
    return this
  }

  close(): void {
    this.#closed = true
    this.#cancel?.()
  }

  /** Asks where these end, and tells of each. A broker that does not answer is not asked again: the next fetch tells as well. */
  async ask(keys: readonly PartitionKey[]): Promise<void> {
    if (keys.length === 0) return
    const wanted = new Set(keys)
    const askedAt = this.#o.clock.monotonic()
    const buffers = this.#buffers().filter((buffer) => wanted.has(partitionKey(buffer.topic, buffer.partition)))
    const places = buffers.map(({ topic, partition }) => ({ topic, partition }))
    const known = await this.#endsOf(places)
    if (known === undefined || this.#closed) return
    const there = new Set(this.#buffers())
    for (const buffer of buffers) {
      const key = partitionKey(buffer.topic, buffer.partition)
      const readable = known.stable.get(key)
      if (readable === undefined || !there.has(buffer)) continue
      buffer.endsAtLeast(readable, this.#o.clock.monotonic(), known.ends.get(key))
      this.#told(buffer, askedAt)
    }
  }

  /**
   * The end of all first: what is written in between must not look as if a transaction held it back. Undefined: fetches and
   * commits tell of a broker that does not answer; until it does the ends stay what they were.
   */
  async #endsOf(partitions: readonly TopicPartition[]): Promise<Ends | undefined> {
    const { broker } = this.#o
    try {
      const ends = byPartition(await broker.listOffsets(partitions, 'latest'))
      return { ends, stable: byPartition(await broker.listOffsets(partitions, 'stable')) }
    } catch {
      return undefined
    }
  }

  #later(): void {
    if (this.#closed) return
    this.#cancel = this.#o.timers.after(everyMs, () => void this.#look().then(() => this.#later()))
  }

  async #look(): Promise<void> {
    const askedAt = this.#o.clock.monotonic()
    const stale = this.#buffers().filter(({ endsAt }) => askedAt - endsAt >= everyMs)
    if (stale.length === 0) return
    const partitions = stale.map(({ topic, partition }) => ({ topic, partition }))
    const known = await this.#endsOf(partitions)
    if (known === undefined || this.#closed) return
    for (const buffer of stale) {
      // A fetch that was answered meanwhile knows better.
      if (buffer.endsAt >= askedAt) continue
      const key = partitionKey(buffer.topic, buffer.partition)
      const readable = known.stable.get(key)
      if (readable === undefined) continue
      buffer.sawEnds(readable, known.ends.get(key) ?? readable, this.#o.clock.monotonic())
      if (buffer.lag > 0) this.#told(buffer, askedAt)
    }
  }
}

/** A partition in which open transactions hold back so many records at this moment; undefined where none do. */
export async function firstWithheld(
  broker: BrokerPort,
  partitions: readonly TopicPartition[],
): Promise<(TopicPartition & { readonly records: number }) | undefined> {
  const ends = await broker.listOffsets(partitions, 'latest')
  const stable = new Map(
    (await broker.listOffsets(partitions, 'stable')).map((at) => [partitionKey(at.topic, at.partition), at.offset]),
  )
  for (const { topic, partition, offset } of ends) {
    const records = offset - (stable.get(partitionKey(topic, partition)) ?? offset)
    if (records > 0) return { topic, partition, records }
  }
  return undefined
}
