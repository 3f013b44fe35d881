/**
 * Which sub-topologies without state have to take the records of a partition in one task. A record that has got another
 * key comes to a sink, or to a function that does something outside, among records that had other keys: of their order
 * the partition alone knows. An operator that needs equal keys together is no such end, for what is handed over to it
 * keeps its place.
 */
import type { CompiledNode, CompiledSource, CompiledSubtopology } from '../compiled.ts'

/**
 * How the records of a sub-topology without state are shared out. `key`: each key to some lane. `partition`: each partition.
 * `partition-of-key`: as with state, each key to the task of the partition in which Kafka's default partitioner puts it.
 */
export type SharedBy = 'key' | 'partition' | 'partition-of-key'

/**
 * From several topics, or from one and from other tasks, records of one key meet in the task of that key: their
 * partitions may have different numbers.
 */
export function sharedBy(
  subtopology: Pick<CompiledSubtopology, 'nodes' | 'sources'>,
  nodes: readonly CompiledNode[],
  sources: readonly CompiledSource[],
): SharedBy {
  const read = subtopology.sources.map((index) => sources[index] as CompiledSource)
  if (read.every(({ kind }) => kind === 'scheduled') || !tellsOtherKeys(subtopology.nodes, nodes)) return 'key'
  return readsOneTopic(read) ? 'partition' : 'partition-of-key'
}

function tellsOtherKeys(own: readonly number[], nodes: readonly CompiledNode[]): boolean {
  const childrenOf = (index: number): readonly number[] => (nodes[index] as CompiledNode).children
  const below = new Set(own.filter((index) => changesKey(nodes[index] as CompiledNode)).flatMap(childrenOf))
  // A set that grows while it is walked: each node is looked at once.
  for (const index of below) for (const child of childrenOf(index)) below.add(child)
  return [...below].some((index) => isSeenOutside(nodes[index] as CompiledNode))
}

const readsOneTopic = ([source, ...others]: readonly CompiledSource[]): boolean =>
  source?.kind === 'topics' && source.pattern === undefined && source.topics.length === 1 && others.length === 0

function changesKey({ spec }: CompiledNode): boolean {
  return spec.op === 'process' ? !spec.fixedKey : ['map', 'flatMap', 'selectKey'].includes(spec.op)
}

const isSeenOutside = ({ spec }: CompiledNode): boolean => ['sink', 'peek', 'process'].includes(spec.op)
