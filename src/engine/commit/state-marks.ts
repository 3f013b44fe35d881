/**
 * What every commit remembers of the stores: the form of their rows, and which topic is their changelog. It stands behind
 * the commit tag of one partition, so that it is told by the broker together with the offsets, and a start can refuse an
 * application or changelogs that do not go with them.
 */
import type { StoreState } from '../../topology/changes/diff.ts'

export interface StoreMark
  extends Omit<StoreState, 'retentionMs' | 'ttlMs' | 'subtopology' | 'sourceTopic' | 'around'> {
  /** A digest of the changelog topic's identity; empty where a source topic serves as changelog. */
  readonly changelog: string
  /** A digest, in digits: no other flag is one. */
  readonly around?: string
  /** By how many its keys are shared out: the partitions of its changelog. Left out by versions before. */
  readonly shares?: number
  /** The application had the store once, and its changelog may still be there. */
  readonly gone?: boolean
}

/** What values begin with, a letter each. */
const beginnings: Readonly<Record<string, string>> = { number: 'N', object: 'O', array: 'A', string: 'S', boolean: 'B' }
const kinds = ['key-value', 'window', 'session', 'versioned'] as const
/** Brokers take 4096 bytes of metadata by default; the tag needs some of them. Stores beyond are not remembered. */
const mostBytes = 3600
const incarnationLength = 8

/** In the order of their names, those that are gone behind the others. */
export function encodeMarks(marks: Iterable<StoreMark>): string {
  const rank = ({ gone }: StoreMark): number => (gone ? 1 : 0)
  const sorted = [...marks].sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1))
  let text = ''
  for (const mark of sorted) {
    const entry = encodeMark(mark)
    if (text.length + entry.length + 1 > mostBytes) break
    text += text === '' ? entry : `;${entry}`
  }
  return text
}

function encodeMark(mark: StoreMark): string {
  const advance = mark.windowAdvanceMs === undefined ? '' : `@${mark.windowAdvanceMs}`
  const around = mark.around === undefined ? '' : `#${mark.around}`
  const shares = mark.shares === undefined ? '' : `/${mark.shares}`
  const flags = `${kinds.indexOf(mark.kind as (typeof kinds)[number])}${mark.timestamped ? 't' : ''}${mark.gone ? 'g' : ''}${beginnings[mark.holds ?? ''] ?? ''}${advance}${around}${shares}`
  const texts = [mark.name, mark.keySerde, mark.valueSerde, mark.changelogTopic ?? ''].map(escaped)
  return [flags, ...texts, mark.windowSizeMs ?? '', mark.changelog].join(',')
}

export function decodeMarks(text: string): StoreMark[] {
  return text.split(';').flatMap((entry) => decodeMark(entry) ?? [])
}

function decodeMark(entry: string): StoreMark | undefined {
  const [flags = '', ...rest] = entry.split(',')
  const kind = kinds[Number(flags[0])]
  if (kind === undefined || rest.length !== 6) return undefined
  const [name, keySerde, valueSerde, changelogTopic, windowSizeMs, changelog] = rest.map(decodeURIComponent) as [
    string,
    string,
    string,
    string,
    string,
    string,
  ]
  const advance = /@(\d+)/.exec(flags)?.[1]
  const around = /#(\d+)/.exec(flags)?.[1]
  const shares = /\/(\d+)/.exec(flags)?.[1]
  const holds = Object.keys(beginnings).find((type) => flags.includes(beginnings[type] as string))
  return {
    name,
    kind,
    ...(holds !== undefined && { holds }),
    keySerde,
    valueSerde,
    timestamped: flags.includes('t'),
    ...(windowSizeMs !== '' && { windowSizeMs: Number(windowSizeMs) }),
    ...(advance !== undefined && { windowAdvanceMs: Number(advance) }),
    ...(changelogTopic !== '' && { changelogTopic }),
    ...(around !== undefined && { around }),
    ...(shares !== undefined && { shares: Number(shares) }),
    ...(flags.includes('g') && { gone: true }),
    changelog,
  }
}

/** Without what separates, and in ASCII: metadata is counted in bytes. */
const escaped = (text: string): string => encodeURIComponent(text.toWellFormed())

/** A shorter one, in digits (FNV-1a). */
export function digitsOf(text: string): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return String(hash >>> 0)
}

/** Which topic of its name it is, in a few letters: metadata of offsets has little room. */
export const incarnationOf = (topicId: string): string => digestOf(topicId).slice(0, incarnationLength)

/** A short digest (FNV-1a, twice) of a topic's identity. */
export function digestOf(topicId: string): string {
  let [a, b] = [0x811c9dc5, 0x01000193]
  for (let i = 0; i < topicId.length; i++) {
    a = Math.imul(a ^ topicId.charCodeAt(i), 0x01000193)
    b = Math.imul(b ^ topicId.charCodeAt(topicId.length - 1 - i), 0x85ebca6b)
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36)
}
