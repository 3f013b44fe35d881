/** How far the input was read and dispatched, and what of that the group knows: what each commit has to tell. */
import { type PartitionKey, partitionKey, type TopicPartition } from '../base/ids.ts'
import type { Watermarks } from '../time/watermarks.ts'
import type { StartingPoint } from './assignment.ts'
import type { Route } from './dispatcher.ts'
import type { EngineSettings } from './settings.ts'

export interface FrozenPosition extends TopicPartition {
  readonly offset: number
  readonly maxTimestamp: number
  readonly idle: boolean
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
  /** Revoked since the last commit: what was dispatched of them has still to be committed. */
  #revoked: FrozenPosition[] = []
  /** What the last commit told of a partition; of interest to those who are fed by it. */
  readonly #told = new Map<PartitionKey, { readonly maxTimestamp: number; readonly idle: boolean }>()
  /** Topics between sub-topologies are told by commits how far those who feed them have come. */
  announced = false

  constructor(settings: EngineSettings, watermarks: Watermarks, routes: ReadonlyMap<PartitionKey, Route>) {
    this.#settings = settings
    this.#watermarks = watermarks
    this.#routes = routes
  }

  assigned({ topic, partition, offset, committed }: StartingPoint): void {
    const key = partitionKey(topic, partition)
    this.#committed.set(key, offset)
    if (!committed) this.#unsaid.add(key)
  }

  revoked({ topic, partition, handle, buffer }: Route): void {
    const maxTimestamp = this.#watermarks.maxTs(handle)
    this.#revoked.push({ topic, partition, offset: buffer.nextOffset, maxTimestamp, idle: false })
  }

  /** Where the last commit left the partition; undefined where it is not read here. */
  of({ topic, partition }: TopicPartition): number | undefined {
    return this.#committed.get(partitionKey(topic, partition))
  }

  /** True when a partition has moved past what is committed, or there is something else to tell of it. */
  moved(): boolean {
    if (this.announced && [...this.#routes].some(([key, route]) => this.#hasNews(key, route))) return true
    // From its end on means from now on, also for a process that is started again before the first record has come.
    if (this.#unsaid.size > 0 && this.#settings.offsetsReset === 'latest') return true
    for (const [key, route] of this.#routes) if (route.buffer.nextOffset !== this.#committed.get(key)) return true
    return false
  }

  /** What the next commit is to tell. */
  freeze(): FrozenPosition[] {
    const positions: FrozenPosition[] = []
    let anchored = false
    for (const [key, route] of [...this.#routes].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const { topic, partition, handle, buffer } = route
      const offset = buffer.nextOffset
      // The first partition is committed every time: its metadata carries the tag of each commit.
      const news = this.#unsaid.has(key) || (this.announced && this.#hasNews(key, route))
      if (anchored && offset === this.#committed.get(key) && !news) continue
      anchored = true
      const [maxTimestamp, idle] = [this.#watermarks.maxTs(handle), this.#watermarks.isIdle(handle)]
      if (this.announced) this.#told.set(key, { maxTimestamp, idle })
      positions.push({ topic, partition, offset, maxTimestamp, idle })
    }
    positions.push(...this.#revoked)
    this.#revoked = []
    return positions
  }

  committed(offsets: ReadonlyArray<TopicPartition & { readonly offset: number }>): void {
    for (const { topic, partition, offset } of offsets) {
      const key = partitionKey(topic, partition)
      this.#committed.set(key, offset)
      this.#unsaid.delete(key)
    }
  }

  /** Whether the next commit has something to tell of a partition, though not a record was read of it. */
  #hasNews(key: PartitionKey, { handle, subtopology }: Route): boolean {
    const { boundaries } = this.#settings.plan
    if (!boundaries.some((boundary) => boundary.prompt && boundary.fromSubtopology === subtopology)) return false
    const told = this.#told.get(key)
    return told?.maxTimestamp !== this.#watermarks.maxTs(handle) || told.idle !== this.#watermarks.isIdle(handle)
  }
}
