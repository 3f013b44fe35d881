/**
 * Offsets that somebody else has set. Each commit of the engine notes beside an offset which commit it is of; what Kafka's
 * own tools set has no such note. State that was made up to another offset does not go with it.
 */
import { EngineError } from '../../base/errors.ts'
import type { BrokerPort, CommittedOffset, TopicInfo } from '../../broker/port.ts'
import type { TopicPartition } from '../../base/ids.ts'
import { subtopologiesAbove, topicsAbove } from '../../topology/topics-above.ts'
import { ReadTopics } from '../commit/read-topics.ts'
import { type CommitTag, decodeTag } from '../commit/tag.ts'
import type { EngineSettings } from '../settings.ts'
import { boundariesOf, idsIn, isOfThis } from './made-anew.ts'
import { boundaryTopic, type ResolvedTopics } from './topics.ts'

interface Committed {
  readonly newestTag: CommitTag | undefined
  readonly unnoted: readonly CommittedOffset[]
  readonly lost: readonly string[]
}

/** An offset beside which nothing is noted. */
export function isUnnoted({ offset, metadata }: CommittedOffset): boolean {
  return offset >= 0 && decodeTag(metadata) === undefined
}

/**
 * Of the topics without an offset here: `gone`, what the group has had of another topic of that name, and `lost`, those that it has
 * read and of which it has nothing any more.
 */
export async function lostIn(
  settings: EngineSettings,
  broker: BrokerPort,
  told: readonly CommittedOffset[],
  topics: ReadonlyMap<string, Pick<TopicInfo, 'topicId' | 'partitions'>>,
  all: () => readonly TopicPartition[],
): Promise<{ readonly gone: CommittedOffset[]; readonly lost: string[] }> {
  const gone: CommittedOffset[] = []
  const lost: string[] = []
  const without = [...Map.groupBy(told, (each) => each.topic)].filter(([, of]) => of.every(({ offset }) => offset < 0))
  if (without.length === 0) return { gone, lost }
  const group = await ofGroup(settings, broker, told, all)
  const [read, idOf, own] = [new ReadTopics(group), idsIn(topics), boundariesOf(settings)]
  for (const [topic, of] of without) {
    const info = topics.get(topic)
    const was = read.wasRead(topic, info?.topicId)
    const isAnother = own.has(topic) ? read.hadAnother(topic, info?.topicId) : was === 'another'
    // Of the new one another process may have committed already.
    if (isAnother && !group.some((each) => each.topic === topic && isOfThis(each, idOf))) gone.push(...of)
    else if (was === 'this' && (await hasNoOffset(settings, broker, topic, info?.partitions ?? 0))) lost.push(topic)
  }
  return { gone, lost }
}

/** With what is noted beside the partitions of other processes, where there are any. */
async function ofGroup(
  { split, applicationId }: EngineSettings,
  broker: BrokerPort,
  told: readonly CommittedOffset[],
  all: () => readonly TopicPartition[],
): Promise<readonly CommittedOffset[]> {
  if (split === 'in-process') return told
  const partitions = all()
  return partitions.length <= told.length ? told : broker.committedOffsets(applicationId, partitions, true)
}

/** Nor of the partitions that other processes have. */
async function hasNoOffset({ applicationId }: EngineSettings, broker: BrokerPort, topic: string, count: number) {
  const all = Array.from({ length: count }, (_, partition) => ({ topic, partition }))
  const committed = await broker.committedOffsets(applicationId, all, true)
  return committed.every(({ offset }) => offset < 0)
}

/**
 * A group without any note is another matter: another program had it before, and the first commit notes all that it left.
 *
 * @throws EngineError `OFFSETS_MISSING` where a store holds what was read up to another offset.
 */
export function refuseMovedOffsets(
  settings: EngineSettings,
  topics: ResolvedTopics,
  { newestTag, unnoted, lost }: Committed,
): void {
  if (newestTag === undefined) return
  for (const topic of lost) {
    const store = storeFedBy(settings, topics, topic)
    if (store === undefined) continue
    throw new EngineError(
      'OFFSETS_MISSING',
      `the group ${settings.applicationId} has no offset of the topic ${topic} any more, which it has read: it was deleted, or has expired. ` +
        `The store ${store.name} holds what was read of it, and to begin again would count records twice. Nothing was read or changed; ` +
        'begin anew under another applicationId',
      { topic },
    )
  }
  for (const { topic, partition, offset } of unnoted) {
    const store = storeFedBy(settings, topics, topic)
    if (store === undefined) continue
    throw new EngineError(
      'OFFSETS_MISSING',
      `the offset ${offset} that the group ${settings.applicationId} has of ${topic}:${partition} was not committed by the application: ` +
        `the note that each commit leaves beside it is missing, so a tool has set it. The store ${store.name} holds what was read up ` +
        'to another one: to go on would count records twice, or leave some out. Nothing was read or changed; begin anew under ' +
        'another applicationId',
      { topic, partition },
    )
  }
}

/** A store that holds what was read of the topic. One whose rows are the topic's own is filled from that. */
function storeFedBy(settings: EngineSettings, { bySource }: ResolvedTopics, topic: string) {
  const { plan } = settings
  const between = plan.boundaries.filter((boundary) => boundaryTopic(settings, boundary) === topic)
  return plan.stores.find(({ subtopology, changelogTopic }) => {
    if (changelogTopic === topic) return false
    const above = subtopologiesAbove(plan, subtopology)
    return (
      topicsAbove(plan, bySource, subtopology).has(topic) ||
      between.some(({ toSubtopology }) => above.has(toSubtopology))
    )
  })
}
