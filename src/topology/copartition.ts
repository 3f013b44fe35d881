/** Which sources must have their keys in the same partitions: a join or a cogroup brings their records together. */
import type { CompiledNode, CompiledSource, CompiledTopology } from './compiled.ts'

const joins: ReadonlySet<string> = new Set<CompiledNode['spec']['op']>(['streamJoin', 'streamTableJoin', 'tableJoin'])
const aggregates: ReadonlySet<string> = new Set<CompiledNode['spec']['op']>(['streamAggregate', 'windowAggregate'])

export interface Copartitioned {
  /** The join, or an aggregate of the cogroup. */
  readonly name: string
  /** Indices of the sources of both sides. */
  readonly sources: readonly number[]
}

export function copartitionedSources(topology: CompiledTopology): Copartitioned[] {
  const result: Copartitioned[] = []
  for (const node of topology.nodes) {
    const sources = new Set<number>()
    for (const met of meeting(topology, node)) for (const source of sourcesAbove(topology, met)) sources.add(source)
    if (sources.size > 1) result.push({ name: node.name, sources: [...sources].sort((a, b) => a - b) })
  }
  return result
}

export interface UnlikeKeys {
  /** The operator to which records of several sources come. */
  readonly name: string
  /** The sources' topics, and how their keys are written. */
  readonly sides: ReadonlyArray<{ readonly topics: string; readonly serde: string }>
}

/**
 * Where records of several sources are to meet by key whose keys are written in different ways: the bytes of a key decide
 * where it belongs, so that one and the same key is in different places.
 */
export function unlikeKeys(topology: CompiledTopology): UnlikeKeys[] {
  const stateful = topology.nodes.flatMap(({ spec, index, name }) => {
    const keeps = spec.op === 'process' && (spec.stores.length > 0 || spec.timerStore !== undefined)
    const node = topology.nodes[index] as CompiledNode
    return keeps ? { name, sources: [...sourcesAbove(topology, node)] } : []
  })
  // Both halves of a join of streams would tell the same.
  const told = new Set<string>()
  return [...copartitionedSources(topology), ...stateful].flatMap(({ name, sources }) => {
    const all = sources.map((index) => topology.sources[index] as CompiledSource)
    if (new Set(all.map(({ keySerde }) => wayOf(keySerde.name))).size < 2 || told.has(String(sources))) return []
    told.add(String(sources))
    const sides = all.map((source) => ({ topics: topicsOf(topology, source), serde: source.keySerde.name }))
    return { name, sides }
  })
}

function topicsOf(topology: CompiledTopology, { kind, topics, pattern, boundary }: CompiledSource): string {
  if (kind === 'boundary') return topology.boundaries[boundary ?? -1]?.topic ?? ''
  return pattern === undefined ? topics.join(', ') : String(pattern)
}

/** Serdes of one way write a key with the same bytes. What is not given writes texts as `string` does. */
function wayOf(serde: string): string {
  if (serde === 'auto') return 'string'
  return serde.startsWith('json(') ? 'json' : serde
}

/** The nodes whose records meet those of this node in a store; none where it neither joins nor shares an aggregate. */
function meeting(topology: CompiledTopology, node: CompiledNode): CompiledNode[] {
  const { op } = node.spec
  const stores = new Set([...node.stores, ...node.hiddenStores].filter((store) => !topology.globalStores.has(store)))
  const sharing = topology.nodes.filter(
    (other) =>
      other.subtopology === node.subtopology && (other === node || other.stores.some((store) => stores.has(store))),
  )
  // A processor may share a store with any other. What it looks up there is up to it.
  if (joins.has(op)) return sharing.filter((other) => other.spec.op !== 'process')
  return aggregates.has(op) ? sharing.filter((other) => aggregates.has(other.spec.op)) : []
}

function sourcesAbove(topology: CompiledTopology, node: CompiledNode): number[] {
  const above = new Set<number>()
  const nodes = [node.index]
  for (let index = nodes.pop(); index !== undefined; index = nodes.pop()) {
    if (above.has(index)) continue
    above.add(index)
    nodes.push(...(topology.nodes[index]?.parents ?? []))
  }
  return topology.sources.filter((source) => above.has(source.node)).map(({ index }) => index)
}
