/** Streams grouped by key: what aggregates begin with. */
import type { CallSpec, FoldFn, MergeFn, OperatorSpec, WindowSpec } from '../topology/operator-spec.ts'
import { checkOptions, notFunction } from '../topology/check-given.ts'
import { invalid } from '../topology/physical.ts'
import { addAggregate, type GroupParts, groupedParent } from './nodes.ts'
import { type AnySerde, checkEmit, firstOf, settingsOf, tableStore, windowedKey } from './build.ts'
import { CogroupedStream } from './cogroup.ts'
import { inner, type StreamParts } from './handle.ts'
import { type CallSettings, callsOf, foldOptions } from './retry.ts'
import { Table } from './table.ts'
import { AggregateTable } from './table-model.ts'
import {
  type Awaitable,
  type Fold,
  type Named,
  type Ordered,
  type Stored,
  storedOptions,
  type Windowed,
} from './types.ts'
import { specOf, type Windows } from './windows.ts'

/**
 * When a windowed aggregate emits its result: with every change (`on-update`, the default), each changed window once per
 * commit (`per-commit`), or once, when the window closes (`on-close`).
 */
export type Emit = 'on-update' | 'per-commit' | 'on-close'

interface FoldSpec {
  readonly init: (() => unknown) | undefined
  readonly fold: FoldFn
  readonly merge?: MergeFn | undefined
  readonly readsValue?: boolean
}

const one: FoldSpec = {
  readsValue: false,
  init: () => 0,
  fold: (count) => (count as number) + 1,
  merge: (left, right) => (left as number) + (right as number),
}

/** In a reduce the first value is the first aggregate. */
function reduction(fn: (aggregate: never, value: never) => unknown): FoldSpec {
  const reduce = fn as (aggregate: unknown, value: unknown) => unknown
  if (typeof fn !== 'function') throw notFunction('a reduce', 'the function that folds a value in', fn)
  return {
    init: undefined,
    fold: (aggregate, value) => reduce(aggregate, value),
    merge: (left, right) => (left === null || left === undefined ? right : reduce(left, right)),
  }
}

/** Counting calls no function of the application. */
function checked(
  kind: string,
  options: (Stored & CallSettings) | undefined,
  counts: boolean,
): { readonly method: string; readonly calls: CallSpec | undefined } {
  const method = counts ? 'count' : kind.toLowerCase()
  if (counts) checkOptions<Stored>(method, options, storedOptions)
  return { method, calls: counts ? undefined : callsOf(method, options, foldOptions) }
}

/**
 * A stream grouped by key: what aggregates over all time begin with, and windows. Made by `stream.groupByKey()` and
 * `stream.groupBy(…)`. Each aggregate keeps its rows in a store; give it a name (`{ store: 'totals' }`), or a change of
 * the topology moves it.
 */
export class GroupedStream<K, V> {
  readonly [inner]: GroupParts

  /** @internal */
  constructor(parts: StreamParts, options: (Named & Ordered) | undefined) {
    const takesAsArrived = options?.order === 'arrival'
    this[inner] = { ...parts, groupName: options?.name, takesAsArrived, shared: { repartition: undefined } }
  }

  /**
   * Counts the records of each key. Records without a value are not counted.
   *
   * @example
   * orders.groupByKey().count({ store: 'orders-by-customer' }).toStream().to('counts')
   * // orders ← ann: { amount: 50 }
   * // orders ← ann: { amount: 20 }
   * // counts → ann: 1
   * // counts → ann: 2
   */
  count(options?: Stored<K, number>): Table<K, number, never> {
    return this.#aggregate('AGGREGATE', one, options, true)
  }

  /**
   * Folds the values of each key into one of the same type; the first value is the first aggregate.
   *
   * @example
   * const amounts = orders.mapValues((order) => order.amount)
   * amounts.groupByKey().reduce((largest, amount) => Math.max(largest, amount)).toStream().to('largest')
   * // orders ← ann: { amount: 50 }
   * // orders ← ann: { amount: 20 }
   * // largest → ann: 50
   * // largest → ann: 50
   */
  reduce(fn: (aggregate: V, value: V) => Awaitable<V>, options?: Stored<K, V> & CallSettings): Table<K, V, never> {
    return this.#aggregate('REDUCE', reduction(fn), options, false)
  }

  /**
   * Folds the values of each key into an aggregate of any type. `init` makes the first one; null deletes the row.
   *
   * @example
   * orders.groupByKey().aggregate(() => 0, (total, order) => total + order.amount).toStream().to('totals')
   * // orders ← ann: { amount: 50 }
   * // orders ← ann: { amount: 20 }
   * // totals → ann: 50
   * // totals → ann: 70
   */
  aggregate<A>(init: () => A, fold: Fold<K, V, A>, options?: Stored<K, A> & CallSettings): Table<K, A, never> {
    return this.#aggregate('AGGREGATE', { init: firstOf(init), fold: fold as FoldFn }, options, false)
  }

  /**
   * Aggregates each window of time by itself. The key of a result is the key with the window, `{ key, start, end }`.
   *
   * @example
   * clicks.groupByKey().windowedBy(tumbling('1m'), { emit: 'on-close' }).count().toStream().to('per-minute')
   * // clicks ← ann: { page: 'cart' } @ 10s
   * // clicks ← ann: { page: 'shop' } @ 20s
   * // clicks ← ann: { page: 'shop' } @ 70s
   * // per-minute → ann [0s, 1m): 2
   */
  windowedBy(windows: Windows<'session'>, options?: { readonly emit?: Emit }): SessionWindowedStream<K, V>
  windowedBy(
    windows: Windows<'time' | 'sliding' | 'unlimited'>,
    options?: { readonly emit?: Emit },
  ): WindowedStream<K, V>
  windowedBy(windows: { readonly spec: WindowSpec }, options?: { readonly emit?: Emit }): unknown {
    const spec = specOf(windows)
    checkOptions('windowedBy', options, { emit: true })
    checkEmit(options?.emit, ['on-update', 'per-commit', 'on-close'])
    return spec.type === 'session'
      ? new SessionWindowedStream(this[inner], spec, options?.emit)
      : new WindowedStream(this[inner], spec, options?.emit)
  }

  /**
   * Begins an aggregate that several grouped streams fold into, each with a function of its own.
   *
   * @example
   * orders.groupByKey()
   *   .cogroup<number>((open, order) => open + order.amount)
   *   .cogroup(payments.groupByKey(), (open, payment) => open - payment.amount)
   *   .aggregate(() => 0)
   *   .toStream()
   *   .to('open')
   * // orders ← ann: { amount: 50 }
   * // payments ← ann: { amount: 20 }
   * // open → ann: 50
   * // open → ann: 30
   */
  cogroup<A>(fold: Fold<K, V, A>): CogroupedStream<K, A> {
    return new CogroupedStream(this[inner], fold as FoldFn)
  }

  #aggregate<A>(
    kind: string,
    fns: FoldSpec,
    options: (Stored<K, A> & CallSettings) | undefined,
    counts: boolean,
  ): Table<K, A, never> {
    const parts = this[inner]
    const prefix = `KSTREAM-${kind}-`
    const { method, calls } = checked(kind, options, counts)
    const settings = settingsOf(method, options?.store)
    if (counts && options?.store !== undefined && settings.name === undefined) parts.build.names.store(prefix)
    const storeName = settings.name ?? parts.build.names.store(prefix)
    const name = parts.build.names.orGenerate(options?.name, prefix)
    const valueSerde = kind === 'REDUCE' ? parts.value : undefined
    const definition = tableStore({ name: storeName, key: parts.key, valueSerde, settings, emit: options?.emit })
    const model = new AggregateTable(definition)
    const parent = groupedParent(parts, storeName)
    const { init, fold, readsValue = true } = fns
    const node = addAggregate(
      parts,
      parent,
      {
        name,
        definition,
        window: undefined,
        spec: (output) => ({ op: 'streamAggregate', init, fold, readsValue, calls, ...output }),
      },
      model,
    )
    const value = (settings.value as AnySerde | undefined) ?? valueSerde
    return new Table({ build: parts.build, name, node, key: parts.key, value, model })
  }
}

abstract class Windowing<K, V, D extends null> {
  readonly #parts: GroupParts
  readonly #window: WindowSpec
  readonly #emit: Emit | undefined

  /** @internal */
  constructor(parts: GroupParts, window: WindowSpec, emit: Emit | undefined) {
    this.#parts = parts
    this.#window = window
    this.#emit = emit
  }

  /**
   * Counts the records of each key in each window.
   *
   * @example
   * clicks.groupByKey().windowedBy(tumbling('1m')).count({ store: 'clicks-per-minute' }).toStream().to('per-minute')
   * // clicks ← ann: { page: 'cart' } @ 10s
   * // clicks ← ann: { page: 'shop' } @ 20s
   * // per-minute → ann [0s, 1m): 1
   * // per-minute → ann [0s, 1m): 2
   * @throws EngineError `TOPOLOGY_INVALID` when an unlimited window is to emit on close, or the retention of the store
   * is shorter than a window with its grace.
   */
  count(options?: Stored<K, number>): Table<Windowed<K>, number, D> {
    return this.build('AGGREGATE', one, options, true)
  }

  /**
   * Folds the values of each key and window into one of the same type; the first value is the first aggregate.
   *
   * @example
   * const amounts = orders.mapValues((order) => order.amount)
   * amounts.groupByKey().windowedBy(session('1m')).reduce((sum, amount) => sum + amount).toStream().to('per-visit')
   * // orders ← ann: { amount: 50 } @ 0s
   * // orders ← ann: { amount: 20 } @ 30s
   * // per-visit → ann [0s, 0s]: 50
   * // per-visit → ann [0s, 0s]: null
   * // per-visit → ann [0s, 30s]: 70
   * @throws EngineError `TOPOLOGY_INVALID` as `count`.
   */
  reduce(
    fn: (aggregate: V, value: V) => Awaitable<V>,
    options?: Stored<K, V> & CallSettings,
  ): Table<Windowed<K>, V, D> {
    return this.build('REDUCE', reduction(fn), options, false)
  }

  protected build<A>(
    kind: string,
    fns: FoldSpec,
    options: (Stored<K, A> & CallSettings) | undefined,
    counts: boolean,
  ): Table<Windowed<K>, A, D> {
    const parts = this.#parts
    const window = this.#window
    const { names } = parts.build
    const prefix = `KSTREAM-${kind}-`
    const { method, calls } = checked(kind, options, counts)
    const settings = settingsOf(method, options?.store)
    // In Kafka Streams a count uses up one more number, except in sliding windows.
    const usesUp = counts && window.type !== 'sliding'
    if (usesUp && options?.store !== undefined && settings.name === undefined) names.store(prefix)
    const storeName = settings.name ?? names.store(prefix)
    const name = names.orGenerate(options?.name, prefix)
    const valueSerde = kind === 'REDUCE' ? parts.value : undefined
    const isFinal = this.#emit === 'on-close'
    if (isFinal && options?.emit !== undefined)
      throw invalid(`${name} tells its windows when they close; leave out emit: '${options.emit}'`)
    const told = options?.emit ?? (this.#emit === 'on-close' ? 'on-update' : this.#emit)
    const definition = tableStore({ name: storeName, key: parts.key, valueSerde, settings, window, emit: told })
    const model = new AggregateTable(definition)
    const parent = groupedParent(parts, storeName)
    const emit = isFinal ? 'close' : 'update'
    if (emit === 'close' && window.type === 'unlimited')
      throw invalid('an unlimited window never closes; it can only tell its result on update')
    const spec = (output: ReturnType<AggregateTable['output']>): OperatorSpec => ({
      op: 'windowAggregate',
      window,
      emit,
      init: fns.init,
      fold: fns.fold,
      readsValue: fns.readsValue ?? true,
      merge: fns.merge,
      calls,
      ...output,
    })
    const node = addAggregate(parts, parent, { name, definition, window, spec, finalOnly: emit === 'close' }, model)
    const value = (settings.value as AnySerde | undefined) ?? valueSerde
    const key = windowedKey((settings.key as AnySerde | undefined) ?? parts.key.serde, window)
    return new Table({ build: parts.build, name, node, key, value, model })
  }
}

/** A grouped stream cut into tumbling, hopping, sliding or unlimited windows. Made by `grouped.windowedBy(…)`. */
export class WindowedStream<K, V> extends Windowing<K, V, never> {
  /**
   * Folds the values of each key and window into an aggregate of any type. `init` makes the first one.
   *
   * @example
   * orders.groupByKey()
   *   .windowedBy(hopping('2m', '1m'), { emit: 'on-close' })
   *   .aggregate(() => 0, (total, order) => total + order.amount)
   *   .toStream()
   *   .to('totals')
   * // orders ← ann: { amount: 50 } @ 70s
   * // orders ← ann: { amount: 20 } @ 4m
   * // totals → ann [0s, 2m): 50
   * // totals → ann [1m, 3m): 50
   * @throws EngineError `TOPOLOGY_INVALID` as `count`.
   */
  aggregate<A>(
    init: () => A,
    fold: Fold<K, V, A>,
    options?: Stored<K, A> & CallSettings,
  ): Table<Windowed<K>, A, never> {
    return this.build('AGGREGATE', { init: firstOf(init), fold: fold as FoldFn }, options, false)
  }
}

/** A grouped stream cut into sessions of activity. Made by `grouped.windowedBy(session(…))`. */
export class SessionWindowedStream<K, V> extends Windowing<K, V, null> {
  /**
   * Folds the values of each session into an aggregate. `merge` puts two aggregates together where a record joins their
   * sessions.
   *
   * @example
   * clicks.groupByKey()
   *   .windowedBy(session('1m'), { emit: 'on-close' })
   *   .aggregate<string[]>(
   *     () => [],
   *     (pages, click) => [...pages, click.page],
   *     (earlier, later) => [...earlier, ...later],
   *   )
   *   .toStream()
   *   .to('visits')
   * // clicks ← ann: { page: 'shop' } @ 0s
   * // clicks ← ann: { page: 'cart' } @ 30s
   * // clicks ← bob: { page: 'shop' } @ 5m
   * // visits → ann [0s, 30s]: ['shop', 'cart']
   * @throws EngineError `TOPOLOGY_INVALID` as `count`.
   */
  aggregate<A>(
    init: () => A,
    fold: Fold<K, V, A>,
    merge: (left: A, right: A, key: K) => Awaitable<A>,
    options?: Stored<K, A> & CallSettings,
  ): Table<Windowed<K>, A> {
    const fns = { init: firstOf(init), fold: fold as FoldFn, merge: merge as MergeFn }
    return this.build('AGGREGATE', fns, options, false)
  }
}
