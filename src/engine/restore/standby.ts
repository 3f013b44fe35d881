/**
 * A standby's stores: all of them open, following their changelogs as the active pod commits. What is read is committed
 * by definition, so a promotion has only to read on to the ends that hold once the predecessor is fenced.
 */
import { partitionKey, type TopicPartition } from '../../base/ids.ts'
import { sleep } from '../../base/timers.ts'
import { BrokerError, type FetchedPartition } from '../../broker/port.ts'
import type { TaskRef } from '../../topology/affinity.ts'
import type { EngineOptions } from '../engine-options.ts'
import type { StandbyProgress } from '../ha-contract.ts'
import type { KnownEnds } from '../commit/changelog-ends.ts'
import type { GroupPosition } from '../group/assignment.ts'
import { Lag } from './standby-lag.ts'
import { findEnds } from './find-ends.ts'
import { refuseUnreadable, type Restorer } from './restorer.ts'
import { checkedState, refuseLost } from './state-check.ts'
import { chunkBytes, chunksUnderWay, roomFor, type StoreReplay } from './store-replay.ts'
import type { ResolvedTopics } from '../group/topics.ts'
import type { Run } from '../run.ts'

/** A changelog with nothing new is asked this long; the answer is also the evidence that the broker is there. */
const followWaitMs = 500
const retryMs = 200
/** How often the group's position in source topics that serve as changelogs is asked for. */
const groupEveryMs = 500
/** How often the ends of changelogs are asked for that are not read at present. */
const endsEveryMs = 500

export interface StandbyHost {
  failed(error: unknown): void
  connected(connected: boolean): void
}

export class Standby {
  readonly #o: EngineOptions
  readonly #restorer: Restorer
  readonly #host: StandbyHost
  readonly #lag: Lag
  #stores: readonly StoreReplay[] = []
  /** Stores whose changelog is a source topic: they follow the group's commits. */
  #bySource: readonly StoreReplay[] = []
  #anySource: TopicPartition | undefined
  #open = false
  #closed = false
  #abort: AbortController | undefined
  #waiting: (() => void) | undefined
  /** Ends are fixed from here on: an answer that was under way may be older than they are. */
  #frozen = false
  #drainedTo: (() => void) | undefined
  #groupAskedAt = Number.NEGATIVE_INFINITY
  #endsAskedAt = Number.NEGATIVE_INFINITY

  constructor(options: EngineOptions, restorer: Restorer, host: StandbyHost) {
    this.#o = options
    this.#restorer = restorer
    this.#host = host
    this.#lag = new Lag(options.clock)
  }

  get stores(): readonly StoreReplay[] {
    return this.#stores
  }

  get progress(): StandbyProgress {
    return { open: this.#open, ...this.#lag.progress(this.#stores) }
  }

  /** Next offset of every changelog partition, by store and partition. */
  get positions(): Map<string, number> {
    return new Map(this.#stores.map((s) => [s.id, s.position]))
  }

  /** Opens all stores; from then on they are followed until `close`. */
  async open(run: Run, tasks: ReadonlyMap<number, readonly TaskRef[]>, topics: ResolvedTopics): Promise<void> {
    let ends: KnownEnds = new Map()
    await this.#untilAnswered(async () => {
      ;({ ends } = await checkedState(this.#o.settings, this.#o.broker, topics))
    })
    if (this.#closed) return
    this.#stores = await this.#restorer.open(run, tasks, topics, () => this.#chunkApplied())
    for (const store of this.#stores) store.know(ends)
    if (this.#closed) return
    const sources = new Set(topics.bySource.flat())
    this.#bySource = this.#stores.filter((store) => sources.has(store.topic))
    const [topic] = sources
    this.#anySource = topic === undefined ? undefined : { topic, partition: 0 }
    await this.#untilAnswered(async () => {
      const group = await this.#groupPositions()
      await findEnds(this.#o.broker, this.#stores, group, this.#pauseShort)
      if (this.#closed) return
      refuseLost(this.#o.settings, this.#stores)
    })
    for (const store of this.#stores) if (store.rebuild && store.position >= store.end) store.wipe(this.#replayHost)
    this.#open = true
    void this.#follow().catch((error) => {
      if (!this.#closed) this.#host.failed(error)
    })
  }

  /** Reads on to the ends that hold at this moment, and no further; resolves when the stores have all of it. */
  async drain(group: Promise<Pick<GroupPosition, 'partitions'>>): Promise<void> {
    this.#frozen = true
    // Only where a source topic serves as changelog is the group's position needed.
    const positions = this.#bySource.length > 0 ? (await group).partitions : []
    await this.#untilAnswered(() => findEnds(this.#o.broker, this.#stores, positions))
    const done = new Promise<void>((resolve) => {
      this.#drainedTo = resolve
    })
    // The request under way may be waiting for what will not come.
    this.#wake()
    await done
  }

  /** Everything was read: refuses where a changelog lacks what was committed. */
  refuseShort(ends: KnownEnds): void {
    for (const store of this.#stores) {
      store.know(ends)
      store.missEnd()
    }
    refuseLost(this.#o.settings, this.#stores)
  }

  /** Committed state was read: with it offsets were committed too. */
  get sawCommits(): boolean {
    return this.#stores.some((store) => store.restored > 0 && !this.#bySource.includes(store))
  }

  close(): void {
    this.#closed = true
    this.#wake()
  }

  readonly #replayHost = {
    send: (lane: number, message: Parameters<EngineOptions['send']>[1]): void => this.#o.send(lane, message, []),
  }

  #wake(): void {
    this.#abort?.abort()
    this.#waiting?.()
  }

  #chunkApplied(): void {
    this.#waiting?.()
  }

  async #follow(): Promise<void> {
    let connected = true
    while (!this.#closed) {
      if (this.#drainedTo && this.#drained()) return
      try {
        await this.#round()
        if (!connected) this.#host.connected(true)
        connected = true
      } catch (error) {
        if (this.#closed) return
        if (!passing(error)) throw error
        if (connected) this.#host.connected(false)
        connected = false
        await sleep(this.#o.timers, retryMs)
      }
    }
  }

  #drained(): boolean {
    if (this.#stores.some((s) => s.position < s.end || s.underWay > 0)) return false
    this.#drainedTo?.()
    return true
  }

  get #room(): number {
    return roomFor(this.#stores, this.#o.settings.bufferedMaxBytes)
  }

  async #round(): Promise<void> {
    if (!this.#frozen) await this.#followGroup()
    const readable = this.#stores.filter((s) => s.underWay < chunksUnderWay && this.#mayRead(s))
    const wanted = this.#room > 0 ? readable : []
    await this.#askEnds(wanted)
    if (wanted.length === 0) {
      await this.#pause()
      return
    }
    for (const part of await this.#fetch(wanted)) {
      for (const store of wanted) {
        // An answer that comes when this is over would go to stores of the next run, which are not open yet.
        if (this.#closed) return
        if (store.topic === part.topic && store.partition === part.partition) await this.#take(store, part)
      }
    }
    if (wanted.length === this.#stores.length) this.#lag.answered(this.#stores)
    else this.#lag.sawEnds(wanted)
  }

  /** What a lane takes nothing more of (it has no room on its disk, say) is not read: its end moves on all the same. */
  async #askEnds(read: readonly StoreReplay[]): Promise<void> {
    const now = this.#o.clock.monotonic()
    if (this.#frozen || now - this.#endsAskedAt < endsEveryMs) return
    const others = this.#stores.filter((store) => !read.includes(store) && !this.#bySource.includes(store))
    if (others.length === 0) return
    this.#endsAskedAt = now
    const places = others.map(({ topic, partition }) => ({ topic, partition }))
    const ends = await this.#o.broker.listOffsets(places, 'stable')
    if (this.#frozen || this.#closed) return
    for (const { topic, partition, offset } of ends) {
      for (const store of others)
        if (store.topic === topic && store.partition === partition) store.end = Math.max(store.end, offset)
    }
    this.#lag.sawEnds(others)
  }

  /** Beyond its end a store reads only while it follows its own changelog. */
  #mayRead(store: StoreReplay): boolean {
    return store.position < store.end || (!this.#frozen && !this.#bySource.includes(store))
  }

  async #take(store: StoreReplay, part: FetchedPartition): Promise<void> {
    if (part.error === 'OFFSET_OUT_OF_RANGE') {
      // The changelog was compacted behind the store: nothing but a full replay fits. Nothing takes away its end.
      if (!this.#bySource.includes(store)) store.known = Math.max(store.known, store.position)
      const group = this.#bySource.includes(store) ? await this.#groupPositions() : []
      await findEnds(this.#o.broker, [store], group, this.#pauseShort)
      if (this.#closed) return
      refuseLost(this.#o.settings, [store])
      return
    }
    refuseUnreadable(part)
    if (!this.#frozen && !this.#bySource.includes(store)) store.end = part.lastStableOffset
    store.take(this.#replayHost, part, () => '')
  }

  async #fetch(wanted: readonly StoreReplay[]): Promise<FetchedPartition[]> {
    const offsets = new Map<string, TopicPartition & { offset: number; maxBytes: number }>()
    for (const { topic, partition, position } of wanted) {
      const id = partitionKey(topic, partition)
      const offset = Math.min(position, offsets.get(id)?.offset ?? position)
      offsets.set(id, { topic, partition, offset, maxBytes: chunkBytes })
    }
    this.#abort = new AbortController()
    try {
      return await this.#o.broker.fetch({
        partitions: [...offsets.values()],
        maxWaitMs: followWaitMs,
        maxBytes: Math.max(1, this.#room),
        isolation: 'read_committed',
        signal: this.#abort.signal,
      })
    } finally {
      this.#abort = undefined
    }
  }

  /** Source topics are followed as far as the group has committed; and where there is no store, somebody is to answer. */
  async #followGroup(): Promise<void> {
    if (this.#bySource.length === 0 && this.#stores.length > 0) return
    const now = this.#o.clock.monotonic()
    if (now - this.#groupAskedAt < groupEveryMs) return
    this.#groupAskedAt = now
    if (this.#bySource.length > 0) {
      await findEnds(this.#o.broker, this.#bySource, await this.#groupPositions())
    } else if (this.#anySource) {
      await this.#o.broker.listOffsets([this.#anySource], 'stable')
    }
    this.#lag.answered(this.#stores)
  }

  async #groupPositions(): Promise<ReadonlyArray<TopicPartition & { readonly offset: number }>> {
    if (this.#bySource.length === 0) return []
    const { broker, settings } = this.#o
    const partitions = this.#bySource.map(({ topic, partition }) => ({ topic, partition }))
    // Where nothing is committed everything is input.
    const committed = await broker.committedOffsets(settings.applicationId, partitions, false)
    return committed.map(({ topic, partition, offset }) => ({ topic, partition, offset: Math.max(offset, 0) }))
  }

  async #untilAnswered(step: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        await step()
        return
      } catch (error) {
        if (!passing(error)) throw error
        this.#host.connected(false)
        await sleep(this.#o.timers, retryMs)
        if (this.#closed) return
      }
    }
  }

  /** Between two questions of which the first was asked too early. */
  readonly #pauseShort = (): Promise<void> | undefined => (this.#closed ? undefined : sleep(this.#o.timers, retryMs))

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        cancel()
        this.#waiting = undefined
        resolve()
      }
      const cancel = this.#o.timers.after(groupEveryMs, done)
      this.#waiting = done
    })
  }
}

function passing(error: unknown): boolean {
  return error instanceof BrokerError && ['unreachable', 'retriable'].includes(error.errorClass)
}
