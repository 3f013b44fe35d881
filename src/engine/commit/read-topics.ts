/**
 * Which topics an application has read, noted beside offsets of all of them: a broker drops the offsets of a topic together
 * with it, and what is noted beside these. Of one that is made again under its name the others still know.
 */
import type { CommittedOffset } from '../../broker/port.ts'
import { digestOf, incarnationOf } from './state-marks.ts'
import { type CommitTag, compareTags, decodeTag } from './tag.ts'

/** Brokers take 4096 bytes of metadata by default, and other notes need some. */
const mostTopics = 40
const nameLength = 8

const nameOf = (topic: string): string => digestOf(topic).slice(0, nameLength)

interface ReadUpTo {
  readonly topic: string
  readonly topicId?: string | undefined
  readonly offset: number
}

/** Empty where there are no others. */
export function encodeRead(positions: readonly ReadUpTo[]): string {
  const read = new Map<string, string>()
  for (const { topic, topicId, offset } of positions) if (offset > 0 && topicId) read.set(topic, topicId)
  if (read.size < 2) return ''
  const notes = [...read].map(([topic, topicId]) => `${nameOf(topic)}.${incarnationOf(topicId)}`)
  return notes.sort().slice(0, mostTopics).join(',')
}

/** What these offsets know of topics that were read. */
export class ReadTopics {
  readonly #known = new Map<string, { readonly of: string; readonly tag: CommitTag }>()

  constructor(committed: readonly CommittedOffset[]) {
    for (const { metadata } of committed) {
      const tag = decodeTag(metadata)
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
}
