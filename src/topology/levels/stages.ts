/**
 * The parts of a sub-topology that are done at one level each. Most have one: all their sources lie at one level. One that
 * feeds itself by way of another (a stream joined with its own re-keyed table, the left side of a foreign-key join) has
 * several: an operator is done at the deepest level from which records reach it, and what comes to it from a shallower one
 * waits inside the lane for its place in the order. So each stage is a task of its own in all that concerns time.
 */
import type { CompiledNode, CompiledSubtopology, CompiledTopology } from '../compiled.ts'
import type { Getter, OperatorSpec } from '../operator-spec.ts'

export interface Stage {
  readonly index: number
  readonly subtopology: number
  readonly level: number
  /** In node order: parents before children. */
  readonly nodes: readonly number[]
  /** The stores that its operators write. */
  readonly stores: readonly string[]
}

/** A way from a stage to a deeper one of the same task; its records wait in the lane. */
export interface Deferral {
  readonly index: number
  readonly from: number
  /** The operator that is reached; of a deferral that tells of rows the operator that reads them. */
  readonly to: number
  /** The deeper stage. */
  readonly stage: number
  /** Set: it tells that a row of this store was changed, which the deeper stage is not to see before. */
  readonly store: string | undefined
}

type StoreUser = Pick<CompiledNode, 'spec' | 'stores' | 'hiddenStores'>

export interface Stages {
  readonly all: readonly Stage[]
  readonly bySubtopology: ReadonlyArray<readonly Stage[]>
  /** By source. */
  readonly ofSource: readonly number[]
  readonly deferrals: readonly Deferral[]
}

const known = new WeakMap<CompiledTopology, Stages>()

export function stagesOf(topology: CompiledTopology): Stages {
  let stages = known.get(topology)
  if (stages === undefined) {
    stages = make(topology)
    known.set(topology, stages)
  }
  return stages
}

function make(topology: CompiledTopology): Stages {
  const all: Stage[] = []
  const deferrals: Deferral[] = []
  const bySubtopology = topology.subtopologies.map((subtopology) => {
    const levels = new NodeLevels(topology, subtopology)
    const own = levels.distinct.map((level): Stage => {
      const nodes = subtopology.nodes.filter((node) => levels.of(node) === level)
      const stores = levels.distinct.length === 1 ? storesOf(topology, subtopology) : levels.storesAt(level)
      return { index: all.length + levels.distinct.indexOf(level), subtopology: subtopology.id, level, nodes, stores }
    })
    all.push(...own)
    const stageAt = (level: number): number => (own.find((stage) => stage.level === level) as Stage).index
    for (const { from, to, store } of levels.deferred()) {
      const stage = stageAt(levels.of(to))
      const isTold = deferrals.some((way) => way.from === from && way.stage === stage && way.store === store)
      if (store === undefined || !isTold) deferrals.push({ index: deferrals.length, from, to, stage, store })
    }
    return own
  })
  const ofSource = topology.sources.map(
    (source) =>
      all.find(({ nodes }) => nodes.includes(source.node))?.index ??
      (bySubtopology[source.subtopology]?.[0]?.index as number),
  )
  return { all, bySubtopology, ofSource, deferrals }
}

function storesOf(topology: CompiledTopology, { nodes, stores }: CompiledSubtopology): string[] {
  const used = nodes.flatMap((node) => (topology.nodes[node] as CompiledNode).stores)
  return [...new Set([...stores, ...used])].filter((name) => !topology.globalStores.has(name))
}

/** At which level each operator of a sub-topology is done. */
class NodeLevels {
  readonly #topology: CompiledTopology
  readonly #nodes: readonly CompiledNode[]
  readonly #levels = new Map<number, number>()
  readonly distinct: readonly number[]

  constructor(topology: CompiledTopology, subtopology: CompiledSubtopology) {
    this.#topology = topology
    this.#nodes = subtopology.nodes.map((index) => topology.nodes[index] as CompiledNode)
    const sources = topology.sources.filter((source) => source.subtopology === subtopology.id)
    const isLevel = sources.every((source) => source.level === subtopology.level)
    for (const { index } of this.#nodes) this.#levels.set(index, isLevel ? subtopology.level : 0)
    if (!isLevel) {
      for (const source of sources) this.#levels.set(source.node, source.level)
      this.#settle()
      // Operators that write one store at several levels have to be sealed together: they stay one task.
      const isShared = this.#writers().some((writers) => new Set(writers.map((node) => this.of(node.index))).size > 1)
      if (isShared || subtopology.order === 'arrival')
        for (const { index } of this.#nodes) this.#levels.set(index, subtopology.level)
    }
    this.distinct = [...new Set(this.#levels.values())].sort((a, b) => a - b)
  }

  of(node: number): number {
    return this.#levels.get(node) as number
  }

  storesAt(level: number): string[] {
    const stores = this.#nodes.filter((node) => this.of(node.index) === level).flatMap(storesWritten)
    return [...new Set(stores)].filter((name) => !this.#topology.globalStores.has(name))
  }

  deferred(): Array<{ from: number; to: number; store: string | undefined }> {
    const found: Array<{ from: number; to: number; store: string | undefined }> = []
    for (const reader of this.#nodes) {
      for (const store of this.#storesRead(reader)) {
        for (const writer of this.#nodes) {
          if (!storesWritten(writer).includes(store) || this.of(writer.index) >= this.of(reader.index)) continue
          if (keepsRows(writer.spec, store)) found.push({ from: writer.index, to: reader.index, store })
        }
      }
    }
    for (const { index, children } of this.#nodes) {
      for (const child of children)
        if (this.of(child) !== this.of(index)) found.push({ from: index, to: child, store: undefined })
    }
    return found
  }

  /** Raises operators until those that share a store are done at one level, as far as what they feed allows, and none reads rows that are still to be written. */
  #settle(): void {
    for (let changed = true; changed; ) {
      changed = this.#pass()
      for (const writers of this.#writers()) {
        const deepest = Math.max(...writers.map((node) => this.of(node.index)))
        for (const writer of writers) changed = this.#raise(writer, deepest) || changed
      }
      for (const reader of this.#nodes) {
        for (const store of this.#storesRead(reader)) {
          const writers = this.#nodes.filter((node) => storesWritten(node).includes(store))
          for (const writer of writers) changed = this.#raise(reader, this.of(writer.index)) || changed
        }
      }
    }
  }

  /** No operator is done before those above it. */
  #pass(): boolean {
    let changed = false
    for (const { index, parents } of this.#nodes) {
      const above = Math.max(this.of(index), ...parents.map((parent) => this.#levels.get(parent) ?? 0))
      if (above > this.of(index)) {
        this.#levels.set(index, above)
        changed = true
      }
    }
    return changed
  }

  #raise(node: CompiledNode, level: number): boolean {
    if (this.of(node.index) >= level || node.spec.op === 'source' || !this.#mayBeAt(node.index, level)) return false
    this.#levels.set(node.index, level)
    return true
  }

  /** All that it hands over goes to a deeper level still. */
  #mayBeAt(index: number, level: number): boolean {
    const node = this.#topology.nodes[index] as CompiledNode
    if (node.spec.op === 'handOff') {
      const boundary = this.#topology.boundaries[node.spec.boundary]
      const target = this.#topology.sources[boundary?.toSource ?? -1]
      if (target === undefined || target.level <= level) return false
    }
    return node.children.every((child) => this.#mayBeAt(child, level))
  }

  #writers(): CompiledNode[][] {
    const writers = new Map<string, CompiledNode[]>()
    for (const node of this.#nodes) {
      for (const store of storesWritten(node)) writers.set(store, [...(writers.get(store) ?? []), node])
    }
    return [...writers.values()]
  }

  #storesRead(node: CompiledNode): string[] {
    return storesLookedUp(node).filter((name) => !this.#topology.globalStores.has(name))
  }
}

/** The stores that an operator may write: all of its own but those whose rows it only looks up. */
export function storesWritten({ spec, stores, hiddenStores }: StoreUser): string[] {
  const read = storesLookedUp({ spec, stores, hiddenStores })
  const kept = 'store' in spec && typeof spec.store === 'object' ? spec.store.name : undefined
  return [...stores, ...hiddenStores].filter((name) => name === kept || !read.includes(name))
}

function keepsRows(spec: OperatorSpec, store: string): boolean {
  if (spec.op === 'suppress') return spec.store === store
  return 'store' in spec && typeof spec.store === 'object' && spec.store.name === store
}

/** The stores whose rows an operator looks up. */
export const storesLookedUp = ({ spec }: StoreUser): string[] => gettersOf(spec).flatMap(leafStores)

function gettersOf(spec: OperatorSpec): Getter[] {
  switch (spec.op) {
    case 'streamTableJoin':
      return [spec.getter]
    case 'tableJoin':
      return [spec.other]
    case 'foreignKeyJoin':
      return [spec.right]
    case 'foreignKeyResolve':
      return [spec.left]
    default:
      return []
  }
}

function leafStores(getter: Getter): string[] {
  if (getter.kind === 'store') return [getter.store]
  if (getter.kind === 'join') return [...leafStores(getter.left), ...leafStores(getter.right)]
  if (getter.kind === 'suppressed') return [getter.store, ...leafStores(getter.parent)]
  return leafStores(getter.parent)
}
