/** Reading a segment back at start: what its batches say about producers and transactions, and where it breaks off. */
import {
  type BatchHeader,
  batchHeader,
  batchSize,
  CorruptBatchError,
  checksumHolds,
} from '../../../wire/record-batch.ts'
import { controlType } from '../../../wire/record-cursor.ts'
import { BrokerError } from '../../port.ts'
import type { PartitionLog } from './partition-log.ts'
import { ProducerState } from './producer-state.ts'
import type { SegmentFile } from './storage.ts'

/** Adds the segment to the log. The torn end of the last one, a write that nobody was told of, is cut off. */
export function recoverSegment(log: PartitionLog, file: SegmentFile, last: boolean): void {
  // Left over from a compaction that ended in a crash: what it holds is in the segment before.
  if (file.baseOffset < log.highWatermark) {
    log.files.remove(file)
    return
  }
  const bytes = new Uint8Array(file.size)
  file.copy(0, bytes, 0, bytes.length)
  const segment = log.addSegment(file)
  let at = 0
  while (at < bytes.length) {
    const header = wholeBatch(bytes, at)
    if (header === undefined) {
      if (!last) throw damaged(file, at)
      file.truncate(at)
      break
    }
    note(log, bytes, at, header, segment)
    at += header.size
  }
}

function note(
  log: PartitionLog,
  bytes: Uint8Array,
  at: number,
  header: BatchHeader,
  segment: PartitionLog['segments'][number],
): void {
  log.noteBatch(header, header.baseOffset, segment, at)
  if (header.control) log.noteMarker(header, controlType(bytes, at, header.size) === 1)
  else if (header.producerId >= 0n) {
    const state = log.producers.get(header.producerId) ?? new ProducerState(header.producerEpoch)
    state.record(header, header.baseOffset)
    log.producers.set(header.producerId, state)
  }
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

function damaged(file: SegmentFile, at: number): BrokerError {
  return new BrokerError(
    'KAFKA_STORAGE_ERROR',
    `The embedded broker's segment from offset ${file.baseOffset} on is damaged at byte ${at}, before its end: the disk lost data. Restore the folder from a copy, or delete it to begin anew.`,
    'config',
  )
}
