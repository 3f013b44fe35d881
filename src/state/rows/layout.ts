/**
 * How rows are keyed, in the changelog topic and in the backend.
 *
 * | kind | changelog key (as Kafka Streams writes it) | backend key |
 * |---|---|---|
 * | key-value | key | the same |
 * | window | key, 8-byte start, 4-byte sequence number | 8-byte segment, then the same |
 * | session | key, 8-byte end, 8-byte start | the same |
 * | versioned | key (the version is the record's timestamp) | key, 8-byte version |
 *
 * The segment in front of a window's key puts windows of one time side by side: what is past the retention is removed
 * from the front, without a look at the rest, and reading all windows of some time does not read all windows.
 */
import { writeInt64 } from '../../serde/primitive.ts'
import { int64At, int64String } from './bytes.ts'
import type { StoreSpec } from '../contract.ts'

/** Bytes in front of the key of a window's row in the backend. */
export const segmentPrefix = 8
/** Bytes behind the key in a window store's changelog. */
export const windowSuffix = 12
export const sessionSuffix = 16
export const versionSuffix = 8

const dayMs = 86_400_000

/** Length in time of a window store's segment: about a window, so that an operator's look-back spans two or three. */
export function segmentMs(spec: StoreSpec): number {
  const size = spec.windowSizeMs ?? dayMs
  return Math.max(1, Math.min(size, Math.ceil((spec.retentionMs ?? Number.POSITIVE_INFINITY) / 2)))
}

export function segmentStart(time: number, intervalMs: number): number {
  return time - (time % intervalMs)
}

/** Key string of a window's row in the backend. */
export function windowRow(intervalMs: number, key: string, start: number, sequence: number): string {
  return int64String(segmentStart(start, intervalMs)) + key + int64String(start) + sequenceString(sequence)
}

const firstSequence = '\0\0\0\0'

export function sequenceString(sequence: number): string {
  if (sequence === 0) return firstSequence
  return String.fromCharCode((sequence >>> 24) & 255, (sequence >>> 16) & 255, (sequence >>> 8) & 255, sequence & 255)
}

/** Start of the window whose row has this key string. */
export function windowStartOf(row: string): number {
  return int64At(row, row.length - windowSuffix)
}

export function sequenceOf(row: string): number {
  const at = row.length - 4
  return (
    row.charCodeAt(at) * 16777216 +
    ((row.charCodeAt(at + 1) << 16) | (row.charCodeAt(at + 2) << 8) | row.charCodeAt(at + 3))
  )
}

/** Key in the backend for a changelog record. */
export function backendKey(spec: StoreSpec, key: Uint8Array, timestamp: number): Uint8Array {
  if (spec.kind === 'window') {
    const bytes = new Uint8Array(8 + key.length)
    const view = new DataView(key.buffer, key.byteOffset, key.length)
    const start = Number(view.getBigInt64(key.length - windowSuffix))
    writeInt64(bytes, 0, segmentStart(start, segmentMs(spec)))
    bytes.set(key, 8)
    return bytes
  }
  if (spec.kind === 'versioned') {
    const bytes = new Uint8Array(key.length + versionSuffix)
    bytes.set(key)
    writeInt64(bytes, key.length, timestamp)
    return bytes
  }
  return key
}
