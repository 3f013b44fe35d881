/** A table: the newest value of each key, changing record by record. */
import type { Duration } from '../base/duration.ts'
import type { Serde } from '../serde/serde.ts'
import { GraphNode } from '../topology/graph.ts'
import { suppressedSerde } from '../topology/serdes/internal-serdes.ts'
import { checkOptions } from '../topology/check-given.ts'
import type { OperatorSpec } from '../topology/operator-spec.ts'
import { invalid, type PhysicalBuilder, type StoreDefinition } from '../topology/physical.ts'
import { windowCloseOf } from '../topology/rewrite.ts'
import { type AnySerde, keyInfo, ownKeySerde, refuseUnkept, settingsOf, tableStore, valueSerdeOr } from './build.ts'
import { addForeignKeyJoin } from './foreign-key.ts'
import { GroupedTable } from './grouped-table.ts'
import { asUserFn, inner, type StreamParts, type TableParts } from './handle.ts'
import { Stream } from './stream.ts'
import { progressStore } from './nodes.ts'
import { DerivedTable, filterView, mapView, SuppressedTable } from './table-model.ts'
import { addTableJoin } from './table-joins.ts'
import type { Awaitable, Named, RecordFn, RecordGuard, Stored, WithSerdes } from './types.ts'
import { namedOptions, serdeOptions, storedOptions } from './types.ts'
import { ms } from './windows.ts'

/** When a suppressed table lets its updates out: at the close of their window, or after a time. */
export type SuppressOptions = Named &
  (
    | {
        /** Lets out one final result a window, when it closes. */
        readonly until: 'window-closes'
        /** Largest number of rows held back; more fail the run. Default: no bound. */
        readonly maxRecords?: number
      }
    | {
        /** Lets out each key's newest update once its first held back one is this old, in event time. */
        readonly until: Duration
        /** Largest number of rows held back; more let out the oldest early. Default: no bound. */
        readonly maxRecords?: number
      }
  )

/** A join of two tables whose keys differ: which row of the other table belongs to a row of this one. */
export interface ForeignKeyJoinOptions<K, V, K2, R> extends Stored<K, R> {
  /** Key of the other table's row that belongs to this one; null for none. */
  readonly on: (value: V, key: K) => K2 | null | undefined
}

interface DerivedShape {
  readonly method: string
  readonly name: string
  readonly stored: Stored | undefined
  readonly valueSerde: AnySerde | undefined
  readonly model: (definition: StoreDefinition | undefined) => DerivedTable
  readonly spec: (output: ReturnType<DerivedTable['output']>, versioned: boolean) => OperatorSpec
}

/**
 * A table: the newest value of each key, changing record by record. A null value deletes a row. It is described, not
 * read: operators return new tables. To see its rows, join with it, name its store and query that, or follow its
 * updates with `toStream()`. `D` is null where rows may be deleted, and never where nothing deletes them, as in counts.
 */
export class Table<K, V, D extends null = null> {
  readonly [inner]: TableParts

  /** @internal */
  constructor(parts: TableParts) {
    this[inner] = parts
  }

  /**
   * The rows for which `predicate` holds. A row that no longer satisfies it is deleted from the result.
   *
   * @example
   * prices.filter((price) => price > 10).toStream().to('dear')
   * // prices ← tea: 12
   * // prices ← tea: 9
   * // dear → tea: 12
   * // dear → tea: null
   */
  filter<S extends V>(predicate: RecordGuard<K, V, S>, options?: Stored<K, S>): Table<K, S>
  filter(predicate: RecordFn<K, V, boolean | undefined>, options?: Stored<K, V>): Table<K, V>
  filter(predicate: unknown, options?: Stored<K, V>): Table<K, V> {
    return this.#filter(predicate, options, false)
  }

  /**
   * The rows for which `predicate` does not hold.
   *
   * @example
   * prices.filterNot((price) => price > 10).toStream().to('cheap')
   * // prices ← tea: 9
   * // cheap → tea: 9
   */
  filterNot(predicate: RecordFn<K, V, boolean | undefined>, options?: Stored<K, V>): Table<K, V> {
    return this.#filter(predicate, options, true)
  }

  #filter(fn: unknown, options: Stored<K, V> | undefined, not: boolean): Table<K, V> {
    const method = not ? 'filterNot' : 'filter'
    checkOptions(method, options, storedOptions)
    const predicate = asUserFn(fn)
    const parent = this[inner].model
    return this.#derive({
      method,
      name: this.#name(options, 'KTABLE-FILTER-'),
      stored: options as Stored | undefined,
      valueSerde: this[inner].value,
      model: (definition) => new DerivedTable(parent, definition, filterView(predicate, not), true),
      spec: (output, versioned) => ({ op: 'tableFilter', predicate, not, versioned, ...output }),
    })
  }

  /**
   * Turns the value of each row into another. `fn` is not called for deletions, which go on as they are.
   *
   * @example
   * users.mapValues((user) => user.city).toStream().to('cities')
   * // users ← u-1: { name: 'Ann', city: 'Oslo' }
   * // users ← u-1: null
   * // cities → u-1: 'Oslo'
   * // cities → u-1: null
   */
  mapValues<V2>(fn: RecordFn<K, V, V2>, options?: Stored<K, V2> & { readonly value?: Serde<V2> }): Table<K, V2, D> {
    return this.#map<V2>(fn, options, 'mapValues', false) as unknown as Table<K, V2, D>
  }

  /**
   * As `mapValues`; `fn` is called for deletions too, with a null value.
   *
   * @example
   * users.transformValues((user) => user?.city ?? 'gone').toStream().to('cities')
   * // users ← u-1: { name: 'Ann', city: 'Oslo' }
   * // users ← u-1: null
   * // cities → u-1: 'Oslo'
   * // cities → u-1: 'gone'
   */
  transformValues<V2>(
    fn: RecordFn<K, V | null, V2>,
    options?: Stored<K, V2> & { readonly value?: Serde<V2> },
  ): Table<K, V2, D> {
    return this.#map<V2>(fn, options, 'transformValues', true) as unknown as Table<K, V2, D>
  }

  #map<V2>(
    mapper: unknown,
    options: (Stored<K, V2> & { readonly value?: Serde<V2> }) | undefined,
    method: string,
    onDeletes: boolean,
  ): Table<K, V2> {
    checkOptions(method, options, { ...storedOptions, value: true })
    const fn = asUserFn(mapper)
    const parent = this[inner].model
    return this.#derive<V2>({
      method,
      name: this.#name(options, `KTABLE-${method.toUpperCase()}-`),
      stored: options as Stored | undefined,
      valueSerde: options?.value as AnySerde | undefined,
      model: (definition) => new DerivedTable(parent, definition, mapView(fn, onDeletes), false),
      spec: (output, versioned) => ({
        op: 'tableMapValues',
        fn,
        onDeletes,
        parentSendsOld: output.sendOldValues,
        versioned,
        ...output,
      }),
    })
  }

  #name(options: Named | undefined, prefix: string): string {
    return this[inner].build.names.orGenerate(options?.name, prefix)
  }

  #derive<V2>(shape: DerivedShape): Table<K, V2> {
    const parts = this[inner]
    const { name, stored } = shape
    const settings = settingsOf(shape.method, stored?.store)
    const keeps = stored?.store !== undefined && settings.name !== undefined
    if (!keeps) refuseUnkept(name, stored)
    const definition = keeps
      ? tableStore({
          name: settings.name as string,
          key: parts.key,
          valueSerde: shape.valueSerde,
          settings,
          emit: stored.emit,
        })
      : undefined
    const model = shape.model(definition)
    let versioned = false
    const write = (builder: PhysicalBuilder, node: GraphNode): void => {
      builder.addProcessor(name, () => shape.spec(model.output(), versioned), node.parentNames())
      if (definition) builder.addStore(definition, name)
    }
    const node = new GraphNode(name, {
      ...(definition ? { outputVersioned: definition.kind === 'versioned' } : {}),
      onVersionedParent: () => {
        versioned = true
      },
      write,
    })
    parts.build.graph.add(parts.node, node)
    const value = (settings.value as AnySerde | undefined) ?? shape.valueSerde
    return new Table<K, V2>({ build: parts.build, name, node, key: parts.key, value, model })
  }

  /**
   * The table's updates as a stream; a deletion has a null value, where rows may be deleted. With `key` each update gets a key of its own.
   *
   * @example
   * prices.toStream().to('updates')
   * // prices ← tea: 12
   * // prices ← tea: null
   * // updates → tea: 12
   * // updates → tea: null
   */
  toStream(options?: Named): Stream<K, V | D>
  toStream<K2>(options: Named & { readonly key: RecordFn<K, V | D, K2> }): Stream<K2, V | D>
  toStream(options?: Named & { readonly key?: RecordFn<K, V | D, unknown> }): Stream<K, V | D> {
    const parts = this[inner]
    checkOptions('toStream', options, { ...namedOptions, key: true })
    const name = this.#name(options, 'KTABLE-TOSTREAM-')
    const write = (builder: PhysicalBuilder, node: GraphNode): void =>
      builder.addProcessor(name, () => ({ op: 'tableToStream' }), node.parentNames())
    const node = parts.build.graph.add(parts.node, new GraphNode(name, { write }))
    const streamParts: StreamParts = {
      build: parts.build,
      name,
      node,
      key: parts.key,
      value: parts.value,
      rekeyed: false,
      memo: {},
    }
    const stream = new Stream<K, V | D>(streamParts)
    return options?.key ? (stream.selectKey(options.key) as Stream<never, V | D>) : stream
  }

  /**
   * Groups the rows by another key, for an aggregate: `fn` gives key and value, or null for a row that belongs to no
   * group. A row that changes leaves its old group and enters the new one.
   *
   * @example
   * users.groupBy((user) => [user.city, user]).count().toStream().to('people')
   * // users ← u-1: { name: 'Ann', city: 'Oslo' }
   * // users ← u-1: { name: 'Ann', city: 'Bergen' }
   * // people → Oslo: 1
   * // people → Oslo: 0
   * // people → Bergen: 1
   */
  groupBy<K2, V2>(
    fn: RecordFn<K, V, readonly [key: K2, value: V2] | null>,
    options?: WithSerdes<K2, V2>,
  ): GroupedTable<K2, V2> {
    const parts = this[inner]
    checkOptions('groupBy', options, serdeOptions)
    const name = this.#name(options, 'KTABLE-SELECT-')
    parts.model.enableOldValues(true)
    let versioned = false
    const write = (builder: PhysicalBuilder, node: GraphNode): void =>
      builder.addProcessor(name, () => ({ op: 'tableGroupBy', fn: asUserFn(fn), versioned }), node.parentNames())
    const onVersionedParent = (): void => {
      versioned = true
    }
    const node = parts.build.graph.add(parts.node, new GraphNode(name, { write, onVersionedParent }))
    const key = keyInfo(options?.key as AnySerde | undefined)
    return new GroupedTable(
      { build: parts.build, node, key, value: options?.value as AnySerde | undefined },
      options?.name,
    )
  }

  /**
   * Holds updates back: until the window of the row closes, so that each window has one final result, or for a time, by the watermark
   * of the application. Of the updates that came in that time the last one is told; which they are depends on how far other inputs are.
   *
   * @example
   * const perMinute = clicks.groupByKey().windowedBy(tumbling('1m')).count()
   * perMinute.suppress({ until: 'window-closes' }).toStream().to('final')
   * // clicks ← ann: { page: 'cart' } @ 10s
   * // clicks ← ann: { page: 'shop' } @ 20s
   * // clicks ← bob: { page: 'shop' } @ 70s
   * // final → ann [0s, 1m): 2
   * @throws EngineError `TOPOLOGY_INVALID` when the table is versioned, or `until` is `window-closes` and there are no
   * windows.
   */
  suppress(options: SuppressOptions & { readonly until: 'window-closes' }): Table<K, V, never>
  suppress(options: SuppressOptions): Table<K, V, D>
  suppress(options: SuppressOptions): Table<K, V, D> {
    const parts = this[inner]
    if (options?.until === undefined)
      throw invalid(
        "suppress is not told until when it holds rows back; give { until: 'window-closes' }, or a duration",
      )
    checkOptions('suppress', options, { ...namedOptions, until: true, maxRecords: true })
    const { build, node: above } = parts
    if (above.options.outputVersioned)
      throw invalid('a versioned table cannot be suppressed; convert it to a stream first')
    const { names, graph } = build
    const name = options.name ?? names.generate('KTABLE-SUPPRESS-')
    const final = options.until === 'window-closes'
    const until = final
      ? ({ type: 'windowCloses', ...windowCloseOf(above) } as const)
      : ({ type: 'timeLimit', ms: ms(options.until, 'the time of a suppress') } as const)
    const closesInQuiet = until.type === 'windowCloses' && until.closeAfterIdleMs !== undefined
    const store = options.name !== undefined ? `${options.name}-store` : names.store('KTABLE-SUPPRESS-')
    parts.model.enableOldValues(true)
    const model = new SuppressedTable(parts.model, store)
    const definition: StoreDefinition = {
      name: store,
      kind: 'key-value',
      keySerde: ownKeySerde(parts.key),
      valueSerde: suppressedSerde(valueSerdeOr(parts.value)) as AnySerde,
      timestamped: false,
      changelog: true,
    }
    const whenFull = final ? 'fail' : 'emit'
    const write = (builder: PhysicalBuilder, node: GraphNode): void => {
      const { sendOldValues } = model
      builder.addProcessor(
        name,
        () => ({
          op: 'suppress',
          store,
          until,
          maxRecords: options.maxRecords,
          whenFull,
          parent: undefined,
          sendOldValues,
        }),
        node.parentNames(),
      )
      builder.addStore(definition, name)
      if (closesInQuiet) builder.addHiddenStore(progressStore(store), name)
    }
    const node = graph.add(above, new GraphNode(name, { outputVersioned: false, write }))
    return new Table({ build, name, node, key: parts.key, value: parts.value, model })
  }

  /**
   * Joins the rows of two tables: those of the same key or, with `on`, each row with the row of the other table that
   * `on` names. The result changes with either side.
   *
   * @example
   * users.join(prices, (user, price) => `${user.name} pays ${price}`).toStream().to('bills')
   * // users ← u-1: { name: 'Ann' }
   * // prices ← u-1: 12
   * // bills → u-1: 'Ann pays 12'
   * @example
   * const choices = topology.table('choices', { value: serdes.json<{ readonly product: string }>() })
   * choices.join(prices, (choice, price) => price, { on: (choice) => choice.product }).toStream().to('costs')
   * // prices ← tea: 12
   * // choices ← ann: { product: 'tea' }
   * // prices ← tea: 14
   * // costs → ann: 12
   * // costs → ann: 14
   */
  join<K2, V2, R>(
    other: Table<K2, V2>,
    joiner: (left: V, right: NoInfer<V2>, key: K) => Awaitable<R>,
    options: ForeignKeyJoinOptions<K, V, K2, R>,
  ): Table<K, R>
  join<V2, R>(
    other: Table<K, V2>,
    joiner: (left: V, right: NoInfer<V2>, key: K) => Awaitable<R>,
    options?: Stored<K, R>,
  ): Table<K, R>
  join(other: unknown, joiner: unknown, options?: unknown): unknown {
    return this.#join(other as Table<never, never>, joiner, options as Stored | undefined, false, false)
  }

  /**
   * As `join`; rows of this table that find no partner have null as the right side.
   *
   * @example
   * users.leftJoin(prices, (user, price) => price ?? 0).toStream().to('bills')
   * // users ← u-1: { name: 'Ann' }
   * // prices ← u-1: 12
   * // bills → u-1: 0
   * // bills → u-1: 12
   */
  leftJoin<K2, V2, R>(
    other: Table<K2, V2>,
    joiner: (left: V, right: NoInfer<V2> | null, key: K) => Awaitable<R>,
    options: ForeignKeyJoinOptions<K, V, K2, R>,
  ): Table<K, R>
  leftJoin<V2, R>(
    other: Table<K, V2>,
    joiner: (left: V, right: NoInfer<V2> | null, key: K) => Awaitable<R>,
    options?: Stored<K, R>,
  ): Table<K, R>
  leftJoin(other: unknown, joiner: unknown, options?: unknown): unknown {
    return this.#join(other as Table<never, never>, joiner, options as Stored | undefined, true, false)
  }

  /**
   * As `join` by equal keys; rows of either table that find no partner have null as the other side.
   *
   * @example
   * users.outerJoin(prices, (user, price) => `${user?.name ?? 'somebody'}: ${price ?? 0}`).toStream().to('bills')
   * // prices ← u-1: 12
   * // users ← u-1: { name: 'Ann' }
   * // bills → u-1: 'somebody: 12'
   * // bills → u-1: 'Ann: 12'
   */
  outerJoin<V2, R>(
    other: Table<K, V2>,
    joiner: (left: V | null, right: NoInfer<V2> | null, key: K) => Awaitable<R>,
    options?: Stored<K, R>,
  ): Table<K, R> {
    return this.#join(other as unknown as Table<never, never>, joiner, options as Stored | undefined, true, true)
  }

  #join(
    other: Table<never, never>,
    joiner: unknown,
    options: Stored | undefined,
    leftOuter: boolean,
    rightOuter: boolean,
  ): Table<K, never> {
    const shape = { joiner: joiner as never, leftOuter, rightOuter }
    const on = (options as { on?: unknown } | undefined)?.on
    const parts =
      on === undefined || rightOuter
        ? addTableJoin(this[inner], other[inner], shape, options)
        : addForeignKeyJoin(this[inner], other[inner], asUserFn(on), shape, options)
    return new Table(parts)
  }
}

/**
 * A table that every lane of every process holds whole, so that a stream can be joined with any of its rows:
 * `orders.join(products, joiner, { on: (order) => order.product })`. Made by `topology.globalTable(…)`.
 */
export class GlobalTable<K, V> {
  readonly [inner]: TableParts
  /** Name of the store that holds the rows; a processor reads it with the option `globalStores`. */
  readonly storeName: string
  /** Carries the types of key and value; never set. */
  readonly rows?: readonly [K, V]

  /** @internal */
  constructor(parts: TableParts, storeName: string) {
    this[inner] = parts
    this.storeName = storeName
  }
}
