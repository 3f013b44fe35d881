/**
 * What is wrong with a broker's folder that nobody uses, what would be lost by cutting it off, and the cutting. It judges
 * with the same functions as the start of the broker.
 */
import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { JournalEntry } from '../core/storage.ts'
import type { Finding } from './damage.ts'
import { JournalEnd } from './journal-end.ts'
import { brokerEntry, frameOf, type JournalRecord, journalVersion, type SegmentRow } from './journal-frames.ts'
import { type JudgedJournal, judgeJournal, promisesOf } from './journal-judge.ts'
import { KnownSegments } from './known-segments.ts'
import { type CheckedPartition, checkPartition, type Cut } from './partition-check.ts'
import { Reconciled } from './reconciled.ts'

export interface Inspection {
  readonly topics: number
  readonly segments: number
  readonly findings: readonly Finding[]
  /** Losses that follow from all of them together. */
  readonly consequences: readonly string[]
  /** Cuts what is damaged; undefined where nothing of use would be left. */
  readonly repair: (() => void) | undefined
}

type TopicEntry = Extract<JournalEntry, { kind: 'topic' }>

/** The caller holds the folder's lock. */
export function inspectFolder(folder: string): Inspection {
  const topicsFolder = join(folder, 'topics')
  const ids = existsSync(topicsFolder) ? readdirSync(topicsFolder) : []
  const journalPath = join(folder, 'journal')
  const end = new JournalEnd(`${journalPath}.end`)
  const bytes = existsSync(journalPath) ? readFileSync(journalPath) : undefined
  const last = end.read()
  const judged = judgeJournal({ bytes, last, used: ids.length > 0 || end.exists })
  const { frames, fault } = judged
  if (frames.length === 0) return withoutJournal(journalPath, fault, ids.length)
  const records = frames.map(({ record }) => record)
  const known = new KnownSegments()
  for (const record of records) known.apply(record)
  const living = livingTopics(records)
  const entries = new Reconciled(records.flatMap((record) => brokerEntry(record) ?? []))
  const partitions = living.flatMap((topic) =>
    Array.from({ length: topic.partitions }, (_, partition) => {
      const where = join(topicsFolder, topic.topicId, String(partition))
      const checked = checkPartition(where, topic, known.of(topic.topicId, partition), promisesOf(frames), entries)
      entries.reached(checked)
      return checked
    }),
  )
  const findings = partitions.flatMap(({ findings: found }) => found)
  const orphans = ids.filter((id) => !living.some(({ topicId }) => topicId === id))
  if (fault !== undefined) findings.unshift(journalFinding(journalPath, judged, bytes, orphans.length))
  const nextN = Math.max(last?.n ?? 0, records.at(-1)?.n ?? 0)
  return {
    topics: living.length,
    segments: partitions.reduce((sum, { rows }) => sum + rows.length, 0),
    findings,
    consequences: entries.consequences(),
    repair: () => {
      for (const { cuts } of partitions) cuts.forEach(perform)
      if (fault !== undefined) for (const id of orphans) rmSync(join(topicsFolder, id), { recursive: true })
      writeJournal(journalPath, end, nextN, entries.entries(), partitions)
    },
  }
}

function withoutJournal(path: string, fault: JudgedJournal['fault'], topics: number): Inspection {
  if (fault === undefined) return { topics: 0, segments: 0, findings: [], consequences: [], repair: undefined }
  const lost = `the names and settings of all topics (${topics} have records), and the offsets of all groups`
  return { topics: 0, segments: 0, findings: [{ path, ...fault, losses: [lost] }], consequences: [], repair: undefined }
}

function journalFinding(
  path: string,
  { frames, size, fault }: JudgedJournal,
  bytes: Uint8Array | undefined,
  orphans: number,
): Finding {
  const first = frames[0]?.record.n
  const till = frames.at(-1)?.record.n
  const which = first === undefined || till === undefined ? `the first ${frames.length}` : `entry ${till}`
  const losses = [
    `all that was noted behind ${which} of the journal: topics made or deleted, offsets, feed marks, ends of transactions (${(bytes?.length ?? 0) - size} bytes of it are there)`,
  ]
  if (orphans > 0) losses.push(`the records of ${orphans} topics that were made then`)
  return { path, at: fault?.at ?? size, why: fault?.why ?? '', losses }
}

function livingTopics(records: readonly JournalRecord[]): TopicEntry[] {
  const living = new Map<string, TopicEntry>()
  for (const record of records) {
    if (record.kind === 'topic') living.set(record.topic, record)
    else if (record.kind === 'topic-deleted') living.delete(record.topic)
  }
  return [...living.values()]
}

function perform({ path, size }: Cut): void {
  if (size === 0) rmSync(path, { force: true })
  else if (statSync(path).size > size) truncateSync(path, size)
}

function writeJournal(
  path: string,
  end: JournalEnd,
  before: number,
  entries: readonly JournalEntry[],
  partitions: readonly CheckedPartition[],
): void {
  const segments: SegmentRow[] = partitions.flatMap(({ rows }) => rows)
  const records: JournalRecord[] = [{ kind: 'format', version: journalVersion, segments }, ...entries]
  const frames = records.map((record, i) => frameOf({ ...record, n: before + 1 + i }))
  writeFileSync(`${path}.new`, Buffer.concat(frames.map((frame) => frame.bytes)), { flush: true })
  renameSync(`${path}.new`, path)
  end.write({ n: before + frames.length, crc: frames.at(-1)?.crc ?? 0 })
  end.close()
}
