/** What is assigned to this process: partitions, the tasks that go with them, and where each was left. */
import { type PartitionKey, partitionKey, type TopicPartition } from '../../base/ids.ts'
import type { BrokerPort, CommittedOffset } from '../../broker/port.ts'
import { endsIn, type KnownEnds } from '../commit/changelog-ends.ts'
import { type CommitTag, compareTags, decodeTag } from '../commit/tag.ts'
import type { Kept } from '../input/repartition/sorted-buffer.ts'
import { EngineError } from '../../base/errors.ts'
import type { StartingTask } from '../../lanes/protocol.ts'
import type { Affinity, TaskRef } from '../../topology/affinity.ts'
import type { EngineSettings } from '../settings.ts'
import { boundariesOf, idsIn, ofAnother, ofTopics } from './made-anew.ts'
import { isUnnoted, lostIn } from './moved-offsets.ts'
import type { ResolvedTopics } from './topics.ts'

export interface StartingPoint extends TopicPartition {
  /** Identity of the topic whose offset it is. */
  readonly topicId?: string | undefined
  readonly offset: number
  /** Highest event time of the partition at that commit. */
  readonly maxTimestamp: number
  /** The watermark at that commit: the application's, or that of the task where each has its own. */
  readonly watermark: number
  /** What that commit had done of the records behind its offset. */
  readonly kept?: Kept | undefined
  /** What was held back then of what came from it; undefined: nothing. */
  readonly held?: string | undefined
  /** Whether the group has an offset of it; else the next commit says where it began. */
  readonly committed: boolean
  /** Another program has set that offset, for nothing is noted beside it: the next commit does. */
  readonly isForeign?: boolean
  /** End of what can be read of it at this moment: how far behind the start is, before anything is fetched. */
  readonly logEnd: number
  /** End of the log at this moment, with what open transactions hold back. */
  readonly highWatermark: number
}

export interface GroupPosition {
  readonly partitions: readonly StartingPoint[]
  readonly newestTag: CommitTag | undefined
  readonly watermark: number
  /** What the group has committed of topics that were deleted since: no offsets of those that have their names now. */
  readonly madeAnew: readonly CommittedOffset[]
  /** What it has beside which the engine has noted nothing. */
  readonly unnoted: readonly CommittedOffset[]
  /** Topics that it has read, and of which it has no offset any more. */
  readonly lost: readonly string[]
  /** How far the changelogs went at the last commit that told of each. */
  readonly ends: KnownEnds
}

const unknown = Number.NEGATIVE_INFINITY

/** The group's offsets and what their tags say; partitions without an offset begin as the application says. */
export async function groupPosition(
  settings: EngineSettings,
  broker: BrokerPort,
  partitions: readonly TopicPartition[],
  resolved: Pick<ResolvedTopics, 'topics' | 'bySource'>,
): Promise<GroupPosition> {
  const { topics } = resolved
  const nothing = {
    partitions: [],
    madeAnew: [],
    unnoted: [],
    lost: [],
    newestTag: undefined,
    watermark: unknown,
    ends: new Map(),
  }
  if (partitions.length === 0) return nothing
  const [told, stable, latest] = await Promise.all([
    broker.committedOffsets(settings.applicationId, partitions, true),
    broker.listOffsets(partitions, 'stable'),
    broker.listOffsets(partitions, 'latest'),
  ])
  const idOf = idsIn(topics)
  const { gone, lost } = await lostIn(settings, broker, told, topics, () => allPartitions(settings, resolved))
  const [committed, madeAnew] = [ofTopics(told, idOf), [...ofAnother(told, idOf), ...gone]]
  // Which commit is the newest one does not depend on what it tells of.
  const newestTag = newest(told)
  const fresh = committed.filter((c) => c.offset < 0)
  const starts = await startOffsets(settings, broker, fresh, madeAnew)
  const ends = byPartition(stable)
  const highWatermarks = byPartition(latest)
  const result = committed.map((c) => ({
    topic: c.topic,
    partition: c.partition,
    topicId: idOf(c.topic),
    offset: c.offset >= 0 ? c.offset : (starts.get(partitionKey(c.topic, c.partition)) ?? 0),
    maxTimestamp: decodeTag(c.metadata)?.maxTimestamp ?? unknown,
    watermark: decodeTag(c.metadata)?.watermark ?? unknown,
    kept: c.offset >= 0 ? decodeTag(c.metadata)?.kept : undefined,
    held: decodeTag(c.metadata)?.held,
    committed: c.offset >= 0,
    isForeign: isUnnoted(c),
    logEnd: ends.get(partitionKey(c.topic, c.partition)) ?? -1,
    highWatermark: highWatermarks.get(partitionKey(c.topic, c.partition)) ?? -1,
  }))
  const watermark = newest(committed)?.watermark ?? unknown
  return {
    partitions: result,
    madeAnew,
    unnoted: told.filter(isUnnoted),
    lost,
    newestTag,
    watermark,
    ends: endsIn(told),
  }
}

/**
 * The newest commit that the group knows of. Where processes share the partitions, all those of one may be of a source that this version has
 * added, and of which nothing is committed yet.
 */
export async function knownToGroup(
  settings: EngineSettings,
  broker: BrokerPort,
  topics: ResolvedTopics,
  position: GroupPosition,
): Promise<GroupPosition> {
  if (settings.split === 'in-process' || position.newestTag || position.partitions.length === 0) return position
  const all = allPartitions(settings, topics)
  return { ...position, newestTag: newest(await broker.committedOffsets(settings.applicationId, all, true)) }
}

/** To begin anew over state that is there would count everything twice. */
export function offsetsMissing({ applicationId }: EngineSettings): EngineError {
  return new EngineError(
    'OFFSETS_MISSING',
    `the changelogs of ${applicationId} hold committed state, but its group has no offsets: they were deleted or have expired`,
  )
}

/** Of the commits that these offsets are of. */
export function newest(committed: readonly CommittedOffset[]): CommitTag | undefined {
  let result: CommitTag | undefined
  for (const { metadata } of committed) {
    const tag = decodeTag(metadata)
    if (tag && (!result || compareTags(tag, result) > 0)) result = tag
  }
  return result
}

async function startOffsets(
  settings: EngineSettings,
  broker: BrokerPort,
  fresh: readonly TopicPartition[],
  madeAnew: readonly TopicPartition[],
): Promise<Map<PartitionKey, number>> {
  if (fresh.length === 0) return new Map()
  // What the application has written itself is its input from the first record on, whatever is said of its sources.
  const own = boundariesOf(settings)
  const between = fresh.filter(({ topic }) => own.has(topic))
  const sources = fresh.filter(({ topic }) => !own.has(topic))
  const all = between.length > 0 ? await broker.listOffsets(between, 'earliest') : []
  return byPartition([...all, ...(await sourceStarts(settings, broker, sources, madeAnew))])
}

type Offsets = ReadonlyArray<TopicPartition & { readonly offset: number }>

async function sourceStarts(
  settings: EngineSettings,
  broker: BrokerPort,
  fresh: readonly TopicPartition[],
  madeAnew: readonly TopicPartition[],
): Promise<Offsets> {
  const [first] = fresh
  if (first === undefined) return []
  if (settings.offsetsReset === 'fail') {
    const isAnew = madeAnew.some(({ topic, partition }) => topic === first.topic && partition === first.partition)
    const why = isAnew ? ': what it has is of a topic of that name that was deleted' : ''
    throw new EngineError(
      'OFFSETS_MISSING',
      `the group ${settings.applicationId} has no offset for ${first.topic}:${first.partition} and offsets.reset is fail${why}`,
    )
  }
  if (settings.offsetsReset === 'earliest') return broker.listOffsets(fresh, 'earliest')
  // A partition that came to a topic which the group reads already, or a topic that was made anew: all that lies in it was
  // written since.
  const read = await broker.committedOffsets(settings.applicationId, null, true)
  const ofGroup = [...madeAnew, ...read.filter(({ offset }) => offset >= 0)]
  const known = new Set(ofGroup.map(({ topic }) => topic))
  const added = fresh.filter(({ topic }) => known.has(topic))
  const others = fresh.filter(({ topic }) => !known.has(topic))
  const fromStart = await broker.listOffsets(added, 'earliest')
  return [...fromStart, ...(await broker.listOffsets(others, 'latest'))]
}

function byPartition(offsets: Offsets): Map<PartitionKey, number> {
  return new Map(offsets.map((o) => [partitionKey(o.topic, o.partition), o.offset]))
}

/** All tasks of a process that has every partition: the in-process split. */
export function allTasks(settings: EngineSettings, affinity: Affinity): TaskRef[] {
  const tasks: TaskRef[] = []
  for (const { id, global } of settings.plan.subtopologies) {
    if (global) continue
    for (let partition = 0; partition < affinity.tasks(id); partition++) tasks.push({ subtopology: id, partition })
  }
  return tasks
}

/** The tasks that go with partitions, where sub-topologies exchange records through topics. */
export function tasksOf(
  settings: EngineSettings,
  topics: ResolvedTopics,
  partitions: readonly TopicPartition[],
): TaskRef[] {
  const seen = new Map<string, TaskRef>()
  for (const { topic, partition } of partitions) {
    settings.plan.sources.forEach((source, index) => {
      if (source.kind === 'global' || !(topics.bySource[index] ?? []).includes(topic)) return
      const { subtopology } = source
      seen.set(`${subtopology}_${partition}`, { subtopology, partition })
    })
  }
  return [...seen.values()]
}

/** Where sub-topologies exchange records through topics: these tasks, and how far each had come at its last commit. */
export function startingTasks(
  settings: EngineSettings,
  topics: ResolvedTopics,
  tasks: readonly TaskRef[],
  { partitions }: GroupPosition,
): readonly StartingTask[] {
  if (settings.split === 'in-process') return tasks
  const reached = new Map<string, number>()
  for (const at of partitions) {
    for (const { subtopology, partition } of tasksOf(settings, topics, [at])) {
      const id = `${subtopology}_${partition}`
      reached.set(id, Math.max(at.watermark, reached.get(id) ?? unknown))
    }
  }
  return tasks.map((task) => ({ ...task, watermark: reached.get(`${task.subtopology}_${task.partition}`) ?? unknown }))
}

/** Every partition of every source, for a process that shares them with nobody. */
export function allPartitions(
  settings: EngineSettings,
  topics: Pick<ResolvedTopics, 'topics' | 'bySource'>,
): TopicPartition[] {
  const names = new Set<string>()
  for (const { index, kind } of settings.plan.sources) {
    if (kind !== 'global') for (const topic of topics.bySource[index] ?? []) names.add(topic)
  }
  return [...names].flatMap((topic) =>
    Array.from({ length: topics.topics.get(topic)?.partitions ?? 0 }, (_, partition) => ({ topic, partition })),
  )
}

/** End of every changelog partition behind the last commit; a source topic that serves as one ends where it was read to. */
export function changelogEndsOf(
  { changelogs }: ResolvedTopics,
  next: ReadonlyMap<string, number>,
  sources: ReadonlyArray<TopicPartition & { readonly committedOffset: number }>,
): Record<string, number> {
  const ends: Record<string, number> = {}
  for (const [store, { topic, partitions }] of changelogs) {
    for (let partition = 0; partition < partitions; partition++) {
      const offset = next.get(`${store}/${partition}`)
      if (offset !== undefined) ends[`${topic}/${partition}`] = offset
    }
  }
  for (const { topic, partition, committedOffset } of sources) {
    const id = `${topic}/${partition}`
    if (id in ends) ends[id] = committedOffset
  }
  return ends
}

/** The tasks of a process that has these partitions. */
export function tasksFor(
  settings: EngineSettings,
  topics: ResolvedTopics,
  affinity: Affinity,
  partitions: readonly TopicPartition[],
): TaskRef[] {
  return settings.split === 'in-process' ? allTasks(settings, affinity) : tasksOf(settings, topics, partitions)
}

export function notAmong(known: readonly string[], partitions: readonly TopicPartition[]): TopicPartition[] {
  return partitions.filter(({ topic, partition }) => !known.includes(partitionKey(topic, partition)))
}
