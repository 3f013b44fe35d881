/** Several grouped streams folded into one aggregate. */
import { GraphNode } from '../topology/graph.ts'
import { repartitionNames } from '../topology/names.ts'
import type { FoldFn, MergeFn, OperatorSpec, WindowSpec } from '../topology/operator-spec.ts'
import type { PhysicalBuilder } from '../topology/physical.ts'
import { addAggregate, type GroupParts } from './aggregate-node.ts'
import { type AnySerde, type KeyInfo, settingsOf, tableStore, windowedKey } from './build.ts'
import type { GroupedStream } from './grouped.ts'
import { inner, makeRepartition } from './handle.ts'
import { Table } from './table.ts'
import { AggregateTable } from './table-model.ts'
import type { Awaitable, Fold, Stored, Windowed } from './types.ts'
import type { Windows } from './windows.ts'

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

/** The nodes that the members' aggregates follow: members may share one grouping, which is repartitioned once. */
function parentsOf(members: readonly Member[], storeName: string): Map<GroupParts['shared'], GraphNode> {
  const parents = new Map<GroupParts['shared'], GraphNode>()
  for (const { group } of members) {
    if (!group.rekeyed) {
      parents.set(group.shared, group.node)
      continue
    }
    const base = group.groupName ?? storeName
    if (parents.has(group.shared)) {
      repartitionNames(group.build.names, base)
      continue
    }
    const node = makeRepartition(group.build, base, { key: group.key, value: group.value }, true)
    group.build.graph.add(group.node, node)
    parents.set(group.shared, node)
  }
  return parents
}

function aggregateTogether(members: readonly Member[], shape: CogroupShape): Table<never, never> {
  const first = (members[0] as Member).group
  const { names, graph } = first.build
  const { window, init, merge } = shape
  const settings = settingsOf(shape.options?.store)
  const storeName = settings.name ?? names.store('COGROUPKSTREAM-AGGREGATE-')
  const key: KeyInfo = members.map((member) => member.group.key).find((info) => info.serde !== undefined) ?? first.key
  const definition = tableStore({
    name: storeName,
    key,
    valueSerde: undefined,
    settings,
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

export class CogroupedStream<K, A> {
  readonly #members: readonly Member[]

  constructor(group: GroupParts, fold: FoldFn, before: readonly Member[] = []) {
    const known = before.findIndex((member) => member.group.shared === group.shared)
    this.#members =
      known < 0 ? [...before, { group, fold }] : before.map((member, i) => (i === known ? { group, fold } : member))
  }

  /** Adds a grouped stream with the function that folds its values. */
  cogroup<V2>(grouped: GroupedStream<K, V2>, fold: Fold<K, V2, A>): CogroupedStream<K, A> {
    return new CogroupedStream<K, A>(grouped[inner], fold as FoldFn, this.#members)
  }

  /** The aggregate of all members. */
  aggregate(init: () => A, options?: Stored<K, A>): Table<K, A> {
    return aggregateTogether(this.#members, {
      init,
      merge: undefined,
      window: undefined,
      options: options as Stored | undefined,
    }) as unknown as Table<K, A>
  }

  /** Aggregates apart for each window of time. */
  windowedBy(windows: Windows<'session'>): SessionWindowedCogroup<K, A>
  windowedBy(windows: Windows<'time' | 'sliding' | 'unlimited'>): WindowedCogroup<K, A>
  windowedBy(windows: { readonly spec: WindowSpec }): unknown {
    return windows.spec.type === 'session'
      ? new SessionWindowedCogroup(this.#members, windows.spec)
      : new WindowedCogroup(this.#members, windows.spec)
  }
}

export class WindowedCogroup<K, A> {
  readonly #members: readonly Member[]
  readonly #window: WindowSpec

  constructor(members: readonly Member[], window: WindowSpec) {
    this.#members = members
    this.#window = window
  }

  aggregate(init: () => A, options?: Stored<K, A>): Table<Windowed<K>, A> {
    const shape = { init, merge: undefined, window: this.#window, options: options as Stored | undefined }
    return aggregateTogether(this.#members, shape) as unknown as Table<Windowed<K>, A>
  }
}

export class SessionWindowedCogroup<K, A> {
  readonly #members: readonly Member[]
  readonly #window: WindowSpec

  constructor(members: readonly Member[], window: WindowSpec) {
    this.#members = members
    this.#window = window
  }

  aggregate(
    init: () => A,
    merge: (left: A, right: A, key: K) => Awaitable<A>,
    options?: Stored<K, A>,
  ): Table<Windowed<K>, A> {
    const shape = { init, merge: merge as MergeFn, window: this.#window, options: options as Stored | undefined }
    return aggregateTogether(this.#members, shape) as unknown as Table<Windowed<K>, A>
  }
}
