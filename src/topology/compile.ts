/** From the logical graph to what the engine runs: indices, sub-topologies, levels, boundaries. */
import type { Serde } from '../serde/serde.ts'
import type { StoreSpec } from '../state/contract.ts'
import type { Boundary, CompiledNode, CompiledSource, CompiledSubtopology, CompiledTopology } from './compiled.ts'
import { internalKeySerde, plainKeySerde, plainValueSerde } from './default-serdes.ts'
import type { Graph } from './graph.ts'
import { nameFault } from './names.ts'
import type { Getter, OperatorSpec, SpecOf } from './operator-spec.ts'
import { invalid, PhysicalBuilder, type PhysicalNode, type StoreDefinition } from './physical.ts'
import { rewrite } from './rewrite.ts'

export interface CompileOptions {
  /** Needed for nothing but error messages. */
  readonly applicationId?: string
  /** Kafka Streams' `topology.optimization=all`: source topics as changelogs, merged repartitions, cheaper self-joins. */
  readonly optimize?: boolean
  /** For topics and stores whose serde nobody knows. Default: text keys as UTF-8, the rest as JSON. */
  readonly defaultSerdes?: { readonly key?: Serde<unknown>; readonly value?: Serde<unknown> }
}

/** Compiles a graph. A graph is rewritten in place: build a new one for each compilation. */
export function compileGraph(graph: Graph, options: CompileOptions = {}): CompiledTopology {
  rewrite(graph, options.optimize ?? false)
  const builder = new PhysicalBuilder()
  graph.write(builder)
  return new Compiler(builder, options).compile()
}

class Compiler {
  readonly #builder: PhysicalBuilder
  readonly #options: CompileOptions
  readonly #index = new Map<string, number>()
  readonly #physical: PhysicalNode[]
  readonly #specs: OperatorSpec[]

  constructor(builder: PhysicalBuilder, options: CompileOptions) {
    this.#builder = builder
    this.#options = options
    this.#physical = [...builder.nodes.values()]
    this.#specs = this.#physical.map((node) => node.spec())
    for (const [i, node] of this.#physical.entries()) this.#index.set(node.name, i)
  }

  compile(): CompiledTopology {
    this.#checkNames()
    const groups = this.#groups()
    const nodes = this.#nodes(groups)
    const handOffs = this.#handOffs()
    const sources = this.#sources(groups, handOffs)
    const boundaries = this.#boundaries(groups, sources, handOffs)
    const stores = this.#stores(sources)
    const subtopologies = this.#subtopologies(nodes, sources, stores)
    const levels = 1 + Math.max(0, ...sources.map((source) => source.level))
    const globalStores = new Map<string, number>()
    for (const source of sources) {
      if (source.kind !== 'global') continue
      for (const child of nodes[source.node]?.children ?? []) {
        for (const store of nodes[child]?.stores ?? []) globalStores.set(store, source.index)
      }
    }
    return { nodes, subtopologies, sources, boundaries, stores, globalStores, levels }
  }

  #checkNames(): void {
    if (this.#physical.length === 0)
      throw invalid('the application reads nothing; begin with topology.stream(…) or topology.table(…)')
    const names = [...this.#physical.map((node) => node.name), ...this.#builder.stores.keys()]
    for (const name of names) {
      const fault = nameFault(name)
      if (fault) throw invalid(fault)
    }
    for (const spec of this.#specs) for (const store of storesRead(spec)) this.#checkStore(store)
  }

  #checkStore(name: string): void {
    if (this.#builder.stores.has(name)) return
    const known = [...this.#builder.stores.keys()].join(', ') || 'none'
    throw invalid(
      `the store ${name} does not exist (stores: ${known}); add it with topology.addStore(…) or name it { store: '${name}' } where it is kept`,
    )
  }

  /** Nodes hang together through their edges and through the stores they share. Numbered by their first node. */
  #groups(): number[] {
    const parent = this.#physical.map((_, i) => i)
    const find = (i: number): number => {
      let at = i
      while (parent[at] !== at) at = parent[at] as number
      return at
    }
    const unite = (a: number, b: number): void => {
      parent[find(a)] = find(b)
    }
    const storeUser = new Map<string, number>()
    this.#physical.forEach((node, i) => {
      for (const name of node.parents) unite(i, this.#index.get(name) as number)
      for (const store of node.stores) {
        const user = storeUser.get(store)
        if (user === undefined) storeUser.set(store, i)
        else unite(i, user)
      }
    })
    const ids = new Map<number, number>()
    return parent.map((_, i) => {
      const root = find(i)
      const id = ids.get(root) ?? ids.size
      ids.set(root, id)
      return id
    })
  }

  #nodes(groups: readonly number[]): CompiledNode[] {
    return this.#physical.map((node, index) => ({
      index,
      name: node.name,
      type: node.type,
      subtopology: groups[index] as number,
      children: node.children.map((name) => this.#index.get(name) as number),
      parents: node.parents.map((name) => this.#index.get(name) as number),
      stores: node.stores,
      hiddenStores: node.hiddenStores,
      spec: this.#specs[index] as OperatorSpec,
    }))
  }

  #handOffs(): Map<string, number[]> {
    const byTopic = new Map<string, number[]>()
    this.#specs.forEach((spec, i) => {
      if (spec.op === 'handOff') byTopic.set(spec.topic, [...(byTopic.get(spec.topic) ?? []), i])
    })
    return byTopic
  }

  #sources(groups: readonly number[], handOffs: ReadonlyMap<string, number[]>): CompiledSource[] {
    const sourceNodes = this.#physical.flatMap((node, i) => (node.source ? [i] : []))
    const levels = this.#levels(sourceNodes, handOffs)
    let boundaries = 0
    return sourceNodes.map((node, index) => {
      const physical = this.#physical[node] as PhysicalNode
      const definition = physical.source!
      const boundary = definition.kind === 'boundary' ? boundaries++ : undefined
      const internal = definition.kind === 'boundary'
      const valueSerde = definition.valueSerde ?? this.#defaultValue()
      return {
        index,
        node,
        subtopology: groups[node] as number,
        name: physical.name,
        kind: definition.kind,
        topics: internal ? [] : definition.topics,
        pattern: definition.pattern,
        keySerde: definition.keySerde ?? (internal ? internalKeySerde : this.#defaultKey()),
        valueSerde,
        watermark: definition.watermark,
        timestampExtractor: definition.timestampExtractor,
        readsValue: definition.timestampExtractor !== undefined || this.#readsValue(node, valueSerde),
        boundary,
        level: levels.get(node) ?? 0,
        schedule: definition.schedule,
      }
    })
  }

  /** Whether anything below looks at the values of a source, rather than at their bytes or not at all. */
  #readsValue(node: number, valueSerde: Serde<unknown>): boolean {
    const { children } = this.#physical[node] as PhysicalNode
    return children.some((name) => {
      const child = this.#index.get(name) as number
      const spec = this.#specs[child] as OperatorSpec
      switch (spec.op) {
        case 'passThrough':
        case 'nullKeyFilter':
          return this.#readsValue(child, valueSerde)
        case 'sink':
          return typeof spec.topic !== 'string' || spec.valueSerde !== valueSerde
        case 'handOff':
          return spec.valueSerde !== valueSerde
        case 'streamAggregate':
        case 'windowAggregate':
          return spec.readsValue
        default:
          return true
      }
    })
  }

  /** How many hand-offs deep each source lies. The graph of sources has no circles: the DSL cannot make one. */
  #levels(sourceNodes: readonly number[], handOffs: ReadonlyMap<string, number[]>): Map<number, number> {
    const level = new Map<number, number>()
    const reaching = new Map<number, number[]>()
    for (const source of sourceNodes) {
      const seen = new Set<number>([source])
      const stack = [source]
      while (stack.length > 0) {
        const at = stack.pop() as number
        for (const name of (this.#physical[at] as PhysicalNode).children) {
          const child = this.#index.get(name) as number
          if (seen.has(child)) continue
          seen.add(child)
          stack.push(child)
          if (this.#specs[child]?.op === 'handOff') reaching.set(child, [...(reaching.get(child) ?? []), source])
        }
      }
    }
    const visiting = new Set<number>()
    const of = (source: number): number => {
      const known = level.get(source)
      if (known !== undefined) return known
      if (visiting.has(source))
        throw invalid(
          `records would go round in a circle through ${this.#physical[source]?.name}; write to a topic instead`,
        )
      visiting.add(source)
      const definition = this.#physical[source]?.source
      let result = 0
      if (definition?.kind === 'boundary') {
        for (const handOff of handOffs.get(definition.topics[0] as string) ?? []) {
          for (const above of reaching.get(handOff) ?? []) result = Math.max(result, of(above) + 1)
        }
      }
      visiting.delete(source)
      level.set(source, result)
      return result
    }
    for (const source of sourceNodes) of(source)
    return level
  }

  #boundaries(
    groups: readonly number[],
    sources: readonly CompiledSource[],
    handOffs: ReadonlyMap<string, number[]>,
  ): Boundary[] {
    const boundaries: Boundary[] = []
    for (const source of sources) {
      if (source.boundary === undefined) continue
      const definition = (this.#physical[source.node] as PhysicalNode).source!
      const topic = definition.topics[0] as string
      const senders = handOffs.get(topic) ?? []
      const first = senders[0]
      if (first === undefined) throw invalid(`nothing is written to ${topic}`)
      for (const sender of senders) (this.#specs[sender] as SpecOf<'handOff'>).boundary = boundaries.length
      boundaries.push({
        index: boundaries.length,
        name: definition.boundaryBase ?? topic,
        topic,
        fromSubtopology: groups[first] as number,
        toSubtopology: source.subtopology,
        toSource: source.index,
        keySerde: source.keySerde,
        valueSerde: source.valueSerde,
        partitionFromHeader: (this.#specs[first] as SpecOf<'handOff'>).routeBy !== undefined,
      })
    }
    return boundaries
  }

  #stores(sources: readonly CompiledSource[]): Map<string, StoreSpec> {
    const result = new Map<string, StoreSpec>()
    for (const store of this.#builder.stores.values()) result.set(store.name, this.#storeSpec(store, sources))
    return result
  }

  #storeSpec(store: StoreDefinition, _sources: readonly CompiledSource[]): StoreSpec {
    return {
      name: store.name,
      kind: store.kind,
      keySerde: store.keySerde ?? internalKeySerde,
      valueSerde: store.valueSerde ?? this.#defaultValue(),
      timestamped: store.timestamped,
      changelog: store.changelog,
      ...(store.changelogTopic === undefined ? {} : { changelogTopic: store.changelogTopic }),
      ...(store.windowSizeMs === undefined ? {} : { windowSizeMs: store.windowSizeMs }),
      ...(store.retentionMs === undefined ? {} : { retentionMs: store.retentionMs }),
      ...(store.ttlMs === undefined ? {} : { ttlMs: store.ttlMs }),
      ...(store.retainDuplicates === undefined ? {} : { retainDuplicates: store.retainDuplicates }),
      ...(store.tumbling === true ? { tumbling: true } : {}),
    }
  }

  #subtopologies(
    nodes: readonly CompiledNode[],
    sources: readonly CompiledSource[],
    stores: ReadonlyMap<string, StoreSpec>,
  ): CompiledSubtopology[] {
    const count = 1 + Math.max(-1, ...nodes.map((node) => node.subtopology))
    return Array.from({ length: count }, (_, id) => {
      const own = nodes.filter((node) => node.subtopology === id)
      const mySources = sources.filter((source) => source.subtopology === id)
      const global = mySources.some((source) => source.kind === 'global')
      const used = [...new Set(own.flatMap((node) => [...node.stores, ...node.hiddenStores]))]
      return {
        id,
        level: Math.max(0, ...mySources.map((source) => source.level)),
        nodes: own.map((node) => node.index),
        sources: mySources.map((source) => source.index),
        stores: global ? [] : used.filter((name) => stores.has(name)),
        global,
      }
    })
  }

  #defaultKey(): Serde<unknown> {
    return this.#options.defaultSerdes?.key ?? plainKeySerde
  }

  #defaultValue(): Serde<unknown> {
    return this.#options.defaultSerdes?.value ?? plainValueSerde
  }
}

function storesOfGetter(getter: Getter): readonly string[] {
  switch (getter.kind) {
    case 'store':
      return [getter.store]
    case 'join':
      return [...storesOfGetter(getter.left), ...storesOfGetter(getter.right)]
    case 'suppressed':
      return [getter.store, ...storesOfGetter(getter.parent)]
    default:
      return storesOfGetter(getter.parent)
  }
}

/** Stores that an operator reads by name: they have to exist. */
function storesRead(spec: OperatorSpec): readonly string[] {
  switch (spec.op) {
    case 'process':
      return [...spec.stores, ...spec.globalStores]
    case 'streamTableJoin':
      return storesOfGetter(spec.getter)
    case 'tableJoin':
      return storesOfGetter(spec.other)
    default:
      return []
  }
}
