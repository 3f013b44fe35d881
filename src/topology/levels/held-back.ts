/**
 * How far the output of a sub-topology may lie behind the event time that it has read, once it commits: a window emits
 * when it closes, a record waits for a partner. A reader of its topic can then say how far event time has come there,
 * however the records of several tasks are mixed in it.
 */
import type { Boundary, CompiledNode, CompiledTopology } from '../compiled.ts'
import type { OperatorSpec, WindowSpec } from '../operator-spec.ts'
import { promptOperators } from './prompt.ts'
import { nodesAbove, nodesBefore } from './quiet-ways.ts'

/** Those that look into windows do not hold a record back either. */
const prompt: ReadonlySet<string> = new Set<OperatorSpec['op']>([...promptOperators, 'joinWindow', 'selfJoin'])

/**
 * Undefined where a processor may emit whatever it likes, or where a circle would make the sub-topology wait for
 * itself. What does not lie on the way to the boundary holds none of its records back.
 *
 * Tasks may feed one another in a circle where no record does: a stream that is merged with what becomes of it behind a
 * re-key. Where nothing on the way waits for the time of its task, those who write go by their own input alone, and nobody waits for itself.
 */
export function heldBackMs(topology: CompiledTopology, boundary: Boundary): number | undefined {
  const isInCircle = isCircular(topology, boundary)
  if (isInCircle && (comesBack(topology, boundary) || isFedUntold(topology, boundary))) return undefined
  const specs = [...nodesBefore(topology, boundary.index)].map((node) => (topology.nodes[node] as CompiledNode).spec)
  const suppresses = specs.some(({ op }) => op === 'suppress')
  let sum = 0
  for (const spec of specs) {
    const held = heldBackBy(spec, suppresses)
    if (held === undefined) return undefined
    sum += held
  }
  return isInCircle && sum > 0 ? undefined : sum
}

/** For how long at most one operator holds a record back; undefined: nobody knows. */
export function heldBackBy(spec: OperatorSpec, suppresses: boolean): number | undefined {
  if (prompt.has(spec.op)) return 0
  switch (spec.op) {
    case 'windowAggregate':
      return spec.emit === 'update' && !suppresses ? 0 : spanOf(spec.window)
    case 'suppress':
      return spec.until.type === 'timeLimit' ? spec.until.ms : spec.until.graceMs
    case 'streamJoin':
      return spec.waitingStore === undefined ? 0 : Math.max(spec.beforeMs, spec.afterMs) + spec.graceMs + 1
    case 'streamTableJoin':
      return spec.grace?.ms ?? 0
    default:
      return undefined
  }
}

/** The time from the oldest record of a window until its result is emitted. */
function spanOf(window: WindowSpec): number | undefined {
  switch (window.type) {
    case 'time':
      return window.sizeMs + window.graceMs
    case 'sliding':
      return window.differenceMs + window.graceMs + 1
    case 'session':
      return window.gapMs + window.graceMs
    case 'unlimited':
      return undefined
  }
}

/** Whether what goes over the boundary may come back to it: nobody there can wait for those who feed it. */
export function isCircular(
  topology: CompiledTopology,
  { fromSubtopology, toSubtopology }: Pick<Boundary, 'fromSubtopology' | 'toSubtopology'>,
): boolean {
  return leadsTo(topology, toSubtopology, fromSubtopology)
}

function leadsTo({ boundaries }: CompiledTopology, from: number, to: number): boolean {
  const reached = new Set([from])
  // The set grows while the loop walks it. Each sub-topology is visited once.
  for (const each of reached) {
    for (const boundary of boundaries) if (boundary.fromSubtopology === each) reached.add(boundary.toSubtopology)
  }
  return reached.has(to)
}

/** Whether a record that has gone over the boundary, or what follows from it, may go over it again. */
function comesBack({ nodes, sources, boundaries }: CompiledTopology, { index, toSource }: Boundary): boolean {
  const reached = new Set([sources[toSource]?.node])
  // The set grows while the loop walks it. Each node is visited once.
  for (const at of reached) {
    const node = nodes[at ?? -1]
    if (node === undefined) continue
    for (const child of node.children) reached.add(child)
    if (node.spec.op !== 'handOff') continue
    if (node.spec.boundary === index) return true
    reached.add(sources[boundaries[node.spec.boundary]?.toSource ?? -1]?.node)
  }
  return false
}

/**
 * Whether over the way to this boundary comes what has no told time in a circle: it may be held back until the very task that
 * would wait for this boundary comes further. Ways do not come back here, so the question ends.
 */
function isFedUntold(topology: CompiledTopology, { index }: Boundary): boolean {
  const before = nodesBefore(topology, index)
  return topology.sources.some(({ node, boundary = -1 }) => {
    const above = before.has(node) ? topology.boundaries[boundary] : undefined
    return above !== undefined && isCircular(topology, above) && heldBackMs(topology, above) === undefined
  })
}

export interface HoldingCircle {
  /** Over this topic what was held back comes again to the sub-topology that it is of. */
  readonly topic: string
  /** Holds it back. */
  readonly holder: string
  /** Drops what is late. */
  readonly window: string
}

const dropsLate: ReadonlySet<string> = new Set<OperatorSpec['op']>(['windowAggregate', 'streamJoin', 'suppress'])

/** What is held back and comes in a circle: the input has gone on meanwhile, and it may be late whatever its grace. */
export function holdingCircles(topology: CompiledTopology): HoldingCircle[] {
  const { nodes, boundaries } = topology
  return boundaries.flatMap((boundary) => {
    if (!isCircular(topology, boundary)) return []
    const before = [...nodesBefore(topology, boundary.index)].map((index) => nodes[index] as CompiledNode)
    const suppresses = before.some(({ spec }) => spec.op === 'suppress')
    const holder = before.find(({ spec }) => !spec.op.startsWith('foreign') && heldBackBy(spec, suppresses) !== 0)
    const source = topology.sources[boundary.toSource]?.node as number
    const window = nodes.find(({ index, spec }) => dropsLate.has(spec.op) && nodesAbove(topology, index).has(source))
    return holder && window ? [{ topic: boundary.topic, holder: holder.name, window: window.name }] : []
  })
}
