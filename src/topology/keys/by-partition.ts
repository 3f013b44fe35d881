/**
 * Which sub-topologies take all records of a partition in one task. A record that has got another key comes to a sink, or
 * to a function that does something outside, among records that had other keys: of their order the partition alone
 * knows. An operator that needs equal keys together is no such end, for what is handed over to it keeps its place.
 */
import type { CompiledNode, CompiledSubtopology } from '../compiled.ts'

/** With stores the hash of the key finds the task, which has to have the row. */
export function goesByPartition(
  { stores, nodes: own }: Pick<CompiledSubtopology, 'stores' | 'nodes'>,
  nodes: readonly CompiledNode[],
): boolean {
  if (stores.length > 0) return false
  const childrenOf = (index: number): readonly number[] => (nodes[index] as CompiledNode).children
  const below = new Set(own.filter((index) => changesKey(nodes[index] as CompiledNode)).flatMap(childrenOf))
  // A set that grows while it is walked: each node is looked at once.
  for (const index of below) for (const child of childrenOf(index)) below.add(child)
  return [...below].some((index) => isSeenOutside(nodes[index] as CompiledNode))
}

function changesKey({ spec }: CompiledNode): boolean {
  return spec.op === 'process' ? !spec.fixedKey : ['map', 'flatMap', 'selectKey'].includes(spec.op)
}

const isSeenOutside = ({ spec }: CompiledNode): boolean => ['sink', 'peek', 'process'].includes(spec.op)
