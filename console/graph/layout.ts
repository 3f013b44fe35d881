/** Where nodes and edges lie. */
import { Graph as DagreGraph, layout } from '@dagrejs/dagre'
import type { Graph, GraphNode } from './model.ts'

export interface Placed {
  readonly width: number
  readonly height: number
  readonly nodes: ReadonlyArray<{
    readonly node: GraphNode
    readonly x: number
    readonly y: number
    readonly width: number
    readonly height: number
  }>
  readonly edges: ReadonlyArray<{ readonly id: string; readonly path: string }>
}

const nodeHeight = 46
const charWidth = 7.2
const longest = 30

export function shortened(name: string): string {
  return name.length <= longest ? name : `${name.slice(0, longest - 12)}…${name.slice(-11)}`
}

export function placed(graph: Graph): Placed {
  const dagre = new DagreGraph({ multigraph: false })
  dagre.setGraph({ rankdir: 'LR', nodesep: 18, ranksep: 56, marginx: 12, marginy: 12 })
  dagre.setDefaultEdgeLabel(() => ({}))
  for (const { id, name } of graph.nodes) {
    dagre.setNode(id, { width: Math.max(130, shortened(name).length * charWidth + 24), height: nodeHeight })
  }
  for (const { from, to } of graph.edges) dagre.setEdge(from, to)
  layout(dagre)
  const { width = 0, height = 0 } = dagre.graph() as { width?: number; height?: number }
  const nodes = graph.nodes.map((node) => {
    const at = dagre.node(node.id) as { x: number; y: number; width: number; height: number }
    return { node, x: at.x - at.width / 2, y: at.y - at.height / 2, width: at.width, height: at.height }
  })
  const edges = graph.edges.map(({ from, to }) => {
    const { points } = dagre.edge(from, to) as { points: ReadonlyArray<{ x: number; y: number }> }
    const path = points.map(({ x, y }, i) => `${i === 0 ? 'M' : 'L'}${Math.round(x)} ${Math.round(y)}`).join('')
    return { id: `${from} ${to}`, path }
  })
  return { width, height, nodes, edges }
}
