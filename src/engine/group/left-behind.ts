/**
 * Records on their way between sub-topologies lie in topics where these exchange them so, and nowhere else. Who hands them
 * over in process does not read these topics: what still waits there would be left out without a word.
 */
import { partitionKey, type TopicPartition } from '../../base/ids.ts'
import { EngineError } from '../../base/errors.ts'
import { BrokerError, type BrokerPort, type TopicInfo } from '../../broker/port.ts'
import { RecordCursor } from '../../broker/wire/record-batch.ts'
import type { EngineSettings } from '../settings.ts'
import { boundaryTopic } from './topics.ts'

const maxBytes = 64 * 1024
const maxWaitMs = 250

/** @throws EngineError `STATE_CHANGED` where the split was changed too early. */
export async function refuseLeftBehind(settings: EngineSettings, broker: BrokerPort): Promise<void> {
  const { applicationId, plan, split } = settings
  if (split !== 'in-process' || plan.boundaries.length === 0) return
  const found = await namedTopics(
    broker,
    plan.boundaries.map((boundary) => boundaryTopic(settings, boundary)),
  )
  const partitions = found.flatMap(({ topic, partitions: count }) =>
    Array.from({ length: count }, (_, partition) => ({ topic, partition })),
  )
  if (partitions.length === 0) return
  const [committed, starts, ends] = await Promise.all([
    broker.committedOffsets(applicationId, partitions, true),
    broker.listOffsets(partitions, 'earliest'),
    broker.listOffsets(partitions, 'stable'),
  ])
  const startOf = new Map(starts.map((each) => [partitionKey(each.topic, each.partition), each.offset]))
  const endOf = new Map(ends.map((each) => [partitionKey(each.topic, each.partition), each.offset]))
  for (const { topic, partition, offset } of committed) {
    const key = partitionKey(topic, partition)
    const from = Math.max(offset, startOf.get(key) ?? 0)
    if (!(await hasRecords(broker, { topic, partition }, from, endOf.get(key) ?? 0))) continue
    throw new EngineError(
      'STATE_CHANGED',
      `records wait in ${topic}, which topology.sub-topology-split: in-process would leave out: run ${applicationId} with repartition-topics until it has processed them, then change it`,
    )
  }
}

/** None for who may not look at topics of that name: who never had them has no right to them. */
async function namedTopics(broker: BrokerPort, names: readonly string[]): Promise<TopicInfo[]> {
  try {
    return await broker.topics(names)
  } catch (error) {
    if (error instanceof BrokerError && error.errorClass === 'config') return []
    throw error
  }
}

/** Between the two may be nothing but the marks of transactions. */
async function hasRecords(broker: BrokerPort, at: TopicPartition, from: number, to: number): Promise<boolean> {
  const cursor = new RecordCursor()
  for (let offset = from; offset < to; ) {
    const [fetched] = await broker.fetch({
      partitions: [{ ...at, offset, maxBytes }],
      maxWaitMs,
      maxBytes,
      isolation: 'read_committed',
    })
    // Whoever cannot look says nothing: the offsets themselves are judged elsewhere.
    if (fetched === undefined || fetched.records.length === 0) return false
    cursor.reset(fetched.records, offset, fetched.aborted, 'read_committed')
    if (cursor.next() && cursor.offset < to) return true
    if (cursor.position <= offset) return false
    offset = cursor.position
  }
  return false
}
