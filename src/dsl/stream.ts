/** A stream of records: every record stands for itself. */
import type { Serde } from '../serde/serde.ts'
import { invalid } from '../topology/physical.ts'
import { calledOptions, type CallSettings, callsOf } from './retry.ts'
import { GroupedStream } from './grouped.ts'
import { asUserFn, inner, repartitioned, type StreamParts } from './handle.ts'
import { addProcess, type ProcessOptions, type ProcessorFactory, type ValueProcessorFactory } from './process.ts'
import { joinGlobal, joinStreams, joinTable, type StreamJoinOptions, type TableJoinOptions } from './stream-joins.ts'
import {
  addOperator,
  addSink,
  type Branch,
  type BranchValue,
  mergeStreams,
  keyChange,
  mapOptions,
  mapValuesOptions,
  regrouped,
  rekeyed,
  splitStream,
  tableOf,
  type TopicChoice,
  valueChange,
  withSerdes,
} from './nodes.ts'
import { GlobalTable, Table } from './table.ts'
import type { FunctionContext, RecordView } from '../topology/operator-spec.ts'
import type { Awaitable, Named, Ordered, RecordFn, Stored, StreamFn, WithSerdes } from './types.ts'
import { groupOptions, serdeOptions } from './types.ts'

type Operator = Parameters<typeof addOperator> extends [unknown, ...infer Rest] ? Rest : never

/**
 * A stream of records, each of which stands for itself: an order, a click, a reading. It is described, not read:
 * operators return new streams and leave this one as it is. Get one from `topology.stream(…)` or from
 * `table.toStream()`.
 *
 * User functions see the value first, then the key, then the whole record, and may return a promise.
 */
export class Stream<K, V> {
  readonly [inner]: StreamParts

  /** @internal */
  constructor(parts: StreamParts) {
    this[inner] = parts
  }

  #with<K2, V2>(...operator: Operator): Stream<K2, V2> {
    return new Stream(addOperator(this[inner], ...operator))
  }

  /**
   * Keeps the records for which `predicate` holds. A type guard narrows the type of the values.
   *
   * @example
   * orders.filter((order) => order.amount > 100).to('large')
   * // orders ← ann: { amount: 50 }
   * // orders ← bob: { amount: 150 }
   * // large → bob: { amount: 150 }
   */
  filter<S extends V>(
    predicate: (value: V, key: K, record: RecordView<K, V>, context: FunctionContext) => value is S,
    options?: Named & CallSettings,
  ): Stream<K, S>
  filter(predicate: StreamFn<K, V, boolean | undefined>, options?: Named & CallSettings): Stream<K, V>
  filter(predicate: unknown, options?: Named & CallSettings): Stream<K, V> {
    const calls = callsOf('filter', options, calledOptions)
    const spec = { op: 'filter', predicate: asUserFn(predicate), not: false, calls } as const
    return this.#with(options?.name, 'KSTREAM-FILTER-', spec, {})
  }

  /**
   * Keeps the records for which `predicate` does not hold.
   *
   * @example
   * orders.filterNot((order) => order.amount > 100).to('small')
   * // orders ← ann: { amount: 50 }
   * // small → ann: { amount: 50 }
   */
  filterNot(predicate: StreamFn<K, V, boolean | undefined>, options?: Named & CallSettings): Stream<K, V> {
    const calls = callsOf('filterNot', options, calledOptions)
    const spec = { op: 'filter', predicate: asUserFn(predicate), not: true, calls } as const
    return this.#with(options?.name, 'KSTREAM-FILTER-', spec, {})
  }

  /**
   * Turns each record into one with another key and value, given as `[key, value]`. An operator below that needs equal
   * keys together repartitions first; use `mapValues` where the key stays.
   *
   * @example
   * orders.map((order) => [order.customer, order.amount]).to('amounts')
   * // orders ← o-1: { customer: 'ann', amount: 50 }
   * // amounts → ann: 50
   */
  map<K2, V2>(
    fn: StreamFn<K, V, readonly [key: K2, value: V2]>,
    options?: WithSerdes<K2, V2> & CallSettings,
  ): Stream<K2, V2> {
    const spec = { op: 'map', fn: asUserFn(fn), calls: callsOf('map', options, mapOptions) } as const
    return this.#with(options?.name, 'KSTREAM-MAP-', spec, rekeyed(options), { keyChanging: true })
  }

  /**
   * Turns each value into another; the key stays, so nothing is repartitioned.
   *
   * @example
   * orders.mapValues((order) => order.amount * 2).to('doubled')
   * // orders ← ann: { amount: 50 }
   * // doubled → ann: 100
   */
  mapValues<V2>(
    fn: StreamFn<K, V, V2>,
    options?: Named & CallSettings & { readonly value?: Serde<V2> },
  ): Stream<K, V2> {
    const calls = callsOf('mapValues', options, mapValuesOptions)
    const spec = { op: 'mapValues', fn: asUserFn(fn), calls } as const
    return this.#with(options?.name, 'KSTREAM-MAPVALUES-', spec, valueChange(options), { valueChanging: true })
  }

  /**
   * Turns each record into any number of records, each given as `[key, value]`.
   *
   * @example
   * orders.flatMap((order) => [[order.customer, order.amount], ['all', order.amount]]).to('amounts')
   * // orders ← o-1: { customer: 'ann', amount: 50 }
   * // amounts → ann: 50
   * // amounts → all: 50
   */
  flatMap<K2, V2>(
    fn: StreamFn<K, V, Iterable<readonly [key: K2, value: V2]>>,
    options?: WithSerdes<K2, V2> & CallSettings,
  ): Stream<K2, V2> {
    const spec = { op: 'flatMap', fn: asUserFn(fn), calls: callsOf('flatMap', options, mapOptions) } as const
    return this.#with(options?.name, 'KSTREAM-FLATMAP-', spec, rekeyed(options), { keyChanging: true })
  }

  /**
   * Turns each value into any number of values; the key stays.
   *
   * @example
   * clicks.flatMapValues((click) => click.page.split('/')).to('parts')
   * // clicks ← ann: { page: 'shop/cart' }
   * // parts → ann: 'shop'
   * // parts → ann: 'cart'
   */
  flatMapValues<V2>(
    fn: StreamFn<K, V, Iterable<V2>>,
    options?: Named & CallSettings & { readonly value?: Serde<V2> },
  ): Stream<K, V2> {
    const calls = callsOf('flatMapValues', options, mapValuesOptions)
    const spec = { op: 'flatMapValues', fn: asUserFn(fn), calls } as const
    return this.#with(options?.name, 'KSTREAM-FLATMAPVALUES-', spec, valueChange(options), { valueChanging: true })
  }

  /**
   * Gives each record another key; the value stays.
   *
   * @example
   * orders.selectKey((order) => order.customer).to('by-customer')
   * // orders ← o-1: { customer: 'ann' }
   * // by-customer → ann: { customer: 'ann' }
   */
  selectKey<K2>(fn: StreamFn<K, V, K2>, options?: Named & CallSettings & { readonly key?: Serde<K2> }): Stream<K2, V> {
    const calls = callsOf('selectKey', options, { ...calledOptions, key: true })
    const spec = { op: 'selectKey', fn: asUserFn(fn), calls } as const
    return this.#with(options?.name, 'KSTREAM-KEY-SELECT-', spec, keyChange(options), { keyChanging: true })
  }

  /**
   * Calls `fn` for each record and passes the record on as it is. After a crash `fn` may be called again for the same
   * record.
   *
   * @example
   * orders.peek((order) => print(order.amount)).to('copy')
   * // orders ← ann: { amount: 50 }
   * // prints 50
   * // copy → ann: { amount: 50 }
   */
  peek(fn: StreamFn<K, V, unknown>, options?: Named & CallSettings): Stream<K, V> {
    const calls = callsOf('peek', options, calledOptions)
    return this.#with(options?.name, 'KSTREAM-PEEK-', { op: 'peek', fn: asUserFn(fn), calls }, {})
  }

  /**
   * Calls `fn` for each record and ends the stream. After a crash `fn` may be called again for the same record.
   *
   * @example
   * orders.foreach((order, customer) => print(`${customer}: ${order.amount}`))
   * // orders ← ann: { amount: 50 }
   * // prints 'ann: 50'
   */
  foreach(fn: StreamFn<K, V, unknown>, options?: Named & CallSettings): void {
    const calls = callsOf('foreach', options, calledOptions)
    this.#with(options?.name, 'KSTREAM-FOREACH-', { op: 'peek', fn: asUserFn(fn), calls }, {})
  }

  /**
   * The records of both streams. The order within each stays; there is none between them. A stream merged with itself gives
   * each of its records once.
   *
   * @example
   * orders.merge(payments).to('all')
   * // orders ← ann: { amount: 50 }
   * // payments ← ann: { amount: 20 }
   * // all → ann: { amount: 50 }
   * // all → ann: { amount: 20 }
   */
  merge<K2, V2>(other: Stream<K2, V2>, options?: Named): Stream<K | K2, V | V2> {
    if (!(other instanceof Stream)) throw invalid('a stream is merged with a stream; this is none')
    return new Stream<K | K2, V | V2>(mergeStreams(this[inner], other[inner], options))
  }

  /**
   * Distributes the records over branches by name: each goes to the first whose predicate holds. The branch that
   * `default` names takes the rest; without it the rest is dropped.
   *
   * @example
   * const { large, small } = orders.split({ large: (order) => order.amount > 100 }, { default: 'small' })
   * large.to('large')
   * small.to('small')
   * // orders ← bob: { amount: 150 }
   * // large → bob: { amount: 150 }
   */
  split<B extends Record<string, Branch<K, V> | StreamFn<K, V, boolean | undefined>>, D extends string = never>(
    branches: B,
    options?: Named & { readonly default?: D | ({ readonly as: D } & Named) },
  ): { readonly [P in keyof B]: Stream<K, BranchValue<V, B[P]>> } & {
    readonly [P in D]: Stream<K, V>
  } {
    const parts = splitStream(this[inner], branches, options)
    return Object.fromEntries([...parts].map(([name, branch]) => [name, new Stream<K, V>(branch)])) as never
  }

  /**
   * Brings the records of one key together by hand. Operators that need it do so by themselves; use it to spread the
   * work of the function that follows, by a key that was just chosen.
   *
   * @example
   * const byCustomer = orders.selectKey((order) => order.customer).repartition({ name: 'by-customer' })
   * byCustomer.mapValues((order) => order.amount).to('amounts')
   * // orders ← o-1: { customer: 'ann', amount: 50 }
   * // amounts → ann: 50
   */
  repartition(options?: WithSerdes<K, V>): Stream<K, V> {
    const name = options?.name ?? this[inner].build.names.generate('KSTREAM-REPARTITION-')
    return new Stream(repartitioned(withSerdes('repartition', this[inner], options, serdeOptions), name, false))
  }

  /**
   * The newest value of each key, as a table. A record without a value deletes the row.
   *
   * @example
   * orders.toTable({ store: 'newest' }).filter((order) => order.amount > 100).toStream().to('large')
   * // orders ← ann: { amount: 150 }
   * // orders ← ann: { amount: 50 }
   * // large → ann: { amount: 150 }
   * // large → ann: null
   */
  toTable(options?: Stored<K, Exclude<V, null>>): Table<K, Exclude<V, null>> {
    return new Table(tableOf(this[inner], options as Stored | undefined))
  }

  /**
   * Groups the records by the key they have, for an aggregate. Records without a key are dropped and counted.
   *
   * @example
   * orders.groupByKey().count().toStream().to('counts')
   * // orders ← ann: { amount: 50 }
   * // counts → ann: 1
   */
  groupByKey(options?: WithSerdes<K, V> & Ordered): GroupedStream<K, Exclude<V, null>> {
    return new GroupedStream(withSerdes('groupByKey', this[inner], options, groupOptions), options)
  }

  /**
   * Groups the records by a key that `fn` chooses, for an aggregate. Records without a key are dropped and counted.
   *
   * @example
   * flights.groupBy((flight) => flight.origin).count().toStream().to('departures')
   * // flights ← 1: { origin: 'SFO' }
   * // departures → SFO: 1
   */
  groupBy<K2>(fn: StreamFn<K, V, K2>, options?: WithSerdes<K2, V> & Ordered): GroupedStream<K2, Exclude<V, null>> {
    const spec = { op: 'selectKey', fn: asUserFn(fn) } as const
    const change = regrouped(this[inner], options)
    const stream = this.#with(options?.name, 'KSTREAM-KEY-SELECT-', spec, change, { keyChanging: true })
    return new GroupedStream(stream[inner], options)
  }

  /**
   * Writes the records to a topic, or each to the topic that a function chooses. Without serdes keys are written as
   * text where they are text, and everything else as JSON.
   *
   * @example
   * orders.to((order) => (order.amount > 100 ? 'large' : 'small'))
   * // orders ← ann: { amount: 50 }
   * // small → ann: { amount: 50 }
   */
  to(topic: TopicChoice<K, V>, options?: WithSerdes<K, V>): void {
    addSink(this[inner], topic, options as WithSerdes<never, never> | undefined)
  }

  /**
   * Joins each record with what has the same key in another stream (within a window of time) or in a table (its row at
   * this moment), or with the row of a global table that `on` names. Records that find no partner are dropped.
   *
   * @example
   * orders.join(payments, (order, payment) => order.amount - payment.amount, { within: '1m' }).to('open')
   * // orders ← ann: { amount: 50 } @ 10s
   * // payments ← ann: { amount: 20 } @ 40s
   * // open → ann: 30
   * @example
   * orders.join(users, (order, user) => `${user.name}: ${order.amount}`).to('named')
   * // users ← u-1: { name: 'Ann' }
   * // orders ← u-1: { amount: 50 }
   * // named → u-1: 'Ann: 50'
   * @example
   * const on = (order: Order) => order.product
   * orders.join(products, (order, product) => order.amount * product.price, { on }).to('sums')
   * // products ← tea: { price: 3 }
   * // orders ← ann: { product: 'tea', amount: 2 }
   * // sums → ann: 6
   * @throws EngineError `TOPOLOGY_INVALID` when a join of two streams has no `within`, or one with a global table no
   * `on`.
   */
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
    options: Named & CallSettings & { readonly on: RecordFn<K, V, K2 | null> },
  ): Stream<K, R>
  join(other: unknown, joiner: unknown, options?: unknown): Stream<K, never> {
    return this.#join(other, joiner, options, false, false)
  }

  /**
   * As `join`; records that find no partner go on with null as the right side. In a join of two streams that is known
   * when the window of the record is over. A left record that comes later than window and grace is dropped and counted as
   * `late`; Kafka Streams tells it alone, with null.
   *
   * @example
   * orders.leftJoin(users, (order, user) => `${user?.name ?? 'nobody'}: ${order.amount}`).to('named')
   * // orders ← u-1: { amount: 50 }
   * // named → u-1: 'nobody: 50'
   * @throws EngineError `TOPOLOGY_INVALID` as `join`.
   */
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
    options: Named & CallSettings & { readonly on: RecordFn<K, V, K2 | null> },
  ): Stream<K, R>
  leftJoin(other: unknown, joiner: unknown, options?: unknown): Stream<K, never> {
    return this.#join(other, joiner, options, true, false)
  }

  /**
   * As `join` of two streams; records of either side that find no partner go on with null as the other side, when their
   * window is over. A record that comes later than window and grace is dropped and counted as `late`.
   *
   * @example
   * const both = (order: Order | null, payment: Payment | null) => [order?.amount ?? 0, payment?.amount ?? 0]
   * orders.outerJoin(payments, both, { within: '1m' }).to('both')
   * // orders ← ann: { amount: 50 } @ 0s
   * // payments ← bob: { amount: 20 } @ 10s
   * // payments ← bob: { amount: 30 } @ 5m
   * // orders ← bob: { amount: 60 } @ 5m
   * // both → bob: [60, 30]
   * // both → ann: [50, 0]
   * // both → bob: [0, 20]
   * @throws EngineError `TOPOLOGY_INVALID` when there is no `within`.
   */
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

  /**
   * Hands each record to a processor of your own, with stores, timers, and any number of results under any key. The
   * factory is called once for each task; what it returns is the processor, or just its `process` function.
   *
   * Where it has stores or timers, and keys may have changed above it, the stream is repartitioned first: the records of a
   * key are in one place. Kafka Streams does not do that; `repartition: false` leaves it so here, too.
   *
   * @example
   * const seen = keyValueStore('seen', { key: serdes.string, value: serdes.boolean })
   * const firsts = orders.process<string, Order>((context) => async (order, id) => {
   *   if (context.store(seen).putIfAbsent(id, true) === undefined) await context.forward(order.customer, order)
   * }, { stores: [seen] })
   * firsts.to('firsts')
   * // orders ← o-1: { customer: 'ann' }
   * // orders ← o-1: { customer: 'ann' }
   * // firsts → ann: { customer: 'ann' }
   * @throws EngineError `TOPOLOGY_INVALID` when two stores have one name, or what stands for one is none.
   */
  process<K2, V2>(factory: ProcessorFactory<K, V, K2, V2>, options?: ProcessOptions<K2, V2>): Stream<K2, V2> {
    return new Stream(addProcess(this[inner], factory, options as ProcessOptions | undefined, rekeyed(options)))
  }

  /**
   * As `process`, where results keep the key of the record that caused them: nothing is repartitioned after it.
   *
   * @example
   * const reminders = orders.processValues<string>((context) => ({
   *   process: (order, id, record) => context.timers.set(id, record.timestamp + 60_000),
   *   onTimer: (id) => context.forward(`${id} is a minute old`),
   * }), { timers: true })
   * reminders.to('reminders')
   * // orders ← o-1: { amount: 50 } @ 0s
   * // orders ← o-2: { amount: 50 } @ 2m
   * // reminders → o-1: 'o-1 is a minute old'
   * @throws EngineError `TOPOLOGY_INVALID` when two stores have one name, or what stands for one is none.
   */
  processValues<V2>(factory: ValueProcessorFactory<K, V, V2>, options?: ProcessOptions<K, V2>): Stream<K, V2> {
    const change = valueChange(options)
    return new Stream(addProcess(this[inner], factory, options as ProcessOptions | undefined, change, true))
  }
}
