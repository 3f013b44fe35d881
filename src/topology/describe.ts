/**
 * The topology as people and tools read it: the text of Kafka Streams' `TopologyDescription`, and the same as JSON.
 * Nodes of a sub-topology are ordered by the number of paths below them, largest first, then by name. Lists are ordered
 * by name.
 */
import type { Boundary, CompiledNode, CompiledSource, CompiledTopology } from './compiled.ts'

export interface NodeDescription {
  readonly name: string
  readonly type: 'source' | 'processor' | 'sink'
  readonly topics?: readonly string[]
  readonly topicPattern?: string
  readonly stores?: readonly string[]
  /** Its table tells each changed row once per commit. */
  readonly emit?: 'per-commit'
  readonly topic?: string
  readonly topicNameExtractor?: string
  readonly successors?: readonly string[]
  readonly predecessors?: readonly string[]
}

export interface SubtopologyDescription {
  readonly id: number
  readonly nodes: readonly NodeDescription[]
}

export interface GlobalStoreDescription {
  readonly id: number
  readonly source: NodeDescription
  readonly processor: NodeDescription
}

export interface TopologyDescription {
  readonly subtopologies: readonly SubtopologyDescription[]
  /** Absent when there are none. */
  readonly globalStores?: readonly GlobalStoreDescription[]
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/**
 * The description of a topology as JSON, by the same model as `millrace topology --format json`. A list without entries
 * is left out; only the topics of a source are always there.
 *
 * @example
 * console.log(JSON.stringify(describeTopology(app.compile())))
 */
export function describeTopology(topology: CompiledTopology): TopologyDescription {
  const sizes = pathCounts(topology)
  const names = (list: readonly number[]): string[] =>
    list.map((i) => (topology.nodes[i] as CompiledNode).name).sort(byText)
  const describe = (node: CompiledNode): NodeDescription => {
    const predecessors = names(node.parents)
    const successors = names(node.children)
    const { name, type } = node
    const below = successors.length > 0 ? { successors } : {}
    const above = predecessors.length > 0 ? { predecessors } : {}
    if (type === 'source') return { name, type, ...sourceTopics(topology, node), ...below }
    if (type === 'sink') return { name, type, ...sinkTopic(node), ...above }
    const stores = [...node.stores].sort(byText)
    const emit = tellsPerCommit(topology, node) ? ({ emit: 'per-commit' } as const) : {}
    return { name, type, ...(stores.length > 0 ? { stores } : {}), ...emit, ...below, ...above }
  }
  const subtopologies: SubtopologyDescription[] = []
  const globalStores: GlobalStoreDescription[] = []
  for (const subtopology of topology.subtopologies) {
    const nodes = subtopology.nodes
      .map((i) => topology.nodes[i] as CompiledNode)
      .sort((a, b) => (sizes[b.index] as number) - (sizes[a.index] as number) || byText(a.name, b.name))
    const described = nodes.map(describe)
    const [source, processor] = described
    if (subtopology.global && source && processor) globalStores.push({ id: subtopology.id, source, processor })
    else subtopologies.push({ id: subtopology.id, nodes: described })
  }
  return globalStores.length === 0 ? { subtopologies } : { subtopologies, globalStores }
}

function tellsPerCommit({ perCommit }: CompiledTopology, { spec }: CompiledNode): boolean {
  return 'store' in spec && typeof spec.store === 'object' && perCommit.has(spec.store.name)
}

/** How many nodes are reached from each node: once for every path, the node itself included. */
function pathCounts(topology: CompiledTopology): number[] {
  const sizes: number[] = new Array(topology.nodes.length).fill(0)
  const sizeOf = (index: number): number => {
    if (sizes[index] === 0) {
      sizes[index] = 1 + (topology.nodes[index] as CompiledNode).children.reduce((sum, child) => sum + sizeOf(child), 0)
    }
    return sizes[index] as number
  }
  for (const node of topology.nodes) sizeOf(node.index)
  return sizes
}

function sourceTopics(topology: CompiledTopology, node: CompiledNode): { topics: string[]; topicPattern?: string } {
  const source = topology.sources.find((s) => s.node === node.index) as CompiledSource
  if (source.boundary !== undefined) return { topics: [(topology.boundaries[source.boundary] as Boundary).topic] }
  if (source.pattern) return { topics: [], topicPattern: source.pattern.source }
  return { topics: [...source.topics].sort(byText) }
}

function sinkTopic(node: CompiledNode): { topic: string } | { topicNameExtractor: string } {
  const { spec } = node
  if (spec.op === 'handOff') return { topic: spec.topic }
  if (spec.op !== 'sink') return { topic: '' }
  return typeof spec.topic === 'string'
    ? { topic: spec.topic }
    : { topicNameExtractor: spec.topicFunctionName ?? 'TopicFrom' }
}

/**
 * The description of a topology as text, in the form of Kafka Streams' `TopologyDescription`.
 *
 * @example
 * console.log(describeText(app.compile()))
 */
export function describeText(topology: CompiledTopology): string {
  const description = describeTopology(topology)
  const entries = [
    ...description.subtopologies.map((entry) => ({ id: entry.id, text: subtopologyText(entry) })),
    ...(description.globalStores ?? []).map((entry) => ({ id: entry.id, text: globalText(entry) })),
  ].sort((a, b) => a.id - b.id)
  return `Topologies:\n ${entries.map((entry) => `  ${entry.text}`).join('')}`
}

function subtopologyText(subtopology: SubtopologyDescription): string {
  return `Sub-topology: ${subtopology.id}\n${subtopology.nodes.map((node) => `    ${nodeText(node)}\n`).join('')}\n`
}

function globalText(entry: GlobalStoreDescription): string {
  const head = `Sub-topology: ${entry.id} for global store (will not generate tasks)\n`
  return `${head}    ${nodeText(entry.source)}\n    ${nodeText(entry.processor)}\n`
}

function nodeText(node: NodeDescription): string {
  const list = (names: readonly string[] | undefined): string => (names && names.length > 0 ? names.join(', ') : 'none')
  switch (node.type) {
    case 'source': {
      const topics = node.topicPattern ?? `[${node.topics?.join(', ') ?? ''}]`
      return `Source: ${node.name} (topics: ${topics})\n      --> ${list(node.successors)}`
    }
    case 'sink': {
      const topic =
        node.topicNameExtractor === undefined ? `topic: ${node.topic}` : `extractor class: ${node.topicNameExtractor}`
      return `Sink: ${node.name} (${topic})\n      <-- ${list(node.predecessors)}`
    }
    default:
      return (
        `Processor: ${node.name} (stores: [${node.stores?.join(', ') ?? ''}])\n` +
        `      --> ${list(node.successors)}\n      <-- ${list(node.predecessors)}`
      )
  }
}
