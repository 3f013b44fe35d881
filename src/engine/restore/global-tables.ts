/** Global tables of a run: filled once, then kept up to date. A standby has them before it is needed. */
import type { EngineOptions } from '../engine-options.ts'
import { followGlobalTopic } from './global-follower.ts'
import { loadGlobals } from './lane-setup.ts'
import type { Restorer } from './restorer.ts'
import type { ResolvedTopics } from '../group/topics.ts'

export interface GlobalTablesHost {
  run(): number
  ended(): boolean
  failed(error: unknown): void
}

export class GlobalTables {
  readonly #o: EngineOptions
  readonly #restorer: Restorer
  readonly #host: GlobalTablesHost
  /** Run in which the lanes have them: a reset takes them away. */
  #loadedIn = -1

  constructor(options: EngineOptions, restorer: Restorer, host: GlobalTablesHost) {
    this.#o = options
    this.#restorer = restorer
    this.#host = host
  }

  async load(topics: ResolvedTopics): Promise<void> {
    const { settings } = this.#o
    const { run, ended, failed } = this.#host
    const began = run()
    if (this.#loadedIn === began) return
    const found: Array<{ source: number; topic: string; positions: ReadonlyMap<number, number> }> = []
    await loadGlobals(settings, this.#restorer, topics, (source, topic, positions) =>
      found.push({ source, topic, positions }),
    )
    if (run() !== began) return
    this.#loadedIn = began
    for (const table of found) followGlobalTopic(this.#o, { ...table, run, closed: ended }).catch(failed)
  }
}
