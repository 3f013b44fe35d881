/** Rows of a table grouped by a new key. */
import { GraphNode } from '../topology/graph.ts'
import { changeSerde } from '../topology/internal-serdes.ts'
import type { FoldFn } from '../topology/operator-spec.ts'
import type { PhysicalBuilder } from '../topology/physical.ts'
import { type AnySerde, type Build, type KeyInfo, ownKeySerde, settingsOf, tableStore, valueSerdeOr } from './build.ts'
import { addBoundarySource, handOffSpec, inner } from './handle.ts'
import { Table } from './table.ts'
import { AggregateTable } from './table-model.ts'
import type { Awaitable, Fold, Stored } from './types.ts'

export interface GroupedTableParts {
  readonly build: Build
  readonly node: GraphNode
  readonly key: KeyInfo
  readonly value: AnySerde | undefined
}

interface Folds {
  readonly init: (() => unknown) | undefined
  readonly add: FoldFn
  readonly subtract: FoldFn
}

export class GroupedTable<K, V> {
  readonly [inner]: GroupedTableParts
  readonly #groupName: string | undefined
  #repartition: GraphNode | undefined

  constructor(parts: GroupedTableParts, groupName: string | undefined) {
    this[inner] = parts
    this.#groupName = groupName
  }

  /** How many rows each group has. */
  count(options?: Stored<K, number>): Table<K, number> {
    const add: FoldFn = (count) => (count as number) + 1
    const subtract: FoldFn = (count) => (count as number) - 1
    return this.#aggregate('AGGREGATE', { init: () => 0, add, subtract }, options)
  }

  /** Folds the rows of each group: `add` takes a row in, `subtract` takes one out again when it changes or leaves. */
  reduce(
    add: (aggregate: V, value: V) => Awaitable<V>,
    subtract: (aggregate: V, value: V) => Awaitable<V>,
    options?: Stored<K, V>,
  ): Table<K, V> {
    return this.#aggregate('REDUCE', { init: undefined, add: add as FoldFn, subtract: subtract as FoldFn }, options)
  }

  /** As `reduce`, into an aggregate of a type of its own. */
  aggregate<A>(init: () => A, add: Fold<K, V, A>, subtract: Fold<K, V, A>, options?: Stored<K, A>): Table<K, A> {
    return this.#aggregate('AGGREGATE', { init, add: add as FoldFn, subtract: subtract as FoldFn }, options)
  }

  #aggregate<A>(kind: string, folds: Folds, options: Stored<K, A> | undefined): Table<K, A> {
    const { build, key, value, node: parent } = this[inner]
    const { names, graph } = build
    const prefix = `KTABLE-${kind}-`
    const settings = settingsOf(options?.store)
    // In the field stores of all three are generated under one name, those of `reduce` too.
    const storePrefix = 'KTABLE-AGGREGATE-'
    const storeName = settings.name ?? names.store(storePrefix)
    const sink = names.suffixOrGenerate(options?.name, '-sink', 'KSTREAM-SINK-')
    const source = names.suffixOrGenerate(options?.name, '-source', 'KSTREAM-SOURCE-')
    const name = names.orGenerate(options?.name, prefix)
    const repartition = this.#repartitionNode(sink, source, this.#groupName ?? storeName)
    graph.add(parent, repartition)
    const valueSerde = kind === 'REDUCE' ? value : undefined
    const definition = tableStore({ name: storeName, key, valueSerde, settings })
    const model = new AggregateTable(definition)
    const write = (builder: PhysicalBuilder, node: GraphNode): void => {
      builder.addProcessor(name, () => ({ op: 'tableAggregate', ...folds, ...model.output() }), node.parentNames())
      builder.addStore(definition, name)
    }
    const node = graph.add(
      repartition,
      new GraphNode(name, { outputVersioned: definition.kind === 'versioned', write }),
    )
    return new Table({ build, name, node, key, value: (settings.value as AnySerde | undefined) ?? valueSerde, model })
  }

  /** Groupings with a name are repartitioned once for all their aggregates. */
  #repartitionNode(sink: string, source: string, base: string): GraphNode {
    if (this.#repartition !== undefined && this.#groupName !== undefined) return this.#repartition
    const { key, value } = this[inner]
    const topic = `${base}-repartition`
    const serde = changeSerde(valueSerdeOr(value)) as AnySerde
    const write = (builder: PhysicalBuilder, node: GraphNode): void => {
      builder.addSink(sink, () => handOffSpec(topic, { key, value: serde, carriesChanges: true }), node.parentNames())
      addBoundarySource(builder, source, topic, topic, { key: ownKeySerde(key), value: serde })
    }
    this.#repartition = new GraphNode(source, { write })
    return this.#repartition
  }
}
