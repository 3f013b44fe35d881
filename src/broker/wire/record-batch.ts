/** Record batches, format 2, as they lie on Kafka's wire and in the embedded broker's logs. */
export {
  type BatchHeader,
  type BatchStamp,
  batchHeader,
  batchHeaderSize,
  batchSize,
  type Compression,
  checksumHolds,
  countRecords,
  endOfBatches,
  setBaseOffset,
  stampBatch,
} from './batch-header.ts'
export { CorruptBatchError } from './corrupt.ts'
export { decodeHeaders, encodeHeaders } from './header-codec.ts'
export { RecordBatchBuilder } from './record-batch-builder.ts'
export { type AbortedRange, RecordCursor, type RecordCursorOptions } from './record-cursor.ts'
