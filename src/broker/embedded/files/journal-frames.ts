/** The journal as bytes: one entry after the other, each with its length and checksum before it. */
import { crc32c } from '../../wire/crc32c.ts'
import { readInt32, writeInt32 } from '../../wire/integers.ts'
import type { JournalEntry } from '../core/storage.ts'

/** What a segment holds: its topic's id, partition, base offset, size and chain. A size below 0: there is none any more. */
export type SegmentRow = readonly [topicId: string, partition: number, baseOffset: number, size: number, chain: number]

/** Entries of the files alone, of which the broker does not know. */
export type FilesEntry =
  /**
   * The first one: which format all of them have, and whether whoever wrote them forces what it acknowledges to the disk, and
   * tells of it, first.
   */
  | { readonly kind: 'format'; readonly version: number; readonly forced?: boolean }
  | { readonly kind: 'segments' }
  /** Written before old segments give way to a new one: from then on either may be there. */
  | { readonly kind: 'replacing'; readonly old: readonly number[]; readonly by: SegmentRow }

export type JournalRecord = (JournalEntry | FilesEntry) & {
  /** Entries are numbered on through all of the folder's life. Absent in the first format. */
  readonly n?: number
  /** What is new of segments since the entry before. */
  readonly segments?: readonly SegmentRow[]
}

export interface Frame {
  readonly record: JournalRecord
  readonly at: number
  readonly crc: number
}

export interface Frames {
  readonly frames: readonly Frame[]
  /** Where the whole entries end, one following from the other. */
  readonly size: number
}

/** The entry as the broker wrote it; undefined where it is of the files alone. */
export function brokerEntry({ n: _, segments: __, ...entry }: JournalRecord): JournalEntry | undefined {
  const ofFiles = entry.kind === 'format' || entry.kind === 'segments' || entry.kind === 'replacing'
  return ofFiles ? undefined : entry
}

export const journalVersion = 2
const frameHead = 8

export function frameOf(record: JournalRecord): { readonly bytes: Uint8Array; readonly crc: number } {
  const text = Buffer.from(JSON.stringify(record))
  const bytes = new Uint8Array(frameHead + text.length)
  const crc = crc32c(text)
  writeInt32(bytes, 0, text.length)
  writeInt32(bytes, 4, crc)
  bytes.set(text, frameHead)
  return { bytes, crc }
}

export function framesIn(bytes: Uint8Array): Frames {
  const frames: Frame[] = []
  let at = 0
  for (;;) {
    const end = frameEnd(bytes, at)
    if (end === undefined) break
    const record = JSON.parse(Buffer.from(bytes.subarray(at + frameHead, end)).toString('utf8')) as JournalRecord
    const before = frames.at(-1)?.record
    if (before !== undefined && record.n !== (before.n === undefined ? undefined : before.n + 1)) break
    frames.push({ record, at, crc: readInt32(bytes, at + 4) >>> 0 })
    at = end
  }
  return { frames, size: at }
}

/** Whether a whole entry begins anywhere from `from` on. */
export function frameBehind(bytes: Uint8Array, from: number): boolean {
  for (let at = from; at + frameHead < bytes.length; at++) if (frameEnd(bytes, at) !== undefined) return true
  return false
}

/** Where the whole entry at `at` ends; undefined where none begins. */
function frameEnd(bytes: Uint8Array, at: number): number | undefined {
  if (at + frameHead > bytes.length) return undefined
  const end = at + frameHead + readInt32(bytes, at)
  // No entry is without a text.
  if (end <= at + frameHead || end > bytes.length) return undefined
  return readInt32(bytes, at + 4) >>> 0 === crc32c(bytes, at + frameHead, end) ? end : undefined
}
