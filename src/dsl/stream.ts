/** A stream of records: every record stands for itself. */
import type { Serde } from '../serde/serde.ts'
import { GraphNode } from '../topology/graph.ts'
import type { PhysicalBuilder } from '../topology/physical.ts'
import { invalid } from '../topology/physical.ts'
import { type AnySerde, keyInfo, partitionSerde, settingsOf, tableStore, topicKeySerde, valueSerdeOr } from './build.ts'
import { GroupedStream } from './grouped.ts'
import { addProcessor, asUserFn, following, inner, repartitioned, type StreamParts } from './handle.ts'
import { addProcessNode, type ProcessOptions, type ProcessorFactory, type ValueProcessorFactory } from './process.ts'
import { joinGlobal, joinStreams, joinTable, type StreamJoinOptions, type TableJoinOptions } from './stream-joins.ts'
import { GlobalTable, Table } from './table.ts'
import { SourceTable } from './table-model.ts'
import type { Awaitable, Named, RecordFn, Stored, WithSerdes } from './types.ts'

/** The topic of a record: a name, or a function of the record. */
export type TopicChoice<K, V> = string | ((value: V, key: K, record: Parameters<RecordFn<K, V, string>>[2]) => string)

export interface Branch<K, V, S extends V = V> extends Named {
  /** Records for which it holds go to this branch, if no earlier branch took them. */
  readonly when:
    | ((value: V, key: K, record: Parameters<RecordFn<K, V, boolean>>[2]) => value is S)
    | RecordFn<K, V, boolean>
}

export class Stream<K, V> {
  readonly [inner]: StreamParts

  constructor(parts: StreamParts) {
    this[inner] = parts
  }

  #add(
    name: string | undefined,
    prefix: string,
    spec: Parameters<typeof addProcessor>[2],
    change: Partial<StreamParts>,
    flags = {},
  ): StreamParts {
    const parts = this[inner]
    const node = addProcessor(parts, parts.build.names.orGenerate(name, prefix), spec, flags)
    return following(parts, node, change)
  }

  /** Keeps the records for which `predicate` holds. */
  filter<S extends V>(predicate: (value: V, key: K) => value is S, options?: Named): Stream<K, S>
  filter(predicate: RecordFn<K, V, boolean>, options?: Named): Stream<K, V>
  filter(predicate: unknown, options?: Named): Stream<K, V> {
    return new Stream(
      this.#add(options?.name, 'KSTREAM-FILTER-', { op: 'filter', predicate: asUserFn(predicate), not: false }, {}),
    )
  }

  /** Keeps the records for which `predicate` does not hold. */
  filterNot(predicate: RecordFn<K, V, boolean>, options?: Named): Stream<K, V> {
    return new Stream(
      this.#add(options?.name, 'KSTREAM-FILTER-', { op: 'filter', predicate: asUserFn(predicate), not: true }, {}),
    )
  }

  /** A new key and value for each record: `[key, value]`. What needs equal keys together repartitions after it. */
  map<K2, V2>(fn: RecordFn<K, V, readonly [key: K2, value: V2]>, options?: WithSerdes<K2, V2>): Stream<K2, V2> {
    const spec = { op: 'map', fn: asUserFn(fn) } as const
    return new Stream(this.#add(options?.name, 'KSTREAM-MAP-', spec, this.#changed(options), { keyChanging: true }))
  }

  /** A new value for each record; the key stays. */
  mapValues<V2>(fn: RecordFn<K, V, V2>, options?: Named & { readonly value?: Serde<V2> }): Stream<K, V2> {
    const spec = { op: 'mapValues', fn: asUserFn(fn) } as const
    const change = { value: options?.value as AnySerde | undefined }
    return new Stream(this.#add(options?.name, 'KSTREAM-MAPVALUES-', spec, change, { valueChanging: true }))
  }

  /** Any number of records for each record. */
  flatMap<K2, V2>(
    fn: RecordFn<K, V, Iterable<readonly [key: K2, value: V2]>>,
    options?: WithSerdes<K2, V2>,
  ): Stream<K2, V2> {
    const spec = { op: 'flatMap', fn: asUserFn(fn) } as const
    return new Stream(this.#add(options?.name, 'KSTREAM-FLATMAP-', spec, this.#changed(options), { keyChanging: true }))
  }

  /** Any number of values for each record; the key stays. */
  flatMapValues<V2>(fn: RecordFn<K, V, Iterable<V2>>, options?: Named & { readonly value?: Serde<V2> }): Stream<K, V2> {
    const spec = { op: 'flatMapValues', fn: asUserFn(fn) } as const
    const change = { value: options?.value as AnySerde | undefined }
    return new Stream(this.#add(options?.name, 'KSTREAM-FLATMAPVALUES-', spec, change, { valueChanging: true }))
  }

  /** A new key for each record; the value stays. */
  selectKey<K2>(fn: RecordFn<K, V, K2>, options?: Named & { readonly key?: Serde<K2> }): Stream<K2, V> {
    const spec = { op: 'selectKey', fn: asUserFn(fn) } as const
    const change = { key: keyInfo(options?.key as AnySerde | undefined), rekeyed: true }
    return new Stream(this.#add(options?.name, 'KSTREAM-KEY-SELECT-', spec, change, { keyChanging: true }))
  }

  #changed(options: WithSerdes<unknown, unknown> | undefined): Partial<StreamParts> {
    return {
      key: keyInfo(options?.key as AnySerde | undefined),
      value: options?.value as AnySerde | undefined,
      rekeyed: true,
    }
  }

  /** Calls `fn` and passes the record on as it is. */
  peek(fn: RecordFn<K, V, unknown>, options?: Named): Stream<K, V> {
    return new Stream(this.#add(options?.name, 'KSTREAM-PEEK-', { op: 'peek', fn: asUserFn(fn) }, {}))
  }

  /** Calls `fn` for each record; nothing follows. */
  foreach(fn: RecordFn<K, V, unknown>, options?: Named): void {
    this.#add(options?.name, 'KSTREAM-FOREACH-', { op: 'peek', fn: asUserFn(fn) }, {})
  }

  /** The records of both streams, in no particular order between them. */
  merge<K2, V2>(other: Stream<K2, V2>, options?: Named): Stream<K | K2, V | V2> {
    const parts = this[inner]
    const second = other[inner]
    const name = parts.build.names.orGenerate(options?.name, 'KSTREAM-MERGE-')
    const write = (builder: PhysicalBuilder, node: GraphNode): void =>
      builder.addProcessor(name, () => ({ op: 'passThrough' }), node.parentNames())
    const node = parts.build.graph.add([parts.node, second.node], new GraphNode(name, { merge: true, write }))
    return new Stream<K | K2, V | V2>(
      following(parts, node, {
        rekeyed: parts.rekeyed || second.rekeyed,
        key: parts.key.serde === second.key.serde ? parts.key : keyInfo(undefined),
        value: parts.value === second.value ? parts.value : undefined,
      }),
    )
  }

  /**
   * Distributes records over branches: each goes to the first whose predicate holds. With `default` the rest gets a
   * branch of its own, else it is dropped.
   *
   * @example
   * const { large, small } = orders.split({ large: { when: (order) => order.amount > 1000 } }, { default: 'small' })
   */
  split<B extends Record<string, Branch<K, V> | RecordFn<K, V, boolean>>, D extends string = never>(
    branches: B,
    options?: Named & { readonly default?: D | ({ readonly as: D } & Named) },
  ): { readonly [P in keyof B]: Stream<K, B[P] extends Branch<K, V, infer S> ? S : V> } & {
    readonly [P in D]: Stream<K, V>
  } {
    const parts = this[inner]
    const { names, graph } = parts.build
    const name = names.orGenerate(options?.name, 'KSTREAM-BRANCH-')
    const entries = Object.entries(branches).map(([id, branch], i) => {
      const { when, name: own } = typeof branch === 'function' ? { when: branch, name: undefined } : branch
      return { id, when: asUserFn(when), name: own ?? String(i + 1) }
    })
    const rest =
      typeof options?.default === 'object'
        ? options.default
        : options?.default && { as: options.default, name: undefined }
    const predicates = [...entries.map((entry) => entry.when), ...(rest ? [undefined] : [])]
    const node = addProcessor(parts, name, { op: 'branch', predicates })
    const result: Record<string, Stream<K, V>> = {}
    const all = [...entries, ...(rest ? [{ id: rest.as as string, name: rest.name ?? '0' }] : [])]
    for (const entry of all) {
      names.generate('KSTREAM-BRANCH-')
      const childName = name + entry.name
      const write = (builder: PhysicalBuilder, child: GraphNode): void =>
        builder.addProcessor(childName, () => ({ op: 'passThrough' }), child.parentNames())
      const child = graph.add(node, new GraphNode(childName, { write }))
      result[entry.id] = new Stream<K, V>(following(parts, child, {}))
    }
    return result as never
  }

  /** Brings records of one key together, by hand; operators that need it do so themselves. */
  repartition(options?: WithSerdes<K, V>): Stream<K, V> {
    const parts = this[inner]
    const name = options?.name ?? parts.build.names.generate('KSTREAM-REPARTITION-')
    const key = options?.key ? keyInfo(options.key as AnySerde) : parts.key
    const value = (options?.value as AnySerde | undefined) ?? parts.value
    return new Stream(repartitioned({ ...parts, key, value }, name, false))
  }

  /** The newest value of each key, as a table. A null value deletes. */
  toTable(options?: Stored<K, V>): Table<K, V> {
    const parts = this[inner]
    const { names, graph } = parts.build
    const settings = settingsOf(options?.store)
    const name = names.orGenerate(options?.name, 'KSTREAM-TOTABLE-')
    const storeName = settings.name ?? names.store('KSTREAM-TOTABLE-')
    const source = parts.rekeyed ? repartitioned(parts, name, true) : parts
    const definition = tableStore({ name: storeName, key: parts.key, valueSerde: parts.value, settings })
    const model = new SourceTable(definition, options?.store !== undefined && settings.name !== undefined)
    const write = (builder: PhysicalBuilder, node: GraphNode): void => {
      builder.addProcessor(name, () => ({ op: 'tableSource', ...model.output() }), node.parentNames())
      if (model.kept) builder.addStore(definition, name)
    }
    const node = graph.add(source.node, new GraphNode(name, { outputVersioned: settings.type === 'versioned', write }))
    return new Table({ build: parts.build, name, node, key: parts.key, value: parts.value, model })
  }

  /** Groups by the key that the records have. */
  groupByKey(options?: WithSerdes<K, V>): GroupedStream<K, V> {
    const parts = this[inner]
    const key = options?.key ? keyInfo(options.key as AnySerde) : parts.key
    const value = (options?.value as AnySerde | undefined) ?? parts.value
    return new GroupedStream({ ...parts, key, value }, options?.name)
  }

  /**
   * Groups by a key that `fn` chooses.
   *
   * @example
   * flights.groupBy((flight) => flight.origin).count()
   */
  groupBy<K2>(fn: RecordFn<K, V, K2>, options?: WithSerdes<K2, V>): GroupedStream<K2, V> {
    const spec = { op: 'selectKey', fn: asUserFn(fn) } as const
    const change = {
      key: keyInfo(options?.key as AnySerde | undefined),
      rekeyed: true,
      value: (options?.value as AnySerde | undefined) ?? this[inner].value,
    }
    return new GroupedStream(
      this.#add(options?.name, 'KSTREAM-KEY-SELECT-', spec, change, { keyChanging: true }),
      options?.name,
    )
  }

  /** Writes the records to a topic, or to the topic that a function chooses for each. */
  to(topic: TopicChoice<K, V>, options?: WithSerdes<K, V>): void {
    const parts = this[inner]
    const name = parts.build.names.orGenerate(options?.name, 'KSTREAM-SINK-')
    const given = options?.key as AnySerde | undefined
    const spec = {
      op: 'sink',
      topic: typeof topic === 'function' ? asUserFn(topic) : topic,
      topicFunctionName: typeof topic === 'function' ? topic.name || 'TopicFrom' : undefined,
      keySerde: given ?? topicKeySerde(parts.key),
      valueSerde: (options?.value as AnySerde | undefined) ?? valueSerdeOr(parts.value),
      windowedInner: partitionSerde(parts.key, false),
    } as const
    const write = (builder: PhysicalBuilder, node: GraphNode): void =>
      builder.addSink(name, () => spec, node.parentNames())
    parts.build.graph.add(parts.node, new GraphNode(name, { write }))
  }

  /** Pairs with the other stream's records of the same key within a window of time, or with a table's row of that key. */
  join<V2, R>(
    other: Stream<K, V2>,
    joiner: (left: V, right: NoInfer<V2>, key: K) => Awaitable<R>,
    options: StreamJoinOptions<K, V, V2>,
  ): Stream<K, R>
  join<V2, R>(
    other: Table<K, V2>,
    joiner: (left: V, right: NoInfer<V2>, key: K) => Awaitable<R>,
    options?: TableJoinOptions<K, V>,
  ): Stream<K, R>
  join<K2, V2, R>(
    other: GlobalTable<K2, V2>,
    joiner: (left: V, right: NoInfer<V2>, key: K) => Awaitable<R>,
    options: Named & { readonly on: RecordFn<K, V, K2 | null> },
  ): Stream<K, R>
  join(other: unknown, joiner: unknown, options?: unknown): Stream<K, never> {
    return this.#join(other, joiner, options, false, false)
  }

  /** As `join`, and records that find no partner go on with null as the right side. */
  leftJoin<V2, R>(
    other: Stream<K, V2>,
    joiner: (left: V, right: NoInfer<V2> | null, key: K) => Awaitable<R>,
    options: StreamJoinOptions<K, V, V2>,
  ): Stream<K, R>
  leftJoin<V2, R>(
    other: Table<K, V2>,
    joiner: (left: V, right: NoInfer<V2> | null, key: K) => Awaitable<R>,
    options?: TableJoinOptions<K, V>,
  ): Stream<K, R>
  leftJoin<K2, V2, R>(
    other: GlobalTable<K2, V2>,
    joiner: (left: V, right: NoInfer<V2> | null, key: K) => Awaitable<R>,
    options: Named & { readonly on: RecordFn<K, V, K2 | null> },
  ): Stream<K, R>
  leftJoin(other: unknown, joiner: unknown, options?: unknown): Stream<K, never> {
    return this.#join(other, joiner, options, true, false)
  }

  /** As `join`, and the records of either side that find no partner go on with null as the other side. */
  outerJoin<V2, R>(
    other: Stream<K, V2>,
    joiner: (left: V | null, right: NoInfer<V2> | null, key: K) => Awaitable<R>,
    options: StreamJoinOptions<K, V, V2>,
  ): Stream<K, R> {
    return this.#join(other, joiner, options, true, true)
  }

  #join(other: unknown, joiner: unknown, options: unknown, leftOuter: boolean, rightOuter: boolean): Stream<K, never> {
    const join = joiner as never
    if (other instanceof Stream)
      return new Stream(joinStreams(this[inner], other[inner], join, options as never, leftOuter, rightOuter))
    if (other instanceof Table)
      return new Stream(joinTable(this[inner], other[inner], join, options as never, leftOuter))
    if (other instanceof GlobalTable)
      return new Stream(joinGlobal(this[inner], other[inner], join, options as never, leftOuter))
    throw invalid('a stream joins a stream, a table or a global table; this is none of them')
  }

  /** Hands each record to a processor of your own, with state, timers and any number of results of any key. */
  process<K2, V2>(factory: ProcessorFactory<K, V, K2, V2>, options?: ProcessOptions<K2, V2>): Stream<K2, V2> {
    const node = addProcessNode(this[inner], factory, options as ProcessOptions | undefined, false)
    return new Stream(following(this[inner], node, this.#changed(options)))
  }

  /** As `process`, where results keep the key of the record that caused them: nothing is repartitioned after it. */
  processValues<V2>(factory: ValueProcessorFactory<K, V, V2>, options?: ProcessOptions<K, V2>): Stream<K, V2> {
    const node = addProcessNode(this[inner], factory, options as ProcessOptions | undefined, true)
    return new Stream(following(this[inner], node, { value: options?.value as AnySerde | undefined }))
  }
}
