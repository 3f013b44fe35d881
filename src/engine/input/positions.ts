/** How far the input was read and dispatched, and what of that the group knows: what each commit has to tell. */
import { assert } from '../../base/assert.ts'
import { type PartitionKey, partitionKey, type TopicPartition } from '../../base/ids.ts'
import type { Watermarks } from '../../time/watermarks.ts'
import type { StartingPoint } from '../group/assignment.ts'
import type { Route } from './dispatcher.ts'
import type { EngineSettings } from '../settings.ts'
import type { Kept } from './repartition/sorted-buffer.ts'

export interface FrozenPosition extends TopicPartition {
  /** The topic that was read, by its identity: there may be another one of its name by now. */
  readonly topicId?: string | undefined
  readonly offset: number
  readonly maxTimestamp: number
  /** See `CommitTag.comesTo`. */
  readonly comesTo?: number | undefined
  readonly idle: boolean
  /** The application's, or that of the partition's task. */
  readonly watermark: number
  /** The commit has something to tell of it; else it stands where the last one left it. */
  readonly isTold: boolean
  /** What is done of the records behind the offset. */
  readonly kept?: Kept | undefined
  readonly subtopology: number
  /** See `CommitTag.held`. */
  readonly held?: string
}

/** What a commit tells of a partition to those who are fed by it. */
type News = Pick<FrozenPosition, 'maxTimestamp' | 'comesTo' | 'idle'>

/** The oldest offset of the partition that is not done. */
function nextOffsetOf({ buffer, sorted }: Route): number {
  return sorted === undefined ? buffer.nextOffset : sorted.nextOffset
}

function isSame(a: Kept | undefined, b: Kept | undefined): boolean {
  return a?.end === b?.end && a?.timestamp === b?.timestamp && a?.offset === b?.offset
}

export class Positions {
  readonly #settings: EngineSettings
  readonly #watermarks: Watermarks
  readonly #routes: ReadonlyMap<PartitionKey, Route>
  /** Offsets that the group's last commit holds. */
  readonly #committed = new Map<PartitionKey, number>()
  /**
   * Partitions of which the group has no offset yet. One of which nothing was read is committed all the same: else a
   * start without an offset could not be told from one after which records came.
   */
  readonly #unsaid = new Set<PartitionKey>()
  /** What the last commits tell of records behind their offsets. */
  readonly #kept = new Map<PartitionKey, Kept | undefined>()
  /** Partitions whose task has come further without a record, as others have to know. */
  readonly #owed = new Set<PartitionKey>()
  /** Revoked since the last commit: what was dispatched of them has still to be committed. */
  #revoked: FrozenPosition[] = []
  /** What the last commit told of a partition; of interest to those who are fed by it. */
  readonly #told = new Map<PartitionKey, News>()
  /** Topics between sub-topologies are told by commits how far those who feed them have come. */
  announced = false

  constructor(settings: EngineSettings, watermarks: Watermarks, routes: ReadonlyMap<PartitionKey, Route>) {
    this.#settings = settings
    this.#watermarks = watermarks
    this.#routes = routes
  }

  assigned({ topic, partition, offset, committed, isForeign, kept }: StartingPoint): void {
    const key = partitionKey(topic, partition)
    assert(offset >= 0, `${key} is to be read from offset ${offset}`)
    this.#kept.set(key, kept)
    this.#committed.set(key, offset)
    if (!committed) this.#unsaid.add(key)
    // At once, and of all of them: one that is left without a note is taken for moved by a later start.
    if (isForeign) this.#owed.add(key)
  }

  revoked(route: Route): void {
    const { topic, partition, handle, buffer, sorted, subtopology } = route
    const { maxTimestamp, comesTo } = this.#newsOf(route)
    const offset = nextOffsetOf(route)
    assert(offset >= 0, `${topic}:${partition} is given away at offset ${offset}`)
    const watermark = this.#watermarks.inForce(handle)
    const kept = sorted?.kept
    const place = { topic, partition, topicId: buffer.topicId, subtopology, offset, kept }
    this.#revoked.push({ ...place, maxTimestamp, comesTo, watermark, idle: false, isTold: true })
  }

  /** The next commit tells of this partition, though nothing of it was read. */
  owes(key: PartitionKey): void {
    this.#owed.add(key)
  }

  /** Where the last commit left the partition; undefined where it is not read here. */
  of({ topic, partition }: TopicPartition): number | undefined {
    return this.#committed.get(partitionKey(topic, partition))
  }

  /** True when a partition has moved past what is committed, or there is something else to tell of it. */
  moved(): boolean {
    if (this.#owed.size > 0) return true
    if (this.announced && [...this.#routes].some(([key, route]) => this.#hasNews(key, route))) return true
    // From its end on means from now on, also for a process that is started again before the first record has come.
    if (this.#unsaid.size > 0 && this.#settings.offsetsReset === 'latest') return true
    if (this.announced && this.#isOneUnsaidPastItsTime()) return true
    for (const [key, route] of this.#routes) if (nextOffsetOf(route) !== this.#committed.get(key)) return true
    return false
  }

  /** All partitions, and which of them the next commit is to tell of. */
  freeze(): FrozenPosition[] {
    const positions: FrozenPosition[] = []
    let anchored = false
    for (const [key, route] of [...this.#routes].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const { topic, partition, handle, buffer, sorted, subtopology } = route
      const offset = nextOffsetOf(route)
      const kept = sorted?.kept
      // The first partition is committed every time: its metadata carries the tag of each commit.
      const news =
        this.#unsaid.has(key) ||
        this.#owed.has(key) ||
        (this.announced && this.#hasNews(key, route)) ||
        (sorted !== undefined && !isSame(kept, this.#kept.get(key)))
      const isTold = !anchored || offset !== this.#committed.get(key) || news
      anchored = true
      const told = this.#newsOf(route)
      if (isTold) {
        if (this.announced) this.#told.set(key, told)
        this.#kept.set(key, kept)
      }
      const watermark = this.#watermarks.inForce(handle)
      const place = { topic, partition, topicId: buffer.topicId, subtopology, offset, kept }
      positions.push({ ...place, ...told, watermark, isTold })
    }
    positions.push(...this.#revoked)
    this.#revoked = []
    this.#owed.clear()
    return positions
  }

  committed(offsets: ReadonlyArray<TopicPartition & { readonly offset: number }>): void {
    for (const { topic, partition, offset } of offsets) {
      const key = partitionKey(topic, partition)
      this.#committed.set(key, offset)
      this.#unsaid.delete(key)
    }
  }

  /** All that lay in a partition is past its time: those who are fed by it cannot know that nothing of it is left to do. */
  #isOneUnsaidPastItsTime(): boolean {
    for (const key of this.#unsaid) if ((this.#committed.get(key) ?? 0) > 0) return true
    return false
  }

  /** Whether the next commit has something to tell of a partition, though not a record was read of it. */
  #hasNews(key: PartitionKey, route: Route): boolean {
    if (!this.#feeds(route)) return false
    const told = this.#told.get(key)
    const { handle } = route
    const isSameTime = told?.maxTimestamp === this.#watermarks.maxTs(handle) && told.comesTo === this.#comesTo(route)
    return !isSameTime || told.idle !== this.#watermarks.isIdle(handle)
  }

  #newsOf(route: Route): News {
    const [maxTimestamp, idle] = [this.#watermarks.maxTs(route.handle), this.#watermarks.isIdle(route.handle)]
    return { maxTimestamp, comesTo: this.#comesTo(route), idle }
  }

  #comesTo(route: Route): number | undefined {
    if (!this.announced || !this.#feeds(route)) return undefined
    const comesTo = this.#watermarks.comesTo(route.handle)
    return comesTo > this.#watermarks.maxTs(route.handle) && Number.isFinite(comesTo) ? comesTo : undefined
  }

  #feeds({ subtopology }: Route): boolean {
    return this.#settings.plan.boundaries.some(({ fromSubtopology }) => fromSubtopology === subtopology)
  }
}
