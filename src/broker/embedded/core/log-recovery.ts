/** Reading a segment back at start: what its batches say about producers and transactions, and where it breaks off. */
import type { BatchHeader } from '../../wire/record-batch.ts'
import { controlType } from '../../wire/record-cursor.ts'
import { ProducerState } from './producer-state.ts'
import { scanSegment } from './segment-scan.ts'
import type { PartitionFiles, SegmentFile } from './storage.ts'

/** The log that the segments are added to: it takes each batch as if it had just been written. */
interface RecoveredLog<S> {
  readonly segments: readonly S[]
  readonly highWatermark: number
  readonly files: PartitionFiles
  readonly producers: Map<bigint, ProducerState>
  addSegment(file: SegmentFile): S
  noteBatch(header: BatchHeader, offset: number, segment: S, at: number): void
  noteMarker(header: BatchHeader, commit: boolean): void
}

export interface LogRules {
  /** Compaction may have left gaps between offsets. */
  readonly gaps: boolean
  /** The beginning may have been dropped. */
  readonly expires: boolean
}

/**
 * Adds the segment to the log. At the end of the last one a write that was cut short, of which nobody was told, is cut off;
 * anything else that is missing or wrong is an error.
 */
export function recoverSegment<S>(
  log: RecoveredLog<S>,
  file: SegmentFile,
  last: boolean,
  { gaps, expires }: LogRules,
): void {
  const isFirst = log.segments.length === 0
  // Left over from a compaction that ended in a crash, in a folder whose journal does not name the segments.
  if (!isFirst && file.baseOffset < log.highWatermark && !log.files.isComplete) {
    log.files.remove(file)
    return
  }
  // Where somebody knows of all segments, the first of them is the first.
  const begin = expires || log.files.isComplete ? file.baseOffset : 0
  const from = isFirst ? begin : log.highWatermark
  if (file.baseOffset !== from) {
    throw file.damaged(0, `it begins at offset ${file.baseOffset}, and what comes before it ends at ${from}`)
  }
  const bytes = new Uint8Array(file.size)
  file.copy(0, bytes, 0, bytes.length)
  const segment = log.addSegment(file)
  const { facts } = file
  const forced = log.files.isForced
  const { size, chain, fault } = scanSegment(bytes, { from, gaps, facts, last, forced }, (header, at) => {
    note(log, bytes, at, header, segment)
  })
  if (fault !== undefined) throw file.damaged(fault.at, fault.why)
  file.recovered({ size, chain })
}

function note<S>(log: RecoveredLog<S>, bytes: Uint8Array, at: number, header: BatchHeader, segment: S): void {
  log.noteBatch(header, header.baseOffset, segment, at)
  if (header.control) log.noteMarker(header, controlType(bytes, at, header.size) === 1)
  else if (header.producerId >= 0n) {
    const state = log.producers.get(header.producerId) ?? new ProducerState(header.producerEpoch)
    state.record(header, header.baseOffset)
    log.producers.set(header.producerId, state)
  }
}
