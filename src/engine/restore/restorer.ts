/** Brings lanes' stores to the last commit: opens them, checks them against the broker, replays what is missing. */
import { assert } from '../../base/assert.ts'
import type { Clock } from '../../base/clock.ts'
import { partitionKey, type TopicPartition } from '../../base/ids.ts'
import type { BrokerPort, FetchedPartition } from '../../broker/port.ts'
import { commitId, compareTags } from '../commit/tag.ts'
import { EngineError } from '../../base/errors.ts'
import type { Affinity, TaskRef } from '../../topology/affinity.ts'
import type { FromLane, StartingTask, ToLane } from '../../lanes/protocol.ts'
import { globalRefused } from '../input/fetch-errors.ts'
import { refusalCode } from '../recovery/failure.ts'
import { type GroupPosition, newest } from '../group/assignment.ts'
import { endOfBatches, RecordCursor } from '../../broker/wire/record-batch.ts'
import type { Run } from '../run.ts'
import type { EngineSettings } from '../settings.ts'
import type { Producer } from '../commit/producer.ts'
import { changelogLost, refuseLost } from './state-check.ts'
import { findEnds } from './find-ends.ts'
import { writeAnew } from './write-anew.ts'
import { chunkBytes, chunksUnderWay, roomFor, StoreReplay } from './store-replay.ts'
import type { ResolvedTopics } from '../group/topics.ts'
import type { RestoreProgress } from '../../view/view.ts'

export interface RestorerHost {
  /** Bytes of changelogs that may be under way to lanes that have not applied them yet. */
  readonly maxBytes: number
  readonly settings: EngineSettings
  send(lane: number, message: ToLane): void
  progress(progress: readonly RestoreProgress[]): void
  ended(): boolean
  /** The store's changelog is not the topic that the last commit went to. */
  isLost(store: string): boolean
  /** Offsets of commits that stores may know of are gone, and that is accepted. */
  hasLostOffsets(): boolean
  producer(): Producer
  readonly clock: Clock
  /** For a moment, until something may be asked again. */
  pause(): Promise<void>
  log(message: string): void
}

/** How often it is asked in vain for what is not shown, some seconds, before that is told. */
const pausesUntilTold = 30
/** No more often is told how far it is: of many stores that are small, chunks come back by the hundred. */
const toldEveryMs = 100

type Opened = Extract<FromLane, { type: 'opened' }>

export class Restorer {
  readonly #broker: BrokerPort
  readonly #host: RestorerHost
  #stores: readonly StoreReplay[] = []
  #opened: ((message: Opened) => void) | undefined
  #loaded: (() => void) | undefined
  #applied: (() => void) | undefined
  #started: ((lane: number) => void) | undefined
  #dumped: ((message: Extract<FromLane, { type: 'dumped' }>) => void) | undefined

  constructor(broker: BrokerPort, host: RestorerHost) {
    this.#broker = broker
    this.#host = host
  }

  laneMessage(message: Extract<FromLane, { type: 'opened' | 'restored' | 'loaded' | 'started' | 'dumped' }>): void {
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
      case 'dumped':
        this.#dumped?.(message)
        return
      case 'started':
        this.#started?.(message.lane)
    }
  }

  get progress(): RestoreProgress[] {
    return this.#stores.map((store) => store.progress)
  }

  /** Of the commits that the stores were found to hold. */
  get newestEpoch(): number {
    return Math.max(0, ...this.#stores.map(({ found }) => found?.tokenEpoch ?? 0))
  }

  /** Opens the stores of these tasks; what the lanes tell of them goes to the replays that this answers with. */
  async open(
    run: Run,
    tasks: ReadonlyMap<number, readonly TaskRef[]>,
    topics: ResolvedTopics,
    applied?: () => void,
  ): Promise<StoreReplay[]> {
    const stores: StoreReplay[] = []
    for (const { lane, stores: opened } of await this.#open(run, tasks)) {
      for (const { store, partition, checkpoint, writtenAt } of opened) {
        const info = topics.changelogs.get(store)
        const now = this.#host.clock.now()
        const where = { run, store, partition, lane }
        if (info) stores.push(new StoreReplay(where, info, checkpoint, now - (writtenAt ?? now)))
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
    run: Run,
    tasks: ReadonlyMap<number, readonly TaskRef[]>,
    topics: ResolvedTopics,
    group: GroupPosition,
    restoring: () => void,
    refuse?: () => void,
  ): Promise<Map<string, number>> {
    const stores = await this.open(run, tasks, topics)
    if (this.#host.settings.lostChangelogs === 'write-anew') await this.#writeAnew(run, stores, group)
    const known = await this.#withAllTags(stores, group)
    if (!this.#host.hasLostOffsets()) for (const store of stores) store.compareWith(known)
    for (const store of stores) store.know(group.ends)
    await findEnds(this.#broker, stores, group.partitions, this.#pauseOf(run))
    if (this.#isOver(run)) return new Map()
    if (group.newestTag) refuseLost(this.#host.settings, stores)
    for (const store of stores) if (store.rebuild && store.position >= store.end) store.wipe(this.#host)
    this.#host.progress(this.progress)
    if (stores.some((s) => s.position < s.end)) restoring()
    const sources = new Set(topics.bySource.flat())
    await this.#replay(run, stores, group.newestTag, ({ topic, position }, fetched) => {
      if (refuse && !sources.has(topic) && hasRecord(fetched, position)) refuse()
    })
    this.#host.progress(this.progress)
    return new Map(stores.map((s) => [s.id, s.position]))
  }

  /**
   * Each commit tells of one partition, and of those that have moved. Where processes share them, a store may have come to a
   * commit that told only of partitions which another process has by now.
   */
  async #withAllTags(stores: readonly StoreReplay[], group: GroupPosition): Promise<GroupPosition> {
    const { split, applicationId } = this.#host.settings
    const { newestTag } = group
    if (split === 'in-process' || newestTag === undefined) return group
    if (stores.every(({ found }) => found === undefined || compareTags(found, newestTag) <= 0)) return group
    return { ...group, newestTag: newest(await this.#broker.committedOffsets(applicationId, null, true)) }
  }

  /** The engine was restarted or stopped meanwhile: give up quietly. */
  #isOver(run: Run): boolean {
    return run.isOver || this.#host.ended()
  }

  /** Between two questions for an end that is not shown yet; where it takes long, that is told. */
  #pauseOf(run: Run): () => Promise<void> | undefined {
    let pauses = 0
    return () => {
      if (this.#isOver(run)) return undefined
      if (++pauses === pausesUntilTold)
        this.#host.log(
          'changelogs have more than they show, and what was committed is part of it: the start waits until the broker has ended ' +
            'the transactions that are open in them',
        )
      return this.#host.pause()
    }
  }

  /** What changelogs have lost is written from stores on disk, in one transaction; those then go with the new topic. */
  async #writeAnew(run: Run, stores: readonly StoreReplay[], { newestTag }: GroupPosition): Promise<void> {
    const ofPlan = this.#host.settings.plan.stores.filter(({ changelogTopic }) => changelogTopic === undefined)
    const own = new Set(ofPlan.map(({ name }) => name))
    // A changelog of which nothing is lost has nothing to be written to, and a new application has lost none.
    const lost = stores.filter((store) => own.has(store.store) && this.#host.isLost(store.store))
    if (lost.length === 0 || newestTag === undefined) return
    for (const store of lost) {
      if (store.hasAllOf(newestTag)) continue
      const what = `(partition ${store.partition}) was deleted, and the store on disk does not have all that was committed`
      throw changelogLost(this.#host.settings, store.store, what, store.topic)
    }
    await writeAnew(this.#host, lost, (store, from) => this.#dump(run, store, from))
    for (const store of lost) store.adopt(this.#host, commitId(newestTag))
    this.#host.log(
      `the changelogs of ${[...new Set(lost.map(({ store }) => store))].join(', ')} were written anew from the stores on disk`,
    )
  }

  async #dump(
    run: Run,
    { store, partition, lane }: StoreReplay,
    from: Uint8Array | null,
  ): Promise<Extract<FromLane, { type: 'dumped' }>> {
    const { promise, resolve } = Promise.withResolvers<Extract<FromLane, { type: 'dumped' }>>()
    this.#dumped = resolve
    this.#host.send(lane, { type: 'dump', run: run.number, store, partition, from })
    return promise
  }

  /** Loads the topic of a global table into every lane, up to its end; answers where to go on. */
  async loadGlobal(
    run: Run,
    source: number,
    topic: string,
    partitions: number,
    lanes: number,
  ): Promise<Map<number, number>> {
    const all = Array.from({ length: partitions }, (_, partition) => ({ topic, partition }))
    const starts = new Map((await this.#broker.listOffsets(all, 'earliest')).map((o) => [o.partition, o.offset]))
    const ends = await this.#stableEnds(all)
    const positions = new Map<number, number>()
    for (const { partition } of all) {
      let position = starts.get(partition) ?? 0
      let end = ends.get(partition) ?? 0
      while (position < end && !this.#isOver(run)) {
        const fetched = await this.#fetch(topic, partition, position)
        // Another run may be filling its own by now: its lanes' answers are not for this one.
        if (this.#isOver(run)) break
        const next = fetched === undefined ? position : endOfBatches(fetched.records, position)
        if (fetched === undefined || next === position) {
          // A leader that is slow has not said yet what is there. One that has lost records has no more than it says now.
          await this.#host.pause()
          if (!this.#isOver(run)) end = (await this.#stableEnds([{ topic, partition }])).get(partition) ?? 0
          continue
        }
        await this.#loadOne(run, source, topic, partition, fetched, position, lanes)
        position = next
      }
      positions.set(partition, position)
    }
    return positions
  }

  async #stableEnds(partitions: readonly TopicPartition[]): Promise<Map<number, number>> {
    return new Map((await this.#broker.listOffsets(partitions, 'stable')).map((o) => [o.partition, o.offset]))
  }

  /** Hands one fetched run of a global topic to all lanes and waits until they have it. */
  async #loadOne(
    run: Run,
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
        run: run.number,
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
    run: Run,
    tasks: ReadonlyMap<number, readonly StartingTask[]>,
    lanes: number,
    { epoch, watermark, fencingToken }: { epoch: number; watermark: number; fencingToken: number },
  ): Promise<void> {
    const all = Array.from({ length: lanes }, (_, lane) => lane)
    const waiting = new Set(all)
    const done = new Promise<void>((resolve) => {
      this.#started = (lane) => {
        const wasExpected = waiting.delete(lane)
        assert(wasExpected, `lane ${lane} has started twice`)
        if (waiting.size === 0) resolve()
      }
    })
    for (const lane of all) {
      const starting = tasks.get(lane) ?? []
      this.#host.send(lane, { type: 'start', run: run.number, tasks: starting, epoch, watermark, fencingToken })
    }
    await done
    for (const lane of all) this.#host.send(lane, { type: 'begin', run: run.number })
  }

  async #open(run: Run, tasks: ReadonlyMap<number, readonly TaskRef[]>): Promise<Opened[]> {
    const answers: Opened[] = []
    const done = new Promise<void>((resolve) => {
      this.#opened = (message) => {
        assert(tasks.has(message.lane), `lane ${message.lane} has opened stores that nobody asked for`)
        answers.push(message)
        if (answers.length === tasks.size) resolve()
      }
    })
    if (tasks.size === 0) return []
    for (const [lane, refs] of tasks) this.#host.send(lane, { type: 'open', run: run.number, tasks: refs })
    await done
    return answers
  }

  async #replay(
    run: Run,
    stores: readonly StoreReplay[],
    newestTag: { tokenEpoch: number; seq: number } | undefined,
    check: (store: StoreReplay, fetched: FetchedPartition) => void,
  ): Promise<void> {
    let woken = (): void => undefined
    const wake = (): Promise<void> =>
      new Promise((resolve) => {
        woken = resolve
      })
    let toldMs = Number.NEGATIVE_INFINITY
    this.#applied = () => {
      const now = this.#host.clock.monotonic()
      if (now - toldMs >= toldEveryMs) {
        toldMs = now
        this.#host.progress(this.progress)
      }
      woken()
    }
    let pending = stores.filter((s) => s.position < s.end)
    while (pending.length > 0) {
      if (this.#isOver(run)) return
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
      // The run may have ended meanwhile: what the lanes of the next one have open is not meant.
      if (this.#isOver(run)) return
      const readyByPartition = new Map(ready.map((store) => [partitionKey(store.topic, store.partition), store]))
      for (const part of fetched) {
        const store = readyByPartition.get(partitionKey(part.topic, part.partition))
        if (!store) continue
        refuseUnreadable(part)
        check(store, part)
        store.take(this.#host, part, (next) => (next >= store.end && newestTag ? commitId(newestTag) : ''))
      }
      pending = pending.filter((s) => s.position < s.end)
    }
    // Those that were only emptied, too: a lane whose disk is full does that later, and must have nothing new in them by then.
    while (stores.some((s) => s.underWay > 0) && !this.#isOver(run)) await wake()
  }

  /** Undefined: the broker has not answered yet. */
  async #fetch(topic: string, partition: number, offset: number): Promise<FetchedPartition | undefined> {
    const [fetched] = await this.#broker.fetch({
      partitions: [{ topic, partition, offset, maxBytes: chunkBytes }],
      maxWaitMs: 500,
      maxBytes: chunkBytes,
      isolation: 'read_committed',
    })
    if (fetched?.error !== undefined) throw globalRefused({ topic, partition, offset }, fetched.error)
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
  throw new EngineError(refusalCode(error), `the changelog ${topic}:${partition} cannot be read: ${error}`)
}

/** Which lane runs which tasks. */
export function tasksByLane<T extends TaskRef>(tasks: readonly T[], affinity: Affinity): Map<number, T[]> {
  const result = new Map<number, T[]>()
  for (const task of tasks) {
    const lane = affinity.lane(task.subtopology, task.partition)
    const list = result.get(lane)
    if (list) list.push(task)
    else result.set(lane, [task])
  }
  return result
}
