/**
 * What comes to an operator from windows and the like is older than the event time at which it is told: by their grace, and where
 * their bounds lie across those of the windows below by more. Who is below needs so much grace, or drops it as late.
 */
import type { CompiledNode, CompiledTopology } from '../compiled.ts'
import type { OperatorSpec, WindowSpec } from '../operator-spec.ts'

export interface ToldLate {
  /** Tells what it holds back once event time has passed it. */
  readonly holder: string
  /** Drops what is late. */
  readonly follower: string
  /** What it waits for late records now, and what it has to wait so that nothing of `holder` is late. */
  readonly graceMs: number
  readonly neededMs: number
}

/**
 * `throughTopics`: behind a topic between sub-topologies event time is held back as far as the results are (`heldBackMs`), so there
 * only what lies in one sub-topology counts.
 */
export function toldLate(topology: CompiledTopology, throughTopics: boolean): ToldLate[] {
  return topology.nodes.flatMap((node): ToldLate[] => {
    const graceMs = waitsMs(node.spec)
    if (graceMs === undefined) return []
    const above: Above = { topology, throughTopics, follower: node.spec }
    const late = holdersAbove(above, node)
      .map((holder) => ({ holder: holder.name, neededMs: laterMs(above, holder) }))
      .filter(({ neededMs }) => neededMs > graceMs)
      .sort((a, b) => b.neededMs - a.neededMs)[0]
    return late ? [{ ...late, follower: node.name, graceMs }] : []
  })
}

interface Above {
  readonly topology: CompiledTopology
  readonly throughTopics: boolean
  /** For whose windows it is late. */
  readonly follower: OperatorSpec
}

/** For how long it takes records behind event time: from the end of the window that a record needs, at the earliest. */
function waitsMs(spec: OperatorSpec): number | undefined {
  switch (spec.op) {
    case 'windowAggregate':
      // One that is not late for its session may still be late for the one that it would have made of two.
      return spec.window.type === 'unlimited' ? undefined : spec.window.graceMs
    case 'streamJoin': {
      // One that tells of records without a partner does so once the partner can no more be in time: then it must have been told.
      if (spec.waitingStore !== undefined) return spec.graceMs
      return (spec.side === 'left' ? spec.afterMs : spec.beforeMs) + spec.graceMs
    }
    case 'selfJoin':
      return Math.min(spec.beforeMs, spec.afterMs) + spec.graceMs
    default:
      return undefined
  }
}

/**
 * The nearest ones on each way. All others pass records on as they come; a processor may give them other times, but will hardly
 * give them earlier ones.
 */
function holdersAbove({ topology, throughTopics }: Above, node: CompiledNode): CompiledNode[] {
  const seen = new Set<number>()
  const found: CompiledNode[] = []
  const look = (of: CompiledNode): void => {
    for (const index of parentsOf(topology, of, throughTopics)) {
      if (seen.has(index)) continue
      seen.add(index)
      const parent = topology.nodes[index] as CompiledNode
      if (holds(parent.spec)) found.push(parent)
      else look(parent)
    }
  }
  look(node)
  return found
}

function parentsOf({ nodes, sources }: CompiledTopology, of: CompiledNode, throughTopics: boolean): number[] {
  const source = sources.find(({ node }) => node === of.index)
  if (source?.boundary === undefined || throughTopics) return [...of.parents]
  return nodes
    .filter(({ spec }) => spec.op === 'handOff' && spec.boundary === source.boundary)
    .map(({ index }) => index)
}

function holds(spec: OperatorSpec): boolean {
  return (
    (spec.op === 'windowAggregate' && spec.emit === 'close') ||
    spec.op === 'suppress' ||
    (spec.op === 'streamJoin' && spec.waitingStore !== undefined) ||
    (spec.op === 'streamTableJoin' && spec.grace !== undefined)
  )
}

/** By how much at most event time has passed the end of the shortest window for a record when the holder tells it. */
function laterMs(above: Above, holder: CompiledNode): number {
  const { topology, follower } = above
  const { spec } = holder
  switch (spec.op) {
    case 'windowAggregate':
      return ofWindow(spec.window, follower, 'graceMs' in spec.window ? spec.window.graceMs : 0)
    case 'suppress': {
      const { until } = spec
      // It waits from the first of a row's updates on, and tells the last, which may be older.
      if (until.type === 'timeLimit') return until.ms - 1 + mostDisorder(topology) + comesLateTo(above, holder)
      return Math.max(0, ...windowsAbove(topology, holder).map((window) => ofWindow(window, follower, until.graceMs)))
    }
    case 'streamJoin':
      return Math.max(spec.beforeMs, spec.afterMs) + spec.graceMs
    case 'streamTableJoin':
      // What is older than its grace goes on at once.
      return Math.max(spec.grace?.ms ?? 0, comesLateTo(above, holder))
    default:
      return 0
  }
}

/** By how much what comes to an operator that judges no lateness is late. */
function comesLateTo(above: Above, node: CompiledNode): number {
  return Math.max(0, ...holdersAbove(above, node).map((holder) => laterMs(above, holder)))
}

function mostDisorder({ sources }: CompiledTopology): number {
  return Math.max(0, ...sources.map(({ watermark }) => watermark.maxOutOfOrdernessMs))
}

function ofWindow(window: WindowSpec, follower: OperatorSpec, graceMs: number): number {
  switch (window.type) {
    case 'time':
      return window.sizeMs - (beginsWith(window, follower) ? window.advanceMs : 1) + graceMs
    case 'sliding':
      return window.differenceMs + graceMs
    case 'session':
      // The grace of a `suppress` has the gap in it.
      return Math.max(graceMs, window.gapMs + window.graceMs)
    case 'unlimited':
      return 0
  }
}

/** No window of the follower ends within a step of these. */
function beginsWith({ advanceMs }: { readonly advanceMs: number }, follower: OperatorSpec): boolean {
  if (follower.op !== 'windowAggregate' || follower.window.type !== 'time') return false
  return follower.window.sizeMs % advanceMs === 0 && follower.window.advanceMs % advanceMs === 0
}

export function windowsAbove(topology: CompiledTopology, node: Pick<CompiledNode, 'parents'>): WindowSpec[] {
  return node.parents.flatMap((index): WindowSpec[] => {
    const parent = topology.nodes[index] as CompiledNode
    return parent.spec.op === 'windowAggregate' ? [parent.spec.window] : windowsAbove(topology, parent)
  })
}
