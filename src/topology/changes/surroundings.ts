/**
 * What a store whose name is made of its position is fed by, and where it goes to: `in → out`. Such a name passes to another
 * operator when operators change their places, and this tells that it did.
 */
import type { CompiledNode, CompiledTopology } from '../compiled.ts'

/** A name that is made of a position: it changes with the steps before it. */
export const generatedName = /\d{10}/

/** By store, of those with such a name. */
export function surroundingsOf(topology: CompiledTopology): ReadonlyMap<string, string> {
  const result = new Map<string, string>()
  for (const name of topology.stores.keys()) {
    if (!generatedName.test(name)) continue
    const users = topology.nodes.filter(({ stores, hiddenStores }) => [...stores, ...hiddenStores].includes(name))
    const above = topicsFrom(topology, users, 'up')
    const below = topicsFrom(topology, users, 'down')
    result.set(name, `${above.join(', ')} → ${below.join(', ')}`)
  }
  return result
}

function topicsFrom(topology: CompiledTopology, users: readonly CompiledNode[], way: 'up' | 'down'): string[] {
  const found = new Set<string>()
  const seen = new Set<number>()
  const next = users.map(({ index }) => index)
  for (let index = next.pop(); index !== undefined; index = next.pop()) {
    const node = topology.nodes[index]
    if (node === undefined || seen.has(index)) continue
    seen.add(index)
    for (const topic of topicsAt(topology, node, way)) found.add(topic)
    next.push(...(way === 'up' ? node.parents : node.children), ...overBoundary(topology, node, way))
  }
  return [...found].sort()
}

function topicsAt(topology: CompiledTopology, node: CompiledNode, way: 'up' | 'down'): readonly string[] {
  if (way === 'down') {
    if (node.spec.op !== 'sink') return []
    return [typeof node.spec.topic === 'string' ? node.spec.topic : 'topics by a function']
  }
  const source = topology.sources.find((each) => each.node === node.index)
  if (source === undefined || source.kind === 'boundary') return []
  return source.pattern === undefined ? source.topics : [`/${source.pattern.source}/`]
}

/** Where a record goes on, or comes from, that another task hands over. */
function overBoundary(topology: CompiledTopology, node: CompiledNode, way: 'up' | 'down'): number[] {
  const { spec } = node
  if (way === 'down') {
    if (spec.op !== 'handOff') return []
    const to = topology.boundaries[spec.boundary]?.toSource
    return to === undefined ? [] : topology.sources.filter(({ index }) => index === to).map((source) => source.node)
  }
  const boundary = topology.sources.find((each) => each.node === node.index)?.boundary
  if (boundary === undefined) return []
  return topology.nodes.flatMap((each) =>
    each.spec.op === 'handOff' && each.spec.boundary === boundary ? each.index : [],
  )
}
