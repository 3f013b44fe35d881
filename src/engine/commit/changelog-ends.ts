/**
 * How far each changelog goes, as commits tell it: beside the tag of one source partition for each partition of the
 * changelogs, one of the same task, which goes wherever the store goes. So a start knows whether a changelog still has
 * all that was committed, also where no store on disk does, and waits for what the broker is only about to show.
 */
import type { TopicPartition } from '../../base/ids.ts'
import type { CommittedOffset, OffsetToCommit } from '../../broker/port.ts'
import type { ResolvedTopics } from '../group/topics.ts'
import type { EngineSettings } from '../settings.ts'
import type { StorePartition } from '../../lanes/protocol.ts'
import { incarnationOf } from './state-marks.ts'
import { compareTags, decodeTag, withEnds } from './tag.ts'

/** Offset behind the last committed record, by `endKey`. */
export type KnownEnds = ReadonlyMap<string, number>

/** A partition that the commit may tell something beside: its offset has moved, or not. */
export interface Place extends TopicPartition {
  readonly isTold: boolean
}

export interface Cut extends StorePartition {
  /** Where the broker has put what was to stand behind `end`. */
  readonly offset: number
  readonly end: number
}

export interface WrittenEnd extends StorePartition {
  readonly end: number
}

/** Brokers take 4096 bytes of metadata by default. Ends that find no room in them are not told. */
const mostMetadata = 4000

/** Of one partition of this very topic: one that is made anew under the same name is another one. */
export const endKey = (topicId: string, partition: number): string => `${incarnationOf(topicId)}.${partition}`

/** What the newest commit that tells of it says of each changelog partition. */
export function endsIn(committed: readonly CommittedOffset[]): KnownEnds {
  const known = new Map<string, number>()
  const tags = committed.flatMap(({ metadata }) => decodeTag(metadata) ?? [])
  for (const { ends } of tags.filter((tag) => tag.ends !== undefined).sort(compareTags)) {
    for (const entry of (ends as string).split(';')) {
      const at = entry.lastIndexOf('.')
      const end = Number.parseInt(entry.slice(at + 1), 36)
      if (at > 0 && Number.isSafeInteger(end)) known.set(entry.slice(0, at), end)
    }
  }
  return known
}

/** Where these changelogs end; `next`: by store and partition. */
export function endsOf(written: readonly StorePartition[], next: ReadonlyMap<string, number>): WrittenEnd[] {
  return written.flatMap(({ store, partition }) => {
    const end = next.get(`${store}/${partition}`)
    return end === undefined ? [] : { store, partition, end }
  })
}

interface Told {
  readonly key: string
  readonly subtopology: number
  readonly partition: number
  end: number
}

/** The ends of this process's changelogs, and which of them the next commit has to tell. */
export class ChangelogEnds {
  readonly #settings: EngineSettings
  /** By store and partition. */
  readonly #ends = new Map<string, Told>()
  /** Those that end before what was told last: somebody has accepted the loss. */
  readonly #toCorrect = new Set<Told>()

  constructor(settings: EngineSettings) {
    this.#settings = settings
  }

  /** A changelog as a start has found it; `known`: what commits have told before. */
  found(topics: ResolvedTopics, known: KnownEnds, written: WrittenEnd): void {
    const told = this.#set(topics, written)
    if (told !== undefined && (known.get(told.key) ?? 0) > told.end) this.#toCorrect.add(told)
  }

  /** Another process has them from now on. */
  drop(stores: readonly string[], partition: number): void {
    for (const store of stores) this.#ends.delete(`${store}/${partition}`)
  }

  clear(): void {
    this.#ends.clear()
    this.#toCorrect.clear()
  }

  committed(): void {
    this.#toCorrect.clear()
  }

  /** What was given an offset that the changelog had passed: it has lost its end while it was written to. */
  cut(written: readonly StorePartition[], from: ReadonlyMap<string, number>): Cut | undefined {
    for (const { store, partition } of written) {
      const id = `${store}/${partition}`
      const end = this.#ends.get(id)?.end ?? 0
      const offset = from.get(id) ?? end
      if (offset < end) return { store, partition, offset, end }
    }
    return undefined
  }

  /** The offsets of a commit, with the ends of the changelogs that were written in it. */
  tell<P extends Place>(
    topics: ResolvedTopics,
    written: readonly WrittenEnd[],
    places: readonly P[],
    encode: (place: P) => OffsetToCommit,
  ): OffsetToCommit[] {
    const changed = new Set(this.#toCorrect)
    for (const each of written) {
      const told = this.#set(topics, each)
      if (told !== undefined) changed.add(told)
    }
    const byPlace = this.#byPlace(topics, changed, places)
    return places.flatMap((place) => {
      const ends = byPlace.get(place)
      if (!place.isTold && ends === undefined) return []
      const offset = encode(place)
      if (ends === undefined) return offset
      return { ...offset, metadata: withEnds(offset.metadata, endsWithin(ends, mostMetadata - offset.metadata.length)) }
    })
  }

  /** All that is to stand beside each place of which the commit tells: what stood there before is gone with it. */
  #byPlace<P extends Place>(
    topics: ResolvedTopics,
    changed: ReadonlySet<Told>,
    places: readonly P[],
  ): ReadonlyMap<P, readonly Told[]> {
    const result = new Map<P, Told[]>()
    if (this.#ends.size === 0 || places.length === 0) return result
    const byPartition = new Map<number, P>()
    for (const place of places) if (!byPartition.has(place.partition)) byPartition.set(place.partition, place)
    const byTask = this.#byTask(topics, places)
    const placeOf = ({ subtopology, partition }: Told): P =>
      byTask.get(`${subtopology}_${partition}`) ??
      byPartition.get(partition) ??
      (places[partition % places.length] as unknown as P)
    for (const place of places) if (place.isTold) result.set(place, [])
    for (const told of changed) result.set(placeOf(told), [])
    for (const told of this.#ends.values()) result.get(placeOf(told))?.push(told)
    return result
  }

  /** The first place of each task. */
  #byTask<P extends Place>({ bySource }: ResolvedTopics, places: readonly P[]): ReadonlyMap<string, P> {
    const readers = new Map<string, number[]>()
    for (const { index, subtopology } of this.#settings.plan.sources) {
      for (const topic of bySource[index] ?? []) {
        const of = readers.get(topic)
        if (of === undefined) readers.set(topic, [subtopology])
        else of.push(subtopology)
      }
    }
    const result = new Map<string, P>()
    for (const place of places) {
      for (const subtopology of readers.get(place.topic) ?? []) {
        const task = `${subtopology}_${place.partition}`
        if (!result.has(task)) result.set(task, place)
      }
    }
    return result
  }

  #set({ changelogs }: ResolvedTopics, { store, partition, end }: WrittenEnd): Told | undefined {
    const info = changelogs.get(store)
    const plan = this.#settings.plan.stores.find(({ name }) => name === store)
    // A source topic that serves as changelog is known as far as the group has read it.
    if (info === undefined || plan === undefined || plan.changelogTopic !== undefined) return undefined
    const id = `${store}/${partition}`
    const key = endKey(info.topicId, partition)
    const before = this.#ends.get(id)
    if (before?.key === key) {
      before.end = end
      return before
    }
    const told = { key, subtopology: plan.subtopology, partition, end }
    this.#ends.set(id, told)
    return told
  }
}

function endsWithin(ends: readonly Told[], bytes: number): string {
  let text = ''
  for (const { key, end } of ends) {
    const entry = `${text === '' ? '' : ';'}${key}.${end.toString(36)}`
    if (text.length + entry.length > bytes) break
    text += entry
  }
  return text
}
