/** What lanes are told before records come: topics, where records go, and the rows of global tables. */
import { EngineError } from '../errors.ts'
import type { Affinity } from '../lanes/affinity.ts'
import type { EngineOptions } from './engine-core.ts'
import type { Restorer } from './restorer.ts'
import type { EngineSettings } from './settings.ts'
import type { ResolvedTopics } from './topics.ts'

interface Partitioned {
  readonly topic: string
  readonly partitions: number
}

export async function configureLanes(
  options: EngineOptions,
  run: number,
  topics: ResolvedTopics,
  affinity: Affinity,
): Promise<void> {
  const { settings, send } = options
  const sinks = await resolved(options, settings.sinkTopics)
  const originTopics = [...new Set(topics.bySource.flat())]
  for (let lane = 0; lane < settings.lanes; lane++) {
    send(lane, { type: 'configure', run, affinity: affinity.toJSON(), originTopics }, [])
    send(lane, { type: 'topics', topics: [...sinks, ...topics.boundaries] }, [])
  }
}

/** A lane met a topic that nobody named before. */
export async function resolveSinks(options: EngineOptions, lane: number, names: readonly string[]): Promise<void> {
  const topics = await resolved(options, names)
  options.send(lane, { type: 'topics', topics }, [])
}

/** Partition counts of topics to write to; what is missing is created where that is the engine's to do. */
async function resolved(options: EngineOptions, names: readonly string[]): Promise<Partitioned[]> {
  const known = await options.broker.topics([...names])
  const missing = names.filter((topic) => !known.some((k) => k.topic === topic))
  const created = missing.length > 0 ? await createSinks(options, missing) : []
  return [...known, ...created].map(({ topic, partitions }) => ({ topic, partitions }))
}

async function createSinks({ settings, broker }: EngineOptions, missing: readonly string[]): Promise<Partitioned[]> {
  const { deadLetterTopic } = settings
  const refused = broker.kind === 'kafka' ? missing.filter((topic) => topic !== deadLetterTopic) : []
  if (refused.length > 0) {
    throw new EngineError(
      'TOPIC_MISSING',
      `the output topic ${refused.join(', ')} does not exist on the broker: create it first`,
    )
  }
  await broker.createTopics(missing.map((topic) => ({ topic, partitions: settings.defaultPartitions })))
  return broker.topics(missing)
}

/** Fills every lane's global tables; `follow` is told where each of their topics goes on. */
export async function loadGlobals(
  settings: EngineSettings,
  restorer: Restorer,
  topics: ResolvedTopics,
  follow: (source: number, topic: string, positions: ReadonlyMap<number, number>) => void,
): Promise<void> {
  for (const source of settings.plan.sources) {
    if (source.kind !== 'global') continue
    for (const topic of topics.bySource[source.index] ?? []) {
      const partitions = topics.topics.get(topic)?.partitions ?? 0
      const positions = await restorer.loadGlobal(source.index, topic, partitions, settings.lanes)
      follow(source.index, topic, positions)
    }
  }
}
