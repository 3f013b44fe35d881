/** Global tables of a run: filled once, then kept up to date. A standby has them before it is needed. */
import type { EngineOptions } from '../engine-options.ts'
import { followGlobalTopic } from './global-follower.ts'
import { loadGlobals } from './lane-setup.ts'
import type { Restorer } from './restorer.ts'
import type { ResolvedTopics } from '../group/topics.ts'
import type { Run } from '../run.ts'

export interface GlobalTablesHost {
  ended(): boolean
  failed(error: unknown): void
}

export class GlobalTables {
  readonly #o: EngineOptions
  readonly #restorer: Restorer
  readonly #host: GlobalTablesHost
  /** Run in which the lanes have them: a reset takes them away. */
  #loadedIn: Run | undefined

  constructor(options: EngineOptions, restorer: Restorer, host: GlobalTablesHost) {
    this.#o = options
    this.#restorer = restorer
    this.#host = host
  }

  async load(run: Run, topics: ResolvedTopics): Promise<void> {
    const { settings } = this.#o
    const { ended, failed } = this.#host
    if (this.#loadedIn === run) return
    const found: Array<{ source: number; topic: string; positions: ReadonlyMap<number, number> }> = []
    await loadGlobals(settings, this.#restorer, run, topics, (source, topic, positions) =>
      found.push({ source, topic, positions }),
    )
    if (run.isOver) return
    this.#loadedIn = run
    for (const table of found) {
      const topicId = topics.topics.get(table.topic)?.topicId ?? ''
      followGlobalTopic(this.#o, { ...table, topicId, run, closed: ended }).catch((error) => {
        if (!run.isOver) failed(error)
      })
    }
  }
}
