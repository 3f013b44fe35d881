/** Processors of the user's own: state, timers, any number of results. */
import type { Duration } from '../base/duration.ts'
import { bytes } from '../serde/primitive.ts'
import type { Headers } from '../wire/headers.ts'
import { GraphNode } from '../topology/graph.ts'
import type { RecordView } from '../topology/operator-spec.ts'
import type { PhysicalBuilder, StoreDefinition } from '../topology/physical.ts'
import type { AnySerde } from './build.ts'
import { ownKeySerde } from './build.ts'
import type { StreamParts } from './handle.ts'
import { definitionOf, type StoreDeclaration } from './stores.ts'
import type { Awaitable, WithSerdes } from './types.ts'

export interface ForwardOptions {
  /** Default: that of the record at hand; of a timer, the time it fires at. */
  readonly timestamp?: number
  /** Default: those of the record at hand; none in a timer. */
  readonly headers?: Headers
}

export interface Cancellable {
  cancel(): void
}

/** Timers by key: at most one a key, kept in the state and hence there again after a restart. */
export interface KeyTimers<K> {
  /** Calls `onTimer` of the processor once event time reaches `atMs`. Replaces the key's timer. */
  set(key: K, atMs: number): void
  delete(key: K): void
  /** When the key's timer is due. */
  get(key: K): number | undefined
}

interface CommonContext<K> {
  readonly applicationId: string
  readonly partition: number
  /** A store declared in the processor's options, or the store of a table or global table by name. */
  store<S>(store: StoreDeclaration<S>): S
  store<S>(name: string): S
  /**
   * Calls `fn` every `interval`: of event time (first with the first record), or of the wall clock. Firings that were
   * missed are skipped. Not kept over a restart: call it anew when the processor is made.
   */
  schedule(interval: Duration, clock: 'event-time' | 'wall-clock', fn: (atMs: number) => Awaitable<void>): Cancellable
  /** Needs the option `timers: true`. */
  readonly timers: KeyTimers<K>
  /** How far event time has come here, epoch milliseconds; -Infinity before the first record. */
  streamTime(): number
  /** The engine's wall clock, epoch milliseconds. */
  wallClock(): number
  /** Asks for a commit soon, rather than at the next interval. */
  requestCommit(): void
  /**
   * A number that is higher with every takeover between pods, and never lower after a restart. A system outside that
   * remembers the highest it has seen, and refuses lower ones, is safe from a pod that does not know yet that it was
   * replaced. 0 in the test driver.
   *
   * @example
   * const ledger = { write: async (order: Order, fencingToken: number) => console.log(order.id, fencingToken) }
   * orders.processValues<Order>((context) => async (order) => {
   *   await ledger.write(order, context.fencingToken())
   * })
   */
  fencingToken(): number
}

export interface ProcessorContext<K, K2, V2> extends CommonContext<K> {
  /** Sends a record on. Where an operator below is asynchronous the result is a promise: await or return it. */
  forward(key: K2, value: V2, options?: ForwardOptions): Awaitable<void>
}

export interface ValueProcessorContext<K, V2> extends CommonContext<K> {
  /** Sends a value on, under the key of the record (or timer) at hand. */
  forward(value: V2, options?: ForwardOptions): Awaitable<void>
}

export interface Processor<K, V> {
  process(value: V, key: K, record: RecordView<K, V>): Awaitable<void>
  /** A timer of `context.timers` is due. */
  onTimer?(key: K, atMs: number): Awaitable<void>
  close?(): void
}

/** Called once for each task; answers the processor, or just its `process` function. */
export type ProcessorFactory<K, V, K2, V2> = (
  context: ProcessorContext<K, K2, V2>,
) => Processor<K, V> | Processor<K, V>['process']
export type ValueProcessorFactory<K, V, V2> = (
  context: ValueProcessorContext<K, V2>,
) => Processor<K, V> | Processor<K, V>['process']

export interface ProcessOptions<K2 = unknown, V2 = unknown> extends WithSerdes<K2, V2> {
  /** Stores the processor uses: declarations, or names of stores declared elsewhere (also those of tables). */
  readonly stores?: ReadonlyArray<StoreDeclaration<unknown> | string>
  /** True: `context.timers` may be used; they are kept in a store of their own. */
  readonly timers?: boolean
  /** Names of global tables or stores it reads. */
  readonly globalStores?: readonly string[]
}

export function addProcessNode(
  parts: StreamParts,
  factory: unknown,
  options: ProcessOptions | undefined,
  fixedKey: boolean,
): GraphNode {
  const { build } = parts
  // Here alone the field's counter stands still for an explicit name.
  const name = options?.name ?? build.names.generate(fixedKey ? 'KSTREAM-PROCESSVALUES-' : 'KSTREAM-PROCESSOR-')
  const own: StoreDefinition[] = []
  const byName: string[] = []
  for (const store of options?.stores ?? []) {
    if (typeof store === 'string') {
      byName.push(store)
    } else {
      const definition = definitionOf(store)
      build.register(definition)
      own.push(definition)
    }
  }
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
  // Repartitions below it are not merged, as in Kafka Streams, also where it may have changed the key.
  return build.graph.add(parts.node, new GraphNode(name, { valueChanging: true, write }))
}
