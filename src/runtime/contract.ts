/** What an embedding program and the command line hold of a running application. */
import type { EmbeddedBroker } from '../broker/embedded/start.ts'
import type { BrokerPort } from '../broker/port.ts'
import type { EngineCommands, EngineView } from '../engine/view.ts'
import type { HaStatus } from '../ha/view.ts'
import type { HttpServer, IndicatorOptions } from '../http/index.ts'

export interface RuntimeOptions {
  /** Path or file URL of the application's module: every lane loads it anew. */
  readonly application: string | URL
  /** Configuration by dotted key (`{ 'engine.lanes.count': 2 }`) or nested; over the file and under the environment. */
  readonly config?: Readonly<Record<string, unknown>>
  /** YAML file. */
  readonly configFile?: string
  /** `key=value`, strongest of all. */
  readonly set?: readonly string[]
  readonly environment?: Readonly<Record<string, string | undefined>>
  /**
   * An embedded broker that several applications, or several pods of one, share in this process. It is not closed with
   * the runtime. Only where `broker.bootstrap-servers` is `embedded:`.
   *
   * @example
   * const broker = await startEmbeddedBroker({ partitions: 4 })
   * const settings = { application: './app.ts', broker, config: { 'ha.mode': 'hot-standby', 'runtime.http.enabled': false } }
   * const pods = await Promise.all(['a', 'b'].map((id) => startRuntime({ ...settings, set: [`ha.pod-id=${id}`] })))
   */
  readonly broker?: EmbeddedBroker
  /** Where log lines go; default: standard error. */
  readonly log?: (line: LogLine) => void
}

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly component: string
  readonly message: string
  readonly fields?: Readonly<Record<string, unknown>>
}

/** A row of a store. */
export interface StoreEntry<K, V> {
  readonly key: K
  readonly value: V
  /** Event time of the row, epoch milliseconds: where the store keeps it. Versioned stores: valid from. */
  readonly timestamp?: number
  /** Window and session stores: the window's first instant, epoch milliseconds. */
  readonly start?: number
  /** The window's end: exclusive for tumbling and hopping windows, inclusive for sliding and session windows. */
  readonly end?: number
  /** Versioned stores: the instant from which another version holds; absent for the newest. */
  readonly validTo?: number
}

/**
 * Interactive queries: the committed rows of one store, while the application runs. What is processed and not yet
 * committed does not show. Every call rejects with `STORE_UNAVAILABLE` while the state is restored, and when a lane does
 * not answer within ten seconds; with `USAGE` where the kind of store does not know the question. With several processes
 * each has the rows of its own partitions. `limit` bounds the rows of an answer; default 10,000.
 */
export interface StoreReader<K, V> {
  /** Key-value and versioned stores: the value of a key. */
  get(key: K): Promise<V | undefined>
  /** Key-value stores: keys between two, both included, by the order of their bytes. */
  range(from?: K, to?: K, limit?: number): Promise<Array<StoreEntry<K, V>>>
  all(limit?: number): Promise<Array<StoreEntry<K, V>>>
  /** Windows of a key that start in [from, to], epoch milliseconds; sessions that meet that span. */
  fetch(key: K, from: number, to: number, limit?: number): Promise<Array<StoreEntry<K, V>>>
  fetchAll(from: number, to: number, limit?: number): Promise<Array<StoreEntry<K, V>>>
  approximateEntries(): Promise<number>
}

export interface Runtime {
  /** With `ha.mode: hot-standby`: what this pod knows of all pods; null without, and before the coordinator is there. */
  readonly ha: { status(): HaStatus | null } | null
  readonly view: EngineView
  readonly commands: EngineCommands
  /** A client of the broker the engine runs on (feeding, printing, tests). */
  readonly broker: BrokerPort
  /** Address of the HTTP interface, undefined where it is disabled. */
  readonly url: string | undefined
  /**
   * The HTTP interface for a server of your own: mount it where requests for it come in. Works also with
   * `runtime.http.enabled: false`.
   *
   * @example
   * createServer((request, response) => void runtime.handler(request, response)).listen(3000)
   */
  readonly handler: HttpServer['handler']
  /**
   * Health indicators of your own, shown beside the engine's. The check is called by the clock, never by a probe.
   *
   * @example
   * const remove = runtime.indicators.register({ name: 'database', check: async () => ({ up: await ping() }) })
   */
  readonly indicators: { register(options: IndicatorOptions): () => void }
  /** Metrics of your own, appended to every scrape in the text format; a name that is taken is left out and logged. */
  readonly metrics: { append(source: () => string | Promise<string>): () => void }
  /**
   * Resolves once every source topic is read to its end, all that follows is processed, every window that the input
   * closes is emitted, and all is committed.
   */
  untilIdle(): Promise<void>
  /**
   * The rows of a store, by the name it has in the topology.
   *
   * @throws EngineError `USAGE` when there is no such store.
   * @example
   * const count = await runtime.store<string, number>('late-by-origin').get('SFO')
   */
  store<K, V>(name: string): StoreReader<K, V>
  /** Drains, commits and closes; resolves with the exit code. Again: ends at once. */
  stop(): Promise<number>
  /**
   * Ends at once, as the loss of the machine would: nothing is drained, committed or handed over. For tests of what
   * happens then.
   */
  kill(): Promise<void>
  /** Resolves with the exit code when the runtime has ended by itself or by `stop`. */
  readonly ended: Promise<number>
}
