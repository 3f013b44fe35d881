/** Which topics the application reads, how many partitions they have, and the internal topics it needs. */
import type { BrokerPort, TopicInfo } from '../../broker/port.ts'
import { EngineError } from '../../base/errors.ts'
import { changelogPartitions } from '../../topology/affinity.ts'
import { changelogTopic, changelogConfig } from '../../state/rows/changelog.ts'
import type { BoundaryPlan, SourcePlan, StorePlan } from '../../topology/plan.ts'
import type { EngineSettings } from '../settings.ts'
import { createOwn, refuseBrokerTime, refuseForgetful, timeOfData } from './own-topics.ts'
import { countsMoved, otherCount } from './partition-counts.ts'

export interface ResolvedTopics {
  readonly topics: ReadonlyMap<string, TopicInfo>
  /** Topics of every source, by source index. */
  readonly bySource: ReadonlyArray<readonly string[]>
  /** Changelog partitions of every sub-topology. */
  readonly changelogPartitions: readonly number[]
  /** Changelog topics by store. */
  readonly changelogs: ReadonlyMap<string, TopicInfo>
  /** Topics through which sub-topologies exchange records; none where they hand over in process. */
  readonly boundaries: readonly TopicInfo[]
}

export function boundaryTopic(settings: EngineSettings, boundary: BoundaryPlan): string {
  return `${settings.applicationId}-${boundary.topic}`
}

/** What a version of an application may call a topic between sub-topologies: those of foreign-key joins, too. */
const repartition = /-(repartition|subscription-(registration|response)(-\d+)?-topic)$/i

/** Whether an application of that id may have made it for its sub-topologies, in this version or another one. */
export function isRepartition(topic: string, applicationId: string): boolean {
  return topic.startsWith(`${applicationId}-`) && repartition.test(topic)
}

export function changelogOf(settings: EngineSettings, store: StorePlan): string {
  return changelogTopic(settings.applicationId, store)
}

/** Describes what exists, makes what is the application's own, and refuses what is missing. */
export async function resolveTopics(
  settings: EngineSettings,
  broker: BrokerPort,
  before?: ResolvedTopics,
): Promise<ResolvedTopics> {
  const { plan } = settings
  const named = new Set(plan.sources.flatMap((s) => (s.kind === 'topics' || s.kind === 'global' ? s.topics : [])))
  const topics = new Map<string, TopicInfo>()
  const needsPattern = plan.sources.some((s) => s.pattern !== undefined)
  for (const info of await broker.topics(needsPattern ? null : [...named])) topics.set(info.topic, info)
  const missing = [...named].filter((topic) => !topics.has(topic))
  if (missing.length > 0) await createMissing(settings, broker, missing, topics)

  const bySource = plan.sources.map((source) => topicsOf(settings, source, topics))
  const partitionsOf = (topic: string): number => topics.get(topic)?.partitions ?? 1
  refuseUnequalSides(settings, bySource, partitionsOf)
  const made = await madeBefore(settings, broker)
  const partitions = changelogPartitions(
    plan,
    partitionsOf,
    (source) => bySource[source] ?? [],
    (subtopology) => made.counts.get(subtopology),
  )
  const read = new Set(bySource.flat())
  const sources = new Map([...topics].filter(([topic]) => read.has(topic)))
  if (before !== undefined) refuseOtherCounts(settings, before, partitions, new Map([...sources, ...made.topics]))
  const asking = { sources, own: made.topics }
  const boundaries = await createBoundaryTopics(settings, broker, partitions, asking)
  for (const info of boundaries) topics.set(info.topic, info)
  const changelogs = await createChangelogs(settings, broker, partitions, asking, before)
  return { topics, bySource, changelogPartitions: partitions, changelogs, boundaries }
}

type Topics = ReadonlyMap<string, TopicInfo>

/** Topics by which the number of partitions is chosen: those that are read, and those that earlier runs have made. */
interface Asking {
  readonly sources: Topics
  readonly own: Topics
}

interface Made {
  readonly counts: ReadonlyMap<number, number>
  readonly topics: Topics
}

/**
 * Partition counts by sub-topology that an earlier run settled, and the topics that tell them. In process a key finds its state by its hash, so the
 * changelogs' count stands, however many partitions the input has by now; where records go through topics, the count
 * of the topic that feeds a sub-topology stands, for its partitions are the tasks. Whether somebody has altered one of them meanwhile,
 * the last commit tells (`state-check.ts`).
 */
async function madeBefore(settings: EngineSettings, broker: BrokerPort): Promise<Made> {
  const { plan, split } = settings
  const counts = new Map<number, number>()
  const topics = new Map<string, TopicInfo>()
  const inProcess = split === 'in-process'
  const fedByTopics = new Set(plan.sources.filter((s) => s.kind === 'topics').map((s) => s.subtopology))
  const sharesTopic = new Set(plan.stores.filter((s) => s.changelogTopic !== undefined).map((s) => s.subtopology))
  const names = new Map<string, number>()
  if (inProcess) {
    for (const store of plan.stores) {
      if (!sharesTopic.has(store.subtopology)) names.set(changelogOf(settings, store), store.subtopology)
    }
  } else {
    for (const boundary of plan.boundaries) {
      const { toSubtopology } = boundary
      if (!fedByTopics.has(toSubtopology)) names.set(boundaryTopic(settings, boundary), toSubtopology)
    }
  }
  if (names.size === 0) return { counts, topics }
  for (const info of await broker.topics([...names.keys()])) {
    const subtopology = names.get(info.topic) as number
    counts.set(subtopology, Math.max(info.partitions, counts.get(subtopology) ?? 0))
    topics.set(info.topic, info)
  }
  return { counts, topics }
}

/** What has come since; refuses what a running application cannot take in. */
export function resolveAgain(
  settings: EngineSettings,
  broker: BrokerPort,
  before: ResolvedTopics,
): Promise<ResolvedTopics> {
  return resolveTopics(settings, broker, before)
}

/**
 * Input that got more partitions while the application runs is read, unless the state of keys lies where the old number
 * put it.
 */
function refuseOtherCounts(
  settings: EngineSettings,
  before: ResolvedTopics,
  partitions: readonly number[],
  now: Topics,
): void {
  const had = (store: StorePlan): number => before.changelogPartitions[store.subtopology] ?? 1
  const moved = settings.plan.stores.filter((store) => had(store) !== (partitions[store.subtopology] ?? 1))
  if (moved.length === 0) return
  // The state of one whose changelog somebody has altered is named, whatever else stands beside it.
  const isAltered = (store: StorePlan): boolean => {
    const info = now.get(changelogOf(settings, store))
    return info !== undefined && info.partitions !== had(store)
  }
  const store = moved.find(isAltered) ?? (moved[0] as StorePlan)
  throw countsMoved(changelogOf(settings, store), had(store), knownBefore(before), now)
}

function knownBefore({ topics, changelogs }: ResolvedTopics): Topics {
  return new Map([...topics, ...[...changelogs.values()].map((info) => [info.topic, info] as const)])
}

/**
 * Where a partition is a task, records of one key meet only if both sides of a join put it into the same partition. In
 * process it is the key's hash that finds the task, whatever the topics have.
 */
function refuseUnequalSides(
  settings: EngineSettings,
  bySource: ReadonlyArray<readonly string[]>,
  partitionsOf: (topic: string) => number,
): void {
  const { plan, split } = settings
  if (split === 'in-process') return
  for (const { name, sources } of plan.copartitioned ?? []) {
    const topics = sources.flatMap((source) =>
      plan.sources[source]?.kind === 'topics' ? (bySource[source] ?? []) : [],
    )
    if (new Set(topics.map(partitionsOf)).size <= 1) continue
    const counts = [...new Set(topics)]
      .sort()
      .map((topic) => `${topic} has ${partitionsOf(topic)}`)
      .join(', ')
    throw new EngineError(
      'TOPOLOGY_INVALID',
      `${name} brings together topics with different numbers of partitions (${counts}): with ` +
        '`topology.sub-topology-split: repartition-topics` their keys do not meet; put `.repartition()` before all sides ' +
        'but one, or set the split to `in-process`',
    )
  }
}

function topicsOf(
  settings: EngineSettings,
  source: SourcePlan,
  topics: ReadonlyMap<string, TopicInfo>,
): readonly string[] {
  if (source.kind === 'boundary') {
    const boundary = settings.plan.boundaries[source.boundary ?? -1]
    return settings.split === 'repartition-topics' && boundary ? [boundaryTopic(settings, boundary)] : []
  }
  if (source.pattern === undefined) return source.topics
  const pattern = new RegExp(`^(?:${source.pattern})$`, source.patternFlags)
  return [...topics.keys()].filter((topic) => pattern.test(topic) && !isInternal(settings, topic)).sort()
}

/** Whether it is made and written for the application itself: no pattern reads it, and it is no output. */
export function isInternal(settings: EngineSettings, topic: string): boolean {
  if (settings.plan.boundaries.some((boundary) => boundaryTopic(settings, boundary) === topic)) return true
  return topic.startsWith(`${settings.applicationId}-`) && /-(changelog|repartition)$/.test(topic)
}

async function createMissing(
  settings: EngineSettings,
  broker: BrokerPort,
  missing: readonly string[],
  topics: Map<string, TopicInfo>,
): Promise<void> {
  if (broker.kind === 'kafka') {
    const plural = missing.length > 1
    throw new EngineError(
      'TOPIC_MISSING',
      `the source topic${plural ? 's' : ''} ${missing.join(', ')} ${plural ? 'do' : 'does'} not exist on the broker: ` +
        `create ${plural ? 'them' : 'it'} first, the number of partitions is for you to choose`,
    )
  }
  await broker.createTopics(missing.map((topic) => ({ topic, partitions: settings.defaultPartitions })))
  for (const info of await broker.topics(missing)) topics.set(info.topic, info)
}

async function createBoundaryTopics(
  settings: EngineSettings,
  broker: BrokerPort,
  partitions: readonly number[],
  asking: Asking,
): Promise<TopicInfo[]> {
  if (settings.split === 'in-process') return []
  const specs = settings.plan.boundaries.map((boundary) => ({
    topic: boundaryTopic(settings, boundary),
    partitions: partitions[boundary.toSubtopology] ?? 1,
    config: { ...timeOfData, 'cleanup.policy': 'delete', 'retention.ms': '-1', 'segment.bytes': '52428800' },
  }))
  if (specs.length === 0) return []
  await createOwn(broker, specs)
  const infos = await broker.topics(specs.map((s) => s.topic))
  for (const { topic, partitions: wanted } of specs) {
    const info = infos.find((each) => each.topic === topic)
    if (info !== undefined && info.partitions !== wanted) throw await otherCount(broker, info, wanted, asking)
  }
  // One that was there before may have been made by hand, or by a version that left its times to the broker's default.
  await Promise.all(specs.map(({ topic }) => refuseBrokerTime(broker, topic)))
  return infos
}

async function createChangelogs(
  settings: EngineSettings,
  broker: BrokerPort,
  partitions: readonly number[],
  asking: Asking,
  before: ResolvedTopics | undefined,
): Promise<Map<string, TopicInfo>> {
  const own = settings.plan.stores.filter((store) => store.changelogTopic === undefined)
  if (own.length > 0) {
    await createOwn(
      broker,
      own.map((store) => ({
        topic: changelogOf(settings, store),
        partitions: partitions[store.subtopology] ?? 1,
        config: changelogConfig(store),
      })),
    )
  }
  const infos = await broker.topics(settings.plan.stores.map((store) => changelogOf(settings, store)))
  const byName = new Map(infos.map((info) => [info.topic, info]))
  const changelogs = new Map<string, TopicInfo>()
  for (const store of settings.plan.stores) {
    const topic = changelogOf(settings, store)
    const info = byName.get(topic)
    if (!info)
      throw new EngineError(
        'TOPIC_MISSING',
        `the changelog topic ${topic} could not be created; create it, or grant the right to`,
      )
    const expected = partitions[store.subtopology] ?? 1
    if (info.partitions !== expected) {
      const had = before?.changelogs.get(store.name)?.partitions
      if (had === expected)
        throw countsMoved(topic, had, knownBefore(before as ResolvedTopics), new Map([[topic, info]]))
      throw await otherCount(broker, info, expected, asking)
    }
    changelogs.set(store.name, info)
  }
  await Promise.all(own.map((store) => refuseForgetful(broker, changelogOf(settings, store), store)))
  return changelogs
}
