/** The topology's answers as nodes and edges. */
import type { Finding, Flow, KsTopology, Offsets, Topology } from '../ask/model.ts'

export type Kind = 'topic' | 'boundary' | 'source' | 'processor' | 'sink'
export type Mood = 'stuck' | 'held' | 'hot' | 'calm'

export interface GraphNode {
  readonly id: string
  readonly kind: Kind
  readonly name: string
  readonly subtopology: number | null
  readonly stores: readonly string[]
}

export interface Graph {
  readonly nodes: readonly GraphNode[]
  readonly edges: ReadonlyArray<{ readonly from: string; readonly to: string }>
}

export function graphOf(described: KsTopology, topology: Topology): Graph {
  const nodes = new Map<string, GraphNode>()
  const edges: Array<{ from: string; to: string }> = []
  const boundaries = new Map(topology.boundaries.map(({ topic, kind }) => [topic, kind]))
  const topicId = (topic: string): string => {
    const id = `topic ${topic}`
    const kind = boundaries.get(topic) === 'in-process' ? 'boundary' : 'topic'
    if (!nodes.has(id)) nodes.set(id, { id, kind, name: topic, subtopology: null, stores: [] })
    return id
  }
  for (const { id: subtopology, nodes: own } of described.subtopologies) {
    const nodeId = (name: string): string => `node ${subtopology} ${name}`
    for (const { name, type, stores = [], topics = [], topicPattern, topic, successors = [] } of own) {
      const id = nodeId(name)
      nodes.set(id, { id, kind: type, name, subtopology, stores })
      const read = topicPattern === undefined ? topics : [`/${topicPattern}/`]
      for (const each of type === 'source' ? read : []) edges.push({ from: topicId(each), to: id })
      if (topic !== undefined) edges.push({ from: id, to: topicId(topic) })
      for (const next of successors) edges.push({ from: id, to: nodeId(next) })
    }
  }
  return { nodes: [...nodes.values()], edges }
}

const held = new Set(['STANDING', 'FAILED', 'SLOW'])

/** Where it is hot, where it is held, and where the cause sits. */
export function moodOf(node: GraphNode, flow: Flow | undefined, findings: readonly Finding[]): Mood {
  if (node.kind === 'topic' || node.kind === 'boundary') {
    return findings.some(({ place, severity }) => place.topic === node.name && held.has(severity)) ? 'held' : 'calm'
  }
  if (findings.some(({ place, severity }) => place.node === node.name && held.has(severity))) return 'stuck'
  const lanes = flow?.lanes.filter(({ node: at, busy }) => at === node.name && busy > 0.5) ?? []
  return lanes.length > 0 ? 'hot' : 'calm'
}

export function rateOf(node: GraphNode, flow: Flow | undefined): number | undefined {
  if (flow === undefined) return undefined
  if (node.kind === 'topic') {
    return [...flow.sources, ...flow.sinks].find(({ topic }) => topic === node.name)?.recordsPerSecond
  }
  return flow.nodes.find(({ node: name }) => name === node.name)?.recordsPerSecond
}

export function lagOf(node: GraphNode, offsets: Offsets | undefined): number | undefined {
  return node.kind === 'topic' ? offsets?.sources.find(({ topic }) => topic === node.name)?.totalLag : undefined
}

const quoted = (text: string): string => JSON.stringify(text)

export function dotOf({ nodes, edges }: Graph): string {
  const shapes: Readonly<Record<Kind, string>> = {
    topic: 'cylinder',
    boundary: 'note',
    source: 'invhouse',
    processor: 'box',
    sink: 'house',
  }
  const lines = nodes.map(({ id, name, kind }) => `  ${quoted(id)} [label=${quoted(name)}, shape=${shapes[kind]}]`)
  const ways = edges.map(({ from, to }) => `  ${quoted(from)} -> ${quoted(to)}`)
  return `digraph topology {\n  rankdir=LR\n${[...lines, ...ways].join('\n')}\n}\n`
}

export function mermaidOf({ nodes, edges }: Graph): string {
  const ids = new Map(nodes.map(({ id }, i) => [id, `n${i}`]))
  const label = (text: string): string => text.replaceAll('"', '#quot;')
  const lines = nodes.map(({ id, name, kind }) => {
    const [open, close] = kind === 'topic' ? ['[(', ')]'] : kind === 'boundary' ? ['([', '])'] : ['[', ']']
    return `  ${ids.get(id)}${open}"${label(name)}"${close}`
  })
  const ways = edges.map(({ from, to }) => `  ${ids.get(from)} --> ${ids.get(to)}`)
  return `flowchart LR\n${[...lines, ...ways].join('\n')}\n`
}
