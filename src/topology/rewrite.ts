/**
 * Rewrites the logical graph: one source for each topic, versioned semantics, and what `topology.optimization=all`
 * allows.
 */
import { findAbove, type Graph, type GraphNode, type WindowClose } from './graph.ts'
import { plainKeySerde, plainValueSerde } from './serdes/default-serdes.ts'
import { invalid, type SourceDefinition } from './physical.ts'

export function rewrite(graph: Graph, optimize: boolean): void {
  mergeDuplicateSources(graph)
  if (optimize) {
    for (const node of graph.tableSources) node.reusesSourceTopic = node.options.isToldByTopic === true
    mergeRepartitions(graph)
    rewriteSelfJoins(graph.root, new Set())
  }
  dropNullKeys(graph)
  for (const node of graph.versionedListeners) {
    for (const parent of node.parents) if (isVersioned(parent)) node.options.onVersionedParent?.(parent)
  }
}

/** Streams of the same topics share one source. */
function mergeDuplicateSources(graph: Graph): void {
  const byTopic = new Map<string, GraphNode>()
  const byPattern = new Map<string, GraphNode>()
  for (const node of [...graph.root.children]) {
    const source = node.options.source
    if (node.kind !== 'source' || source === undefined || source.kind !== 'topics') continue
    if (source.pattern) {
      const main = byPattern.get(String(source.pattern))
      if (main) absorb(graph, main, node)
      else byPattern.set(String(source.pattern), node)
      continue
    }
    for (const topic of source.topics) {
      const main = byTopic.get(topic)
      if (main === undefined) {
        byTopic.set(topic, node)
      } else if (main !== node) {
        const same = main.options.source?.topics
        if (!same || same.length !== source.topics.length || !source.topics.every((t) => same.includes(t))) {
          throw invalid(
            `two streams read topics that overlap but are not equal (${topic}); read each topic in one stream and merge them`,
          )
        }
        absorb(graph, main, node)
      }
    }
  }
}

function absorb(graph: Graph, main: GraphNode, other: GraphNode): void {
  const { source } = main.options
  refuseOtherSettings(source, other.options.source)
  if (source !== undefined && other.options.source?.expectsNull === false) source.expectsNull = false
  for (const child of [...other.children]) {
    other.removeChild(child)
    main.addChild(child)
  }
  graph.root.removeChild(other)
}

/** A topic is read once, so that one of two ways to read it would be passed over. */
function refuseOtherSettings(one: SourceDefinition | undefined, other: SourceDefinition | undefined): void {
  if (one === undefined || other === undefined) return
  const settings = ({ keySerde, valueSerde, timestampExtractor, watermark }: SourceDefinition) => ({
    'a key serde': (keySerde ?? plainKeySerde).name,
    'a value serde': (valueSerde ?? plainValueSerde).name,
    // Two functions are the same where they are written alike.
    'a timestamp function': timestampExtractor?.toString(),
    'watermark settings': JSON.stringify(watermark),
  })
  const others = settings(other)
  for (const [what, setting] of Object.entries(settings(one))) {
    if (setting === others[what as keyof typeof others]) continue
    const topics = one.pattern ?? one.topics.join(', ')
    throw invalid(`two streams read ${topics}, each with ${what} of its own; read it once and use the stream twice`)
  }
}

/** Repartitions below one key-changing operator become one, right below it. */
function mergeRepartitions(graph: Graph): void {
  const changers = throughMerges(graph)
  for (const [changer, repartitions] of changers) {
    const first = [...repartitions][0]
    if (first === undefined) continue
    const part = first.options.repartition
    const merged = part?.remake?.(part.topic)
    if (merged === undefined) continue
    merged.priority = changer.priority
    for (const replaced of repartitions) {
      const top = findAbove(replaced, (node) => node.parents.has(changer))
      if (top === undefined) continue
      merged.addChild(top)
      changer.removeChild(top)
      const children = [...replaced.children]
      const parents = [...replaced.parents]
      for (const child of children) for (const parent of parents) parent.addChild(child)
      for (const parent of parents) parent.removeChild(replaced)
      for (const child of children) replaced.removeChild(child)
    }
    changer.addChild(merged)
  }
}

/**
 * Where a merge lies between the operators that change keys and all their repartitions, the repartition goes below the
 * merge.
 */
function throughMerges(graph: Graph): Map<GraphNode, Set<GraphNode>> {
  const changers = new Map(graph.keyChangers)
  const replaced = new Set<GraphNode>()
  const byMerge = new Map<GraphNode, Set<GraphNode>>()
  for (const merge of graph.mergeNodes) {
    const above = new Set<GraphNode>()
    for (const [changer, repartitions] of changers) {
      const below = [...repartitions].every((node) => findAbove(node, (n) => n.parents.has(merge)) !== undefined)
      if (below && findAbove(merge, (n) => n.parents.has(changer)) !== undefined) above.add(changer)
    }
    byMerge.set(merge, above)
  }
  for (const [merge, above] of byMerge) {
    const repartitions = new Set<GraphNode>()
    for (const changer of above) {
      for (const node of changers.get(changer) ?? []) repartitions.add(node)
      replaced.add(changer)
    }
    changers.set(merge, repartitions)
  }
  for (const changer of replaced) changers.delete(changer)
  return changers
}

/**
 * A join of a stream with itself keeps its records once. Each record finds itself, so a left or outer join is the same
 * as an inner one.
 */
function rewriteSelfJoins(node: GraphNode, visited: Set<GraphNode>): void {
  visited.add(node)
  const windows = node.options.windowNodes
  if (node.kind === 'streamJoin' && windows !== undefined && node.parents.size === 1) {
    const parent = [...node.parents][0] as GraphNode
    parent.removeChild(windows[1])
    node.selfJoin = true
  }
  for (const child of node.children) if (!visited.has(child)) rewriteSelfJoins(child, visited)
}

/** A repartition drops records without a key, unless a join somewhere below keeps them. */
function dropNullKeys(graph: Graph): void {
  const kept = new Set<GraphNode>()
  const visited = new Set<GraphNode>()
  const visit = (node: GraphNode): void => {
    if (visited.has(node)) return
    visited.add(node)
    for (const child of node.children) {
      visit(child)
      if (child.options.relaxedNullKey || kept.has(child)) kept.add(node)
    }
  }
  visit(graph.root)
  for (const node of visited) {
    if (node.options.repartition) node.options.repartition.dropsNullKeys = !kept.has(node)
  }
}

/** Rows are versioned below a versioned store, until an operator says otherwise. */
function isVersioned(node: GraphNode): boolean {
  if (node.options.outputVersioned !== undefined) return node.options.outputVersioned
  if (node.parents.size === 0) return false
  return [...node.parents].every((parent) => isVersioned(parent))
}

/** When the windows of this node's rows close. Throws where there are none. */
export function windowCloseOf(node: GraphNode): WindowClose {
  const close = node.options.windowClose
  if (close !== undefined) return close
  const parents = [...node.parents].filter((parent) => parent.name !== 'root')
  if (parents.length === 0) {
    throw invalid(
      `${node.name} has no windows above it, so nothing can be suppressed until a window closes; window the aggregate first`,
    )
  }
  const above = parents.map(windowCloseOf)
  const idle = above.map((one) => one.closeAfterIdleMs)
  return {
    graceMs: Math.max(...above.map((one) => one.graceMs)),
    inclusiveEnd: above.some((one) => one.inclusiveEnd),
    closeAfterIdleMs: idle.includes(undefined) ? undefined : Math.max(...(idle as number[])),
  }
}
