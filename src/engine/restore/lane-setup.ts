/** What lanes are told before records come: topics, where records go, and the rows of global tables. */
import { EngineError } from '../../base/errors.ts'
import type { Affinity } from '../../topology/affinity.ts'
import type { EngineOptions } from '../engine-options.ts'
import type { Restorer } from './restorer.ts'
import { foundLimits } from '../commit/topic-limits.ts'
import type { Run } from '../run.ts'
import type { EngineSettings } from '../settings.ts'
import { createOwn, timeOfData } from '../group/own-topics.ts'
import type { ResolvedTopics } from '../group/topics.ts'
import { type OutputTopic, usualMaxBatchBytes } from '../../lanes/outputs.ts'
import { BrokerError, type BrokerPort, type TopicInfo } from '../../broker/port.ts'

/** What the lanes write to. */
export async function outputTopics(options: EngineOptions, topics: ResolvedTopics): Promise<OutputTopic[]> {
  const sinks = await resolved(options, options.settings.sinkTopics)
  return [...sinks, ...(await withLimits(options.broker, topics.boundaries))]
}

export function configureLanes(
  { settings, send }: EngineOptions,
  run: Run,
  topics: ResolvedTopics,
  affinity: Affinity,
  outputs: readonly OutputTopic[],
): void {
  const names = [...new Set(topics.bySource.flat())]
  const origins = { names, topicIds: names.map((name) => topics.topics.get(name)?.topicId ?? '') }
  for (let lane = 0; lane < settings.lanes; lane++) {
    send(lane, { type: 'configure', run: run.number, affinity: affinity.toJSON(), origins }, [])
    send(lane, { type: 'topics', topics: [...outputs] }, [])
  }
}

/** A lane met a topic that nobody named before. */
export async function resolveSinks(options: EngineOptions, lane: number, names: readonly string[]): Promise<void> {
  const topics = await resolved(options, names)
  options.send(lane, { type: 'topics', topics }, [])
}

/** Topics to write to; what is missing is created where that is the engine's to do. */
async function resolved(options: EngineOptions, names: readonly string[]): Promise<OutputTopic[]> {
  const known = await options.broker.topics([...names])
  const missing = names.filter((topic) => !known.some((k) => k.topic === topic))
  const created = missing.length > 0 ? await createSinks(options, missing) : []
  return withLimits(options.broker, [...known, ...created])
}

function withLimits(broker: BrokerPort, topics: readonly TopicInfo[]): Promise<OutputTopic[]> {
  return Promise.all(
    topics.map(async ({ topic, partitions }) => ({ topic, partitions, ...(await limitsOf(broker, topic)) })),
  )
}

/** Who may not read the settings of a topic may still write to it; what it does not take is found out then. */
async function limitsOf(broker: BrokerPort, topic: string): Promise<Omit<OutputTopic, 'topic' | 'partitions'>> {
  try {
    const config = await broker.topicConfig(topic)
    const limit = Number(config['max.message.bytes'])
    const compacts = config['cleanup.policy']?.split(',').includes('compact') ?? false
    // Settings that have changed since, and brokers that refuse what these allow, are found out as well.
    const { maxBatchBytes, mostAheadMs, mostBehindMs } = foundLimits(broker, topic)
    const times = timesIn(config)
    return {
      maxBatchBytes: Math.min(maxBatchBytes, limit > 0 ? limit : usualMaxBatchBytes),
      needsKey: compacts && broker.kind === 'kafka',
      mostAheadMs: Math.min(mostAheadMs, times.mostAheadMs),
      mostBehindMs: Math.min(mostBehindMs, times.mostBehindMs),
    }
  } catch (error) {
    if (!(error instanceof BrokerError && error.errorClass === 'config')) throw error
    return { ...foundLimits(broker, topic), isUnread: true }
  }
}

/** Kafka refuses event times too far from its clock, where it does not put its own time in their place. */
function timesIn(
  config: Readonly<Record<string, string>>,
): Required<Pick<OutputTopic, 'mostAheadMs' | 'mostBehindMs'>> {
  const none = Number.POSITIVE_INFINITY
  if (config['message.timestamp.type'] === 'LogAppendTime') return { mostAheadMs: none, mostBehindMs: none }
  // Before Kafka 4 one setting may hold for both sides.
  const most = (side: 'after' | 'before' | 'difference'): number =>
    Number(config[`message.timestamp.${side}.max.ms`] ?? none)
  return {
    mostAheadMs: Math.min(most('after'), most('difference')),
    mostBehindMs: Math.min(most('before'), most('difference')),
  }
}

async function createSinks({ settings, broker }: EngineOptions, missing: readonly string[]): Promise<TopicInfo[]> {
  const { deadLetterTopic } = settings
  const refused = broker.kind === 'kafka' ? missing.filter((topic) => topic !== deadLetterTopic) : []
  if (refused.length > 0) {
    throw new EngineError(
      'TOPIC_MISSING',
      refused.length === 1
        ? `the output topic ${refused[0]} does not exist on the broker: create it first`
        : `the output topics ${refused.join(', ')} do not exist on the broker: create them first`,
    )
  }
  const specs = missing.map((topic) => ({ topic, partitions: settings.defaultPartitions }))
  const [letters, others] = [true, false].map((own) => specs.filter(({ topic }) => (topic === deadLetterTopic) === own))
  if (others?.length) await broker.createTopics(others)
  // Letters have the times of the records that they are of.
  for (const spec of letters ?? []) await createOwn(broker, [{ ...spec, config: timeOfData }])
  return broker.topics(missing)
}

/** Fills every lane's global tables; `follow` is told where each of their topics goes on. */
export async function loadGlobals(
  settings: EngineSettings,
  restorer: Restorer,
  run: Run,
  topics: ResolvedTopics,
  follow: (source: number, topic: string, positions: ReadonlyMap<number, number>) => void,
): Promise<void> {
  for (const source of settings.plan.sources) {
    if (source.kind !== 'global') continue
    for (const topic of topics.bySource[source.index] ?? []) {
      const partitions = topics.topics.get(topic)?.partitions ?? 0
      const positions = await restorer.loadGlobal(run, source.index, topic, partitions, settings.lanes)
      follow(source.index, topic, positions)
    }
  }
}
