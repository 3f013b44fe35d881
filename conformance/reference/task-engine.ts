/**
 * Runs a topology's tasks one after the other on the caller's thread: no broker, no lanes, no commits. Each record,
 * with all that follows from it, is processed before the next is taken.
 */
import { VirtualClock } from '../../src/base/clock.ts'
import { keySlot } from '../../src/base/hash.ts'
import { EngineError } from '../../src/base/errors.ts'
import { type DropReason, type Origin, originAt, type Rec } from '../../src/operators/contract.ts'
import { decodeBytes } from '../../src/operators/decode.ts'
import { Task, type TaskHost } from '../../src/operators/task.ts'
import type { AnyStore, StoreLifecycle, StoreSpec } from '../../src/state/contract.ts'
import { MemoryBackend } from '../../src/state/backends/memory-backend.ts'
import { openStore } from '../../src/state/open-store.ts'
import { OldestFirst } from './oldest-first.ts'
import { nextFiring } from '../../src/time/schedule.ts'
import type { CompiledSource, CompiledTopology, ScheduledRecord } from '../../src/topology/compiled.ts'
import type { Headers } from '../../src/broker/wire/headers.ts'

export interface EngineRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly timestamp: number
  readonly headers: Headers
}

export interface Drop {
  readonly reason: DropReason
  readonly node: string
  readonly record: Rec
}

export interface TaskEngineOptions {
  readonly topology: CompiledTopology
  readonly applicationId: string
  /** The partitions of a topic. The widest topic of a sub-topology gives its number of tasks. */
  readonly partitions: (topic: string) => number
  readonly startAt: number
  readonly operatorTime?: boolean
}

interface Pending {
  readonly source: CompiledSource
  readonly partition: number
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly timestamp: number
  readonly headers: Headers
  readonly origin: Origin
}

interface Firing {
  readonly source: CompiledSource
  last: number
  count: number
}

export class TaskEngine {
  readonly clock: VirtualClock
  readonly outputs: EngineRecord[] = []
  readonly drops: Drop[] = []
  readonly #options: TaskEngineOptions
  readonly #globalStores = new Map<string, AnyStore>()
  readonly #globalTasks = new Map<number, Task>()
  /** By sub-topology, then partition. */
  readonly #tasks: Task[][]
  readonly #storesOf: Array<Array<Map<string, AnyStore & StoreLifecycle>>>
  readonly #queue: Pending[] = []
  /** With a time for each operator, records are taken in Kafka Streams' order, else in the order in which they came. */
  readonly #oldestFirst = new OldestFirst<Pending>((pending) => pending.timestamp)
  readonly #offsets = new Map<string, number>()
  readonly #firings: Firing[] = []
  #epoch = 1
  #watermark = Number.NEGATIVE_INFINITY

  constructor(options: TaskEngineOptions) {
    this.#options = options
    this.clock = new VirtualClock(options.startAt)
    const { topology } = options
    this.#tasks = topology.subtopologies.map(() => [])
    this.#storesOf = topology.subtopologies.map(() => [])
    this.#openGlobals()
    for (const subtopology of topology.subtopologies) {
      if (subtopology.global) continue
      for (let partition = 0; partition < this.taskCount(subtopology.id); partition++)
        this.#open(subtopology.id, partition)
    }
    for (const source of topology.sources) {
      if (source.schedule) this.#firings.push({ source, last: options.startAt, count: 0 })
    }
  }

  get watermark(): number {
    return this.#watermark
  }

  /**
   * How many tasks a sub-topology has: as many as the widest topic that it reads. What is only handed over spreads over
   * all partitions.
   */
  taskCount(subtopology: number): number {
    const { topology, partitions } = this.#options
    const sources = topology.sources.filter((source) => source.subtopology === subtopology)
    const topics = sources.flatMap((source) => source.topics)
    if (topics.length > 0) return Math.max(...topics.map(partitions))
    const all = topology.sources.flatMap((source) => (source.kind === 'topics' ? source.topics : []))
    return Math.max(1, ...all.map(partitions))
  }

  #openStore(spec: StoreSpec, partition: number, task: () => Task | undefined): AnyStore & StoreLifecycle {
    return openStore(spec, new MemoryBackend(), partition, {
      streamTime: () =>
        (spec.kind === 'key-value' ? task()?.streamTime : task()?.settledTo) ?? Number.NEGATIVE_INFINITY,
    })
  }

  #openGlobals(): void {
    const { topology, applicationId } = this.#options
    for (const name of topology.globalStores.keys()) {
      this.#globalStores.set(
        name,
        this.#openStore(topology.stores.get(name) as StoreSpec, 0, () => undefined),
      )
    }
    for (const { id, global } of topology.subtopologies) {
      if (!global) continue
      const host = this.#host(0)
      const task = new Task({
        topology,
        applicationId,
        subtopology: id,
        partition: 0,
        stores: this.#globalStores,
        globalStores: this.#globalStores,
        host,
      })
      task.init()
      this.#globalTasks.set(id, task)
    }
  }

  #open(subtopology: number, partition: number): void {
    const { topology, applicationId } = this.#options
    const stores = new Map<string, AnyStore & StoreLifecycle>()
    let task: Task | undefined
    for (const name of topology.subtopologies[subtopology]?.stores ?? []) {
      stores.set(
        name,
        this.#openStore(topology.stores.get(name) as StoreSpec, partition, () => task),
      )
    }
    task = new Task({
      topology,
      applicationId,
      subtopology,
      partition,
      stores,
      globalStores: this.#globalStores,
      host: this.#host(partition),
      operatorTime: this.#options.operatorTime ?? false,
    })
    this.#storesOf[subtopology]![partition] = stores
    this.#tasks[subtopology]![partition] = task
    task.init()
  }

  #host(partition: number): TaskHost {
    return {
      emit: (topic, key, value, rec, partitionKey) =>
        this.#emit(topic, key === undefined ? (rec.keyBytes ?? null) : key, value, rec, partitionKey, partition),
      handOff: (boundary, key, value, rec, to) =>
        this.#handOff(boundary, key, value === undefined ? (rec.valueBytes ?? null) : value, rec, to, partition),
      dropped: (record, reason, node) => this.drops.push({ record, reason, node }),
      wallClock: () => this.clock.now(),
      requestCommit: () => undefined,
    }
  }

  #emit(
    topic: string,
    key: Uint8Array | null,
    value: Uint8Array | null,
    rec: Rec,
    partitionKey: Uint8Array | undefined,
    from: number,
  ): void {
    const by = partitionKey ?? key
    const count = this.#options.partitions(topic)
    const partition = by === null ? from % count : keySlot(by) % count
    const { timestamp, headers } = rec
    this.outputs.push(this.#append({ topic, partition, key: kept(key), value: kept(value), timestamp, headers }))
  }

  #handOff(
    index: number,
    key: Uint8Array | null,
    value: Uint8Array | null,
    rec: Rec,
    to: Uint8Array | number | undefined,
    from: number,
  ): void {
    const boundary = this.#options.topology.boundaries[index]
    const source = this.#options.topology.sources[boundary?.toSource ?? -1]
    if (!source) throw new EngineError('INVARIANT_BROKEN', `The boundary ${index} leads nowhere.`)
    const count = this.taskCount(source.subtopology)
    const by = typeof to === 'number' ? null : (to ?? key)
    const partition = by === null ? (typeof to === 'number' ? to : from) % count : keySlot(by) % count
    const { timestamp, headers, origin } = rec
    this.#add(source.name, { source, partition, key: kept(key), value: kept(value), timestamp, headers, origin })
  }

  #add(topic: string, pending: Pending): void {
    if (!this.#options.operatorTime || pending.source.kind === 'global') {
      this.#queue.push(pending)
      return
    }
    const { source, partition, key, value, headers, origin } = pending
    let { timestamp } = pending
    if (source.timestampExtractor) {
      timestamp = this.#timestamp(source, decodeBytes(source, key, value, timestamp, headers, origin))
    }
    const queue = source.pattern === undefined ? topic : source.name
    this.#oldestFirst.add(`${queue}:${partition}`, { ...pending, timestamp })
  }

  get #hasMore(): boolean {
    return this.#queue.length > 0 || !this.#oldestFirst.isEmpty
  }

  #next(): Pending | undefined {
    return this.#queue.shift() ?? this.#oldestFirst.take()
  }

  /** Gives a record its offset, and passes it to those who read its topic. */
  #append(record: Omit<EngineRecord, 'offset'>): EngineRecord {
    const id = `${record.topic}:${record.partition}`
    const offset = this.#offsets.get(id) ?? 0
    this.#offsets.set(id, offset + 1)
    const written = { ...record, offset }
    for (const source of this.#options.topology.sources) {
      if (source.topics.includes(record.topic) || source.pattern?.test(record.topic)) this.#enqueue(source, written)
    }
    return written
  }

  #enqueue(source: CompiledSource, record: EngineRecord): void {
    const { key, value, headers, topic, partition, offset } = record
    const origin = originAt(topic, partition, offset, this.#watermark, 1)
    this.#add(topic, { source, partition, key, value, timestamp: record.timestamp, headers, origin })
  }

  /** Whether a source reads the topic. */
  reads(topic: string): boolean {
    return this.#options.topology.sources.some(
      (source) => source.topics.includes(topic) || source.pattern?.test(topic) === true,
    )
  }

  /** Processes a record with all that follows from it. */
  async feed(record: Omit<EngineRecord, 'offset'>): Promise<void> {
    this.#append(record)
    await this.#drain()
  }

  async #drain(): Promise<void> {
    for (;;) {
      for (let next = this.#next(); next; next = this.#next()) await this.#run(next)
      await this.#advance()
      if (!this.#hasMore) return this.#commit()
    }
  }

  /** Rows past their time leave the stores with a commit. Until then nobody sees them. */
  #commit(): void {
    const epoch = this.#epoch++
    for (const partitions of this.#storesOf) {
      for (const stores of partitions) {
        for (const store of stores.values()) {
          if (store.seal(epoch)) store.applied(epoch, { changelogOffset: epoch, commitId: `0.${epoch}`, topicId: '' })
          store.committed(epoch)
        }
      }
    }
  }

  /** Advances event time in all tasks, shallow sub-topologies first. */
  async #advance(): Promise<void> {
    const order = [...this.#options.topology.subtopologies].sort((a, b) => a.level - b.level)
    for (const { id } of order) {
      for (const task of this.#tasks[id] ?? []) {
        await task.advance(this.#watermark)
        if (this.#hasMore) return
      }
    }
  }

  async #run(pending: Pending): Promise<void> {
    const { source, headers } = pending
    const task =
      source.kind === 'global'
        ? this.#globalTasks.get(source.subtopology)
        : this.#tasks[source.subtopology]?.[pending.partition]
    if (!task)
      throw new EngineError(
        'INVARIANT_BROKEN',
        `No task ${source.subtopology}_${pending.partition} for ${source.name}.`,
      )
    const decoded = decodeBytes(source, pending.key, pending.value, pending.timestamp, headers, pending.origin)
    // The extractor ran before the record got its place in the order.
    const timestamp = this.#options.operatorTime ? pending.timestamp : this.#timestamp(source, decoded)
    if (timestamp < 0) {
      this.drops.push({ record: decoded, reason: 'negative_timestamp', node: source.name })
      return
    }
    const fromTopic = source.kind === 'topics'
    if (fromTopic) this.#watermark = Math.max(this.#watermark, timestamp - source.watermark.maxOutOfOrdernessMs)
    const origin = fromTopic ? { ...pending.origin, watermark: this.#watermark } : pending.origin
    const rec = decodeBytes(source, pending.key, pending.value, timestamp, headers, origin)
    await task.process(source.index, rec)
    if (fromTopic) await task.advance(this.#watermark)
  }

  #timestamp(source: CompiledSource, rec: Rec): number {
    const extracted = source.timestampExtractor?.(rec.value, rec.key, rec)
    return extracted !== undefined && Number.isInteger(extracted) ? extracted : rec.timestamp
  }

  /** Moves the wall clock. Scheduled sources and timers that become due fire on the way. */
  async advanceWallClock(durationMs: number): Promise<void> {
    const end = this.clock.now() + durationMs
    for (;;) {
      const due = this.#nextFiring(end)
      if (!due) break
      this.clock.advance(Math.max(0, due.at - this.clock.now()))
      due.firing.last = due.at
      await this.#fire(due.firing, due.at)
    }
    this.clock.advance(end - this.clock.now())
    for (const tasks of this.#tasks) for (const task of tasks) await task.wallClock(this.clock.now())
    await this.#drain()
  }

  #nextFiring(end: number): { firing: Firing; at: number } | undefined {
    let next: { firing: Firing; at: number } | undefined
    for (const firing of this.#firings) {
      const { everyMs, cron } = firing.source.schedule ?? { everyMs: undefined, cron: undefined }
      const at = nextFiring({ everyMs, cron }, firing.last, firing.last)
      if (at <= end && (next === undefined || at < next.at)) next = { firing, at }
    }
    return next
  }

  async #fire(firing: Firing, at: number): Promise<void> {
    const { source } = firing
    const emitted = await source.schedule?.emit({ scheduledAt: at, count: firing.count++ })
    const records = (
      emitted === null || emitted === undefined ? [] : Array.isArray(emitted) ? emitted : [emitted]
    ) as readonly ScheduledRecord[]
    for (const { key, value, timestamp } of records) {
      const keyBytes = key === null || key === undefined ? null : source.keySerde.serialize(key)
      const valueBytes = value === null || value === undefined ? null : source.valueSerde.serialize(value)
      const origin = originAt('', -1, -1, this.#watermark, 1)
      const partition = keyBytes === null ? 0 : keySlot(keyBytes) % this.taskCount(source.subtopology)
      this.#queue.push({
        source,
        partition,
        key: keyBytes,
        value: valueBytes,
        timestamp: timestamp ?? at,
        headers: [],
        origin,
      })
    }
    await this.#drain()
  }

  /** A store; of several partitions, that of the given one. */
  store(name: string, partition: number): AnyStore | undefined {
    const global = this.#globalStores.get(name)
    if (global) return global
    for (const stores of this.#storesOf) {
      const store = stores[partition]?.get(name)
      if (store) return store
    }
    return undefined
  }

  close(): void {
    for (const tasks of this.#tasks) for (const task of tasks) task.close()
  }
}

/** Operators lend the bytes of values for the duration of the call. */
function kept(value: Uint8Array | null): Uint8Array | null {
  return value && new Uint8Array(value)
}
