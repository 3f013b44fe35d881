/** What an embedding program and the command line hold of a running application. */
import type { LogLevel } from '../base/logger.ts'
import type { EmbeddedBroker } from '../broker/embedded/start.ts'
import type { BrokerPort } from '../broker/port.ts'
import type { ConfigInput } from '../config/config-input.ts'
import type { WhyAnswer } from '../view/diagnosis/answer.ts'
import type { EngineCommands, EngineView } from '../view/view.ts'
import type { HaStatus } from '../ha/shown/view.ts'
import type { HttpServer, IndicatorOptions } from '../http/index.ts'
import type { EmbeddedRegistry } from '../serde/registry/embedded-registry.ts'
import type { NewRecord, ReadOptions, RecordSerdes, TopicRecord } from './topics/records.ts'

/** What `startRuntime` starts, and how it is configured. */
export interface RuntimeOptions {
  /** Path or file URL of the module whose default export is the application. Every lane loads it by itself. */
  readonly application: string | URL
  /**
   * Configuration by dotted key (`{ 'engine.lanes.count': 2 }`) or nested. Stronger than the application's own
   * `config`, weaker than the file.
   */
  readonly config?: ConfigInput
  /** A YAML file with configuration. Weaker than the environment. Default: none. */
  readonly configFile?: string
  /** `key=value`, the strongest of all. Default: none. */
  readonly set?: readonly string[]
  /**
   * Environment variables (`ENGINE_LANES_COUNT=2`), for example `process.env`. Weaker than `set`. Default: none is
   * read.
   */
  readonly environment?: Readonly<Record<string, string | undefined>>
  /**
   * An embedded broker that several applications, or several pods of one, share in this process. It is not closed with
   * the runtime. It may be given only where `broker.bootstrap-servers` is `embedded:`.
   *
   * @example
   * const broker = await startEmbeddedBroker({ partitions: 4 })
   * const config = { 'ha.mode': 'hot-standby', 'runtime.http.enabled': false } as const
   * const settings = { application: './app.ts', broker, config }
   * const pods = await Promise.all(['a', 'b'].map((id) => startRuntime({ ...settings, set: [`ha.pod-id=${id}`] })))
   */
  readonly broker?: EmbeddedBroker
  /**
   * An embedded schema registry that several applications share in this process. Only where `schema-registry.url` is
   * `embedded`.
   */
  readonly registry?: EmbeddedRegistry
  /** Receives the lines of the log. Default: they are written to standard error. */
  readonly log?: (line: LogLine) => void
  /**
   * A logger of your own, of the shape that pino and its likes have: it gets the lines that `log.level` and `log.levels` let
   * through, as `logger.warn({ component: 'engine', …fields }, message)`, and decides further by its own level.
   *
   * @example
   * const own = { ...console, isLevelEnabled: (level: string) => level !== 'debug' }
   * await startRuntime({ application: './app.ts', logger: own })
   */
  readonly logger?: OwnLogger
}

/** A logger of the application's own, as pino has it. */
export type OwnLogger = {
  readonly [level in LogLevel]: (fields: Record<string, unknown>, message: string) => void
} & {
  /** Asked before each line, where it is there. */
  readonly isLevelEnabled?: (level: string) => boolean
}

/** A line of the log. */
export interface LogLine {
  /** How grave it is; `log.level` says from which level on lines are written. */
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** The part of Millrace that writes it. */
  readonly component: string
  /** What happened, in a sentence. */
  readonly message: string
  /** Details for programs. */
  readonly fields?: Readonly<Record<string, unknown>>
}

/** A row of a store. */
export interface StoreEntry<K, V> {
  /** The key; of window and session stores without its window. */
  readonly key: K
  /** The value. */
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
 * committed does not show. Every call rejects with `STORE_UNAVAILABLE` while the state is restored, and when a lane
 * does not answer within ten seconds; with `USAGE` where the kind of store does not know the question. With several
 * processes each has the rows of its own partitions. `limit` bounds the rows of an answer; default 10,000.
 */
export interface StoreReader<K, V> {
  /** Key-value and versioned stores: the value of a key. */
  get(key: K): Promise<V | undefined>
  /** Key-value stores: keys between two, both included, by the order of their bytes. */
  range(from?: K, to?: K, limit?: number): Promise<Array<StoreEntry<K, V>>>
  /** All rows, `limit` of them at the most. */
  all(limit?: number): Promise<Array<StoreEntry<K, V>>>
  /** Windows of a key that start in [from, to], epoch milliseconds; sessions that meet that span. */
  fetch(key: K, from: number, to: number, limit?: number): Promise<Array<StoreEntry<K, V>>>
  /**
   * Window stores: the windows of all keys that start in [from, to], epoch milliseconds. Session stores: the sessions
   * that meet that span.
   */
  fetchAll(from: number, to: number, limit?: number): Promise<Array<StoreEntry<K, V>>>
  /** About how many rows there are, in all lanes. */
  approximateEntries(): Promise<number>
}

/** A running application. */
export interface Runtime {
  /**
   * With `ha.mode: hot-standby`: what this pod knows of all pods; null without, and before the coordinator is there.
   */
  readonly ha: { status(): HaStatus | null } | null
  /**
   * What is known of the engine at this moment: state, positions, watermarks, commits. It costs the engine nothing to
   * be asked.
   */
  readonly view: EngineView
  /** What the engine can be told: `pause()` and `unpause()`. */
  readonly commands: EngineCommands
  /** What `GET /why` answers: why nothing moves, since when, and what to do. */
  why(): WhyAnswer
  /** A client of the broker the engine runs on, for what `produce` and `read` have no way for. */
  readonly broker: BrokerPort
  /**
   * Writes records to a topic, encoded as the application reads it (or writes it), or by the serdes given. It resolves with
   * how many there were once the broker has stored all of them; each once, also where an answer of the broker was lost.
   * Records of one partition keep their order, in one call and from call to call. On the embedded broker a topic that does
   * not exist is made. The records may come from an asynchronous generator: no more than half a megabyte is held, or one record.
   *
   * @throws EngineError `USAGE` where the serdes of the topic are not known, or refuse a record, or one is larger than
   * the topic takes; `TOPIC_MISSING` where a cluster has no such topic. Errors of the broker come as they are.
   * @example
   * await runtime.produce('orders', [{ key: 'ann', value: { amount: 5 }, timestamp: Date.now() }])
   */
  produce<K = unknown, V = unknown>(
    topic: string,
    records: Iterable<NewRecord<K, V>> | AsyncIterable<NewRecord<K, V>>,
    serdes?: RecordSerdes<K, V>,
  ): Promise<number>
  /**
   * The committed records of a topic, decoded as the application reads it (or writes it), or by the serdes given. Records of one
   * partition come in the order of their offsets. It goes on until `break`, the end that `until` asks for, the signal, or
   * the stop of the runtime. A topic that does not exist yet is waited for.
   *
   * @throws EngineError `USAGE` where the serdes of the topic are not known; `DECODE_FAILED` at a record that they cannot
   * read; `BROKER_UNREACHABLE` where it is read to its end, and the broker does not show all of it for some seconds.
   * @example
   * for await (const { key, value } of runtime.read<string, number>('totals', { until: 'end' })) console.log(key, value)
   */
  read<K = unknown, V = unknown>(
    topic: string,
    options?: ReadOptions<K, V>,
  ): AsyncGenerator<TopicRecord<K, V>, void, undefined>
  /** Address of the HTTP interface, undefined where it is disabled. */
  readonly url: string | undefined
  /**
   * The HTTP interface, to be mounted in a server of your own. It works with `runtime.http.enabled: false`, too.
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
  /**
   * Metrics of your own, appended to every scrape in the text format. One whose name is taken is left out and logged.
   */
  readonly metrics: { append(source: () => string | Promise<string>): () => void }
  /**
   * Resolves when the serdes of `view.topology()` may be used in this thread: at once where none of them uses a schema
   * registry, else when their schemas are known.
   */
  readonly serdesReady: Promise<void>
  /**
   * Resolves once every source topic is read to its end, all that follows is processed, every window that the input
   * closes is emitted, and all is committed. The input counts as ended then: event time goes on to the newest record of all
   * partitions, less the out-of-orderness that its source allows, whichever of them are silent or behind. What is written
   * later and is older than that may come too late.
   *
   * @throws EngineError `USAGE` where the runtime was stopped before. Where the engine has failed, or fails meanwhile, the
   * error has the code of the failure: what is left is not processed then.
   */
  untilIdle(): Promise<void>
  /**
   * The rows of a store, by its name in the topology.
   *
   * @throws EngineError `USAGE` when there is no such store.
   * @example
   * const count = await runtime.store<string, number>('late-by-origin').get('SFO')
   */
  store<K, V>(name: string): StoreReader<K, V>
  /**
   * The first part of a stop, for whoever reads the outputs to their end before `stop` closes the broker: readiness goes
   * DOWN at once, nothing more is let in, and what was is processed and committed. Resolves when that is so, or after
   * `withinMs`.
   */
  drain(withinMs: number): Promise<void>
  /** Drains, commits and closes. Resolves with the exit code. Called again, it ends at once. */
  stop(): Promise<number>
  /**
   * Ends at once, as the loss of the machine would: nothing is drained, committed or handed over. It is meant for
   * tests.
   */
  kill(): Promise<void>
  /** Resolves with the exit code when the runtime has ended by itself or by `stop`. */
  readonly ended: Promise<number>
}
