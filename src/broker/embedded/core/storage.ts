/**
 * Where the embedded broker keeps its bytes. The cluster itself does no input or output: it appends to segments and to
 * one journal, and at start reads both back. What an append returned from is stored, in the order of the appends.
 */
import { BrokerError, type OffsetToCommit } from '../../port.ts'
import type { SegmentFacts } from './segment-scan.ts'

/** A run of record batches. Positions are byte positions within it. */
export interface SegmentFile {
  readonly baseOffset: number
  readonly size: number
  /** Takes `bytes` over: the caller does not touch them again. */
  append(bytes: Uint8Array): void
  copy(position: number, target: Uint8Array, at: number, length: number): void
  /** All of it in pieces of whole batches, in the memory where they lie: absent where they lie elsewhere. */
  chunks?(): Uint8Array[]
  truncate(size: number): void
  /** What it held at least, as far as somebody besides itself knows. */
  readonly facts?: SegmentFacts | undefined
  /** It was read back, and holds this; anything behind it is a write that was cut short. */
  recovered(whole: SegmentFacts): void
  /** The error that says where and how it is damaged. */
  damaged(at: number, why: string): Error
}

/** The segments of one partition. */
export interface PartitionFiles {
  /** Whether all segments are known by name, so that one that is not is no leftover. */
  readonly isComplete: boolean
  /** Whether what was acknowledged had been forced to the disk, and told, before the last process ended. */
  readonly isForced: boolean
  /** Those that exist, in the order of their base offsets. Asked once, at start. */
  list(): SegmentFile[]
  create(baseOffset: number): SegmentFile
  /** Puts one new segment in the place of neighbouring old ones; after a crash either all the old or the new is there. */
  replace(old: readonly SegmentFile[], content: readonly Uint8Array[]): SegmentFile
  remove(segment: SegmentFile): void
}

export interface Storage {
  journal(entry: JournalEntry): void
  /** What the journal holds, in order. Asked once, at start. */
  journalEntries(): JournalEntry[]
  /** True when the journal has grown enough that a snapshot in its place is worth while. */
  journalIsLong(): boolean
  replaceJournal(entries: readonly JournalEntry[]): void
  partition(topicId: string, partition: number): PartitionFiles
  removeTopic(topicId: string): void
  /**
   * Called behind the end of a transaction and behind whatever is written outside of one, before it is acknowledged: a
   * storage may force its bytes to the disk.
   */
  written(): void
  /** True where nobody but the segments themselves knew how far they go. Asked at start, behind `journalEntries`. */
  readonly endsUnknown: boolean
  /** The error for segments that end before `offset`, up to which somebody knows them to have gone. */
  lost(topicId: string, partition: number, end: number, why: string): Error
  close(): void
}

/** The disk had no room for a write, and nothing of it is left: the same write may be tried again. */
export class NoRoomError extends BrokerError {
  constructor(path: string, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause)
    super(
      'KAFKA_STORAGE_ERROR',
      `The disk of the embedded broker has no room for ${path} (${why}): enlarge the volume, and delete none of the broker's files.`,
      'retriable',
      cause,
    )
  }
}

/** The error of a broker that does nothing any more; the storage may have said already why. */
export function stoppedBy(cause: unknown): BrokerError {
  if (cause instanceof BrokerError && cause.errorClass === 'config') return cause
  const why = cause instanceof Error ? cause.message : String(cause)
  return new BrokerError(
    'KAFKA_STORAGE_ERROR',
    `The embedded broker stopped, because a write that it could not take back failed: ${why} Start the process again.`,
    'config',
    cause,
  )
}

/** State that is not record data. Producer ids are decimal text: JSON has no wide integers. */
export type JournalEntry =
  | {
      readonly kind: 'topic'
      readonly topic: string
      readonly topicId: string
      readonly partitions: number
      readonly config: Readonly<Record<string, string>>
    }
  | { readonly kind: 'topic-deleted'; readonly topic: string }
  | { readonly kind: 'producer-ids'; readonly next: string }
  | {
      readonly kind: 'producer'
      readonly transactionalId: string
      readonly producerId: string
      readonly epoch: number
      readonly lastProducerId: string
      readonly lastEpoch: number
      readonly timeoutMs: number
      /** How the transaction of `lastEpoch` ended, where one did. */
      readonly ended: { readonly producerId: string; readonly epoch: number; readonly commit: boolean } | null
    }
  | {
      readonly kind: 'pending-offsets'
      readonly producerId: string
      /** The epoch of the transaction that they belong to. */
      readonly epoch: number
      readonly groupId: string
      readonly offsets: readonly OffsetToCommit[]
    }
  | { readonly kind: 'offsets'; readonly groupId: string; readonly offsets: readonly OffsetToCommit[] }
  | {
      readonly kind: 'feed'
      readonly topic: string
      readonly file: string
      readonly lines: number
      /** Written before the records: if they did not all arrive, what did is cut off again. */
      readonly writes: ReadonlyArray<{ readonly partition: number; readonly from: number; readonly to: number }>
    }
