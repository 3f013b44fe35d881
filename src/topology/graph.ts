/**
 * The logical graph: the calls of the DSL, one node for each, before it is rewritten and turned into operators. Nodes
 * are written in the order of their calls, as soon as all their parents are. That order gives the indices.
 */
import { Names } from './names.ts'
import type { PhysicalBuilder, SourceDefinition } from './physical.ts'

export type GraphKind = 'plain' | 'source' | 'tableSource' | 'repartition' | 'joinWindow' | 'streamJoin'

export interface RepartitionPart {
  readonly base: string
  readonly topic: string
  /** Whether it may be merged with others. Those that `repartition()` asked for by itself may not. */
  readonly mergeable: boolean
  /** Whether records without a key are dropped. An outer join below keeps them. */
  dropsNullKeys: boolean
  /** Makes the same repartition under other names. */
  readonly remake: ((base: string) => GraphNode) | undefined
}

/** When the windows of an aggregate can no longer change. */
export interface WindowClose {
  readonly graceMs: number
  /** Whether the end belongs to the window, which then closes one instant later. */
  readonly inclusiveEnd: boolean
  readonly closeAfterIdleMs: number | undefined
}

export interface GraphNodeOptions {
  readonly kind?: GraphKind
  readonly write?: (builder: PhysicalBuilder, node: GraphNode) => void
  readonly keyChanging?: boolean
  readonly valueChanging?: boolean
  readonly merge?: boolean
  /** A join that keeps records without a key. */
  readonly relaxedNullKey?: boolean
  readonly outputVersioned?: boolean
  /** Called for each parent whose rows come from a versioned store. */
  readonly onVersionedParent?: (parent: GraphNode) => void
  readonly source?: SourceDefinition
  readonly repartition?: RepartitionPart
  /** Set for a table whose rows follow from the records of its topic alone, so that the topic can be its changelog. */
  readonly isToldByTopic?: boolean
  /** The nodes by which a self-join is recognised. */
  readonly windowNodes?: readonly [left: GraphNode, right: GraphNode]
  /** Set for operators that make windows. */
  readonly windowClose?: WindowClose
  /** Records are taken as they arrive, by this operator and all in one task with it. */
  readonly takesAsArrived?: boolean
}

export class GraphNode {
  readonly name: string
  readonly options: GraphNodeOptions
  readonly children = new Set<GraphNode>()
  readonly parents = new Set<GraphNode>()
  priority = -1
  written = false
  reusesSourceTopic = false
  selfJoin = false

  constructor(name: string, options: GraphNodeOptions = {}) {
    this.name = name
    this.options = options
  }

  get kind(): GraphKind {
    return this.options.kind ?? 'plain'
  }

  addChild(child: GraphNode): void {
    this.children.add(child)
    child.parents.add(this)
  }

  removeChild(child: GraphNode): void {
    this.children.delete(child)
    child.parents.delete(this)
  }

  parentNames(): string[] {
    return [...this.parents].map((parent) => parent.name)
  }
}

/** The graph with what its rewriting needs to know. */
export class Graph {
  readonly names = new Names()
  readonly root = new GraphNode('root')
  readonly tableSources = new Set<GraphNode>()
  readonly mergeNodes = new Set<GraphNode>()
  /** The operators that change keys, each with the repartitions below it that may be merged. */
  readonly keyChangers = new Map<GraphNode, Set<GraphNode>>()
  readonly versionedListeners: GraphNode[] = []
  #priority = 0

  constructor() {
    this.root.written = true
  }

  add(parents: GraphNode | readonly GraphNode[], node: GraphNode): GraphNode {
    for (const parent of parents instanceof GraphNode ? [parents] : parents) {
      parent.addChild(node)
      node.priority = this.#priority++
    }
    this.#note(node)
    return node
  }

  addRoot(node: GraphNode): GraphNode {
    return this.add(this.root, node)
  }

  #note(node: GraphNode): void {
    const { options } = node
    if (options.keyChanging) {
      this.keyChangers.set(node, new Set())
    } else if (options.repartition?.mergeable) {
      const changer = this.#keyChangerAbove(node)
      if (changer) this.keyChangers.get(changer)?.add(node)
    } else if (options.merge) {
      this.mergeNodes.add(node)
    } else if (node.kind === 'tableSource') {
      this.tableSources.add(node)
    }
    if (options.onVersionedParent && !this.versionedListeners.includes(node)) this.versionedListeners.push(node)
  }

  /** The key-changing operator above, if no operator in between changes the value. */
  #keyChangerAbove(node: GraphNode): GraphNode | undefined {
    const any = findAbove(node, (n) => n.options.keyChanging === true || n.options.valueChanging === true)
    const changer = findAbove(node, (n) => n.options.keyChanging === true)
    return any !== undefined && any === changer ? changer : undefined
  }

  /** Writes all nodes, parents first and otherwise in the order of the calls. */
  write(builder: PhysicalBuilder): void {
    const queue: GraphNode[] = [this.root]
    while (queue.length > 0) {
      let best = 0
      for (let i = 1; i < queue.length; i++) {
        if ((queue[i] as GraphNode).priority < (queue[best] as GraphNode).priority) best = i
      }
      const node = queue.splice(best, 1)[0] as GraphNode
      if (!node.written && [...node.parents].every((parent) => parent.written)) {
        node.options.write?.(builder, node)
        if (node.options.takesAsArrived) builder.takenAsArrived.add(node.name)
        node.written = true
      }
      for (const child of node.children) if (!child.written && !queue.includes(child)) queue.push(child)
    }
  }
}

/** The nearest matching node at or above `start`; of several parents, that of the last parent that has one. */
export function findAbove(start: GraphNode, matches: (node: GraphNode) => boolean): GraphNode | undefined {
  if (matches(start)) return start
  let found: GraphNode | undefined
  for (const parent of start.parents) {
    if (matches(parent)) return parent
    found = findAbove(parent, matches)
  }
  return found
}
