/** Which source of the topology a topic belongs to, and the number by which records name the topic that they came from. */
import { topicSlot } from '../../base/counters.ts'
import type { EngineOptions } from '../engine-options.ts'
import type { ResolvedTopics } from '../group/topics.ts'
import type { Run } from '../run.ts'
import type { Route } from './dispatcher.ts'
import type { TimestampOf } from './partition-buffer.ts'

type Routing = Pick<Route, 'source' | 'subtopology' | 'carriesValue' | 'isChangelog' | 'originTopic' | 'counter'>

export class InputSources {
  /** Topics by the number that records carry: places stay what they are, for records under way name their topic by them. */
  readonly originTopics: string[] = []
  readonly #o: EngineOptions
  readonly #run: Run

  constructor(options: EngineOptions, run: Run) {
    this.#o = options
    this.#run = run
  }

  /** Gives numbers to topics that have none; lanes that know the others already are told. */
  name(topics: ResolvedTopics): void {
    const known = this.originTopics
    const first = known.length === 0
    const fresh = [...new Set(topics.bySource.flat())].filter((topic) => !known.includes(topic))
    known.push(...fresh)
    if (first || fresh.length === 0) return
    const { send, settings } = this.#o
    const origins = { names: [...known], topicIds: known.map((topic) => topics.topics.get(topic)?.topicId ?? '') }
    for (let lane = 0; lane < settings.lanes; lane++) {
      send(lane, { type: 'origins', run: this.#run.number, origins }, [])
    }
  }

  sourceOf(topic: string, topics: ResolvedTopics): number {
    const { sources } = this.#o.settings.plan
    return topics.bySource.findIndex((names, index) => names.includes(topic) && sources[index]?.kind !== 'global')
  }

  /** What dispatch is to know of it. */
  routing(source: number, topic: string): Routing {
    const { settings, layout, counters } = this.#o
    const { plan, deadLetterTopic } = settings
    const { subtopology = 0, carriesValue = true, kind } = plan.sources[source] ?? {}
    const isChangelog = plan.stores.some(({ changelogTopic }) => changelogTopic === topic)
    // Dead letters are records as they came.
    return {
      source,
      subtopology,
      carriesValue: carriesValue || deadLetterTopic !== null,
      isChangelog,
      originTopic: this.originTopics.indexOf(topic),
      counter: kind === 'topics' ? topicSlot(layout, counters, 'source', topic) : -1,
    }
  }

  /** How it is fetched: with the application's own function for event time, where it has one; tables behind streams. */
  reading(source: number, topic: string, partition: number): [timestampOf: TimestampOf | undefined, isLast: boolean] {
    const { plan } = this.#o.settings
    const extract = this.#o.extractors?.get(source)
    const timestampOf: TimestampOf | undefined = extract && ((cursor) => extract(cursor, topic, partition))
    return [timestampOf, plan.stores.some(({ sourceTopic }) => sourceTopic === topic)]
  }
}
