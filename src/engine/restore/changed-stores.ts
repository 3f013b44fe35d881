/**
 * What a changed application makes of its stores although all of them can be read: those that begin empty behind what was read,
 * those that come back, and those that are left out. No row tells of it, so the start does.
 */
import { type PartitionKey, partitionKey } from '../../base/ids.ts'
import { EngineError } from '../../base/errors.ts'
import type { BrokerPort, CommittedOffset } from '../../broker/port.ts'
import { keptOnlyNow } from '../../topology/changes/diff.ts'
import type { StorePlan } from '../../topology/plan.ts'
import { topicsAbove } from '../../topology/topics-above.ts'
import { digitsOf, type StoreMark } from '../commit/state-marks.ts'
import { changelogOf, type ResolvedTopics } from '../group/topics.ts'
import type { EngineSettings } from '../settings.ts'

/**
 * A sentence for each, for the log. Refuses a table that begins empty although its topic was read: each join would find nothing,
 * and whoever adds a join to a table does not expect that.
 *
 * @throws EngineError `STATE_CHANGED`
 */
export async function changedStores(
  settings: EngineSettings,
  broker: BrokerPort,
  topics: ResolvedTopics,
  committed: readonly CommittedOffset[],
  before: readonly StoreMark[],
): Promise<string[]> {
  const { plan } = settings
  // A first start has nothing behind it.
  if (!committed.some(({ offset }) => offset >= 0)) return []
  const marks = new Map(before.map((mark) => [mark.name, mark]))
  const now = new Set(plan.stores.map(({ name }) => name))
  const left = before.filter(({ name, gone }) => !gone && !now.has(name))
  const back = plan.stores.filter(({ name }) => marks.get(name)?.gone)
  const unknown = plan.stores.filter(({ name, changelogTopic }) => changelogTopic === undefined && !marks.has(name))
  const moved = plan.stores.filter(({ name, around }) => {
    const was = marks.get(name)?.around
    return around !== undefined && was !== undefined && was !== digitsOf(around)
  })
  return [
    ...moved.map(({ name, around }) => {
      const what = `the name of the store ${name} is generated, and what is around it has changed since the last commit (now ${around})`
      return `${what}: where that is another operator than before, it goes on with the rows of that one. Name your stores`
    }),
    ...(await begunEmpty(settings, broker, topics, committed, unknown)),
    ...back.map(({ name }) => {
      const what = `the store ${name} was left out for a while and is there again, with the rows that it had then`
      return `${what}: what was read meanwhile is not in them`
    }),
    ...left.map(({ name, changelogTopic }) => {
      const topic = changelogTopic ?? `${settings.applicationId}-${name}-changelog`
      return `the store ${name} is left out: its rows stay in ${topic}, unused, and what it held to be told later is not told`
    }),
  ]
}

async function begunEmpty(
  settings: EngineSettings,
  broker: BrokerPort,
  topics: ResolvedTopics,
  committed: readonly CommittedOffset[],
  unknown: readonly StorePlan[],
): Promise<string[]> {
  // Commits cannot remember any number of stores. One that they have left out has rows.
  const empty = await withoutRows(broker, topics, unknown)
  if (empty.length === 0) return []
  const read = await topicsRead(broker, committed)
  const sentences: string[] = []
  for (const store of empty) {
    const { name, sourceTopic } = store
    if (sourceTopic !== undefined && read.has(sourceTopic)) {
      if (settings.lostChangelogs !== 'accept') throw tableBeginsEmpty(settings, store, sourceTopic)
      sentences.push(keptOnlyNow(name, sourceTopic))
      continue
    }
    const feeding = [...topicsAbove(settings.plan, topics.bySource, store.subtopology)]
      .filter((topic) => read.has(topic))
      .sort()
    if (sourceTopic !== undefined || feeding.length === 0) continue
    const what = `the store ${name} is new and begins empty`
    sentences.push(`${what}: what was read of ${feeding.join(', ')} before this start does not come again`)
  }
  return sentences
}

async function withoutRows(
  broker: BrokerPort,
  topics: ResolvedTopics,
  stores: readonly StorePlan[],
): Promise<StorePlan[]> {
  const partitions = stores.flatMap(({ name }) => {
    const info = topics.changelogs.get(name)
    if (info === undefined) return []
    return Array.from({ length: info.partitions }, (_, partition) => ({ topic: info.topic, partition }))
  })
  if (partitions.length === 0) return []
  const written = new Set<string>()
  for (const { topic, offset } of await broker.listOffsets(partitions, 'latest')) if (offset > 0) written.add(topic)
  return stores.filter(({ name }) => {
    const topic = topics.changelogs.get(name)?.topic
    return topic !== undefined && !written.has(topic)
  })
}

/** Topics of which the group has records behind it that are still there. */
async function topicsRead(broker: BrokerPort, committed: readonly CommittedOffset[]): Promise<ReadonlySet<string>> {
  const begun = committed.filter(({ offset }) => offset > 0)
  if (begun.length === 0) return new Set()
  const first = new Map<PartitionKey, number>()
  for (const { topic, partition, offset } of await broker.listOffsets(begun, 'earliest'))
    first.set(partitionKey(topic, partition), offset)
  const read = begun.filter(({ topic, partition, offset }) => offset > (first.get(partitionKey(topic, partition)) ?? 0))
  return new Set(read.map(({ topic }) => topic))
}

function tableBeginsEmpty(settings: EngineSettings, store: StorePlan, topic: string): EngineError {
  const { applicationId, plan } = settings
  const source = plan.sources.find(({ kind, topics }) => kind === 'topics' && topics.includes(topic))
  const mayShare = store.kind !== 'versioned' && source?.extractsTimestamp !== true
  const share = mayShare ? `\`topology.optimization: all\` takes the rows from ${topic} itself; ` : ''
  return new EngineError(
    'STATE_CHANGED',
    `The application ${applicationId} does not fit what it has read: ${keptOnlyNow(store.name, topic)}. ` +
      'Nothing was read or changed; the application as it was goes on from there. ' +
      `Ways out: ${share}begin anew, with the group ${applicationId} and its ` +
      'changelogs deleted, or another applicationId; `engine.state.lost-changelogs: accept` begins with the empty table ' +
      `(${changelogOf(settings, store)}), which gets the rows that are written from now on.`,
  )
}
