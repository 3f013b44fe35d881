/** Where stores that forget are read by the place of the record at hand. */
import type { CompiledNode, CompiledTopology } from '../compiled.ts'
import { storesLookedUp } from './stages.ts'

/**
 * Rows with a time to live, and versions, are over by the time of whoever reads them, in every operator: what a timer made has
 * no watermark that says it. Windows are read so by processors and where their rows are looked up; those who keep them go by
 * what they have closed.
 */
export function looksBack(topology: CompiledTopology, subtopology: number): boolean {
  const forgets = (name: string): boolean => topology.stores.get(name)?.retentionMs !== undefined
  const goesByReader = (name: string): boolean => {
    const { kind, ttlMs } = topology.stores.get(name) ?? {}
    return ttlMs !== undefined || kind === 'versioned'
  }
  return (topology.subtopologies[subtopology]?.nodes ?? []).some((index) => {
    const node = topology.nodes[index] as CompiledNode
    const read = node.spec.op === 'process' ? node.spec.stores : storesLookedUp(node)
    return read.some(forgets) || [...read, ...node.stores, ...node.hiddenStores].some(goesByReader)
  })
}
