/** From the logical graph to what the engine runs: indices, sub-topologies, levels, boundaries. */
import type { Serde } from '../serde/serde.ts'
import type { StoreSpec } from '../state/contract.ts'
import type { Boundary, CompiledNode, CompiledSource, CompiledSubtopology, CompiledTopology } from './compiled.ts'
import { checkFunctions } from './check-given.ts'
import { checkSerdes } from './serdes/check-serdes.ts'
import { internalKeySerde, plainKeySerde, plainValueSerde } from './serdes/default-serdes.ts'
import type { Graph } from './graph.ts'
import { nameFault } from './names.ts'
import type { Getter, OperatorSpec, SpecOf } from './operator-spec.ts'
import { type KnownSerdes, knownSerdes } from './serdes/known-serdes.ts'
import { levelsOf } from './levels/levels.ts'
import { storesLookedUp, storesWritten } from './levels/stages.ts'
import { perCommitStores } from './per-commit.ts'
import { invalid, PhysicalBuilder, type PhysicalNode, type StoreDefinition } from './physical.ts'
import { rewrite } from './rewrite.ts'

/** How a topology is compiled. The engine compiles applications by itself, from its configuration. */
export interface CompileOptions {
  /** Shown in error messages. */
  readonly applicationId?: string
  /**
   * As Kafka Streams' `topology.optimization=all`: source topics serve as changelogs, repartitions are merged,
   * self-joins are cheaper. Default: false.
   */
  readonly optimize?: boolean
  /**
   * When tables tell their changes, where an operator does not say so itself: with every update, or each row once per
   * commit, as far as that is sound (`topology.emit`). Default: `on-update`.
   */
  readonly emit?: 'on-update' | 'per-commit'
  /** For topics and stores of which no serde is known. Default: text keys as UTF-8, the rest as JSON. */
  readonly defaultSerdes?: { readonly key?: Serde<unknown>; readonly value?: Serde<unknown> }
}

/** Compiles a graph. A graph is rewritten in place: build a new one for each compilation. */
export function compileGraph(graph: Graph, options: CompileOptions = {}): CompiledTopology {
  rewrite(graph, options.optimize ?? false)
  const builder = new PhysicalBuilder()
  graph.write(builder)
  return new Compiler(builder, options).compile()
}

/** Operators whose functions are given what a source has read, null as well; aggregates and joins leave null out. */
const functionsOfValues: ReadonlySet<OperatorSpec['op']> = new Set<OperatorSpec['op']>([
  'filter',
  'map',
  'mapValues',
  'flatMap',
  'flatMapValues',
  'selectKey',
  'peek',
  'branch',
  'process',
])

/** Whether a node needs the values that come to it, be it only their bytes. */
function usesValue(spec: OperatorSpec): boolean {
  return spec.op === 'streamAggregate' || spec.op === 'windowAggregate' ? spec.readsValue : true
}

/** Whether a node looks at the values that come to it, rather than at their bytes or not at all. */
function readsValue(spec: OperatorSpec, known: KnownSerdes | undefined): boolean {
  switch (spec.op) {
    case 'sink':
      return typeof spec.topic !== 'string' || spec.valueSerde !== known?.value
    case 'handOff':
      return spec.valueSerde !== known?.value
    default:
      return usesValue(spec)
  }
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
    checkFunctions(this.#physical, this.#specs)
    checkSerdes(this.#physical, this.#specs, this.#builder.stores)
    const groups = this.#groups()
    const nodes = this.#nodes(groups)
    const handOffs = this.#handOffs()
    const sources = this.#sources(nodes, handOffs)
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
    const perCommit = perCommitStores({ nodes, sources, boundaries, stores }, this.#wantedPerCommit())
    return { nodes, subtopologies, sources, boundaries, stores, globalStores, levels, perCommit }
  }

  #wantedPerCommit(): Map<string, 'itself' | 'all'> {
    const wanted = new Map<string, 'itself' | 'all'>()
    for (const { name, emit } of this.#builder.stores.values()) {
      if (emit === 'per-commit') wanted.set(name, 'itself')
      else if (emit === undefined && this.#options.emit === 'per-commit') wanted.set(name, 'all')
    }
    return wanted
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

  /** Nodes belong together when an edge or a store connects them. A group is numbered by its first node. */
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

  #sources(nodes: readonly CompiledNode[], handOffs: ReadonlyMap<string, number[]>): CompiledSource[] {
    const groups = nodes.map(({ subtopology }) => subtopology)
    const sourceNodes = this.#physical.flatMap((node, i) => (node.source ? [i] : []))
    const serdes = sourceNodes.map((node) => ({ node, ...this.#serdesOf(node) }))
    const known = knownSerdes(nodes, serdes)
    const levels = levelsOf(
      sourceNodes,
      this.#feeding(sourceNodes, handOffs),
      (node) => groups[node] as number,
      (node) => this.#physical[node]?.name ?? '',
      this.#feeding(sourceNodes, handOffs, this.#readers(groups)),
    )
    let boundaries = 0
    return sourceNodes.map((node, index) => {
      const physical = this.#physical[node] as PhysicalNode
      const definition = physical.source!
      const boundary = definition.kind === 'boundary' ? boundaries++ : undefined
      const internal = definition.kind === 'boundary'
      const { keySerde, valueSerde } = this.#serdesOf(node)
      const timed = definition.timestampExtractor !== undefined
      return {
        index,
        node,
        subtopology: groups[node] as number,
        name: physical.name,
        kind: definition.kind,
        topics: internal ? [] : definition.topics,
        pattern: definition.pattern,
        keySerde,
        valueSerde,
        watermark: definition.watermark,
        timestampExtractor: definition.timestampExtractor,
        isTable: definition.isTable,
        readsValue: timed || this.#someBelow(node, (spec, at) => readsValue(spec, known.get(at))),
        carriesValue: timed || this.#someBelow(node, usesValue),
        tellsNull:
          definition.kind === 'topics' &&
          !definition.expectsNull &&
          !definition.isTable &&
          (timed || this.#someBelow(node, ({ op }) => functionsOfValues.has(op))),
        boundary,
        level: levels.get(node) ?? 0,
        schedule: definition.schedule,
      }
    })
  }

  #serdesOf(node: number): Pick<CompiledSource, 'keySerde' | 'valueSerde'> {
    const { kind, keySerde, valueSerde } = (this.#physical[node] as PhysicalNode).source!
    return {
      keySerde: keySerde ?? (kind === 'boundary' ? internalKeySerde : this.#defaultKey()),
      valueSerde: valueSerde ?? this.#defaultValue(),
    }
  }

  /** Whether this holds of one of the nodes to which the records of a source come as they are. */
  #someBelow(node: number, holds: (spec: OperatorSpec, node: number) => boolean): boolean {
    const { children } = this.#physical[node] as PhysicalNode
    return children.some((name) => {
      const child = this.#index.get(name) as number
      const spec = this.#specs[child] as OperatorSpec
      return spec.op === 'passThrough' || spec.op === 'nullKeyFilter'
        ? this.#someBelow(child, holds)
        : holds(spec, child)
    })
  }

  /** Of each node those that use the rows it writes. */
  #readers(groups: readonly number[]): Map<number, readonly number[]> {
    const nodes = this.#physical.map(({ stores, hiddenStores }, i) => {
      const node = { spec: this.#specs[i] as OperatorSpec, stores, hiddenStores }
      return { written: storesWritten(node), used: [...storesWritten(node), ...storesLookedUp(node)] }
    })
    return new Map(
      nodes.map(({ written }, i) => [
        i,
        nodes.flatMap(({ used }, j) =>
          i !== j && groups[i] === groups[j] && used.some((store) => written.includes(store)) ? [j] : [],
        ),
      ]),
    )
  }

  /** Which sources feed each boundary source: those from which records come to a node that hands them over. */
  #feeding(
    sourceNodes: readonly number[],
    handOffs: ReadonlyMap<string, number[]>,
    readers?: ReadonlyMap<number, readonly number[]>,
  ): Map<number, readonly number[]> {
    const reaching = new Map<number, number[]>()
    for (const source of sourceNodes) {
      const seen = new Set<number>([source])
      // A set that grows while it is walked: each node is looked at once.
      for (const at of seen) {
        for (const name of (this.#physical[at] as PhysicalNode).children) seen.add(this.#index.get(name) as number)
        for (const reader of readers?.get(at) ?? []) seen.add(reader)
        if (this.#specs[at]?.op === 'handOff') reaching.set(at, [...(reaching.get(at) ?? []), source])
      }
    }
    const feeding = new Map<number, readonly number[]>()
    for (const source of sourceNodes) {
      const definition = this.#physical[source]?.source
      if (definition?.kind !== 'boundary') continue
      const through = handOffs.get(definition.topics[0] as string) ?? []
      feeding.set(source, [...new Set(through.flatMap((handOff) => reaching.get(handOff) ?? []))])
    }
    return feeding
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
      ...(store.sourceTopic === undefined ? {} : { sourceTopic: store.sourceTopic }),
      ...(store.windowSizeMs === undefined ? {} : { windowSizeMs: store.windowSizeMs }),
      ...(store.windowAdvanceMs === undefined ? {} : { windowAdvanceMs: store.windowAdvanceMs }),
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
        order: own.some((node) => this.#builder.takenAsArrived.has(node.name)) ? 'arrival' : 'event-time',
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

/** The stores that an operator reads by name; they have to exist. */
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
