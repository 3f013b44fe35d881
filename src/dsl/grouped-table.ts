/** Rows of a table grouped by a new key. */
import { GraphNode } from '../topology/graph.ts'
import { checkOptions } from '../topology/check-given.ts'
import { changeSerde } from '../topology/serdes/internal-serdes.ts'
import type { FoldFn } from '../topology/operator-spec.ts'
import type { PhysicalBuilder } from '../topology/physical.ts'
import {
  type AnySerde,
  type Build,
  firstOf,
  type KeyInfo,
  ownKeySerde,
  settingsOf,
  tableStore,
  valueSerdeOr,
} from './build.ts'
import { addBoundarySource, handOffSpec, inner } from './handle.ts'
import { Table } from './table.ts'
import { AggregateTable } from './table-model.ts'
import { type Awaitable, type Fold, type Stored, storedOptions } from './types.ts'

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

/**
 * The rows of a table grouped by another key. Made by `table.groupBy(…)`. When a row changes, its old value is taken
 * out of its old group and the new one put into the new group, so an aggregate needs a function for each way.
 */
export class GroupedTable<K, V> {
  readonly [inner]: GroupedTableParts
  readonly #groupName: string | undefined
  #repartition: GraphNode | undefined

  /** @internal */
  constructor(parts: GroupedTableParts, groupName: string | undefined) {
    this[inner] = parts
    this.#groupName = groupName
  }

  /**
   * Counts the rows of each group.
   *
   * @example
   * users.groupBy((user) => [user.city, user]).count().toStream().to('people')
   * // users ← u-1: { name: 'Ann', city: 'Oslo' }
   * // users ← u-2: { name: 'Bob', city: 'Oslo' }
   * // users ← u-1: null
   * // people → Oslo: 1
   * // people → Oslo: 2
   * // people → Oslo: 1
   */
  count(options?: Stored<K, number>): Table<K, number, never> {
    const add: FoldFn = (count) => (count as number) + 1
    const subtract: FoldFn = (count) => (count as number) - 1
    return this.#aggregate('count', { init: () => 0, add, subtract }, options)
  }

  /**
   * Folds the rows of each group into a value of the same type: `add` takes a row in, `subtract` takes one out that
   * changes or leaves.
   *
   * @example
   * const groups = prices.groupBy((price) => [price > 10 ? 'dear' : 'cheap', price])
   * groups.reduce((sum, price) => sum + price, (sum, price) => sum - price).toStream().to('sums')
   * // prices ← tea: 4
   * // prices ← milk: 2
   * // prices ← tea: 5
   * // sums → cheap: 4
   * // sums → cheap: 6
   * // sums → cheap: 7
   */
  reduce(
    add: (aggregate: V, value: V) => Awaitable<V>,
    subtract: (aggregate: V, value: V) => Awaitable<V>,
    options?: Stored<K, V>,
  ): Table<K, V, never> {
    return this.#aggregate('reduce', { init: undefined, add: add as FoldFn, subtract: subtract as FoldFn }, options)
  }

  /**
   * As `reduce`, into an aggregate of any type, which `init` makes.
   *
   * @example
   * users.groupBy((user) => [user.city, user.name])
   *   .aggregate<string[]>(
   *     () => [],
   *     (names, name) => [...names, name],
   *     (names, name) => names.filter((other) => other !== name),
   *   )
   *   .toStream()
   *   .to('names')
   * // users ← u-1: { name: 'Ann', city: 'Oslo' }
   * // users ← u-2: { name: 'Bob', city: 'Oslo' }
   * // names → Oslo: ['Ann']
   * // names → Oslo: ['Ann', 'Bob']
   */
  aggregate<A>(init: () => A, add: Fold<K, V, A>, subtract: Fold<K, V, A>, options?: Stored<K, A>): Table<K, A, never> {
    const folds = { init: firstOf(init), add: add as FoldFn, subtract: subtract as FoldFn }
    return this.#aggregate('aggregate', folds, options)
  }

  #aggregate<A>(method: string, folds: Folds, options: Stored<K, A> | undefined): Table<K, A, never> {
    const { build, key, value, node: parent } = this[inner]
    const { names, graph } = build
    const prefix = method === 'reduce' ? 'KTABLE-REDUCE-' : 'KTABLE-AGGREGATE-'
    checkOptions(method, options, storedOptions)
    const settings = settingsOf(method, options?.store)
    // Kafka Streams generates the names of all these stores from one prefix, those of `reduce` included.
    const storePrefix = 'KTABLE-AGGREGATE-'
    const storeName = settings.name ?? names.store(storePrefix)
    const sink = names.suffixOrGenerate(options?.name, '-sink', 'KSTREAM-SINK-')
    const source = names.suffixOrGenerate(options?.name, '-source', 'KSTREAM-SOURCE-')
    const name = names.orGenerate(options?.name, prefix)
    const repartition = this.#repartitionNode(sink, source, this.#groupName ?? storeName)
    graph.add(parent, repartition)
    const valueSerde = method === 'reduce' ? value : undefined
    const definition = tableStore({ name: storeName, key, valueSerde, settings, emit: options?.emit })
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

  /** A grouping with a name is repartitioned once for all its aggregates. */
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
