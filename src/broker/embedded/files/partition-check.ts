/** One partition of a folder that is inspected: how far its segments can be trusted, and what is lost behind that. */
import { readFileSync } from 'node:fs'
import { chainBehindAll, type ScanOptions, scanSegment } from '../core/segment-scan.ts'
import type { JournalEntry } from '../core/storage.ts'
import type { Finding } from './damage.ts'
import type { SegmentRow } from './journal-frames.ts'
import type { Promises } from './journal-judge.ts'
import type { KnownPartition } from './known-segments.ts'
import { type FoundSegment, listSegments, segmentPath } from './segment-listing.ts'

/** A file is to end there; at 0 it goes altogether. */
export interface Cut {
  readonly path: string
  readonly size: number
}

export interface CheckedPartition {
  readonly topic: string
  readonly partition: number
  /** Offset behind what can be trusted. */
  readonly end: number
  /** Producers of what can be trusted, with their last epoch. */
  readonly producers: ReadonlyMap<bigint, number>
  /** What is left once the cuts are made. */
  readonly rows: readonly SegmentRow[]
  readonly cuts: readonly Cut[]
  readonly findings: readonly Finding[]
}

/** How far others know the partition to have gone. */
export interface Witnesses {
  /** The greatest offset that groups and feeds reached, and who did. */
  farthest(topic: string, partition: number): { readonly offset: number; readonly who: string } | undefined
}

class PartitionCheck {
  end = 0
  readonly producers = new Map<bigint, number>()
  readonly rows: SegmentRow[] = []
  readonly cuts: Cut[] = []
  readonly findings: Finding[] = []
}

export function checkPartition(
  folder: string,
  topic: Extract<JournalEntry, { kind: 'topic' }>,
  known: KnownPartition,
  { names: isComplete, forced }: Promises,
  witnesses: Witnesses,
): CheckedPartition {
  const { segments, damages } = listSegments(folder, known, isComplete)
  const check = new PartitionCheck()
  const { partition } = known
  const name = `${topic.topic}:${partition}`
  const bad = [...damages].sort((a, b) => a.baseOffset - b.baseOffset)
  const firstBad = bad[0]?.baseOffset ?? Number.POSITIVE_INFINITY
  let isWhole = true
  for (const [i, segment] of segments.entries()) {
    const isFirst = check.rows.length === 0
    if (!isFirst && segment.baseOffset < check.end && !isComplete) {
      check.cuts.push({ path: segment.path, size: 0 })
      continue
    }
    // Where those before the first that is taken are bad, the log begins later; behind it each one that is bad leaves a gap. One of
    // which nobody knows was never a part of it.
    const begin = check.rows[0]?.[2] ?? segment.baseOffset
    const isGap = ({ baseOffset }: { baseOffset: number }): boolean =>
      begin < baseOffset && baseOffset < segment.baseOffset && known.segments.has(baseOffset)
    if (bad.some(isGap)) isWhole = false
    const last = i === segments.length - 1
    if (isWhole) isWhole = take(check, segment, topic, known, { last, forced, isFirst })
    else check.cuts.push({ path: segment.path, size: 0 })
  }
  const evidence = witnesses.farthest(topic.topic, partition)
  const isShort = check.end < (evidence?.offset ?? 0)
  if (!isComplete && isShort && check.findings.length === 0 && bad.length === 0) {
    const last = segments.at(-1)
    const path = last?.path ?? segmentPath(folder, 0)
    const why = `its records of ${name} end at offset ${check.end}, but ${evidence?.who} went up to ${evidence?.offset}`
    check.findings.push({ path, at: last?.size ?? 0, why, losses: [] })
  }
  const findings = [...bad.map((damage) => ({ ...damage, losses: [] })), ...check.findings]
  if (findings.length > 0) {
    const begin = check.rows[0]?.[2] ?? 0
    const lost: string[] = []
    if (check.rows.length > 0 && begin > firstBad) lost.push(`before offset ${begin}`)
    if (check.findings.length > 0 || !isWhole || bad.some(({ baseOffset }) => baseOffset >= check.end)) {
      const until = isShort ? `, at least up to ${evidence?.offset}, which ${evidence?.who} had reached` : ''
      lost.push(`from offset ${check.end} on${until}`)
    }
    const loss = lost.length === 0 ? `no record of ${name}` : `the records of ${name} ${lost.join(' and ')}`
    findings[0] = { ...(findings[0] as Finding), losses: [loss] }
    for (const { path } of bad) if (segments.every((s) => s.path !== path)) check.cuts.push({ path, size: 0 })
  }
  const { end, producers, rows, cuts } = check
  return { topic: topic.topic, partition, end, producers, rows, cuts, findings }
}

/** Adds what can be trusted of the segment; answers whether that is all of it. */
function take(
  check: PartitionCheck,
  { baseOffset, path, facts }: FoundSegment,
  { config, topicId }: Extract<JournalEntry, { kind: 'topic' }>,
  { partition }: KnownPartition,
  { last, forced, isFirst }: Pick<ScanOptions, 'last' | 'forced'> & { readonly isFirst: boolean },
): boolean {
  if (!isFirst && baseOffset !== check.end) {
    const why = `it begins at offset ${baseOffset}, and what comes before it ends at ${check.end}`
    check.findings.push({ path, at: 0, why, losses: [] })
    check.cuts.push({ path, size: 0 })
    return false
  }
  const bytes = readFileSync(path)
  const gaps = (config['cleanup.policy'] ?? 'delete').includes('compact')
  const from = baseOffset
  let end = from
  const scan = scanSegment(bytes, { from, gaps, facts, last, forced }, (header) => {
    const { producerId, producerEpoch } = header
    const before = check.producers.get(producerId) ?? -1
    if (producerId >= 0n && producerEpoch > before) check.producers.set(producerId, producerEpoch)
    end = header.lastOffset + 1
  })
  // What holds something else than was written can be trusted nowhere.
  const size = scan.fault === undefined ? scan.size : Math.min(scan.fault.at, scan.size)
  check.end = size === 0 ? from : Math.min(end, scan.end)
  if (size > 0) check.rows.push([topicId, partition, baseOffset, size, chainBehindAll(0, bytes.subarray(0, size))])
  if (size < bytes.length) check.cuts.push({ path, size })
  if (scan.fault === undefined) return true
  check.findings.push({ path, ...scan.fault, losses: [] })
  return false
}
