/**
 * From where records come to windows that close in quiet. What is held back on these ways, and only there, is still to
 * come to them.
 */
import type { CompiledNode, CompiledTopology } from '../compiled.ts'
import type { OperatorSpec } from '../operator-spec.ts'

export interface QuietNode {
  readonly node: number
  readonly subtopology: number
  /**
   * Boundaries over which its records come, also from further above. Sub-topologies may feed one another in a circle; nodes
   * never do, so nobody waits for itself.
   */
  readonly boundaries: readonly number[]
}

const known = new WeakMap<CompiledTopology, readonly QuietNode[]>()

/** Its windows close while nothing comes. */
export function closesInQuiet(spec: OperatorSpec): boolean {
  if (spec.op === 'suppress') return spec.until.type === 'windowCloses' && spec.until.closeAfterIdleMs !== undefined
  return (
    spec.op === 'windowAggregate' && 'closeAfterIdleMs' in spec.window && spec.window.closeAfterIdleMs !== undefined
  )
}

export function quietNodes(topology: CompiledTopology): readonly QuietNode[] {
  let nodes = known.get(topology)
  if (nodes === undefined) {
    nodes = topology.nodes
      .filter(({ spec }) => closesInQuiet(spec))
      .map(({ index, subtopology }) => ({
        node: index,
        subtopology,
        boundaries: [...boundariesAbove(topology, index)],
      }))
    known.set(topology, nodes)
  }
  return nodes
}

/** Nodes of its sub-topology from which records come to this one. */
export function nodesAbove(topology: CompiledTopology, node: number): Set<number> {
  const above = new Set<number>()
  const add = (of: number): void => {
    for (const parent of (topology.nodes[of] as CompiledNode).parents) {
      if (above.has(parent)) continue
      above.add(parent)
      add(parent)
    }
  }
  add(node)
  return above
}

/** Nodes from which records go over this boundary. */
export function nodesBefore(topology: CompiledTopology, boundary: number): Set<number> {
  const before = new Set<number>()
  for (const { index, spec } of topology.nodes) {
    if (spec.op !== 'handOff' || spec.boundary !== boundary) continue
    before.add(index)
    for (const node of nodesAbove(topology, index)) before.add(node)
  }
  return before
}

function boundariesAbove(topology: CompiledTopology, node: number, found = new Set<number>()): Set<number> {
  const nodes = nodesAbove(topology, node).add(node)
  for (const { kind, boundary, node: at } of topology.sources) {
    if (kind !== 'boundary' || boundary === undefined || !nodes.has(at) || found.has(boundary)) continue
    found.add(boundary)
    for (const { index, spec } of topology.nodes)
      if (spec.op === 'handOff' && spec.boundary === boundary) boundariesAbove(topology, index, found)
  }
  return found
}
