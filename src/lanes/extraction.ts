/**
 * Custom timestamps. They decide the order of dispatch, so the engine thread asks for them: the one place where it
 * runs code of the application. What goes wrong there is left to the lane, which knows the error policies.
 */
import { thrownAt } from '../base/thrown-at.ts'
import { ByteRange } from '../base/byte-range.ts'
import { EngineError, messageOf } from '../base/errors.ts'
import { originAt, type Rec } from '../operators/contract.ts'
import { decodeRecord } from '../operators/decode.ts'
import { SerdeWaits } from '../serde/serde.ts'
import type { CompiledSource } from '../topology/compiled.ts'
import { noHeaders } from '../broker/wire/headers.ts'
import { decodeHeaders, type RecordCursor } from '../broker/wire/record-batch.ts'

/** The extractor answered a time before 1970: the record is dropped and counted. */
export const negativeTimestamp = -1
/** The extractor threw: the lane asks it again and does as the policy for processing says. */
export const failedTimestamp = -2

/** Answers the time of the record at the cursor; as the extractor says, or one of the two signs above. */
export type CursorTimestamp = (cursor: RecordCursor, topic: string, partition: number) => number

export function extractorsOf(sources: readonly CompiledSource[]): Map<number, CursorTimestamp> {
  const extractors = new Map<number, CursorTimestamp>()
  for (const source of sources) {
    if (source.timestampExtractor === undefined || source.kind === 'global') continue
    extractors.set(source.index, (cursor, topic, partition) => timestampAt(source, cursor, topic, partition))
  }
  return extractors
}

function timestampAt(source: CompiledSource, cursor: RecordCursor, topic: string, partition: number): number {
  const { bytes, offset, timestamp, keyStart, valueStart } = cursor
  const origin = originAt(topic, partition, offset, Number.NEGATIVE_INFINITY, 0)
  const key = keyStart < 0 ? null : new ByteRange(bytes, keyStart, cursor.keyEnd)
  const value = valueStart < 0 ? null : new ByteRange(bytes, valueStart, cursor.valueEnd)
  const headers =
    cursor.headersEnd > cursor.headersStart ? decodeHeaders(bytes, cursor.headersStart, cursor.headersEnd) : noHeaders
  let rec: Rec
  try {
    rec = decodeRecord(source, key, value, timestamp, headers, origin)
  } catch (error) {
    // Without the record's own time nobody knows what comes next.
    if (error instanceof SerdeWaits)
      throw new EngineError('SCHEMA_UNAVAILABLE', `${source.name}: ${error.message}`, { cause: error })
    // The lane decodes it again, fails again, and does what `errors.decoding` says.
    return timestamp
  }
  try {
    return extracted(source, rec)
  } catch {
    return failedTimestamp
  }
}

/**
 * What the source's extractor makes of a record; its own timestamp where the answer is no whole number, and where the
 * record deletes a row, for there is no value to take a time from.
 */
function extracted(source: CompiledSource, rec: Rec): number {
  const { value, key } = rec
  const deletes = source.isTable && (value === null || value === undefined)
  const answer = deletes ? undefined : source.timestampExtractor?.(value, key, rec)
  if (answer === undefined || !Number.isSafeInteger(answer)) return Math.max(rec.timestamp, negativeTimestamp)
  return answer < 0 ? negativeTimestamp : answer
}

/**
 * Asks an extractor that failed on the engine thread again, for its error.
 *
 * @throws EngineError `PROCESSING_FAILED`
 */
export function extractAgain(source: CompiledSource, rec: Rec): number {
  try {
    return extracted(source, rec)
  } catch (error) {
    const { topic, partition, offset } = rec.origin
    const place = thrownAt(error)
    const at = place === undefined ? '' : `, thrown at ${place}`
    throw new EngineError(
      'PROCESSING_FAILED',
      `the timestamp function of ${source.name} failed at the record ${topic}/${partition} at offset ${offset}: ${messageOf(error)}${at}`,
      { cause: error, node: source.name, topic, partition, offset },
    )
  }
}
