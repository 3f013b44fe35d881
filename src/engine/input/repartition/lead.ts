/**
 * How far a process may be ahead, in event time, of the others of its group that write to the same topics. What it has
 * written and they have not come to yet waits in the memory of those who read these topics (`sorted-buffer.ts`); once that
 * is full, the order is lost. So who is ahead by an eighth of that room dispatches nothing younger than what the slowest of the
 * others has come to, until that one has come further. All processes are taken to have as much room as this one.
 *
 * What the process has not committed yet cannot be read, and is as much in disorder: a slow function holds back what belongs
 * before it. So no more than that is dispatched between two commits either; the next one comes forward.
 *
 * How far the others are is told by what they commit (`upstream.ts`). What they have not come to is counted here, in bytes,
 * as much as goes over to the topics. The slowest is never held, so that it comes further.
 */
import { usualSizes } from '../../../base/sizes.ts'
import { neverWait } from '../../../time/task-inputs.ts'
import { boundaryTopic } from '../../group/topics.ts'
import type { EngineSettings } from '../../settings.ts'
import { sortedRoom } from './sorted-buffer.ts'
import { isSorted, type Slowest } from './upstream.ts'

/** What a record takes in the memory of those who read it, beside its bytes. */
const recordBytes = 64
/** A slowest one that has not moved for so long is not waited for: two of the longest commits. */
const patienceMs = 60_000
/** Places are kept so finely, by the room. */
const marksPerRoom = 64

/** All records up to this event time make so many bytes. */
interface Mark {
  upToMs: number
  bytes: number
}

/** A sub-topology that writes to topics whose records are taken in the order of event time. */
class Writer {
  readonly marks: Mark[] = []
  /** Of the mark before these. */
  passed = 0
  bytes = 0
  /** Dispatched when the commit under way began, and when the last one did that took effect. */
  frozen = 0
  committed = 0
  /** What has gone to the topics since the last commit. */
  written = 0
  /** Of the last commits: what was dispatched, and what came of it in the topics. */
  #cameIn = 0
  #wentOut = 0
  /** Undefined: nobody else has anything left to do. */
  slowest: Slowest | undefined
  /** Of the others nothing is known yet. */
  isNew = true
  /** Since when the slowest stands where it is. */
  stoodSince = Number.NaN
  heldSince = Number.NaN
  wasTold = false

  /** What the topics hold, or will, of records that the slowest has not come to. */
  get ahead(): number {
    if (this.slowest === undefined) return 0
    let before = this.passed
    for (const { upToMs, bytes } of this.marks) {
      if (upToMs > this.slowest.reachedMs) break
      before = bytes
    }
    return (this.bytes - before) * this.#share
  }

  /** What comes of records that no commit of the process has told of. */
  get uncommitted(): number {
    return (this.bytes - this.committed) * this.#share
  }

  /** Bytes in the topics for a byte dispatched. Before the first commit it is taken to be written as it came. */
  get #share(): number {
    return this.#cameIn === 0 ? 1 : this.#wentOut / this.#cameIn
  }

  /** What was dispatched before the commit began is written, and a little of what came behind it. */
  tookEffect(mostBytes: number): void {
    this.#cameIn += this.frozen - this.committed
    this.#wentOut += this.written
    this.written = 0
    this.committed = this.frozen
    // What comes of a record may change with the input.
    if (this.#cameIn < 4 * mostBytes) return
    this.#cameIn /= 2
    this.#wentOut /= 2
  }

  went(bytes: number, upToMs: number, step: number): void {
    this.bytes += bytes
    const last = this.marks.at(-1)
    const begun = this.marks.at(-2)?.bytes ?? this.passed
    if (last === undefined || (upToMs > last.upToMs && last.bytes - begun >= step))
      this.marks.push({ upToMs, bytes: this.bytes })
    else {
      last.upToMs = upToMs
      last.bytes = this.bytes
    }
  }

  /** The slowest has come past all but the last of these. */
  pass(reachedMs: number): void {
    const { marks } = this
    let past = 0
    while (past + 1 < marks.length && (marks[past + 1] as Mark).upToMs <= reachedMs) past++
    if (past === 0) return
    this.passed = (marks[past - 1] as Mark).bytes
    marks.splice(0, past)
  }
}

/** Undefined where the order of event time does not depend on other processes. */
export function leadOf(settings: EngineSettings, warn: (message: string) => void): Lead | undefined {
  const { plan, split, maxTaskIdleMs, bufferedMaxBytes, sizes = usualSizes } = settings
  if (split !== 'repartition-topics' || maxTaskIdleMs === neverWait) return undefined
  const sorted = plan.boundaries.filter(({ toSource }) => isSorted(plan, plan.sources[toSource]))
  if (sorted.length === 0) return undefined
  const topics = new Map(sorted.map((boundary) => [boundaryTopic(settings, boundary), boundary.fromSubtopology]))
  const mostBytes = sortedRoom(bufferedMaxBytes, sizes) / 8
  return new Lead({ mostBytes, topics, subtopologies: plan.subtopologies.length }, warn)
}

/** A sub-topology waits for another process. */
export interface LeadHold {
  readonly awaited: Slowest
  readonly since: number
}

export interface LeadOptions {
  /** By so much the process may be ahead. */
  readonly mostBytes: number
  /** Topics whose records are taken in the order of event time, and the sub-topologies that write to them. */
  readonly topics: ReadonlyMap<string, number>
  /** How many there are. */
  readonly subtopologies: number
}

export class Lead {
  readonly #mostBytes: number
  readonly #topics: ReadonlyMap<string, number>
  readonly #writers: ReadonlyMap<number, Writer>
  /** By sub-topology: event time up to which its records may go. */
  readonly #limits: Float64Array
  readonly #warn: (message: string) => void
  #isAsked = false

  constructor({ mostBytes, topics, subtopologies }: LeadOptions, warn: (message: string) => void) {
    this.#mostBytes = mostBytes
    this.#topics = topics
    this.#writers = new Map([...topics.values()].map((subtopology) => [subtopology, new Writer()]))
    this.#limits = new Float64Array(subtopologies).fill(Number.POSITIVE_INFINITY)
    this.#warn = warn
  }

  /** Sub-topologies of which `othersAt` is to be told. */
  get writers(): Iterable<number> {
    return this.#writers.keys()
  }

  /** So many records were dispatched, of so many bytes together, none of them younger than `upToMs`, which never falls. */
  went(subtopology: number, records: number, bytes: number, upToMs: number): void {
    this.#writers.get(subtopology)?.went(bytes + records * recordBytes, upToMs, this.#mostBytes / marksPerRoom)
  }

  /** This goes to topics. */
  wrote(batches: Iterable<{ readonly topic: string; readonly records: Uint8Array; readonly count: number }>): void {
    for (const { topic, records, count } of batches) {
      const writer = this.#writers.get(this.#topics.get(topic) ?? -1)
      if (writer !== undefined) writer.written += records.length + count * recordBytes
    }
  }

  /** A commit has begun: it tells of all that was dispatched so far. */
  froze(): void {
    for (const writer of this.#writers.values()) writer.frozen = writer.bytes
    this.#isAsked = false
  }

  /** The commit that began last has taken effect. */
  committed(): void {
    for (const writer of this.#writers.values()) writer.tookEffect(this.#mostBytes)
  }

  /** True once where the next commit should not be long in coming: no more than what fits is dispatched before it. */
  get wantsCommit(): boolean {
    if (this.#isAsked) return false
    for (const writer of this.#writers.values()) if (2 * writer.uncommitted >= this.#mostBytes) this.#isAsked = true
    return this.#isAsked
  }

  /** The slowest of the others who write to the same topics; undefined: none of them has anything left to do. */
  othersAt(subtopology: number, slowest: Slowest | undefined, now: number): void {
    const writer = this.#writers.get(subtopology)
    if (writer === undefined) return
    const before = writer.slowest
    if (before?.key !== slowest?.key || before?.reachedMs !== slowest?.reachedMs) writer.stoodSince = now
    writer.slowest = slowest
    writer.isNew = false
    writer.pass(slowest?.reachedMs ?? Number.POSITIVE_INFINITY)
  }

  /** By sub-topology: event time up to which its records may go at the moment. */
  limits(now: number): Float64Array {
    for (const [subtopology, writer] of this.#writers) {
      const { slowest, isNew } = writer
      const most = this.#mostBytes
      const isAhead = slowest !== undefined && writer.ahead >= most && this.#isPatient(writer, slowest, now)
      if (!isAhead) writer.heldSince = Number.NaN
      else if (Number.isNaN(writer.heldSince)) writer.heldSince = now
      const isFull = writer.uncommitted >= most || (isNew && writer.bytes >= most)
      const reachedMs = isAhead ? slowest.reachedMs : Number.POSITIVE_INFINITY
      this.#limits[subtopology] = isFull ? Number.NEGATIVE_INFINITY : reachedMs
    }
    return this.#limits
  }

  /** The sub-topology that has been held longest. */
  get longestHold(): LeadHold | undefined {
    let longest: LeadHold | undefined
    for (const { slowest, heldSince } of this.#writers.values())
      if (slowest !== undefined && heldSince < (longest?.since ?? Number.POSITIVE_INFINITY))
        longest = { awaited: slowest, since: heldSince }
    return longest
  }

  #isPatient(writer: Writer, { key }: Slowest, now: number): boolean {
    if (now - writer.stoodSince < patienceMs) return true
    if (!writer.wasTold)
      this.#warn(
        `${key} has not been read any further for a minute: records go ahead of those that may still come of it. ` +
          'None is lost, but a join with a table may meet the row of another time; see whether all processes of the application run and commit',
      )
    writer.wasTold = true
    return false
  }
}
