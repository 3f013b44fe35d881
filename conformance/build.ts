/** Turns a scenario's nodes into calls of the DSL, one a node. */
import {
  type CogroupedStream,
  type GlobalTable,
  type GroupedStream,
  GroupedTable,
  hopping,
  keyValueStore,
  session,
  type SessionWindowedCogroup,
  type SessionWindowedStream,
  sliding,
  type StoreDeclaration,
  type StoreSettings,
  type Stream,
  Table,
  type Topology,
  tumbling,
  unlimited,
  type WindowedCogroup,
  type WindowedStream,
  type Windows,
} from '../src/index.ts'
import { type Env, type Expr, evaluate, type Json, jsonOf } from './expr.ts'
import { processOptions, processorOf, ProcessorStores, valueProcessorOf } from './processors.ts'
import type { Scenario, ScenarioNode, WindowNode } from './scenario.ts'

type S = Stream<Json, Json>
type T = Table<Json, Json>
type Fn = (value: Json, key: Json) => Json

/** How a named store is to be read for the result. */
export interface NamedStore {
  readonly kind: 'rows' | 'windows' | 'sessions' | 'versions' | 'values' | 'history'
  /** End of a window from its start. */
  readonly end?: (start: number) => number | null
}

const day = 86_400_000

class ScenarioError extends Error {
  override readonly name = 'ScenarioError'
}

const call =
  (expr: Expr): Fn =>
  (value, key) =>
    evaluate(expr, { value: jsonOf(value), key: jsonOf(key) })
const holds =
  (expr: Expr) =>
  (value: Json, key: Json): boolean =>
    call(expr)(value, key) === true
const elements = (expr: Expr): ((value: Json, key: Json) => readonly Json[]) => {
  const list = call(expr)
  return (value, key) => {
    const result = list(value, key)
    return Array.isArray(result) ? (result as readonly Json[]) : []
  }
}
const env = (entries: Record<string, unknown>): Env =>
  Object.fromEntries(Object.entries(entries).map(([name, value]) => [name, jsonOf(value)]))
const folding = (expr: Expr) => (agg: Json, value: Json, key: Json) => evaluate(expr, env({ agg, value, key }))
const reducing = (expr: Expr) => (agg: Json, value: Json) => evaluate(expr, env({ agg, value }))
const joining = (expr: Expr) => (left: Json, right: Json) => evaluate(expr, env({ left, right }))
const merging = (expr: Expr) => (left: Json, right: Json, key: Json) => evaluate(expr, env({ left, right, key }))

/** `from` answers what the node follows. */
export type SpecialNodes = (topology: Topology, node: ScenarioNode, from: (index: number) => unknown) => unknown

export class ScenarioBuilder {
  readonly #scenario: Scenario
  readonly #special: SpecialNodes
  readonly #nodes = new Map<string, unknown>()
  readonly #windows = new Map<string, WindowNode>()
  readonly #processorStores = new ProcessorStores()
  readonly #timestamped = new Set<string>()
  readonly stores = new Map<string, NamedStore>()

  /** `special` makes nodes of its own; undefined for those that it leaves to this one. */
  constructor(scenario: Scenario, special: SpecialNodes = () => undefined) {
    this.#scenario = scenario
    this.#special = special
    for (const node of scenario.topology.nodes) {
      if (node.store && node.op !== 'globalStore') this.#timestamped.add(node.store.name)
    }
  }

  build(topology: Topology): void {
    for (const node of this.#scenario.topology.nodes) {
      const result = this.#special(topology, node, (index) => this.#from(node, index)) ?? this.#apply(topology, node)
      if (result !== undefined) this.#nodes.set(node.id, result)
    }
    for (const [name, use] of this.#processorStores.uses) {
      this.stores.set(
        name,
        use.kind === 'history' ? { kind: 'history', end: (start) => start + use.retentionMs } : { kind: 'values' },
      )
    }
  }

  #from<X>(node: ScenarioNode, index = 0): X {
    const id = typeof node.from === 'string' ? node.from : node.from?.[index]
    const found = this.#nodes.get(id ?? '')
    if (found === undefined) throw new ScenarioError(`node ${node.id} follows ${id}, which has no result`)
    return found as X
  }

  #named(node: ScenarioNode): { name?: string } {
    return node.name === undefined ? {} : { name: node.name }
  }

  #stored(node: ScenarioNode, window?: WindowNode): { name?: string; store?: StoreSettings<never, never> } {
    const { store } = node
    if (store) this.stores.set(store.name, this.#namedStore(node, window))
    const settings: Record<string, unknown> = {}
    if (store) settings.name = store.name
    if (store?.type) settings.type = store.type
    if (store?.historyRetentionMs !== undefined) settings.historyRetention = store.historyRetentionMs
    if (window) settings.retention = store?.retentionMs ?? day
    return {
      ...this.#named(node),
      ...(node.tells && { emit: node.tells }),
      ...(Object.keys(settings).length > 0 ? { store: settings as StoreSettings<never, never> } : {}),
    }
  }

  #namedStore(node: ScenarioNode, window: WindowNode | undefined): NamedStore {
    if (node.store?.type === 'versioned') return { kind: 'versions' }
    if (!window) return { kind: 'rows' }
    if (window.type === 'session') return { kind: 'sessions' }
    if (window.type === 'unlimited') return { kind: 'windows', end: () => null }
    return { kind: 'windows', end: (start) => start + (window.size ?? window.diff ?? 0) }
  }

  #apply(topology: Topology, node: ScenarioNode): unknown {
    switch (node.op) {
      case 'stream':
        return this.#stream(topology, node)
      case 'table':
        return topology.table<Json, Json>(node.topic ?? '', this.#stored(node) as object)
      case 'globalTable':
        return topology.globalTable<Json, Json>(node.topic ?? '', this.#stored(node) as object)
      case 'globalStore': {
        const store = keyValueStore<Json, Json>(node.store?.name ?? '')
        this.stores.set(store.name, { kind: 'values' })
        return topology.globalStore(node.topic ?? '', store as StoreDeclaration<unknown>)
      }
      case 'to':
        return this.#to(node)
      case 'filter':
      case 'filterNot':
      case 'mapValues':
        return this.#streamOrTable(node)
      case 'join':
      case 'leftJoin':
      case 'outerJoin':
        return this.#join(node, node.op)
      case 'groupBy':
        return this.#groupBy(node)
      case 'windowedBy':
        return this.#windowedBy(node)
      case 'count':
      case 'reduce':
      case 'aggregate':
        return this.#aggregate(node)
      case 'cogroup':
        return this.#cogroup(node)
      case 'transformValues':
      case 'toStream':
      case 'suppress':
        return this.#tableOnly(node, this.#from<T>(node))
      default:
        return this.#streamOnly(node, this.#from<S>(node))
    }
  }

  #stream(topology: Topology, node: ScenarioNode): S {
    const { timestamp } = node
    const topics = node.pattern === undefined ? (node.topics ?? node.topic ?? '') : new RegExp(node.pattern)
    // Anything but an integer leaves the record's own timestamp.
    const extract = timestamp && ((value: Json, key: Json) => evaluate(timestamp, env({ value, key })) as number)
    return topology.stream<Json, Json>(topics, { ...this.#named(node), ...(extract ? { timestamp: extract } : {}) })
  }

  #to(node: ScenarioNode): void {
    const stream = this.#from<S>(node)
    const { topicFrom } = node
    if (!topicFrom) {
      stream.to(node.topic ?? '', this.#named(node))
      return
    }
    const TopicFrom = (value: Json, key: Json): string => call(topicFrom)(value, key) as string
    stream.to(TopicFrom, this.#named(node))
  }

  #streamOrTable(node: ScenarioNode): unknown {
    const source = this.#from<S | T>(node)
    if (source instanceof Table) {
      const stored = this.#stored(node) as object
      if (node.op === 'filter') return source.filter(holds(node.pred as Expr), stored)
      if (node.op === 'filterNot') return source.filterNot(holds(node.pred as Expr), stored)
      return source.mapValues(call(node.value as Expr), stored)
    }
    if (node.op === 'filter') return source.filter(holds(node.pred as Expr), this.#named(node))
    if (node.op === 'filterNot') return source.filterNot(holds(node.pred as Expr), this.#named(node))
    return source.mapValues(call(node.value as Expr), this.#named(node))
  }

  #streamOnly(node: ScenarioNode, stream: S): unknown {
    const named = this.#named(node)
    switch (node.op) {
      case 'map':
        return stream.map(
          (value, key) => [call(node.key as Expr)(value, key), call(node.value as Expr)(value, key)] as const,
          named,
        )
      case 'selectKey':
        return stream.selectKey(call(node.key as Expr), named)
      case 'flatMap': {
        const list = elements(node.list as Expr)
        const pair = (item: Json, key: Json) =>
          [call(node.key as Expr)(item, key), call(node.value as Expr)(item, key)] as const
        return stream.flatMap((value, key) => list(value, key).map((item) => pair(item, key)), named)
      }
      case 'flatMapValues':
        return stream.flatMapValues(elements(node.list as Expr), named)
      case 'peek':
        return stream.peek(() => undefined, named)
      case 'foreach':
        return stream.foreach(() => undefined, named)
      case 'merge':
        return stream.merge(this.#from<S>(node, 1), named)
      case 'split':
        return this.#split(node, stream)
      case 'repartition':
        return stream.repartition(named)
      case 'toTable':
        return stream.toTable(this.#stored(node) as object)
      case 'groupByKey':
        return stream.groupByKey(named)
      case 'process':
      case 'processValues':
        return this.#process(node, stream)
      default:
        throw new ScenarioError(`unknown operator ${node.op}`)
    }
  }

  #process(node: ScenarioNode, stream: S): S {
    const processor = node.processor
    if (!processor) throw new ScenarioError(`node ${node.id} names no processor`)
    const options = processOptions(processor, this.#processorStores, node.name)
    if (node.op === 'processValues') return stream.processValues(valueProcessorOf(processor), options)
    return stream.process(
      processorOf(processor, (store) => this.#timestamped.has(store)),
      options,
    )
  }

  #split(node: ScenarioNode, stream: S): void {
    const branches = Object.fromEntries(
      (node.branches ?? []).map(({ id, pred, name }) => [
        id,
        { when: holds(pred), ...(name === undefined ? {} : { name }) },
      ]),
    )
    const rest = node.default
    const fallback = rest && { as: rest.id, ...(rest.name === undefined ? {} : { name: rest.name }) }
    const result = stream.split(branches, {
      ...this.#named(node),
      ...(fallback ? { default: fallback } : {}),
    }) as Record<string, S>
    for (const [id, branch] of Object.entries(result)) this.#nodes.set(id, branch)
  }

  #tableOnly(node: ScenarioNode, table: T): unknown {
    const named = this.#named(node)
    switch (node.op) {
      case 'transformValues':
        return table.transformValues(call(node.value as Expr), this.#stored(node) as object)
      case 'toStream':
        return node.key ? table.toStream({ ...named, key: call(node.key) }) : table.toStream(named)
      default: {
        const bound = node.maxRecords === undefined ? {} : { maxRecords: node.maxRecords }
        const until = node.until === 'windowCloses' ? ('window-closes' as const) : (node.ms ?? 0)
        return table.suppress({ ...named, ...bound, until })
      }
    }
  }

  #groupBy(node: ScenarioNode): unknown {
    const source = this.#from<S | T>(node)
    const key = call(node.key as Expr)
    if (!(source instanceof Table)) return source.groupBy(key, this.#named(node))
    const value = call(node.value as Expr)
    return source.groupBy((v, k) => [key(v, k), value(v, k)] as const, this.#named(node))
  }

  #windowedBy(node: ScenarioNode): unknown {
    const window = node.window as WindowNode
    this.#windows.set(node.id, window)
    const grouped = this.#from<GroupedStream<Json, Json>>(node)
    const options = node.emit === 'onWindowClose' ? { emit: 'on-close' as const } : {}
    return grouped.windowedBy(windowOf(window) as Windows<'time'>, options)
  }

  #aggregate(node: ScenarioNode): unknown {
    const from = typeof node.from === 'string' ? node.from : ''
    const window = this.#windows.get(from)
    const source = this.#from<unknown>(node)
    const stored = this.#stored(node, window) as object
    const initial = (): Json => evaluate(node.init as Expr, {})
    if (source instanceof GroupedTable)
      return this.#tableAggregate(node, source as GroupedTable<Json, Json>, initial, stored)
    const grouped = source as GroupedStream<Json, Json> & SessionWindowedStream<Json, Json> & WindowedStream<Json, Json>
    if (node.op === 'count') return grouped.count(stored)
    if (node.op === 'reduce') return grouped.reduce(reducing(node.reduce as Expr), stored)
    const merge = node.merge && merging(node.merge)
    if (!node.agg) {
      if (merge) return (source as SessionWindowedCogroup<Json, Json>).aggregate(initial, merge, stored)
      return (source as WindowedCogroup<Json, Json>).aggregate(initial, stored)
    }
    if (merge) return (source as SessionWindowedStream<Json, Json>).aggregate(initial, folding(node.agg), merge, stored)
    return (source as WindowedStream<Json, Json>).aggregate(initial, folding(node.agg), stored)
  }

  #tableAggregate(node: ScenarioNode, source: GroupedTable<Json, Json>, initial: () => Json, stored: object): unknown {
    if (node.op === 'count') return source.count(stored)
    if (node.op === 'reduce') return source.reduce(reducing(node.add as Expr), reducing(node.sub as Expr), stored)
    return source.aggregate(initial, folding(node.add as Expr), folding(node.sub as Expr), stored)
  }

  #cogroup(node: ScenarioNode): unknown {
    const fold = folding(node.agg as Expr)
    if (typeof node.from === 'string') return this.#from<GroupedStream<Json, Json>>(node).cogroup<Json>(fold)
    return this.#from<CogroupedStream<Json, Json>>(node).cogroup(this.#from<GroupedStream<Json, Json>>(node, 1), fold)
  }

  #join(node: ScenarioNode, op: 'join' | 'leftJoin' | 'outerJoin'): unknown {
    const left = this.#from<S | T>(node)
    const right = this.#from<S | T | GlobalTable<Json, Json>>(node, 1)
    const joiner = joining(node.joiner as Expr)
    if (left instanceof Table) return this.#joinTables(node, op, left, right as T, joiner)
    const named = this.#named(node)
    if (right instanceof Table) {
      const options = { ...named, ...(node.grace === undefined ? {} : { grace: node.grace }) }
      return op === 'join' ? left.join(right, joiner, options) : left.leftJoin(right, joiner, options)
    }
    if (node.key) {
      const options = { ...named, on: call(node.key) }
      const table = right as GlobalTable<Json, Json>
      return op === 'join' ? left.join(table, joiner, options) : left.leftJoin(table, joiner, options)
    }
    const { before, after, grace } = node.window as { before: number; after: number; grace?: number }
    const options = {
      ...named,
      within: { before, after },
      ...(grace === undefined ? {} : { grace }),
      ...(node.storeName === undefined ? {} : { storeName: node.storeName }),
    }
    const other = right as S
    if (op === 'join') return left.join(other, joiner, options)
    return op === 'leftJoin' ? left.leftJoin(other, joiner, options) : left.outerJoin(other, joiner, options)
  }

  #joinTables(
    node: ScenarioNode,
    op: 'join' | 'leftJoin' | 'outerJoin',
    left: T,
    right: T,
    joiner: (l: Json, r: Json) => Json,
  ): unknown {
    const stored = this.#stored(node) as object
    const { foreignKey } = node
    if (!foreignKey) {
      if (op === 'join') return left.join(right, joiner, stored)
      return op === 'leftJoin' ? left.leftJoin(right, joiner, stored) : left.outerJoin(right, joiner, stored)
    }
    const on = (value: Json, key: Json): Json => evaluate(foreignKey, env({ value, key }))
    return op === 'leftJoin'
      ? left.leftJoin(right, joiner, { ...stored, on })
      : left.join(right, joiner, { ...stored, on })
  }
}

function windowOf(window: WindowNode): Windows {
  const settings = window.grace === undefined ? {} : { grace: window.grace }
  switch (window.type) {
    case 'tumbling':
      return tumbling(window.size ?? 0, settings)
    case 'hopping':
      return hopping(window.size ?? 0, window.advance ?? 0, settings)
    case 'sliding':
      return sliding(window.diff ?? 0, settings)
    case 'session':
      return session(window.gap ?? 0, settings)
    default:
      return unlimited({ start: window.start ?? 0 })
  }
}
