/** Several grouped streams folded into one aggregate. */
import { GraphNode } from '../topology/graph.ts'
import { checkOptions } from '../topology/check-given.ts'
import type { FoldFn, MergeFn, OperatorSpec, WindowSpec } from '../topology/operator-spec.ts'
import type { PhysicalBuilder } from '../topology/physical.ts'
import { addAggregate, groupedParent, type GroupParts } from './nodes.ts'
import { type AnySerde, firstOf, type KeyInfo, settingsOf, tableStore, windowedKey } from './build.ts'
import type { GroupedStream } from './grouped.ts'
import { inner } from './handle.ts'
import { Table } from './table.ts'
import { AggregateTable } from './table-model.ts'
import { type Awaitable, type Fold, type Stored, storedOptions, type Windowed } from './types.ts'
import { specOf, type Windows } from './windows.ts'

interface Member {
  readonly group: GroupParts
  readonly fold: FoldFn
}

interface CogroupShape {
  readonly init: () => unknown
  readonly merge: MergeFn | undefined
  readonly window: WindowSpec | undefined
  readonly options: Stored | undefined
}

/** The nodes that the aggregates of the members follow. Each re-keyed grouping without a name has a topic of its own. */
function parentsOf(members: readonly Member[], storeName: string): Map<GroupParts['shared'], GraphNode> {
  const parents = new Map<GroupParts['shared'], GraphNode>()
  let unnamed = 0
  for (const { group } of members) {
    if (group.rekeyed && group.groupName === undefined) unnamed++
    // The first one's name is that of Kafka Streams, which refuses a second one.
    parents.set(group.shared, groupedParent(group, unnamed > 1 ? `${storeName}-${unnamed}` : storeName))
  }
  return parents
}

function aggregateTogether(members: readonly Member[], shape: CogroupShape): Table<never, never> {
  const first = (members[0] as Member).group
  const { names, graph } = first.build
  const { window, merge } = shape
  const init = firstOf(shape.init)
  checkOptions('aggregate', shape.options, storedOptions)
  const settings = settingsOf('aggregate', shape.options?.store)
  const storeName = settings.name ?? names.store('COGROUPKSTREAM-AGGREGATE-')
  const key: KeyInfo = members.map((member) => member.group.key).find((info) => info.serde !== undefined) ?? first.key
  const definition = tableStore({
    name: storeName,
    key,
    valueSerde: undefined,
    settings,
    emit: shape.options?.emit,
    ...(window ? { window } : {}),
  })
  const model = new AggregateTable(definition)
  const parents = parentsOf(members, storeName)
  const nodes = members.map(({ group, fold }, i) => {
    const name = names.suffixOrGenerate(shape.options?.name, `-cogroup-agg-${i}`, 'COGROUPKSTREAM-AGGREGATE-')
    const spec = (output: ReturnType<AggregateTable['output']>): OperatorSpec =>
      window
        ? { op: 'windowAggregate', window, emit: 'update', init, fold, readsValue: true, merge, ...output }
        : { op: 'streamAggregate', init, fold, readsValue: true, ...output }
    return addAggregate(
      group,
      parents.get(group.shared) as GraphNode,
      { name, definition, window, spec, addsStore: i === 0 },
      model,
    )
  })
  const name = names.suffixOrGenerate(shape.options?.name, '-cogroup-merge', 'COGROUPKSTREAM-MERGE-')
  const write = (builder: PhysicalBuilder, node: GraphNode): void =>
    builder.addProcessor(name, () => ({ op: 'passThrough' }), node.parentNames())
  const node = graph.add(nodes, new GraphNode(name, { write }))
  const result = window ? windowedKey((settings.key as AnySerde | undefined) ?? key.serde, window) : key
  return new Table({
    build: first.build,
    name,
    node,
    key: result,
    value: settings.value as AnySerde | undefined,
    model,
  })
}

/**
 * Several grouped streams that fold into one aggregate. Made by `grouped.cogroup(…)`. The streams must have equally
 * many partitions where they are not re-keyed.
 */
export class CogroupedStream<K, A> {
  readonly #members: readonly Member[]

  /** @internal */
  constructor(group: GroupParts, fold: FoldFn, before: readonly Member[] = []) {
    const known = before.findIndex((member) => member.group.shared === group.shared)
    this.#members =
      known < 0 ? [...before, { group, fold }] : before.map((member, i) => (i === known ? { group, fold } : member))
  }

  /**
   * Adds a grouped stream with the function that folds its values.
   *
   * @example
   * const open = orders.groupByKey().cogroup<number>((sum, order) => sum + order.amount)
   * const both = open.cogroup(payments.groupByKey(), (sum, payment) => sum - payment.amount)
   * both.aggregate(() => 0).toStream().to('open')
   * // orders ← ann: { amount: 50 }
   * // payments ← ann: { amount: 20 }
   * // open → ann: 50
   * // open → ann: 30
   */
  cogroup<V2>(grouped: GroupedStream<K, V2>, fold: Fold<K, V2, A>): CogroupedStream<K, A> {
    return new CogroupedStream<K, A>(grouped[inner], fold as FoldFn, this.#members)
  }

  /**
   * The aggregate of all streams. `init` makes the first one of a key; null deletes the row.
   *
   * @example
   * const total = orders.groupByKey().cogroup<number>((sum, order) => sum + order.amount)
   * total.aggregate(() => 100, { store: 'totals' }).toStream().to('totals')
   * // orders ← ann: { amount: 50 }
   * // totals → ann: 150
   */
  aggregate(init: () => A, options?: Stored<K, A>): Table<K, A, never> {
    return aggregateTogether(this.#members, {
      init,
      merge: undefined,
      window: undefined,
      options: options as Stored | undefined,
    }) as unknown as Table<K, A, never>
  }

  /**
   * Aggregates each window of time by itself.
   *
   * @example
   * const total = orders.groupByKey().cogroup<number>((sum, order) => sum + order.amount)
   * total.windowedBy(tumbling('1m')).aggregate(() => 0).toStream().to('per-minute')
   * // orders ← ann: { amount: 50 } @ 10s
   * // per-minute → ann [0s, 1m): 50
   */
  windowedBy(windows: Windows<'session'>): SessionWindowedCogroup<K, A>
  windowedBy(windows: Windows<'time' | 'sliding' | 'unlimited'>): WindowedCogroup<K, A>
  windowedBy(windows: { readonly spec: WindowSpec }): unknown {
    const spec = specOf(windows)
    return spec.type === 'session'
      ? new SessionWindowedCogroup(this.#members, spec)
      : new WindowedCogroup(this.#members, spec)
  }
}

/** Several grouped streams that fold into one aggregate for each window. Made by `cogrouped.windowedBy(…)`. */
export class WindowedCogroup<K, A> {
  readonly #members: readonly Member[]
  readonly #window: WindowSpec

  /** @internal */
  constructor(members: readonly Member[], window: WindowSpec) {
    this.#members = members
    this.#window = window
  }

  /**
   * The aggregate of each key and window. `init` makes the first one.
   *
   * @example
   * const total = orders.groupByKey().cogroup<number>((sum, order) => sum + order.amount)
   * total.windowedBy(sliding('10s')).aggregate(() => 0).toStream().to('sums')
   * // orders ← ann: { amount: 50 } @ 1m
   * // sums → ann [50s, 1m]: 50
   * @throws EngineError `TOPOLOGY_INVALID` when the retention of the store is shorter than a window with its grace.
   */
  aggregate(init: () => A, options?: Stored<K, A>): Table<Windowed<K>, A, never> {
    const shape = { init, merge: undefined, window: this.#window, options: options as Stored | undefined }
    return aggregateTogether(this.#members, shape) as unknown as Table<Windowed<K>, A, never>
  }
}

/**
 * Several grouped streams that fold into one aggregate for each session. Made by `cogrouped.windowedBy(session(…))`.
 */
export class SessionWindowedCogroup<K, A> {
  readonly #members: readonly Member[]
  readonly #window: WindowSpec

  /** @internal */
  constructor(members: readonly Member[], window: WindowSpec) {
    this.#members = members
    this.#window = window
  }

  /**
   * The aggregate of each session. `merge` puts two aggregates together where a record joins their sessions.
   *
   * @example
   * const total = orders.groupByKey().cogroup<number>((sum, order) => sum + order.amount)
   * total.windowedBy(session('1m')).aggregate(() => 0, (earlier, later) => earlier + later).toStream().to('per-visit')
   * // orders ← ann: { amount: 50 } @ 0s
   * // orders ← ann: { amount: 20 } @ 30s
   * // per-visit → ann [0s, 0s]: 50
   * // per-visit → ann [0s, 0s]: null
   * // per-visit → ann [0s, 30s]: 70
   * @throws EngineError `TOPOLOGY_INVALID` when the retention of the store is shorter than a window with its grace.
   */
  aggregate(
    init: () => A,
    merge: (left: A, right: A, key: K) => Awaitable<A>,
    options?: Stored<K, A>,
  ): Table<Windowed<K>, A> {
    const shape = { init, merge: merge as MergeFn, window: this.#window, options: options as Stored | undefined }
    return aggregateTogether(this.#members, shape) as unknown as Table<Windowed<K>, A>
  }
}
