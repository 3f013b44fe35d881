/**
 * Records on their way between sub-topologies lie in topics where these exchange them so, and nowhere else. Who hands them
 * over in process does not read these topics, nor does a version of the application in which they have other names: what
 * still waits there would be left out without a word.
 */
import { partitionKey } from '../../base/ids.ts'
import { EngineError } from '../../base/errors.ts'
import { BrokerError, type BrokerPort, type TopicInfo } from '../../broker/port.ts'
import { type AskAgain, type Range, readUpTo } from '../../broker/read-up-to.ts'
import { RecordCursor } from '../../broker/wire/record-batch.ts'
import { askAgain, type AskingParts } from '../restore/ask-again.ts'
import type { EngineSettings } from '../settings.ts'
import { idsIn, ofTopics } from './made-anew.ts'
import { boundaryTopic, isRepartition } from './topics.ts'

const maxBytes = 64 * 1024

interface Parts extends AskingParts {
  readonly settings: EngineSettings
}

/**
 * @throws EngineError `STATE_CHANGED` where the split, or what is re-keyed, was changed too early.
 * @throws RunOver once the run, or the engine, has ended.
 */
export async function refuseLeftBehind(parts: Parts, over: () => boolean): Promise<void> {
  const { settings, broker } = parts
  const { applicationId } = settings
  const unread = await unreadTopics(parts)
  if (unread.size === 0) return
  const found = await namedTopics(broker, [...unread.keys()])
  const partitions = found.flatMap(({ topic, partitions: count }) =>
    Array.from({ length: count }, (_, partition) => ({ topic, partition })),
  )
  if (partitions.length === 0) return
  const [told, starts, ends] = await Promise.all([
    broker.committedOffsets(applicationId, partitions, true),
    broker.listOffsets(partitions, 'earliest'),
    broker.listOffsets(partitions, 'stable'),
  ])
  const committed = ofTopics(told, idsIn(new Map(found.map((info) => [info.topic, info]))))
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
      unread.get(topic) === 'split'
        ? `records wait in ${topic}, which topology.sub-topology-split: in-process would leave out: run ${applicationId} with repartition-topics until it has processed them, then change it`
        : `records wait in ${topic}, which this version of ${applicationId} does not read: run the version of before, with nothing written to its sources, until it has processed them (\`millrace lag\`). Where they are not wanted, delete the offsets of the group ${applicationId} for that topic. What is re-keyed keeps its topic when it has a name`,
    )
  }
}

/** Repartition topics of the application that it does not read, or not any more, and why. */
async function unreadTopics({ settings, broker }: Parts): Promise<Map<string, 'split' | 'version'>> {
  const { applicationId, plan, split } = settings
  const planned = plan.boundaries.map((boundary) => boundaryTopic(settings, boundary))
  const unread = new Map<string, 'split' | 'version'>()
  for (const { topic } of await broker.committedOffsets(applicationId, null, false)) {
    if (isRepartition(topic, applicationId)) unread.set(topic, 'version')
  }
  for (const topic of planned) {
    if (split === 'in-process') unread.set(topic, 'split')
    else unread.delete(topic)
  }
  for (const { topics } of plan.sources) for (const topic of topics) unread.delete(topic)
  return unread
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
