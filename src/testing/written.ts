/** What applications have written and committed, read from the broker's logs. */
import type { EmbeddedCluster } from '../broker/embedded/core/cluster.ts'
import type { BrokerPort, FetchedPartition, ProduceRequest } from '../broker/port.ts'
import { type Headers, noHeaders } from '../broker/wire/headers.ts'
import { decodeHeaders, RecordCursor } from '../broker/wire/record-batch.ts'

export interface WrittenRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly timestamp: number
  readonly headers: Headers
}

interface Unread {
  readonly record: WrittenRecord
  taken: boolean
}

interface Place {
  readonly topic: string
  readonly partition: number
  offset: number
  /** Offsets that the test has fed itself. */
  readonly fed: Set<number>
}

const maxBytes = 1 << 28

export class Written {
  readonly #cluster: EmbeddedCluster
  readonly #isInternal: (topic: string) => boolean
  readonly #byCommit: boolean
  readonly #places = new Map<string, Place>()
  /** Where something was written that was not read yet. */
  readonly #changed = new Set<Place>()
  readonly #byTopic = new Map<string, { readonly records: Unread[]; from: number }>()
  /** Ids of applications that have written to a topic. */
  readonly #writers = new Map<string, Set<string>>()
  #all: Unread[] = []
  readonly #cursor = new RecordCursor()

  /** `byCommit`: what several applications write is told in the order of their commits, cause before effect. */
  constructor(cluster: EmbeddedCluster, isInternal: (topic: string) => boolean, byCommit: boolean) {
    this.#cluster = cluster
    this.#isInternal = isInternal
    this.#byCommit = byCommit
  }

  /** The broker as an application sees it: what it writes is noticed. */
  noticing(broker: BrokerPort, applicationId: string): BrokerPort {
    const produce = (request: ProduceRequest): ReturnType<BrokerPort['produce']> => {
      for (const { topic, partition } of request.batches) {
        if (this.#isInternal(topic)) continue
        this.#changed.add(this.#place(topic, partition))
        this.#wrote(topic, applicationId)
      }
      return broker.produce(request)
    }
    const endTransaction: BrokerPort['endTransaction'] = (...args) => {
      const ended = broker.endTransaction(...args)
      // It has ended by now, and nobody has read of it.
      if (this.#byCommit) this.collect()
      return ended
    }
    const bound = new Map<PropertyKey, unknown>(Object.entries({ produce, endTransaction }))
    return new Proxy(broker, {
      get(target, property) {
        if (bound.has(property)) return bound.get(property)
        const value = Reflect.get(target, property, target) as unknown
        if (typeof value !== 'function') return value
        const method = value.bind(target) as unknown
        bound.set(property, method)
        return method
      },
    })
  }

  /** Whether the application has written to the topic. */
  isBy(topic: string, applicationId: string): boolean {
    return this.#writers.get(topic)?.has(applicationId) === true
  }

  /** Records that the test has fed are none of the application's. */
  fed(topic: string, partition: number, from: number, count: number): void {
    const { fed } = this.#place(topic, partition)
    for (let i = 0; i < count; i++) fed.add(from + i)
  }

  /** Takes over what was committed meanwhile: partition by partition, in the order in which they were written to. */
  collect(): void {
    for (const place of this.#changed) if (this.#read(place)) this.#changed.delete(place)
  }

  take(topic: string, limit: number): WrittenRecord[] {
    const queue = this.#byTopic.get(topic)
    const taken: WrittenRecord[] = []
    while (queue && queue.from < queue.records.length && taken.length < limit) {
      const one = queue.records[queue.from++] as Unread
      if (!one.taken) taken.push(one.record)
      one.taken = true
    }
    return taken
  }

  takeAll(): WrittenRecord[] {
    const unread = this.#all.filter((one) => !one.taken)
    for (const one of unread) one.taken = true
    this.#all = []
    this.#byTopic.clear()
    return unread.map((one) => one.record)
  }

  #wrote(topic: string, applicationId: string): void {
    const known = this.#writers.get(topic)
    if (known) known.add(applicationId)
    else this.#writers.set(topic, new Set([applicationId]))
  }

  /** True once all of the partition is decided and read. */
  #read(place: Place): boolean {
    const { topic, partition } = place
    for (;;) {
      const { offset } = place
      let fetched: FetchedPartition | undefined
      const partitions = [{ topic, partition, offset, maxBytes }]
      this.#cluster.fetch({ partitions, maxWaitMs: 0, maxBytes, isolation: 'read_committed' }, (answer) => {
        fetched = answer[0]
      })
      if (fetched === undefined || fetched.error !== undefined) return true
      this.#append(place, fetched)
      if (place.offset >= fetched.highWatermark) return true
      if (place.offset === offset) return false
    }
  }

  #append(place: Place, fetched: FetchedPartition): void {
    const { topic, partition } = place
    const cursor = this.#cursor
    cursor.reset(fetched.records, place.offset, fetched.aborted, 'read_committed')
    while (cursor.next()) {
      if (place.fed.delete(cursor.offset)) continue
      const one = { record: recordAt(cursor, topic, partition), taken: false }
      this.#all.push(one)
      const ofTopic = this.#byTopic.get(topic)
      if (ofTopic) ofTopic.records.push(one)
      else this.#byTopic.set(topic, { records: [one], from: 0 })
    }
    place.offset = Math.max(place.offset, cursor.position)
  }

  #place(topic: string, partition: number): Place {
    const id = `${topic}:${partition}`
    const known = this.#places.get(id)
    if (known) return known
    const place = { topic, partition, offset: 0, fed: new Set<number>() }
    this.#places.set(id, place)
    return place
  }
}

function recordAt(cursor: RecordCursor, topic: string, partition: number): WrittenRecord {
  const { bytes, offset, timestamp, keyStart, keyEnd, valueStart, valueEnd, headersStart, headersEnd } = cursor
  const copy = (from: number, to: number): Uint8Array | null =>
    from < 0 ? null : new Uint8Array(bytes.subarray(from, to))
  const headers = headersEnd > headersStart ? decodeHeaders(bytes, headersStart, headersEnd) : noHeaders
  return {
    topic,
    partition,
    offset,
    key: copy(keyStart, keyEnd),
    value: copy(valueStart, valueEnd),
    timestamp,
    headers,
  }
}
