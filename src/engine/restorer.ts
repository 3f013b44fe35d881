/** Brings lanes' stores to the last commit: opens them, checks them against the broker, replays what is missing. */
import type { BrokerPort, FetchedPartition } from '../broker/port.ts'
import { commitId, compareTags, parseCommitId } from '../commit/tag.ts'
import { EngineError } from '../errors.ts'
import type { Affinity, TaskRef } from '../lanes/affinity.ts'
import type { FromLane, ToLane } from '../lanes/protocol.ts'
import type { Checkpoint } from '../state/contract.ts'
import { RecordCursor } from '../wire/record-batch.ts'
import type { GroupPosition } from './assignment.ts'
import type { ResolvedTopics } from './topics.ts'
import type { RestoreProgress } from './view.ts'

interface StoreToRestore {
  readonly store: string
  readonly partition: number
  readonly lane: number
  readonly topic: string
  readonly topicId: string
  /** What the store holds is of no use: the first chunk empties it. */
  rebuild: boolean
  position: number
  end: number
  restored: number
  /** Chunks that the lane has not applied yet. */
  underWay: number
}

export interface RestorerHost {
  run(): number
  send(lane: number, message: ToLane): void
  progress(progress: readonly RestoreProgress[]): void
  /** True when the engine was restarted or stopped meanwhile: give up quietly. */
  cancelled(run: number): boolean
}

type Opened = Extract<FromLane, { type: 'opened' }>

const chunkBytes = 1024 * 1024
const chunksUnderWay = 4

export class Restorer {
  readonly #broker: BrokerPort
  readonly #host: RestorerHost
  #stores: StoreToRestore[] = []
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
      case 'restored': {
        const store = this.#stores.find((s) => s.store === message.store && s.partition === message.partition)
        if (store) {
          store.restored += message.records
          store.underWay--
        }
        this.#applied?.()
        return
      }
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

  /** Opens the stores of these tasks and replays their changelogs; resolves when all are complete. */
  async restore(
    tasks: ReadonlyMap<number, readonly TaskRef[]>,
    topics: ResolvedTopics,
    group: GroupPosition,
    restoring: () => void,
  ): Promise<Map<string, number>> {
    const run = this.#host.run()
    const { newestTag } = group
    const opened = await this.#open(tasks)
    this.#stores = []
    for (const message of opened) {
      for (const { store, partition, checkpoint } of message.stores) {
        const info = topics.changelogs.get(store)
        if (info) this.#stores.push({ ...this.#begin(store, partition, message.lane, info, checkpoint, group) })
      }
    }
    await this.#findEnds(group)
    const behind = this.#stores.filter((s) => s.position < s.end)
    for (const store of this.#stores) if (store.rebuild && store.position >= store.end) this.#wipe(store)
    if (behind.length > 0) restoring()
    this.#host.progress(this.progress)
    await this.#replay(run, behind, newestTag)
    this.#host.progress(this.progress)
    return new Map(this.#stores.map((s) => [`${s.store}/${s.partition}`, s.position]))
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
        const next = endOf(fetched, position)
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
    epoch: number,
    watermark: number,
  ): Promise<void> {
    const waiting = new Set(Array.from({ length: lanes }, (_, lane) => lane))
    const done = new Promise<void>((resolve) => {
      this.#started = (lane) => {
        waiting.delete(lane)
        if (waiting.size === 0) resolve()
      }
    })
    for (let lane = 0; lane < lanes; lane++) {
      this.#host.send(lane, { type: 'start', run: this.#host.run(), tasks: tasks.get(lane) ?? [], epoch, watermark })
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

  #begin(
    store: string,
    partition: number,
    lane: number,
    info: { topic: string; topicId: string },
    checkpoint: Checkpoint | null,
    { newestTag, partitions }: GroupPosition,
  ): StoreToRestore {
    // Another incarnation of the topic: what the store holds has nothing to do with it.
    const usable = checkpoint !== null && checkpoint.topicId === info.topicId
    const applied = usable && checkpoint ? parseCommitId(checkpoint.commitId) : undefined
    if (applied && newestTag && compareTags(applied, newestTag) > 0) {
      throw new EngineError(
        'STORE_AHEAD',
        `store ${store} of partition ${partition} holds commit ${checkpoint?.commitId}, newer than the group's offsets: they were moved back`,
      )
    }
    // Offsets that nobody has although commits were made: to begin at zero over such a store would count all twice.
    if (applied && !newestTag && partitions.length > 0) {
      throw new EngineError(
        'OFFSETS_MISSING',
        `store ${store} of partition ${partition} holds commit ${checkpoint?.commitId}, but the group has no offsets: they were deleted or have expired`,
      )
    }
    const position = usable && checkpoint ? checkpoint.changelogOffset : 0
    const { topic, topicId } = info
    return { store, partition, lane, topic, topicId, rebuild: !usable, position, end: 0, restored: 0, underWay: 0 }
  }

  async #findEnds(group: GroupPosition): Promise<void> {
    if (this.#stores.length === 0) return
    const partitions = this.#stores.map(({ topic, partition }) => ({ topic, partition }))
    const id = (o: { topic: string; partition: number }): string => `${o.topic}:${o.partition}`
    const ends = new Map((await this.#broker.listOffsets(partitions, 'stable')).map((o) => [id(o), o.offset]))
    const starts = new Map((await this.#broker.listOffsets(partitions, 'earliest')).map((o) => [id(o), o.offset]))
    // What lies behind the group's position in a source topic that serves as changelog is input, not yet state.
    const read = new Map(group.partitions.map((p) => [id(p), p.offset]))
    for (const store of this.#stores) {
      store.end = Math.min(ends.get(id(store)) ?? 0, read.get(id(store)) ?? Number.POSITIVE_INFINITY)
      const start = starts.get(id(store)) ?? 0
      // Behind what the broker still has, or ahead of it: the tail cannot be trusted to fit, so all is replayed.
      if (store.position > store.end || store.position < start) store.rebuild = true
      if (store.rebuild) store.position = Math.min(start, store.end)
    }
  }

  #wipe(store: StoreToRestore): void {
    const checkpoint: Checkpoint = { changelogOffset: store.position, commitId: '', topicId: store.topicId }
    this.#send(store, new Uint8Array(0), [], store.position, checkpoint)
  }

  async #replay(
    run: number,
    stores: readonly StoreToRestore[],
    newestTag: { tokenEpoch: number; seq: number } | undefined,
  ): Promise<void> {
    const wake = (): Promise<void> =>
      new Promise((resolve) => {
        this.#applied = resolve
      })
    let pending = [...stores]
    while (pending.length > 0) {
      if (this.#host.cancelled(run)) return
      const ready = pending.filter((s) => s.underWay < chunksUnderWay)
      if (ready.length === 0) {
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
        maxBytes: 16 * chunkBytes,
        isolation: 'read_committed',
      })
      for (const part of fetched) {
        const store = ready.find((s) => s.topic === part.topic && s.partition === part.partition)
        if (store) this.#replayOne(store, part, newestTag)
      }
      this.#host.progress(this.progress)
      pending = pending.filter((s) => s.position < s.end)
    }
    while (stores.some((s) => s.underWay > 0) && !this.#host.cancelled(run)) await wake()
  }

  #replayOne(
    store: StoreToRestore,
    part: FetchedPartition,
    newestTag: { tokenEpoch: number; seq: number } | undefined,
  ): void {
    if (part.error !== undefined) {
      throw new EngineError(
        'BROKER_REFUSED',
        `the changelog ${part.topic}:${part.partition} cannot be read: ${part.error}`,
      )
    }
    const from = store.position
    const next = endOf(part, from)
    if (next === from) return
    store.position = next
    const applied = next >= store.end && newestTag ? commitId(newestTag) : ''
    this.#send(store, part.records, part.aborted, from, {
      changelogOffset: next,
      commitId: applied,
      topicId: store.topicId,
    })
  }

  #send(
    store: StoreToRestore,
    records: Uint8Array,
    aborted: FetchedPartition['aborted'],
    fromOffset: number,
    checkpoint: Checkpoint,
  ): void {
    store.underWay++
    const { partition, lane, rebuild: wipe } = store
    store.rebuild = false
    const run = this.#host.run()
    this.#host.send(lane, {
      type: 'restore',
      run,
      store: store.store,
      partition,
      wipe,
      records,
      fromOffset,
      aborted,
      checkpoint,
    })
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

/** Where to read on: behind every batch that came, control batches and compacted ones included. */
export function endOf(fetched: FetchedPartition, from: number): number {
  if (fetched.records.length === 0) return from
  const cursor = new RecordCursor()
  cursor.reset(fetched.records, from, fetched.aborted, 'read_committed')
  while (cursor.next());
  return Math.max(from, cursor.position)
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
