/**
 * The commit tag: what every transaction writes into the metadata of the offsets it commits. Being part of the
 * transaction it tells, after any interruption, which commits took effect. It also carries the event time of each
 * partition, so that a restart continues with the watermarks of that commit.
 */
import type { Kept } from '../input/repartition/sorted-buffer.ts'

export interface CommitTag {
  /** Identity of the run that committed: promotion token epoch, or the run's number without high availability. */
  readonly tokenEpoch: number
  readonly seq: number
  /** Highest event time dispatched of this partition; -Infinity before the first. */
  readonly maxTimestamp: number
  /** The next record of this partition is of that event time, later than `maxTimestamp`; left out where nobody asks. */
  readonly comesTo?: number
  /** The application's watermark at this commit, or that of the partition's task where each has its own. */
  readonly watermark: number
  /** The partition was idle: it held nobody back. */
  readonly idle?: boolean
  /** Which topic of its name the offset is of (`incarnationOf`); left out by versions before. */
  readonly of?: string
  /** What was done of the records behind the committed offset, where they are not taken in the order of offsets. */
  readonly kept?: Kept
  /** What the partition's task holds back of it (`held-input.ts`); left out: nothing. */
  readonly held?: string
  /** What the commit remembers of the stores (`state-marks.ts`); one partition of each commit has it. */
  readonly stores?: string
  /** Which topics the application has read (`read-topics.ts`); left out where it is one alone. */
  readonly read?: string
  /** How far changelogs go (`changelog-ends.ts`). */
  readonly ends?: string
}

const time = (ms: number): string => (Number.isFinite(ms) ? String(ms) : '')
const parseTime = (text: string | undefined): number => (text ? Number(text) : Number.NEGATIVE_INFINITY)

export function encodeTag(tag: CommitTag): string {
  const idle = tag.idle ? '|idle' : ''
  const { of, comesTo, kept, held, read, stores } = tag
  const marks = [
    of && `|of=${of}`,
    comesTo !== undefined && `|to=${comesTo}`,
    held && `|held=${held}`,
    kept && `|kept=${kept.end},${time(kept.timestamp)},${kept.offset}`,
    read && `|in=${read}`,
    stores && `|stores=${stores}`,
  ]
  const all = marks.filter((mark) => typeof mark === 'string').join('')
  return `v1|${tag.tokenEpoch}|${tag.seq}|${time(tag.maxTimestamp)}|${time(tag.watermark)}${idle}${all}`
}

/** The encoded tag, with that beside it. */
export function withEnds(tag: string, ends: string): string {
  return ends === '' ? tag : `${tag}|ends=${ends}`
}

/** Undefined for metadata that is not ours. */
export function decodeTag(metadata: string): CommitTag | undefined {
  const parts = metadata.split('|')
  const marks = marksOf(parts)
  const idle = parts.length === 6 && parts[5] === 'idle'
  if (parts[0] !== 'v1' || !(parts.length === 5 || idle)) return undefined
  const [, tokenEpoch, seq, maxTimestamp, watermark] = parts
  const { of, to, held, kept, in: read, stores, ends } = marks
  const tag = {
    tokenEpoch: Number(tokenEpoch),
    seq: Number(seq),
    maxTimestamp: parseTime(maxTimestamp),
    watermark: parseTime(watermark),
    ...(idle && { idle }),
    ...(of && { of }),
    ...(to && { comesTo: Number(to) }),
    ...(held && { held }),
    ...(kept && { kept: parseKept(kept) }),
    ...(read && { read }),
    ...(stores && { stores }),
    ...(ends && { ends }),
  }
  return Number.isSafeInteger(tag.tokenEpoch) && Number.isSafeInteger(tag.seq) ? tag : undefined
}

/** Takes what has a name from the end. One that another version has written may be unknown here. */
function marksOf(parts: string[]): Readonly<Partial<Record<string, string>>> {
  const marks: Partial<Record<string, string>> = {}
  for (let last = parts.at(-1); last?.includes('='); last = parts.at(-1)) {
    parts.pop()
    const at = last.indexOf('=')
    marks[last.slice(0, at)] = last.slice(at + 1)
  }
  return marks
}

function parseKept(text: string): Kept {
  const [end, timestamp, offset] = text.split(',')
  return { end: Number(end), timestamp: parseTime(timestamp), offset: Number(offset) }
}

/** Order of commits over all runs. */
export function compareTags(a: { tokenEpoch: number; seq: number }, b: { tokenEpoch: number; seq: number }): number {
  return a.tokenEpoch - b.tokenEpoch || a.seq - b.seq
}

export function commitId(tag: { tokenEpoch: number; seq: number }): string {
  return `${tag.tokenEpoch}.${tag.seq}`
}

export function parseCommitId(id: string): { tokenEpoch: number; seq: number } | undefined {
  const [tokenEpoch, seq] = id.split('.').map(Number)
  return Number.isSafeInteger(tokenEpoch) && Number.isSafeInteger(seq)
    ? { tokenEpoch: tokenEpoch as number, seq: seq as number }
    : undefined
}
