/** Where processors read stores that forget by time: they go by the place of the record at hand. */
import type { CompiledNode, CompiledTopology } from '../compiled.ts'

export function looksBack(topology: CompiledTopology, subtopology: number): boolean {
  const nodes = topology.subtopologies[subtopology]?.nodes ?? []
  return nodes.some((node) => {
    const { spec } = topology.nodes[node] as CompiledNode
    return spec.op === 'process' && spec.stores.some((name) => topology.stores.get(name)?.retentionMs !== undefined)
  })
}
