/**
 * Which tables tell each changed row once per commit. Asked for by an operator (`emit: 'per-commit'`), or by the
 * application for all of them (`topology.emit`). Where that would not be sound an operator that was asked to do it is
 * refused; one that was only meant with all others tells every update.
 *
 * What is told at a commit comes behind everything else that the task puts out in its epoch. So a boundary lets it
 * through only where nothing comes by that has not been folded: a deeper task takes records in their order, in which what
 * is told late stands early, by its event time.
 */
import type { CompiledNode, CompiledTopology, PerCommit } from './compiled.ts'
import type { Getter, OperatorSpec } from './operator-spec.ts'
import { invalid } from './physical.ts'

type Topology = Pick<CompiledTopology, 'nodes' | 'sources' | 'boundaries' | 'stores'>

/** `wanted`: the stores that are asked to, each with whether that was said of the very operator. */
export function perCommitStores(
  topology: Topology,
  wanted: ReadonlyMap<string, 'itself' | 'all'>,
): Map<string, PerCommit> {
  const tables = tablesOf(topology)
  const folded = new Map<string, readonly CompiledNode[]>()
  for (const [store, by] of wanted) {
    const nodes = tables.get(store) ?? []
    const why = nodes.length === 0 ? undefined : whyNot(topology, store, nodes)
    if (why !== undefined && by === 'itself') throw refused(nodes, why)
    if (why === undefined && nodes.length > 0) folded.set(store, nodes)
  }
  for (let left = true; left; ) {
    left = false
    for (const [store, nodes] of folded) {
      const other = otherWay(topology, folded, nodes)
      if (other === undefined) continue
      const why = `what it tells goes to ${other}, which other records reach as well; theirs would come in another order`
      if (wanted.get(store) === 'itself') throw refused(nodes, why)
      folded.delete(store)
      left = true
    }
  }
  return new Map([...folded].map(([store, nodes]) => [store, holdsOf(topology, nodes)]))
}

function refused(nodes: readonly CompiledNode[], why: string): Error {
  const name = nodes[0]?.name ?? ''
  return invalid(`${name} cannot tell its rows once per commit: ${why}. Leave out emit: 'per-commit' there`)
}

/** The nodes that make the rows of each store: several of a cogroup. */
function tablesOf({ nodes }: Topology): Map<string, CompiledNode[]> {
  const tables = new Map<string, CompiledNode[]>()
  for (const node of nodes) {
    const store = tableStoreOf(node.spec)
    if (store !== undefined) tables.set(store, [...(tables.get(store) ?? []), node])
  }
  return tables
}

function tableStoreOf(spec: OperatorSpec): string | undefined {
  switch (spec.op) {
    case 'tableSource':
    case 'tableFilter':
    case 'tableMapValues':
    case 'tableAggregate':
    case 'streamAggregate':
    case 'tableJoinMerge':
      return spec.store?.name
    case 'windowAggregate':
      return spec.emit === 'update' ? spec.store?.name : undefined
    default:
      return undefined
  }
}

function whyNot(topology: Topology, store: string, nodes: readonly CompiledNode[]): string | undefined {
  if (topology.stores.get(store)?.kind === 'versioned') return 'its store keeps versions, and each of them is told'
  if (topology.stores.get(store)?.ttlMs !== undefined)
    return 'its store forgets rows, and one that was forgotten would be told as the value before'
  const { subtopology } = nodes[0] as CompiledNode
  const forgetful = forgetfulBelow(topology, nodes)
  if (forgetful !== undefined)
    return `${forgetful} forgets by the time of each record, and of a row that is told once per commit that is not known`
  for (const { name, spec } of topology.nodes) {
    if (spec.op === 'process' && spec.stores.includes(store)) return `the processor ${name} may write to its store`
    if (joinedStores(spec).includes(store)) return `the table join ${name} reads its rows as they are told`
  }
  const levels = new Set(topology.sources.filter((s) => s.subtopology === subtopology).map(({ level }) => level))
  if (levels.size > 1) return 'its task is fed by what it puts out itself'
  return undefined
}

/** A store with a time to live that what these tables tell comes to. */
function forgetfulBelow(topology: Topology, tables: readonly CompiledNode[]): string | undefined {
  const below = reached(
    topology,
    tables.map(({ index }) => index),
    () => false,
  )
  for (const at of below) {
    const { stores, hiddenStores } = topology.nodes[at] as CompiledNode
    const store = [...stores, ...hiddenStores].find((name) => topology.stores.get(name)?.ttlMs !== undefined)
    if (store !== undefined) return `the store '${store}', which it reaches,`
  }
  return undefined
}

/** Stores of which a join of tables reads rows: it has to find each as it was told last. */
function joinedStores(spec: OperatorSpec): readonly string[] {
  switch (spec.op) {
    case 'tableJoin':
      return storesOf(spec.other)
    case 'foreignKeyJoin':
      return storesOf(spec.right)
    case 'foreignKeyResolve':
      return storesOf(spec.left)
    default:
      return []
  }
}

function storesOf(getter: Getter): readonly string[] {
  switch (getter.kind) {
    case 'store':
      return [getter.store]
    case 'join':
      return [...storesOf(getter.left), ...storesOf(getter.right)]
    default:
      return storesOf(getter.parent)
  }
}

/** A source below that records reach which no table has folded. */
function otherWay(
  topology: Topology,
  folded: ReadonlyMap<string, readonly CompiledNode[]>,
  nodes: readonly CompiledNode[],
): string | undefined {
  const tables = new Set([...folded.values()].flat().map(({ index }) => index))
  const roots = topology.sources.filter(({ kind }) => kind !== 'boundary').map(({ node }) => node)
  const unfolded = reached(topology, roots, (node) => tables.has(node))
  const below = reached(
    topology,
    nodes.map(({ index }) => index),
    () => false,
  )
  const own = nodes[0]?.subtopology
  const deeper = new Set([...below].map((node) => topology.nodes[node]?.subtopology).filter((id) => id !== own))
  const met = topology.sources.find(({ subtopology, node }) => deeper.has(subtopology) && unfolded.has(node))
  return met?.name
}

/** All nodes that records come to from these, across boundaries; what `stops` passes nothing on. */
function reached(topology: Topology, from: readonly number[], stops: (node: number) => boolean): Set<number> {
  const seen = new Set(from)
  // The set grows while the loop walks it: each node is looked at once.
  for (const at of seen) {
    if (stops(at)) continue
    const { children, spec } = topology.nodes[at] as CompiledNode
    for (const child of children) seen.add(child)
    if (spec.op !== 'handOff') continue
    const to = topology.boundaries[spec.boundary]?.toSource
    const source = to === undefined ? undefined : topology.sources[to]
    if (source !== undefined) seen.add(source.node)
  }
  return seen
}

/** Operators that let go of something as event time goes on, or judge by it what is too old. */
const timed: ReadonlySet<OperatorSpec['op']> = new Set([
  'windowAggregate',
  'suppress',
  'joinWindow',
  'streamJoin',
  'selfJoin',
  'streamTableJoin',
  'process',
])

function holdsOf(topology: Topology, tables: readonly CompiledNode[]): PerCommit {
  const seen = new Set(tables.flatMap(({ children }) => children))
  let holdsTask = false
  let holdsDeeper = false
  for (const at of seen) {
    const { children, spec } = topology.nodes[at] as CompiledNode
    for (const child of children) seen.add(child)
    if (timed.has(spec.op)) holdsTask = true
    if (spec.op === 'handOff') holdsDeeper = true
  }
  return { holdsTask, holdsDeeper }
}
