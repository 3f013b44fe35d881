/**
 * Topics that were deleted and made again under their name. A broker keeps offsets by name, and takes those of the old
 * topic for the new one's: of a process that was behind, and went on with what it had buffered, they are past records that
 * nobody has read. So each commit tells which topic it means, and a start compares.
 */
import { EngineError } from '../../base/errors.ts'
import type { TopicPartition } from '../../base/ids.ts'
import type { CommittedOffset, TopicInfo } from '../../broker/port.ts'
import { topicsAbove } from '../../topology/topics-above.ts'
import { ReadTopics } from '../commit/read-topics.ts'
import { incarnationOf } from '../commit/state-marks.ts'
import { decodeTag } from '../commit/tag.ts'
import type { EngineSettings } from '../settings.ts'
import { boundaryTopic, type ResolvedTopics } from './topics.ts'

type IdOf = (topic: string) => string | undefined

/** Commits of versions that did not tell it are believed. */
export function isOfAnother({ topic, offset, metadata }: CommittedOffset, idOf: IdOf): boolean {
  const of = offset < 0 ? undefined : decodeTag(metadata)?.of
  const topicId = idOf(topic)
  return of !== undefined && topicId !== undefined && of !== incarnationOf(topicId)
}

/** Whether a commit says that it is of the topic that is there now. */
export function isOfThis({ topic, offset, metadata }: CommittedOffset, idOf: IdOf): boolean {
  const topicId = idOf(topic)
  return offset >= 0 && topicId !== undefined && decodeTag(metadata)?.of === incarnationOf(topicId)
}

/** Whether the group has read another topic of this name, and nothing of the one that is there now. */
export function isMadeAnew(
  topic: string,
  committed: readonly CommittedOffset[],
  topics: ReadonlyMap<string, Pick<TopicInfo, 'topicId'>>,
): boolean {
  const idOf = idsIn(topics)
  const of = committed.filter((each) => each.topic === topic && each.offset >= 0)
  if (of.some((each) => isOfThis(each, idOf))) return false
  if (of.length > 0) return of.some((each) => isOfAnother(each, idOf))
  return new ReadTopics(committed).wasRead(topic, idOf(topic)) === 'another'
}

/** What the group has of the topics that are there now: of one that was made anew since, nothing. */
export function ofTopics(committed: readonly CommittedOffset[], idOf: IdOf): CommittedOffset[] {
  return committed.map((each) => (isOfAnother(each, idOf) ? { ...each, offset: -1, metadata: '' } : each))
}

/** Partitions of which the group has the offset of another topic of that name. */
export function ofAnother(committed: readonly CommittedOffset[], idOf: IdOf): CommittedOffset[] {
  return committed.filter((each) => isOfAnother(each, idOf))
}

/** A topic that is read is another one by now: what was not fetched of the old one is gone, and the new one begins anew. */
export class MadeAnew extends EngineError {
  /** `isOwn`: it lies between sub-topologies. */
  constructor(topic: string, isOwn: boolean, details: Partial<TopicPartition> & { readonly offset?: number } = {}) {
    super('TOPIC_MISSING', isOwn ? ownDeleted(topic) : sentenceOf(topic), { topic, ...details })
  }
}

const sentenceOf = (topic: string): string =>
  `the topic ${topic} was deleted while it was read, and one that has its name now is another one: what was not read of ` +
  'the old one is gone. A new start reads the new one from its beginning; state that was made of the old one does not go ' +
  'with it, and is refused then'

/** Of a topic between sub-topologies, while it is read. */
export const ownDeleted = (topic: string): string =>
  `the topic ${topic} is one of the application's own, through which its parts exchange records, and somebody has deleted it while it was ` +
  'read: what was not read of it is lost. Find out who deletes such topics. A new start is refused with OFFSETS_MISSING, which names the ways out'

/**
 * Those of global tables are looked after by who follows them: they are loaded anew.
 *
 * @throws MadeAnew where a topic that is read is another one than before.
 */
export function refuseMadeAnew(settings: EngineSettings, before: ResolvedTopics, now: ResolvedTopics): void {
  const own = boundariesOf(settings)
  const read = settings.plan.sources.filter(({ kind }) => kind !== 'global')
  for (const topic of read.flatMap(({ index }) => before.bySource[index] ?? [])) {
    const [was, is] = [before.topics.get(topic), now.topics.get(topic)]
    if (was !== undefined && is !== undefined && was.topicId !== is.topicId) throw new MadeAnew(topic, own.has(topic))
  }
}

/**
 * State that was made of a topic that is no more does not go with the one that has its name now: what came in both would
 * count twice, and nobody could tell what is of which. A store whose rows are the topic's own is filled from the new one. Of a
 * topic between sub-topologies what was not read is lost, to stores and to results.
 *
 * @throws EngineError `OFFSETS_MISSING`
 */
export function refuseOtherState(
  settings: EngineSettings,
  topics: ResolvedTopics,
  { madeAnew }: { readonly madeAnew: readonly CommittedOffset[] },
): void {
  const { applicationId: group, plan } = settings
  const between = boundariesOf(settings)
  for (const { topic, partition, offset } of madeAnew) {
    if (between.has(topic)) refuseUnread(settings, topic)
    // What lies between sub-topologies is the application's own work: that of a new topic is not in any store yet.
    if (offset === 0 || between.has(topic)) continue
    const store = plan.stores.find(
      ({ subtopology, changelogTopic }) =>
        changelogTopic !== topic && topicsAbove(plan, topics.bySource, subtopology).has(topic),
    )
    if (store === undefined) continue
    throw new EngineError(
      'OFFSETS_MISSING',
      `the store ${store.name} holds what was read of a topic ${topic} that was deleted, and the group ${group} has no ` +
        `offset of the one that has its name now${offset < 0 ? '' : `: ${topic}:${partition} was committed at ${offset} of the old one`}. ` +
        'Nothing was read or changed; to go on would mix both in the state, so begin anew under another applicationId',
      { topic, partition },
    )
  }
}

/** @throws EngineError `OFFSETS_MISSING` where it is not accepted that what lay in the topic is lost. */
export function refuseUnread({ applicationId, durableStores, lostChangelogs }: EngineSettings, topic: string): void {
  if (lostChangelogs === 'accept') return
  throw new EngineError(
    'OFFSETS_MISSING',
    `the topic ${topic} is one of ${applicationId}'s own, through which its parts exchange records, and it was deleted: what lay in it and was not ` +
      'read is lost, and results would lack it without a word. Nothing was read, and no state was changed. Ways out: begin anew under another applicationId, or ' +
      `with the group ${applicationId}, its changelogs and its repartition topics deleted${durableStores ? ' and the state folder emptied' : ''}; where it is known ` +
      'that all of it had been read, `engine.state.lost-changelogs: accept` goes on with the new one',
    { topic },
  )
}

/** A sentence for each topic that is begun with anew, for the log. */
export function saidOf(
  settings: EngineSettings,
  { madeAnew }: { readonly madeAnew: readonly CommittedOffset[] },
): string[] {
  const between = boundariesOf(settings)
  return [...Map.groupBy(madeAnew, ({ topic }) => topic)].map(([topic, of]) => {
    const places = of.map(({ partition, offset }) => `partition ${partition}: ${offset}`).join(', ')
    const offsets = of.some(({ offset }) => offset < 0)
      ? 'the offsets of the group went with the old one'
      : `the offsets of the group are of the old one (${places})`
    const what = `the topic ${topic} was deleted and made again, and ${offsets}`
    const lost = between.has(topic) ? '; what lay in the old one and was not read is lost' : ''
    return `${what}: the new one is read from its beginning${lost}`
  })
}

export function boundariesOf(settings: EngineSettings): ReadonlySet<string> {
  return new Set(settings.plan.boundaries.map((boundary) => boundaryTopic(settings, boundary)))
}

export function idsIn(topics: ReadonlyMap<string, Pick<TopicInfo, 'topicId'>>): IdOf {
  return (topic) => topics.get(topic)?.topicId
}
