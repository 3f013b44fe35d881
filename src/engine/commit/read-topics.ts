/**
 * Which topics an application has read, noted beside offsets of all of them: a broker drops the offsets of a topic together
 * with it, and what is noted beside these. Of one that is made again under its name the others still know. Of topics between
 * sub-topologies it is noted as well where nothing of them was read yet: they hold what the application has written.
 */
import type { CommittedOffset, TopicInfo } from '../../broker/port.ts'
import { digestOf, incarnationOf } from './state-marks.ts'
import { type CommitTag, compareTags, decodeTag } from './tag.ts'

/** Brokers take 4096 bytes of metadata by default, and other notes need some. */
const mostTopics = 40
const nameLength = 8

const nameOf = (topic: string): string => digestOf(topic).slice(0, nameLength)
/** No topic is called so. To versions before it is another one. */
const madeNameOf = (topic: string): string => nameOf(`${topic} made`)

interface ReadUpTo {
  readonly topic: string
  readonly topicId?: string | undefined
  readonly offset: number
}

/** Empty where there are no others. `made`: topics between sub-topologies, which every commit names. */
export function encodeRead(
  positions: readonly ReadUpTo[],
  made: ReadonlyArray<Pick<TopicInfo, 'topic' | 'topicId'>> = [],
): string {
  const read = new Map<string, string>()
  for (const { topic, topicId, offset } of positions) if (offset > 0 && topicId) read.set(topic, topicId)
  const unread = made.filter(({ topic }) => !read.has(topic))
  if (made.length === 0 && read.size < 2) return ''
  const notes = [
    ...[...read].map(([topic, topicId]) => `${nameOf(topic)}.${incarnationOf(topicId)}`),
    ...unread.map(({ topic, topicId }) => `${madeNameOf(topic)}.${incarnationOf(topicId)}`),
  ]
  return notes.sort().slice(0, mostTopics).join(',')
}

/** What these offsets know of topics that were read. */
export class ReadTopics {
  readonly #known = new Map<string, { readonly of: string; readonly tag: CommitTag }>()

  #newest: CommitTag | undefined

  constructor(committed: readonly CommittedOffset[]) {
    for (const { metadata } of committed) {
      const tag = decodeTag(metadata)
      if (tag && (this.#newest === undefined || compareTags(tag, this.#newest) > 0)) this.#newest = tag
      if (tag?.read) this.#take(tag, tag.read)
    }
  }

  #take(tag: CommitTag, read: string): void {
    for (const note of read.split(',')) {
      const [name = '', of = ''] = note.split('.')
      const known = this.#known.get(name)
      if (known === undefined || compareTags(tag, known.tag) > 0) this.#known.set(name, { of, tag })
    }
  }

  /** Undefined: nobody knows that a topic of this name was read. Else whether it was this one. */
  wasRead(topic: string, topicId: string | undefined): 'this' | 'another' | undefined {
    const known = this.#known.get(nameOf(topic))
    if (known === undefined || topicId === undefined) return undefined
    return known.of === incarnationOf(topicId) ? 'this' : 'another'
  }

  /** Of a topic between sub-topologies: whether the application last had another one of its name, read or not. */
  hadAnother(topic: string, topicId: string | undefined): boolean {
    const [read, made] = [this.#known.get(nameOf(topic)), this.#known.get(madeNameOf(topic))]
    const known =
      read !== undefined && made !== undefined && compareTags(made.tag, read.tag) > 0 ? made : (read ?? made)
    if (known === undefined || topicId === undefined || known.of === incarnationOf(topicId)) return false
    return !this.#isForgotten(topic)
  }

  /**
   * Whether the application has gone on without the topic: as another version of it, or with the sub-topologies in one process. What
   * was noted beside a partition that has been quiet since is of no use any more.
   */
  #isForgotten(topic: string): boolean {
    const names = (this.#newest?.read ?? '').split(',').map((note) => note.split('.')[0])
    return names.length < mostTopics && !names.includes(nameOf(topic)) && !names.includes(madeNameOf(topic))
  }
}
