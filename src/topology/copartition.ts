/** Which sources must have their keys in the same partitions, because a join or a cogroup brings their records together. */
import type { CompiledNode, CompiledTopology } from './compiled.ts'

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

/** The nodes whose records meet those of this one in a store; none where it neither joins nor shares an aggregate. */
function meeting(topology: CompiledTopology, node: CompiledNode): CompiledNode[] {
  const { op } = node.spec
  const stores = new Set([...node.stores, ...node.hiddenStores].filter((store) => !topology.globalStores.has(store)))
  const sharing = topology.nodes.filter(
    (other) =>
      other.subtopology === node.subtopology && (other === node || other.stores.some((store) => stores.has(store))),
  )
  // A processor may share a store with whatever it likes: what it looks up there is its own affair.
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
