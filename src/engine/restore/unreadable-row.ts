/** Which record of a changelog a row came from that cannot be read: looked for only once it has failed. */
import { BrokerError, type BrokerPort } from '../../broker/port.ts'
import { EngineError, type UnreadableRow } from '../../base/errors.ts'
import { endOfBatches, RecordCursor } from '../../broker/wire/record-batch.ts'
import type { ResolvedTopics } from '../group/topics.ts'

const maxBytes = 1024 * 1024

/** The error with the record's place, and what to do. */
export async function placedRow(broker: BrokerPort, topics: ResolvedTopics, error: EngineError): Promise<EngineError> {
  const { row } = error.details
  const info = row && topics.changelogs.get(row.store)
  if (row === undefined || info === undefined) return error
  const { topic } = info
  const { partition } = row
  const offset = await offsetIfThere(broker, topic, row)
  const where = offset === undefined ? `${topic}/${partition}` : `${topic}/${partition} at offset ${offset}`
  return new EngineError(
    'CHANGELOG_UNREADABLE',
    `${error.message}. It comes from the changelog ${where}. No policy for input applies: without the row every later result ` +
      'of its key would be wrong. Go back to the serde that wrote it; or stop the application, write the right value (or a ' +
      'tombstone, which begins the key anew) for that key into the changelog, and start again' +
      `${offset === undefined ? '' : '; stores on disk take it from there'}.`,
    { ...error.details, topic, partition, ...(offset !== undefined && { offset }) },
  )
}

/** Where the broker cannot say, the row is told of all the same. */
async function offsetIfThere(broker: BrokerPort, topic: string, row: UnreadableRow): Promise<number | undefined> {
  try {
    return await offsetOf(broker, topic, row)
  } catch (error) {
    if (error instanceof BrokerError) return undefined
    throw error
  }
}

/** The last record that has these bytes. */
async function offsetOf(
  broker: BrokerPort,
  topic: string,
  { partition, bytes, what }: UnreadableRow,
): Promise<number | undefined> {
  const asked = [{ topic, partition }]
  const [start] = await broker.listOffsets(asked, 'earliest')
  const [end] = await broker.listOffsets(asked, 'stable')
  const cursor = new RecordCursor()
  let found: number | undefined
  let position = start?.offset ?? 0
  while (position < (end?.offset ?? 0)) {
    const partitions = [{ topic, partition, offset: position, maxBytes }]
    const [part] = await broker.fetch({ partitions, maxWaitMs: 500, maxBytes, isolation: 'read_committed' })
    if (part === undefined || part.error !== undefined) return found
    const next = endOfBatches(part.records, position)
    if (next === position) return found
    cursor.reset(part.records, position, part.aborted, 'read_committed')
    while (cursor.next()) {
      const from = what === 'value' ? cursor.valueStart : cursor.keyStart
      const to = what === 'value' ? cursor.valueEnd : cursor.keyEnd
      if (from >= 0 && Buffer.compare(cursor.bytes.subarray(from, to), bytes) === 0) found = cursor.offset
    }
    position = next
  }
  return found
}
