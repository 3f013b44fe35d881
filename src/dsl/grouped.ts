/** Streams grouped by key: what aggregates begin with. */
import type { FoldFn, MergeFn, OperatorSpec, WindowSpec } from '../topology/operator-spec.ts'
import { invalid } from '../topology/physical.ts'
import { addAggregate, type GroupParts, groupedParent } from './aggregate-node.ts'
import { type AnySerde, settingsOf, tableStore, windowedKey } from './build.ts'
import { CogroupedStream } from './cogroup.ts'
import { inner, type StreamParts } from './handle.ts'
import { Table } from './table.ts'
import { AggregateTable } from './table-model.ts'
import type { Awaitable, Fold, Stored, Windowed } from './types.ts'
import type { Windows } from './windows.ts'

/** When a windowed aggregate tells its result. */
export type Emit = 'on-update' | 'on-close'

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

/** A reduce's first value is the aggregate. */
function reduction(fn: (aggregate: never, value: never) => unknown): FoldSpec {
  const reduce = fn as (aggregate: unknown, value: unknown) => unknown
  return {
    init: undefined,
    fold: (aggregate, value) => reduce(aggregate, value),
    merge: (left, right) => (left === null || left === undefined ? right : reduce(left, right)),
  }
}

export class GroupedStream<K, V> {
  readonly [inner]: GroupParts

  constructor(parts: StreamParts, groupName: string | undefined) {
    this[inner] = { ...parts, groupName, shared: { repartition: undefined } }
  }

  /** How many records each key has had. Values play no part, but records without a value are not counted. */
  count(options?: Stored<K, number>): Table<K, number> {
    return this.#aggregate('AGGREGATE', one, options, true)
  }

  /** Folds the values of each key; the first one is the first aggregate. */
  reduce(fn: (aggregate: V, value: V) => Awaitable<V>, options?: Stored<K, V>): Table<K, V> {
    return this.#aggregate('REDUCE', reduction(fn), options, false)
  }

  /**
   * Folds the values of each key into an aggregate. An aggregate of null deletes the row.
   *
   * @example
   * orders.groupByKey().aggregate(() => 0, (total, order) => total + order.amount)
   */
  aggregate<A>(init: () => A, fold: Fold<K, V, A>, options?: Stored<K, A>): Table<K, A> {
    return this.#aggregate('AGGREGATE', { init, fold: fold as FoldFn }, options, false)
  }

  /** Aggregates apart for each window of time. */
  windowedBy(windows: Windows<'session'>, options?: { readonly emit?: Emit }): SessionWindowedStream<K, V>
  windowedBy(
    windows: Windows<'time' | 'sliding' | 'unlimited'>,
    options?: { readonly emit?: Emit },
  ): WindowedStream<K, V>
  windowedBy(windows: { readonly spec: WindowSpec }, options?: { readonly emit?: Emit }): unknown {
    const { spec } = windows
    return spec.type === 'session'
      ? new SessionWindowedStream(this[inner], spec, options?.emit)
      : new WindowedStream(this[inner], spec, options?.emit)
  }

  /** Begins an aggregate that several grouped streams fold into. */
  cogroup<A>(fold: Fold<K, V, A>): CogroupedStream<K, A> {
    return new CogroupedStream(this[inner], fold as FoldFn)
  }

  #aggregate<A>(kind: string, fns: FoldSpec, options: Stored<K, A> | undefined, counts: boolean): Table<K, A> {
    const parts = this[inner]
    const prefix = `KSTREAM-${kind}-`
    const settings = settingsOf(options?.store)
    if (counts && options?.store !== undefined && settings.name === undefined) parts.build.names.store(prefix)
    const storeName = settings.name ?? parts.build.names.store(prefix)
    const name = parts.build.names.orGenerate(options?.name, prefix)
    const valueSerde = kind === 'REDUCE' ? parts.value : undefined
    const definition = tableStore({ name: storeName, key: parts.key, valueSerde, settings })
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
        spec: (output) => ({ op: 'streamAggregate', init, fold, readsValue, ...output }),
      },
      model,
    )
    const value = (settings.value as AnySerde | undefined) ?? valueSerde
    return new Table({ build: parts.build, name, node, key: parts.key, value, model })
  }
}

abstract class Windowing<K, V> {
  readonly #parts: GroupParts
  readonly #window: WindowSpec
  readonly #emit: Emit

  constructor(parts: GroupParts, window: WindowSpec, emit: Emit | undefined) {
    this.#parts = parts
    this.#window = window
    this.#emit = emit ?? 'on-update'
  }

  /** How many records each key has in each window. */
  count(options?: Stored<K, number>): Table<Windowed<K>, number> {
    return this.build('AGGREGATE', one, options, true)
  }

  /** Folds the values of each key and window; the first one is the first aggregate. */
  reduce(fn: (aggregate: V, value: V) => Awaitable<V>, options?: Stored<K, V>): Table<Windowed<K>, V> {
    return this.build('REDUCE', reduction(fn), options, false)
  }

  protected build<A>(
    kind: string,
    fns: FoldSpec,
    options: Stored<K, A> | undefined,
    counts: boolean,
  ): Table<Windowed<K>, A> {
    const parts = this.#parts
    const window = this.#window
    const { names } = parts.build
    const prefix = `KSTREAM-${kind}-`
    const settings = settingsOf(options?.store)
    // Counts use up a number more in the field, but not those in sliding windows.
    const usesUp = counts && window.type !== 'sliding'
    if (usesUp && options?.store !== undefined && settings.name === undefined) names.store(prefix)
    const storeName = settings.name ?? names.store(prefix)
    const name = names.orGenerate(options?.name, prefix)
    const valueSerde = kind === 'REDUCE' ? parts.value : undefined
    const definition = tableStore({ name: storeName, key: parts.key, valueSerde, settings, window })
    const model = new AggregateTable(definition)
    const parent = groupedParent(parts, storeName)
    const emit = this.#emit === 'on-close' ? 'close' : 'update'
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
      ...output,
    })
    const node = addAggregate(parts, parent, { name, definition, window, spec, finalOnly: emit === 'close' }, model)
    const value = (settings.value as AnySerde | undefined) ?? valueSerde
    const key = windowedKey((settings.key as AnySerde | undefined) ?? parts.key.serde, window)
    return new Table({ build: parts.build, name, node, key, value, model })
  }
}

/** A grouped stream cut into tumbling, hopping, sliding or unlimited windows. */
export class WindowedStream<K, V> extends Windowing<K, V> {
  /** Folds the values of each key and window into an aggregate. */
  aggregate<A>(init: () => A, fold: Fold<K, V, A>, options?: Stored<K, A>): Table<Windowed<K>, A> {
    return this.build('AGGREGATE', { init, fold: fold as FoldFn }, options, false)
  }
}

/** A grouped stream cut into sessions. */
export class SessionWindowedStream<K, V> extends Windowing<K, V> {
  /** Folds the values of each session; `merge` puts two aggregates together when a record joins their sessions. */
  aggregate<A>(
    init: () => A,
    fold: Fold<K, V, A>,
    merge: (left: A, right: A, key: K) => Awaitable<A>,
    options?: Stored<K, A>,
  ): Table<Windowed<K>, A> {
    return this.build('AGGREGATE', { init, fold: fold as FoldFn, merge: merge as MergeFn }, options, false)
  }
}
