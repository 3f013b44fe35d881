/** Walking through a segment's batches: how far they are whole, follow one another, and are those that were written. */
import { type BatchHeader, batchHeader, batchSize, CorruptBatchError, checksumHolds } from '../../wire/record-batch.ts'
import { batchField, batchHeaderSize } from '../../wire/batch-header.ts'
import { crc32c } from '../../wire/crc32c.ts'
import { readInt32, writeInt32 } from '../../wire/integers.ts'

/** What a segment held at some moment: its bytes up to `size`, told from any others by `chain`. */
export interface SegmentFacts {
  readonly size: number
  readonly chain: number
}

export interface SegmentFault {
  /** Byte of the segment from which on it cannot be trusted. */
  readonly at: number
  readonly why: string
}

export interface SegmentScan extends SegmentFacts {
  /** Offset behind the last whole batch. */
  readonly end: number
  /** Absent where all is well, or where only a write that was cut short is to be cut off at `size`. */
  readonly fault: SegmentFault | undefined
}

export interface ScanOptions {
  /** Offset at which the segment begins. */
  readonly from: number
  /** True where compaction may have left gaps between offsets. */
  readonly gaps: boolean
  /** What the segment held at least, where that is known. */
  readonly facts: SegmentFacts | undefined
  /** Whether it is the last one, at whose end a write may have been cut short. */
  readonly last: boolean
  /** Whether `facts` tell all that was acknowledged: then of what follows a power cut may have left any part. */
  readonly forced: boolean
}

/** Up to here the head of a batch is not covered by its own checksum, or is that checksum. */
const chained = batchField.attributes
const scratch = new Uint8Array(4 + chained)

/**
 * The chain behind the batch at `at`: a checksum over the heads of all batches up to it, with their offsets, lengths and own
 * checksums. Together with the size it tells the content of a segment from any other.
 */
export function chainBehind(chain: number, bytes: Uint8Array, at: number): number {
  writeInt32(scratch, 0, chain)
  for (let i = 0; i < chained; i++) scratch[4 + i] = bytes[at + i] as number
  return crc32c(scratch)
}

/** The chain behind all of these whole batches. */
export function chainBehindAll(before: number, batches: Uint8Array): number {
  let chain = before
  for (let at = 0; at < batches.length; at += readInt32(batches, at + batchField.length) + 12) {
    chain = chainBehind(chain, batches, at)
  }
  return chain
}

type Visit = (header: BatchHeader, at: number) => void

/** Calls `visit` for every batch that can be trusted as far as was read; those before a fault may be among them. */
export function scanSegment(
  bytes: Uint8Array,
  { from, gaps, facts, last, forced }: ScanOptions,
  visit?: Visit,
): SegmentScan {
  let at = 0
  let chain = 0
  let end = from
  let confirmed = facts === undefined || facts.size === 0
  const result = (fault?: SegmentFault): SegmentScan => ({ size: at, chain, end, fault })
  while (at < bytes.length) {
    const header = wholeBatch(bytes, at)
    if (header === undefined) break
    const { baseOffset, lastOffset } = header
    if (lastOffset < baseOffset || (gaps ? baseOffset < end : baseOffset !== end)) {
      return result({ at, why: `a batch from offset ${baseOffset} on follows, where ${end} is next` })
    }
    visit?.(header, at)
    chain = chainBehind(chain, bytes, at)
    at += header.size
    end = lastOffset + 1
    if (confirmed || at < (facts?.size ?? 0)) continue
    confirmed = at === facts?.size && chain === facts.chain
    if (!confirmed) return result({ at: 0, why: `up to byte ${at} it does not hold what was written to it` })
  }
  if (!confirmed) {
    const why = at < bytes.length ? 'no whole batch of records follows' : 'it ends'
    return result({ at, why: `${why}, where ${facts?.size} bytes were written` })
  }
  if (at < bytes.length && !last) return result({ at, why: 'no whole batch of records follows, before its end' })
  if (at < bytes.length && !forced && wholeBehind(bytes, at + 1)) {
    return result({ at, why: 'a batch of records is damaged, and whole ones follow' })
  }
  return result()
}

function wholeBatch(bytes: Uint8Array, at: number): BatchHeader | undefined {
  try {
    const size = batchSize(bytes, at)
    return size < 0 || !checksumHolds(bytes, at, size) ? undefined : batchHeader(bytes, at)
  } catch (error) {
    if (error instanceof CorruptBatchError) return undefined
    throw error
  }
}

/** Whether a whole batch begins anywhere from here on: then what is broken before it is no write that was cut short. */
function wholeBehind(bytes: Uint8Array, from: number): boolean {
  for (let at = from; at + batchHeaderSize <= bytes.length; at++) {
    if (bytes[at + batchField.magic] === 2 && wholeBatch(bytes, at) !== undefined) return true
  }
  return false
}
