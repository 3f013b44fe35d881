/** Which segments a partition's folder has, against those that the journal knows of. Changes nothing. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type SegmentFacts, scanSegment } from '../core/segment-scan.ts'
import type { Damage } from './damage.ts'
import type { KnownPartition, Replacing } from './known-segments.ts'

export interface FoundSegment {
  readonly baseOffset: number
  readonly path: string
  readonly size: number
  readonly facts: SegmentFacts | undefined
}

export interface SegmentListing {
  /** In the order of their offsets. */
  readonly segments: readonly FoundSegment[]
  /** What deletions and compactions that ended in a crash left behind. */
  readonly leftovers: readonly string[]
  readonly damages: ReadonlyArray<Damage & { readonly baseOffset: number }>
}

const segmentName = /^(\d{20})\.log$/

export const segmentPath = (folder: string, baseOffset: number): string =>
  join(folder, `${String(baseOffset).padStart(20, '0')}.log`)

/** `isComplete`: whether the journal names all segments but the newest. */
export function listSegments(folder: string, known: KnownPartition, isComplete: boolean): SegmentListing {
  const names = existsSync(folder) ? readdirSync(folder).sort() : []
  const leftovers = names.filter((name) => name.endsWith('.log.new')).map((name) => join(folder, name))
  const present = names.flatMap((name) => segmentName.exec(name)?.[1] ?? []).map(Number)
  if (known.replacing !== undefined && isDone(folder, known.replacing, present)) known.settle(known.replacing)
  const damages: Array<Damage & { baseOffset: number }> = []
  for (const [baseOffset, { size }] of known.segments) {
    if (present.includes(baseOffset) || size === 0) continue
    const why = `it is missing, and ${size} bytes were written to it`
    damages.push({ path: segmentPath(folder, baseOffset), at: 0, why, baseOffset })
  }
  const newest = Math.max(-1, ...known.segments.keys())
  const segments: FoundSegment[] = []
  for (const baseOffset of present) {
    const path = segmentPath(folder, baseOffset)
    const facts = known.segments.get(baseOffset)
    if (facts === undefined && known.gone.has(baseOffset)) leftovers.push(path)
    else if (facts === undefined && isComplete && baseOffset < newest) {
      damages.push({ path, at: 0, why: 'nobody knows of such a file here', baseOffset })
    } else segments.push({ baseOffset, path, size: statSync(path).size, facts })
  }
  return { segments, leftovers, damages }
}

/** The end came during a replacement: the new segment is there, or all the old ones are. */
function isDone(folder: string, { by }: Replacing, present: readonly number[]): boolean {
  const [, , baseOffset, size, chain] = by
  if (!present.includes(baseOffset)) return false
  const bytes = readFileSync(segmentPath(folder, baseOffset))
  if (bytes.length !== size) return false
  const facts = { size, chain }
  return scanSegment(bytes, { from: baseOffset, gaps: true, facts, last: false, forced: false }).fault === undefined
}
