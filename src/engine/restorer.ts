/** Brings lanes' stores to the last commit: opens them, checks them against the broker, replays what is missing. */
import { partitionKey, type TopicPartition } from '../base/ids.ts'
import type { BrokerPort, FetchedPartition } from '../broker/port.ts'
import { commitId } from '../commit/tag.ts'
import { EngineError } from '../errors.ts'
import type { Affinity, TaskRef } from '../lanes/affinity.ts'
import type { FromLane, ToLane } from '../lanes/protocol.ts'
import type { GroupPosition } from './assignment.ts'
import { endOfBatches, RecordCursor } from '../wire/record-batch.ts'
import { chunkBytes, chunksUnderWay, roomFor, StoreReplay } from './store-replay.ts'
import type { ResolvedTopics } from './topics.ts'
import type { RestoreProgress } from './view.ts'

export interface RestorerHost {
  /** Bytes of changelogs that may be under way to lanes that have not applied them yet. */
  readonly maxBytes: number
  run(): number
  send(lane: number, message: ToLane): void
  progress(progress: readonly RestoreProgress[]): void
  /** True when the engine was restarted or stopped meanwhile: give up quietly. */
  cancelled(run: number): boolean
}

type Opened = Extract<FromLane, { type: 'opened' }>

export class Restorer {
  readonly #broker: BrokerPort
  readonly #host: RestorerHost
  #stores: readonly StoreReplay[] = []
  #opened: ((message: Opened) => void) | undefined
  #loaded: (() => void) | undefined
  #applied: (() => void) | undefined
  #started: ((lane: number) => void) | undefined

  constructor(broker: BrokerPort, host: RestorerHost) {
    this.#broker = broker
    this.#host = host
  }

  laneMessage(message: Extract<FromLane, { type: 'opened' | 'restored' | 'loaded' | 'started' }>): void {
    switch (message.type) {
      case 'opened':
        this.#opened?.(message)
        return
      case 'restored':
        this.#stores
          .find((s) => s.store === message.store && s.partition === message.partition)
          ?.chunkApplied(message.records)
        this.#applied?.()
        return
      case 'loaded':
        this.#loaded?.()
        return
      case 'started':
        this.#started?.(message.lane)
    }
  }

  get progress(): RestoreProgress[] {
    return this.#stores.map(({ store, partition, restored, position, end }) => ({
      store,
      partition,
      restoredRecords: restored,
      remainingRecords: Math.max(0, end - position),
    }))
  }

  /** Opens the stores of these tasks; what the lanes tell of them goes to the replays that this answers with. */
  async open(
    tasks: ReadonlyMap<number, readonly TaskRef[]>,
    topics: ResolvedTopics,
    applied?: () => void,
  ): Promise<StoreReplay[]> {
    const stores: StoreReplay[] = []
    for (const { lane, stores: opened } of await this.#open(tasks)) {
      for (const { store, partition, checkpoint } of opened) {
        const info = topics.changelogs.get(store)
        if (info) stores.push(new StoreReplay({ store, partition, lane }, info, checkpoint))
      }
    }
    this.#stores = stores
    this.#applied = applied
    return stores
  }

  /**
   * Opens the stores of these tasks and replays their changelogs; resolves when all are complete. `refuse` is called
   * before the first record of a changelog is handed on that no source topic serves as.
   */
  async restore(
    tasks: ReadonlyMap<number, readonly TaskRef[]>,
    topics: ResolvedTopics,
    group: GroupPosition,
    restoring: () => void,
    refuse?: () => void,
  ): Promise<Map<string, number>> {
    const run = this.#host.run()
    const stores = await this.open(tasks, topics)
    for (const store of stores) store.compareWith(group)
    await findEnds(this.#broker, stores, group.partitions)
    const behind = stores.filter((s) => s.position < s.end)
    for (const store of stores) if (store.rebuild && store.position >= store.end) store.wipe(this.#host)
    if (behind.length > 0) restoring()
    this.#host.progress(this.progress)
    const sources = new Set(topics.bySource.flat())
    await this.#replay(run, behind, group.newestTag, ({ topic, position }, fetched) => {
      if (refuse && !sources.has(topic) && hasRecord(fetched, position)) refuse()
    })
    this.#host.progress(this.progress)
    return new Map(stores.map((s) => [s.id, s.position]))
  }

  /** Loads the topic of a global table into every lane, up to its end; answers where to go on. */
  async loadGlobal(source: number, topic: string, partitions: number, lanes: number): Promise<Map<number, number>> {
    const run = this.#host.run()
    const all = Array.from({ length: partitions }, (_, partition) => ({ topic, partition }))
    const starts = new Map((await this.#broker.listOffsets(all, 'earliest')).map((o) => [o.partition, o.offset]))
    const ends = new Map((await this.#broker.listOffsets(all, 'stable')).map((o) => [o.partition, o.offset]))
    const positions = new Map<number, number>()
    for (const { partition } of all) {
      let position = starts.get(partition) ?? 0
      const end = ends.get(partition) ?? 0
      while (position < end && !this.#host.cancelled(run)) {
        const fetched = await this.#fetch(topic, partition, position)
        const next = endOfBatches(fetched.records, position)
        if (next === position) break
        await this.#loadOne(source, topic, partition, fetched, position, lanes)
        position = next
      }
      positions.set(partition, position)
    }
    return positions
  }

  /** Hands one fetched run of a global topic to all lanes and waits until they have it. */
  async #loadOne(
    source: number,
    topic: string,
    partition: number,
    fetched: FetchedPartition,
    fromOffset: number,
    lanes: number,
  ): Promise<void> {
    let left = lanes
    const done = new Promise<void>((resolve) => {
      this.#loaded = () => {
        if (--left === 0) resolve()
      }
    })
    const { records, aborted } = fetched
    for (let lane = 0; lane < lanes; lane++) {
      this.#host.send(lane, {
        type: 'global',
        run: this.#host.run(),
        source,
        topic,
        partition,
        records,
        fromOffset,
        aborted,
      })
    }
    await done
  }

  /** Starts processing on all lanes. */
  async start(
    tasks: ReadonlyMap<number, readonly TaskRef[]>,
    lanes: number,
    { epoch, watermark, fencingToken }: { epoch: number; watermark: number; fencingToken: number },
  ): Promise<void> {
    const waiting = new Set(Array.from({ length: lanes }, (_, lane) => lane))
    const done = new Promise<void>((resolve) => {
      this.#started = (lane) => {
        waiting.delete(lane)
        if (waiting.size === 0) resolve()
      }
    })
    for (let lane = 0; lane < lanes; lane++) {
      const run = this.#host.run()
      this.#host.send(lane, { type: 'start', run, tasks: tasks.get(lane) ?? [], epoch, watermark, fencingToken })
    }
    await done
  }

  async #open(tasks: ReadonlyMap<number, readonly TaskRef[]>): Promise<Opened[]> {
    const answers: Opened[] = []
    const done = new Promise<void>((resolve) => {
      this.#opened = (message) => {
        answers.push(message)
        if (answers.length === tasks.size) resolve()
      }
    })
    if (tasks.size === 0) return []
    for (const [lane, refs] of tasks) this.#host.send(lane, { type: 'open', run: this.#host.run(), tasks: refs })
    await done
    return answers
  }

  async #replay(
    run: number,
    stores: readonly StoreReplay[],
    newestTag: { tokenEpoch: number; seq: number } | undefined,
    check: (store: StoreReplay, fetched: FetchedPartition) => void,
  ): Promise<void> {
    const wake = (): Promise<void> =>
      new Promise((resolve) => {
        this.#applied = resolve
      })
    let pending = [...stores]
    while (pending.length > 0) {
      if (this.#host.cancelled(run)) return
      const ready = pending.filter((s) => s.underWay < chunksUnderWay)
      const room = roomFor(stores, this.#host.maxBytes)
      if (ready.length === 0 || room <= 0) {
        await wake()
        continue
      }
      const fetched = await this.#broker.fetch({
        partitions: ready.map(({ topic, partition, position }) => ({
          topic,
          partition,
          offset: position,
          maxBytes: chunkBytes,
        })),
        maxWaitMs: 500,
        maxBytes: room,
        isolation: 'read_committed',
      })
      const readyByPartition = new Map(ready.map((store) => [partitionKey(store.topic, store.partition), store]))
      for (const part of fetched) {
        const store = readyByPartition.get(partitionKey(part.topic, part.partition))
        if (!store) continue
        refuseUnreadable(part)
        check(store, part)
        store.take(this.#host, part, (next) => (next >= store.end && newestTag ? commitId(newestTag) : ''))
      }
      this.#host.progress(this.progress)
      pending = pending.filter((s) => s.position < s.end)
    }
    while (stores.some((s) => s.underWay > 0) && !this.#host.cancelled(run)) await wake()
  }

  async #fetch(topic: string, partition: number, offset: number): Promise<FetchedPartition> {
    const [fetched] = await this.#broker.fetch({
      partitions: [{ topic, partition, offset, maxBytes: chunkBytes }],
      maxWaitMs: 500,
      maxBytes: chunkBytes,
      isolation: 'read_committed',
    })
    if (fetched === undefined || fetched.error !== undefined) {
      throw new EngineError('BROKER_REFUSED', `${topic}:${partition} cannot be read: ${fetched?.error ?? 'no answer'}`)
    }
    return fetched
  }
}

function hasRecord({ records, aborted }: FetchedPartition, from: number): boolean {
  const cursor = new RecordCursor()
  cursor.reset(records, from, aborted, 'read_committed')
  return cursor.next()
}

export function refuseUnreadable({ topic, partition, error }: FetchedPartition): void {
  if (error === undefined) return
  throw new EngineError('BROKER_REFUSED', `the changelog ${topic}:${partition} cannot be read: ${error}`)
}

/**
 * How far each changelog is to be replayed. What lies behind the group's position in a source topic that serves as
 * changelog is input, not yet state.
 */
export async function findEnds(
  broker: BrokerPort,
  stores: readonly StoreReplay[],
  group: ReadonlyArray<TopicPartition & { readonly offset: number }>,
): Promise<void> {
  if (stores.length === 0) return
  const partitions = stores.map(({ topic, partition }) => ({ topic, partition }))
  const id = (o: TopicPartition): string => partitionKey(o.topic, o.partition)
  const [stable, earliest] = await Promise.all([
    broker.listOffsets(partitions, 'stable'),
    broker.listOffsets(partitions, 'earliest'),
  ])
  const ends = new Map(stable.map((o) => [id(o), o.offset]))
  const starts = new Map(earliest.map((o) => [id(o), o.offset]))
  const read = new Map(group.map((p) => [id(p), p.offset]))
  for (const store of stores) {
    const end = Math.min(ends.get(id(store)) ?? 0, read.get(id(store)) ?? Number.POSITIVE_INFINITY)
    store.fit(starts.get(id(store)) ?? 0, end)
  }
}

/** Which lane runs which tasks. */
export function tasksByLane(tasks: readonly TaskRef[], affinity: Affinity): Map<number, TaskRef[]> {
  const result = new Map<number, TaskRef[]>()
  for (const task of tasks) {
    const lane = affinity.lane(task.subtopology, task.partition)
    const list = result.get(lane)
    if (list) list.push(task)
    else result.set(lane, [task])
  }
  return result
}
