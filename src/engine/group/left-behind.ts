/**
 * Records on their way between sub-topologies lie in topics where these exchange them so, and nowhere else. Who hands them
 * over in process does not read these topics: what still waits there would be left out without a word.
 */
import { partitionKey } from '../../base/ids.ts'
import { EngineError } from '../../base/errors.ts'
import { BrokerError, type BrokerPort, type TopicInfo } from '../../broker/port.ts'
import { type AskAgain, type Range, readUpTo } from '../../broker/read-up-to.ts'
import { RecordCursor } from '../../broker/wire/record-batch.ts'
import { askAgain, type AskingParts } from '../restore/ask-again.ts'
import type { EngineSettings } from '../settings.ts'
import { boundaryTopic } from './topics.ts'

const maxBytes = 64 * 1024

interface Parts extends AskingParts {
  readonly settings: EngineSettings
}

/**
 * @throws EngineError `STATE_CHANGED` where the split was changed too early.
 * @throws RunOver once the run, or the engine, has ended.
 */
export async function refuseLeftBehind(parts: Parts, over: () => boolean): Promise<void> {
  const { settings, broker } = parts
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
  const again = askAgain(parts, over)
  for (const { topic, partition, offset } of committed) {
    const key = partitionKey(topic, partition)
    const from = Math.max(offset, startOf.get(key) ?? 0)
    const range = { topic, partition, from, to: endOf.get(key) ?? 0, maxBytes }
    if (!(await hasRecords(broker, range, again))) continue
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

/** In the range may be nothing but the marks of transactions. */
async function hasRecords(broker: BrokerPort, range: Range, again: AskAgain): Promise<boolean> {
  const cursor = new RecordCursor()
  try {
    for await (const { answer, from } of readUpTo(broker, range, again)) {
      cursor.reset(answer.records, from, answer.aborted, 'read_committed')
      if (cursor.next() && cursor.offset < range.to) return true
    }
  } catch (error) {
    // Whoever may not look says nothing: the offsets themselves are judged elsewhere.
    if (!EngineError.is(error) || error.code !== 'BROKER_REFUSED') throw error
  }
  return false
}
