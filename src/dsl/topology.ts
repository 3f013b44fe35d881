/** What an application's `build` function receives: where every stream and table begins. */
import type { Duration } from '../base/duration.ts'
import type { Serde } from '../serde/serde.ts'
import type {
  CompiledTopology,
  ScheduledRecord,
  ScheduledTick,
  TimestampExtractor,
  WatermarkOptions,
} from '../topology/compiled.ts'
import { cronFault } from '../time/schedule.ts'
import { checkOptions, type Names, shownInstead } from '../topology/check-given.ts'
import { type CompileOptions, compileGraph } from '../topology/compile.ts'
import { GraphNode } from '../topology/graph.ts'
import {
  invalid,
  noWatermark,
  type PhysicalBuilder,
  type SourceDefinition,
  type StoreDefinition,
} from '../topology/physical.ts'
import { type AnySerde, Build, checkTopic, keyInfo, serdeFor, settingsOf, tableStore } from './build.ts'
import { declarations, definitionOf, type StoreDeclaration } from './stores.ts'
import { Stream } from './stream.ts'
import { GlobalTableModel, SourceTable } from './table-model.ts'
import { GlobalTable, Table } from './table.ts'
import {
  alignmentOptions,
  type Awaitable,
  type SourceSettings,
  sourceOptions,
  type Stored,
  storedOptions,
  type TombstoneSettings,
  type WatermarkSettings,
  watermarkOptions,
} from './types.ts'
import { ms } from './windows.ts'

/** A scheduled source: when it fires, and what it makes. Give `every` or `cron`, one of the two. */
export interface ScheduledSettings<K, V> {
  /** The time between two firings, at least a millisecond. */
  readonly every?: Duration
  /** A cron expression in UTC, such as `'0 6 * * *'`. */
  readonly cron?: string
  /**
   * Makes the records of a firing: one, several or none. Their timestamp is the instant that was due, unless they have
   * their own, in milliseconds that are taken down to whole ones.
   */
  readonly emit: (
    tick: ScheduledTick,
  ) => Awaitable<
    | { readonly key: K; readonly value: V; readonly timestamp?: number }
    | ReadonlyArray<{ readonly key: K; readonly value: V; readonly timestamp?: number }>
    | null
    | undefined
  >
  /** Serde of the keys that `emit` returns. Default: text as UTF-8, anything else as JSON. */
  readonly key?: Serde<K>
  /** Serde of the values that `emit` returns. Default: JSON. */
  readonly value?: Serde<V>
}

const scheduledOptions: Names<ScheduledSettings<unknown, unknown>> = {
  every: true,
  cron: true,
  emit: true,
  key: true,
  value: true,
}
const streamOptions: Names<TombstoneSettings<unknown, unknown>> = { ...sourceOptions, tombstones: true }
const tableOptions: Names<SourceSettings<unknown, unknown> & Stored> = { ...sourceOptions, ...storedOptions }

function watermarkOf(method: string, settings: WatermarkSettings | undefined): WatermarkOptions {
  if (!settings) return noWatermark
  checkOptions(`the watermark of ${method}`, settings, watermarkOptions)
  const { alignment } = settings
  checkOptions(`the alignment of ${method}`, alignment, alignmentOptions)
  return {
    maxOutOfOrdernessMs: ms(settings.maxOutOfOrderness ?? 0, 'maxOutOfOrderness of a source'),
    idlenessMs: settings.idleness === undefined ? undefined : ms(settings.idleness, 'idleness of a source'),
    alignment: alignment && {
      group: alignment.group,
      maxDriftMs: ms(alignment.maxDrift, 'maxDrift of an alignment group'),
    },
  }
}

/** By the method that reads the topics. */
const sourceKinds = { stream: 'topics', table: 'topics', globalTable: 'global', globalStore: 'global' } as const

function sourceOf<Options>(
  method: keyof typeof sourceKinds,
  topics: readonly string[],
  pattern: RegExp | undefined,
  given: Options | undefined,
  names: Names<NoInfer<Options>>,
): SourceDefinition {
  checkOptions(method, given, names)
  const settings = given as SourceSettings<never, never> | undefined
  for (const topic of topics) checkTopic(topic)
  if (topics.length === 0 && pattern === undefined) throw invalid('a stream needs at least one topic')
  if (new Set(topics).size !== topics.length)
    throw invalid(`a topic is named twice in one stream: ${topics.join(', ')}`)
  return {
    kind: sourceKinds[method],
    topics,
    pattern: pattern && wholePattern(pattern),
    keySerde: settings?.key && serdeFor(settings.key as AnySerde, topics[0], 'key'),
    valueSerde: settings?.value && serdeFor(settings.value as AnySerde, topics[0], 'value'),
    watermark: watermarkOf(method, settings?.watermark),
    timestampExtractor: settings?.timestamp as TimestampExtractor | undefined,
    isTable: method !== 'stream',
    expectsNull: (settings as { readonly tombstones?: boolean } | undefined)?.tombstones === true,
    schedule: undefined,
    boundaryBase: undefined,
  }
}

/** As in Kafka Streams, a pattern matches whole names. Its source text stays what the user wrote. */
function wholePattern(pattern: RegExp): RegExp {
  const whole = new RegExp(`^(?:${pattern.source})$`, pattern.flags.replace(/[gy]/g, ''))
  Object.defineProperty(whole, 'source', { value: pattern.source })
  return whole
}

/**
 * What the `build` function of an application is given: where every stream and table begins. What is built here is a
 * description; it runs in the lanes.
 */
export class Topology {
  readonly #build = new Build()

  /**
   * A stream of the records of one topic, of several, or of all topics whose whole name matches a pattern. Keys are
   * text and values JSON unless other serdes are given; the type of the value is up to you. With `tombstones: true` it
   * has null for records without a value; `.filter((order) => order !== null)` takes them out.
   *
   * @example
   * const watermark = { maxOutOfOrderness: '10s' }
   * topology.stream(['orders-eu', 'orders-us'], { value: serdes.json<Order>(), watermark }).to('orders')
   * // orders-eu ← ann: { amount: 50 }
   * // orders-us ← bob: { amount: 20 }
   * // orders → ann: { amount: 50 }
   * // orders → bob: { amount: 20 }
   * @throws EngineError `TOPOLOGY_INVALID` when a topic's name is malformed or given twice, or a duration is malformed.
   */
  stream<K = string, V = unknown>(
    topics: string | readonly string[] | RegExp,
    settings: TombstoneSettings<K, V>,
  ): Stream<K, V | null>
  stream<K = string, V = unknown>(
    topics: string | readonly string[] | RegExp,
    settings?: SourceSettings<K, V>,
  ): Stream<K, V>
  stream(topics: string | readonly string[] | RegExp, settings?: SourceSettings<unknown, unknown>): unknown {
    const build = this.#build
    const pattern = topics instanceof RegExp ? topics : undefined
    const list = pattern ? [] : Array.isArray(topics) ? [...(topics as readonly string[])] : [topics as string]
    const given = settings as TombstoneSettings<unknown, unknown> | undefined
    const source = sourceOf('stream', list, pattern, given, streamOptions)
    // In Kafka Streams a pattern has no explicit name.
    const name = build.names.orGenerate(settings?.name, 'KSTREAM-SOURCE-')
    const write = (builder: PhysicalBuilder): void => builder.addSource(name, source)
    const node = build.graph.addRoot(new GraphNode(name, { kind: 'source', source, write }))
    return new Stream({
      build,
      name,
      node,
      key: keyInfo(source.keySerde),
      value: source.valueSerde,
      rekeyed: false,
      memo: {},
    })
  }

  /**
   * A topic as a table: the newest value of each key. A record without a value deletes the row.
   *
   * @example
   * const prices = topology.table('prices', { value: serdes.json<number>(), store: 'prices' })
   * prices.filter((price) => price > 10).toStream().to('dear')
   * // prices ← tea: 12
   * // prices ← tea: null
   * // dear → tea: 12
   * // dear → tea: null
   * @throws EngineError `TOPOLOGY_INVALID` as `stream`, and when a versioned store has no `historyRetention`.
   */
  table<K = string, V = unknown>(topic: string, settings?: SourceSettings<K, V> & Stored<K, V>): Table<K, V> {
    const build = this.#build
    const source = sourceOf('table', [topic], undefined, settings, tableOptions)
    const store = settingsOf('table', settings?.store)
    const storeName = store.name ?? build.names.store(`${topic}-`)
    const sourceName = build.names.suffixOrGenerate(settings?.name, '-source', 'KSTREAM-SOURCE-')
    const name = build.names.orGenerate(settings?.name, 'KTABLE-SOURCE-')
    const key = keyInfo(source.keySerde)
    const definition: StoreDefinition = tableStore({
      name: storeName,
      key,
      valueSerde: source.valueSerde,
      settings: store,
      sourceTopic: topic,
      emit: settings?.emit,
    })
    const model = new SourceTable(definition, store.name !== undefined || settings?.emit === 'per-commit')
    const write = (builder: PhysicalBuilder, node: GraphNode): void => {
      builder.addSource(sourceName, source)
      builder.addProcessor(name, () => ({ op: 'tableSource', ...model.output() }), [sourceName])
      if (!model.kept) return
      if (node.reusesSourceTopic) definition.changelogTopic = topic
      builder.addStore(definition, name)
    }
    const outputVersioned = definition.kind === 'versioned'
    // The topic does not tell which versions came too late, nor what a time function answered when a record came.
    const isToldByTopic = !outputVersioned && source.timestampExtractor === undefined
    const node = build.graph.addRoot(
      new GraphNode(name, { kind: 'tableSource', outputVersioned, isToldByTopic, write }),
    )
    return new Table({ build, name, node, key, value: source.valueSerde, model })
  }

  /**
   * A topic as a table that every lane of every process holds whole, for joins by any field of a record.
   *
   * @example
   * const products = topology.globalTable('products', { value: serdes.json<Product>() })
   * const named = orders.join(products, (order, product) => product.name, { on: (order) => order.product })
   * named.to('names')
   * // products ← p-1: { name: 'tea' }
   * // orders ← ann: { product: 'p-1' }
   * // names → ann: 'tea'
   * @throws EngineError `TOPOLOGY_INVALID` as `stream`.
   */
  globalTable<K = string, V = unknown>(
    topic: string,
    settings?: SourceSettings<K, V> & Stored<K, V>,
  ): GlobalTable<K, V> {
    const build = this.#build
    const source = sourceOf('globalTable', [topic], undefined, settings, tableOptions)
    const store = settingsOf('globalTable', settings?.store)
    const storeName = store.name ?? build.names.store(`${topic}-`)
    const sourceName = build.names.suffixOrGenerate(settings?.name, '-source', 'KSTREAM-SOURCE-')
    const name = build.names.orGenerate(settings?.name, 'KTABLE-SOURCE-')
    const key = keyInfo(source.keySerde)
    const definition = tableStore({
      name: storeName,
      key,
      valueSerde: source.valueSerde,
      settings: store,
      changelog: false,
      emit: 'on-update',
    })
    const node = this.#addGlobal(sourceName, name, source, definition)
    return new GlobalTable(
      { build, name, node, key, value: source.valueSerde, model: new GlobalTableModel(definition) },
      storeName,
    )
  }

  /**
   * A key-value store that every lane fills from a topic. Processors that name it in `globalStores` read it, and
   * nothing writes it.
   *
   * @example
   * topology.globalStore('rates', keyValueStore('rates', { key: serdes.string, value: serdes.json<number>() }))
   * const inEuro = orders.processValues<number>((context) => (order) => {
   *   const rate = context.store<ReadOnlyKeyValueStore<string, number>>('rates').get('USD') ?? 1
   *   return context.forward(order.amount * rate)
   * }, { globalStores: ['rates'] })
   * inEuro.to('in-euro')
   * // rates ← USD: 0.5
   * // orders ← ann: { amount: 50 }
   * // in-euro → ann: 25
   * @throws EngineError `TOPOLOGY_INVALID` as `stream`, and when the store is no `keyValueStore`.
   */
  globalStore<K = string, V = unknown>(
    topic: string,
    store: StoreDeclaration<unknown>,
    settings?: SourceSettings<K, V>,
  ): void {
    const build = this.#build
    const source = sourceOf('globalStore', [topic], undefined, settings, sourceOptions)
    const sourceName = build.names.generate('KSTREAM-SOURCE-')
    const name = build.names.generate('KTABLE-SOURCE-')
    const declared = definitionOf(store)
    if (declared === undefined)
      throw invalid(`the global store of ${topic} is ${shownInstead(store)}; give what keyValueStore(…) returns`)
    if (declared.kind !== 'key-value') throw invalid(`the global store ${store.name} must be a keyValueStore(…)`)
    this.#addGlobal(sourceName, name, source, {
      ...declared,
      keySerde: declared.keySerde ?? source.keySerde,
      valueSerde: declared.valueSerde ?? source.valueSerde,
      changelog: false,
    })
  }

  #addGlobal(sourceName: string, name: string, source: SourceDefinition, definition: StoreDefinition): GraphNode {
    const build = this.#build
    const write = (builder: PhysicalBuilder): void => {
      builder.addSource(sourceName, source)
      const ref = { name: definition.name, kind: definition.kind }
      builder.addProcessor(
        name,
        () => ({ op: 'globalPut', store: ref, timestamped: definition.timestamped }),
        [sourceName],
        true,
      )
      builder.addStore(definition, name)
      builder.globalStores.add(definition.name)
    }
    return build.graph.addRoot(new GraphNode(name, { write }))
  }

  /**
   * Records that the engine makes itself, at an interval or by a cron expression. One lane of one process makes them.
   * Needs `topology.sub-topology-split: in-process`.
   *
   * @example
   * topology.scheduled('heartbeat', { every: '10s', emit: (tick) => ({ key: 'beat', value: tick.count }) }).to('beats')
   * // 20s passes
   * // beats → beat: 0
   * // beats → beat: 1
   * @throws EngineError `TOPOLOGY_INVALID` when neither or both of `every` and `cron` are given, or one of them is
   * malformed.
   */
  scheduled<K, V>(name: string, settings: ScheduledSettings<K, V>): Stream<K, V> {
    const build = this.#build
    checkOptions('scheduled', settings, scheduledOptions)
    const { every, cron, emit } = settings
    if ((every === undefined) === (cron === undefined))
      throw invalid(`the scheduled source ${name} needs either "every" or "cron"`)
    const fault = cron === undefined ? undefined : cronFault(cron)
    if (fault) throw invalid(`the cron expression of the scheduled source ${name} is refused: ${fault}`)
    const everyMs = every === undefined ? undefined : ms(every, `"every" of the scheduled source ${name}`)
    if (everyMs === 0)
      throw invalid(`"every" of the scheduled source ${name} is 0; it must be at least one millisecond`)
    const source: SourceDefinition = {
      kind: 'scheduled',
      topics: [],
      pattern: undefined,
      keySerde: settings.key as AnySerde | undefined,
      valueSerde: settings.value as AnySerde | undefined,
      watermark: noWatermark,
      timestampExtractor: undefined,
      isTable: false,
      expectsNull: false,
      schedule: {
        everyMs,
        cron,
        emit: emit as (
          tick: ScheduledTick,
        ) => Awaitable<ScheduledRecord | readonly ScheduledRecord[] | null | undefined>,
      },
      boundaryBase: undefined,
    }
    build.names.generate('KSTREAM-SOURCE-')
    const write = (builder: PhysicalBuilder): void => builder.addSource(name, source)
    const node = build.graph.addRoot(new GraphNode(name, { kind: 'source', source, write }))
    return new Stream({
      build,
      name,
      node,
      key: keyInfo(source.keySerde),
      value: source.valueSerde,
      rekeyed: true,
      memo: {},
    })
  }

  /**
   * Adds a store that several processors share by its name.
   *
   * @example
   * topology.addStore(keyValueStore('seen', { key: serdes.string, value: serdes.boolean }))
   * orders.process<string, Order>((context) => async (order, id) => {
   *   const seen = context.store<KeyValueStore<string, boolean>>('seen')
   *   if (seen.putIfAbsent(id, true) === undefined) await context.forward(id, order)
   * }, { stores: ['seen'] }).to('firsts')
   * // orders ← o-1: { amount: 50 }
   * // orders ← o-1: { amount: 50 }
   * // firsts → o-1: { amount: 50 }
   * @throws EngineError `TOPOLOGY_INVALID` when another store has the name, or this is none.
   */
  addStore(store: StoreDeclaration<unknown>): void {
    const definition = definitionOf(store)
    if (definition === undefined) throw invalid(`addStore is given ${shownInstead(store)}; give ${declarations}`)
    this.#build.register(definition)
  }

  /**
   * Turns what was built into what the engine runs. A topology is compiled once. Applications are compiled by the
   * engine; use `application.compile()` to look at one.
   *
   * @throws EngineError `TOPOLOGY_INVALID` when the topology reads nothing, two operators have one name, or topics that
   * are joined cannot be.
   */
  compile(options?: CompileOptions): CompiledTopology {
    return compileGraph(this.#build.graph, options)
  }
}

/**
 * Builds a topology and compiles it, as `application.compile()` does for an application.
 *
 * @example
 * const compiled = compile((topology) => topology.stream('lines').to('copy'))
 * console.log(describeText(compiled))
 * @throws EngineError `TOPOLOGY_INVALID` as `Topology.compile`.
 */
export function compile(build: (topology: Topology) => void, options?: CompileOptions): CompiledTopology {
  const topology = new Topology()
  refusePromise(build(topology))
  return topology.compile(options)
}

/** An asynchronous function is a `build` to the type checker; what it declares behind its first `await` would be missing. */
function refusePromise(given: unknown): void {
  if (typeof (given as PromiseLike<unknown> | undefined)?.then !== 'function') return
  // What becomes of it is of no interest any more.
  void Promise.resolve(given).catch(() => undefined)
  throw invalid(
    'the build function gives a promise, and what it declares behind an `await` would be missing; await what it needs at the top of the module, before `defineApp`, and leave out `async`',
  )
}
