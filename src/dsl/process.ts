/** The user's own processors: state, timers, any number of results. */
import type { Duration } from '../base/duration.ts'
import type { Logger } from '../base/logger.ts'
import { bytes } from '../serde/primitive.ts'
import type { Headers } from '../broker/wire/headers.ts'
import { type Names, shownInstead } from '../topology/check-given.ts'
import { GraphNode } from '../topology/graph.ts'
import type { CallSpec, RecordView } from '../topology/operator-spec.ts'
import { invalid, type PhysicalBuilder, type StoreDefinition } from '../topology/physical.ts'
import type { AnySerde } from './build.ts'
import { ownKeySerde } from './build.ts'
import { following, repartitioned, type StreamParts } from './handle.ts'
import { type CallSettings, callsOf } from './retry.ts'
import { declarations, definitionOf, type StoreDeclaration } from './stores.ts'
import { type Awaitable, groupOptions, type Ordered, type WithSerdes } from './types.ts'

/** What a forwarded record does not take from the record at hand. */
export interface ForwardOptions {
  /** Epoch milliseconds, taken down to whole ones. Default: that of the record at hand; in a timer, the time it fires at. */
  readonly timestamp?: number
  /** Default: those of the record at hand; none in a timer. */
  readonly headers?: Headers
}

/** What `context.schedule` returns. */
export interface Cancellable {
  /** Ends the firings. Once more does nothing. */
  cancel(): void
}

/** Timers by key: at most one for each key. They are kept in the state, hence there again after a restart. */
export interface KeyTimers<K> {
  /**
   * Calls `onTimer` of the processor once event time reaches `atMs`, epoch milliseconds. Replaces the timer of the key.
   *
   * @throws EngineError `PROCESSING_FAILED` where `atMs` is no number, or one beyond `Number.MAX_SAFE_INTEGER`.
   */
  set(key: K, atMs: number): void
  /** Removes the timer of the key, if there is one. */
  delete(key: K): void
  /** When the timer of the key is due, epoch milliseconds; undefined without one. */
  get(key: K): number | undefined
}

interface CommonContext<K> {
  /** The id given to `defineApp`. */
  readonly applicationId: string
  /** The partition of the task that the processor belongs to. */
  readonly partition: number
  /**
   * Writes to the log, under the component `app`, with the node and, within `process`, the record at hand.
   *
   * @example
   * orders.processValues<Order>((context) => (order) => {
   *   if (order.amount > 10_000) context.logger.warn({ order: order.id }, 'a large order')
   *   return context.forward(order)
   * })
   */
  readonly logger: Logger
  /**
   * A store: one declared in the processor's options, or by its name one of those, the store of a table, or a global
   * one. The factory and `process` may call it; to call it once, in the factory, is cheaper.
   *
   * @throws EngineError `TOPOLOGY_INVALID` when the options of the processor do not name it.
   */
  store<S>(store: StoreDeclaration<S>): S
  store<S>(name: string): S
  /**
   * Calls `fn` every `interval`: of event time (first with the first record), or of the wall clock. Missed firings are
   * skipped: however far event time moves at once, it fires once, so when and how often it does depends on how records come,
   * and on the number of lanes. What has to happen at a certain time is for `timers`, by key. It is not kept over a restart:
   * call it whenever the processor is made. While the application is paused it is not called.
   *
   * `fn` never overlaps with records and timers of its processor, also where it gives a promise: it begins when no call of
   * the processor is under way, and what comes until its promise is kept waits. So no call may wait for `fn`.
   *
   * @throws EngineError `TOPOLOGY_INVALID` when the interval is malformed or 0, or there is no such clock.
   */
  schedule(interval: Duration, clock: 'event-time' | 'wall-clock', fn: (atMs: number) => Awaitable<void>): Cancellable
  /**
   * Timers by key. Needs the option `timers: true`.
   *
   * @throws EngineError `TOPOLOGY_INVALID` at its first use without that option.
   */
  readonly timers: KeyTimers<K>
  /**
   * How far event time has come, epoch milliseconds: for a record up to itself, whatever else is under way, and for timers
   * in this task. -Infinity before a watermark is known.
   */
  streamTime(): number
  /** The wall clock of the engine, epoch milliseconds; in tests the one that the driver moves. */
  wallClock(): number
  /** Asks for a commit soon, instead of at the next interval. */
  requestCommit(): void
  /**
   * A number that is higher with every takeover between pods, and never lower after a restart. An outside system that
   * remembers the highest number it has seen, and refuses lower ones, is safe from a pod that does not know yet that it
   * was replaced. It is 0 in the test driver.
   *
   * @example
   * const ledger = { write: async (order: Order, fencingToken: number) => console.log(order.id, fencingToken) }
   * orders.processValues<Order>((context) => async (order) => {
   *   await ledger.write(order, context.fencingToken())
   * })
   */
  fencingToken(): number
}

/** What a processor of `stream.process` has to work with. */
export interface ProcessorContext<K, K2, V2> extends CommonContext<K> {
  /**
   * Sends a record on, under any key. Where an operator below is asynchronous the result is a promise: await or return
   * it.
   */
  forward(key: K2, value: V2, options?: ForwardOptions): Awaitable<void>
}

/** What a processor of `stream.processValues` has to work with. */
export interface ValueProcessorContext<K, V2> extends CommonContext<K> {
  /** Sends a value on under the key of the record (or timer) at hand. A promise must be awaited or returned. */
  forward(value: V2, options?: ForwardOptions): Awaitable<void>
}

/** A processor of your own: one for each task, used by one lane. */
export interface Processor<K, V> {
  /** Called for each record. While its promise is open the next record of the same key waits. */
  process(value: V, key: K, record: RecordView<K, V>): Awaitable<void>
  /** Called when a timer of `context.timers` is due; `atMs` is the time it was set for. */
  onTimer?(key: K, atMs: number): Awaitable<void>
  /** Called when the task leaves the lane. What it forwards is lost. */
  close?(): void
}

/** Makes a processor; called once for each task. Returns the processor, or just its `process` function. */
export type ProcessorFactory<K, V, K2, V2> = (
  context: ProcessorContext<K, K2, V2>,
) => Processor<K, V> | Processor<K, V>['process']
/** As `ProcessorFactory`, for `stream.processValues`. */
export type ValueProcessorFactory<K, V, V2> = (
  context: ValueProcessorContext<K, V2>,
) => Processor<K, V> | Processor<K, V>['process']

/**
 * Options of `stream.process` and `stream.processValues`. `concurrency` and `rate` bound the calls of `process`, not those
 * of timers.
 *
 * @example
 * const books = async (order: Order) => void (await fetch('http://books.example/', { method: 'POST', body: order.id }))
 * orders.processValues<Order>(() => books, { concurrency: 8, rate: '50/s' })
 */
export interface ProcessOptions<K2 = unknown, V2 = unknown>
  extends WithSerdes<K2, V2>,
    Ordered,
    Pick<CallSettings, 'concurrency' | 'rate'> {
  /**
   * The stores it uses: declarations, or names of stores declared elsewhere, those of tables included. Default: none.
   */
  readonly stores?: ReadonlyArray<StoreDeclaration<unknown> | string>
  /** True: `context.timers` may be used, which keeps them in a store of its own. Default: false. */
  readonly timers?: boolean
  /** The names of global tables and global stores it reads. Default: none. */
  readonly globalStores?: readonly string[]
  /**
   * Whether the stream is repartitioned before it, where keys may have changed since the last repartition. False leaves
   * records where they are: state and timers of one key are then in several places, each with a part of it. Default: true
   * with stores or timers, as they belong to keys; false without.
   */
  readonly repartition?: boolean
}
const processOptions: Names<ProcessOptions> = {
  ...groupOptions,
  concurrency: true,
  rate: true,
  stores: true,
  timers: true,
  globalStores: true,
  repartition: true,
}

function boundlessCalls(method: string, name: string, options: ProcessOptions | undefined): CallSpec | undefined {
  const { timeout, breaker } = (options ?? {}) as CallSettings
  if (timeout !== undefined || breaker !== undefined) {
    throw invalid(
      `the processor ${name} has a timeout or a breaker; what it has written and sent until then cannot be taken back: ` +
        'bound the call of the service within it, with `withRetry` and an AbortSignal',
    )
  }
  return callsOf(method, options, processOptions)
}

function storesOf(name: string, given: unknown): { readonly own: StoreDefinition[]; readonly byName: string[] } {
  const own: StoreDefinition[] = []
  const byName: string[] = []
  for (const store of listOf(name, 'stores', given)) {
    const definition = definitionOf(store)
    if (definition !== undefined) own.push(definition)
    else if (typeof store === 'string') byName.push(store)
    else {
      const what = `the processor ${name} has ${shownInstead(store)} among its stores`
      throw invalid(`${what}; give ${declarations}, or the name of a store that is declared elsewhere`)
    }
  }
  return { own, byName }
}

function refuseUnnamed(name: string, given: unknown): void {
  for (const store of listOf(name, 'globalStores', given)) {
    if (typeof store === 'string') continue
    const what = `the processor ${name} has ${shownInstead(store)} among its globalStores`
    throw invalid(`${what}; give names of global tables and global stores`)
  }
}

function listOf(name: string, option: string, given: unknown): readonly unknown[] {
  if (given === undefined || given === null) return []
  if (Array.isArray(given)) return given
  throw invalid(`the processor ${name} has ${shownInstead(given)} for its ${option}; give a list: { ${option}: […] }`)
}

/** `change`: what is known of its results. */
export function addProcess(
  above: StreamParts,
  factory: unknown,
  options: ProcessOptions | undefined,
  change: Partial<StreamParts>,
  fixedKey = false,
): StreamParts {
  const { build } = above
  // Only here does an explicit name use up no number in Kafka Streams.
  const name = options?.name ?? build.names.generate(fixedKey ? 'KSTREAM-PROCESSVALUES-' : 'KSTREAM-PROCESSOR-')
  if (typeof factory !== 'function')
    throw invalid(`the processor ${name} is made by ${shownInstead(factory)}; give a function that returns it`)
  const calls = boundlessCalls(fixedKey ? 'processValues' : 'process', name, options)
  const keeps = (options?.stores ?? []).length > 0 || options?.timers === true
  const parts = above.rekeyed && (options?.repartition ?? keeps) ? repartitioned(above, name, true) : above
  const { own, byName } = storesOf(name, options?.stores)
  refuseUnnamed(name, options?.globalStores)
  for (const definition of own) build.register(definition)
  const timers: StoreDefinition | undefined = options?.timers
    ? {
        name: `${name}-timers`,
        kind: 'key-value',
        keySerde: ownKeySerde(parts.key),
        valueSerde: bytes as AnySerde,
        timestamped: false,
        changelog: true,
      }
    : undefined
  const stores = [...own.map((definition) => definition.name), ...byName]
  const write = (builder: PhysicalBuilder, node: GraphNode): void => {
    builder.addProcessor(
      name,
      () => ({
        op: 'process',
        factory: factory as (context: never) => unknown,
        stores,
        fixedKey,
        timerStore: timers?.name,
        globalStores: options?.globalStores ?? [],
        calls,
      }),
      node.parentNames(),
    )
    for (const definition of own) builder.addStore(definition, name)
    for (const store of byName) {
      const registered = build.registered(store)
      if (registered) builder.addStore(registered, name)
      else builder.connect(name, store)
    }
    if (timers) builder.addStore(timers, name)
  }
  // As in Kafka Streams, repartitions below it are not merged, although it may have changed the key.
  const made = new GraphNode(name, { valueChanging: true, takesAsArrived: options?.order === 'arrival', write })
  return following(parts, build.graph.add(parts.node, made), change)
}
