/** One store partition whose changelog is replayed into it: where it stands, and what is under way to its lane. */
import type { FetchedPartition } from '../../broker/port.ts'
import { deleteRetentionMs } from '../../state/rows/changelog.ts'
import { endKey, type KnownEnds } from '../commit/changelog-ends.ts'
import { compareTags, parseCommitId } from '../commit/tag.ts'
import { EngineError } from '../../base/errors.ts'
import type { ToLane } from '../../lanes/protocol.ts'
import type { Checkpoint } from '../../state/contract.ts'
import { endOfBatches } from '../../broker/wire/record-batch.ts'
import type { GroupPosition } from '../group/assignment.ts'
import type { Run } from '../run.ts'
import type { RestoreProgress } from '../../view/view.ts'

/** Most bytes of one chunk, and how many chunks of a store may be under way to a lane that has not applied them yet. */
export const chunkBytes = 1024 * 1024
export const chunksUnderWay = 4
const chunksOfAnAnswer = 16
/** How long a changelog is sure to remember deletions (`delete.retention.ms`), less what clocks may differ by. */
const tombstonesStayMs = deleteRetentionMs - 3_600_000

/**
 * Bytes that the next answer of the broker may bring for all of these stores together, so that no more than `most` are
 * under way; 0 or less: none, until a lane has applied some.
 */
export function roomFor(stores: readonly StoreReplay[], most: number): number {
  let room = most
  for (const { bytesUnderWay } of stores) room -= bytesUnderWay
  return Math.min(room, chunksOfAnAnswer * chunkBytes)
}

/** A store as it was opened. */
export interface StoreOpened {
  readonly run: Run
  readonly store: string
  readonly partition: number
  readonly lane: number
}

export interface ReplayHost {
  send(lane: number, message: ToLane): void
}

/** Where a commit that a store holds comes from: the checkpoint as it was found when the store was opened. */
export interface FoundCommit {
  readonly tokenEpoch: number
  readonly seq: number
}

export class StoreReplay {
  readonly #run: Run
  readonly store: string
  readonly partition: number
  readonly lane: number
  readonly topic: string
  readonly topicId: string
  /** The commit that the store was found to hold; undefined where it holds none, or only a part of one. */
  readonly found: FoundCommit | undefined
  /** What the store holds is of no use: the first chunk empties it. */
  rebuild: boolean
  /** Where the next fetch begins. */
  position: number
  /** How far it is to be read: the changelog's stable end, or the group's position in a source topic. */
  end = 0
  restored = 0
  /** What the changelog has lost of what the store is known to hold, or to have held; undefined: nothing. */
  lost: string | undefined
  /** As `lost`, of what was surely there, and whatever the kind of the store. */
  lostTail: string | undefined
  /** How far the changelog went at the last commit, as far as that is known. */
  known = 0
  /** The files are a copy of long ago, or have not been written for so long. */
  readonly #isOld: boolean
  /** The changelog was written from the store, which has all of it. */
  #written = false
  readonly #checkpoint: Checkpoint | null
  /** The store may hold rows up to here, though not all: it is of no use before it has been brought so far. */
  #ahead: number
  /** Chunks that the lane has not applied yet: the position behind each, and its size. */
  readonly #underWay: Array<{ readonly until: number; readonly bytes: number }> = []
  bytesUnderWay = 0
  #applied: number

  constructor(
    { run, store, partition, lane }: StoreOpened,
    info: { readonly topic: string; readonly topicId: string },
    checkpoint: Checkpoint | null,
    /** How long ago that was written. */
    ageMs = 0,
  ) {
    this.#run = run
    this.store = store
    this.partition = partition
    this.lane = lane
    this.topic = info.topic
    this.topicId = info.topicId
    this.#checkpoint = checkpoint
    // Another incarnation of the topic: what the store holds has nothing to do with it.
    const usable = checkpoint !== null && checkpoint.topicId === info.topicId ? checkpoint : undefined
    this.found = usable && parseCommitId(usable.commitId)
    this.rebuild = usable === undefined
    this.position = usable?.changelogOffset ?? 0
    this.#ahead = usable?.ahead ?? 0
    this.#applied = this.position
    this.#isOld = ageMs > tombstonesStayMs
  }

  get id(): string {
    return `${this.store}/${this.partition}`
  }

  get underWay(): number {
    return this.#underWay.length
  }

  /** How far the store itself is. */
  get applied(): number {
    return this.#applied
  }

  /** What was read and is still under way to the lane counts as left: the store does not have it. */
  get progress(): RestoreProgress {
    const { store, partition, restored, end } = this
    return { store, partition, restoredRecords: restored, remainingRecords: Math.max(0, end - this.#applied) }
  }

  /** What commits tell of its changelog. */
  know(ends: KnownEnds): void {
    this.known = ends.get(endKey(this.topicId, this.partition)) ?? 0
  }

  /** All of it is read: now it must have what commits tell. */
  missEnd(): void {
    if (this.position < this.known) this.#tell(this.position)
  }

  #tell(end: number): void {
    this.lostTail = `ends at offset ${end}, and what was committed goes up to ${this.known}`
  }

  /** Behind what the broker still has, or ahead of it: the tail cannot be trusted to fit, so all is replayed. */
  fit(start: number, end: number): void {
    // A broker may be about to say how the transaction ended by which the changelog was written.
    if (this.#written) return
    this.end = end
    this.lostTail = undefined
    if (this.known > end) this.#tell(end)
    const has = Math.max(this.position, this.#ahead)
    if (this.found !== undefined && has > end)
      this.lost = `ends at offset ${end}, and the store on disk has it up to ${has}`
    if (has > end || this.position < start) this.rebuild = true
    // Of what was deleted since, the changelog may have forgotten that it was.
    if (this.#isOld && this.position < end) this.rebuild = true
    // Compaction leaves the beginning where it is: somebody has deleted records.
    if (this.rebuild && start > 0) this.lost ??= `begins at offset ${start}: what was before has been deleted`
    if (this.rebuild) this.restartAt(Math.min(start, end))
  }

  /** The store on disk is whole, as of this commit. */
  hasAllOf(tag: FoundCommit): boolean {
    const found = this.#checkpoint && this.#checkpoint.ahead === undefined && parseCommitId(this.#checkpoint.commitId)
    return Boolean(found) && compareTags(found as FoundCommit, tag) === 0
  }

  /** The changelog has all that the store has, up to here. */
  writtenUpTo(position: number): void {
    this.rebuild = false
    this.#written = true
    this.position = position
    this.end = position
    this.#ahead = 0
    this.#applied = position
  }

  /** The store goes with its topic from now on. */
  adopt(host: ReplayHost, commitId: string): void {
    this.#send(host, { records: new Uint8Array(0), aborted: [] }, this.position, this.position, commitId)
  }

  restartAt(position: number): void {
    this.rebuild = true
    this.#ahead = 0
    this.position = position
    this.#applied = position
  }

  /**
   * The store must not know of a commit that the group's offsets do not know: over such a store records would count
   * twice.
   */
  compareWith({ newestTag, partitions }: GroupPosition): void {
    const { found, store, partition } = this
    if (found && newestTag && compareTags(found, newestTag) > 0) {
      throw new EngineError(
        'STORE_AHEAD',
        `store ${store} of partition ${partition} holds commit ${found.tokenEpoch}.${found.seq}, newer than the group's offsets: they were moved back; leave the process stopped, and put the offsets back as they were`,
      )
    }
    if (found && !newestTag && partitions.length > 0) {
      throw new EngineError(
        'OFFSETS_MISSING',
        `store ${store} of partition ${partition} holds commit ${found.tokenEpoch}.${found.seq}, but the group has no offsets: they were deleted or have expired`,
      )
    }
  }

  /** Hands a fetched run to the lane; `commitAt` names the commit that the store holds once it has got there. */
  take(host: ReplayHost, fetched: FetchedPartition, commitAt: (position: number) => string): void {
    const from = this.position
    const next = Math.min(endOfBatches(fetched.records, from), Math.max(this.end, from))
    if (next === from) return
    this.position = next
    this.#send(host, fetched, from, next, commitAt(next))
  }

  /** Empties a store of whose changelog nothing is left. */
  wipe(host: ReplayHost): void {
    this.#send(host, { records: new Uint8Array(0), aborted: [] }, this.position, this.position, '')
  }

  /** The lane has applied the oldest chunk under way. */
  chunkApplied(records: number): void {
    this.restored += records
    const chunk = this.#underWay.shift()
    if (chunk === undefined) return
    this.#applied = chunk.until
    this.bytesUnderWay -= chunk.bytes
  }

  #send(
    host: ReplayHost,
    { records, aborted }: Pick<FetchedPartition, 'records' | 'aborted'>,
    fromOffset: number,
    untilOffset: number,
    commitId: string,
  ): void {
    const { store, partition, lane, topicId, rebuild: wipe } = this
    this.rebuild = false
    this.#underWay.push({ until: untilOffset, bytes: records.length })
    this.bytesUnderWay += records.length
    const checkpoint: Checkpoint = { changelogOffset: untilOffset, commitId, topicId }
    host.send(lane, {
      type: 'restore',
      run: this.#run.number,
      store,
      partition,
      wipe,
      records,
      fromOffset,
      untilOffset,
      aborted,
      checkpoint,
    })
  }
}
