/**
 * What comes to an operator from windows and the like is older than the event time at which it is told: by their grace, and where
 * their bounds lie across those of the windows below by more. Who is below needs so much grace, or drops it as late.
 */
import { isoDuration } from '../../base/duration.ts'
import type { CompiledNode, CompiledTopology } from '../compiled.ts'
import type { OperatorSpec, WindowSpec } from '../operator-spec.ts'
import { promptOperators } from './prompt.ts'

export interface ToldLate {
  /** Tells what it holds back once event time has passed it. */
  readonly holder: string
  /** Drops what is late. */
  readonly follower: string
  /** What it waits for late records now, and what it has to wait so that nothing of `holder` is late. */
  readonly graceMs: number
  readonly neededMs: number
}

/** What passes records on as they are. A processor may give them other times, and nobody knows which. */
const passing: ReadonlySet<string> = new Set<OperatorSpec['op']>([...promptOperators, 'joinWindow'])

/**
 * `throughTopics`: behind a topic between sub-topologies event time is held back as far as the results are (`heldBackMs`), so there
 * only what lies in one sub-topology counts.
 */
export function toldLate(topology: CompiledTopology, throughTopics: boolean): ToldLate[] {
  return topology.nodes.flatMap((node): ToldLate[] => {
    const graceMs = waitsMs(node.spec)
    if (graceMs === undefined) return []
    const late = holdersAbove(topology, node, throughTopics)
      .map((holder) => ({ holder: holder.name, neededMs: laterMs(topology, holder, node.spec) }))
      .filter(({ neededMs }) => neededMs > graceMs)
      .sort((a, b) => b.neededMs - a.neededMs)[0]
    return late ? [{ ...late, follower: node.name, graceMs }] : []
  })
}

/** The sentence of the log. `graceMs` may hold more than the option of that name: the gap of a session, for one. */
export function sayToldLate({ holder, follower, graceMs, neededMs }: ToldLate): string {
  const more = isoDuration(neededMs - graceMs)
  return (
    `${holder} tells results up to ${more} after ${follower} behind it has stopped waiting for records of their time, and what comes ` +
    `so late is dropped: give ${follower} ${more} more of grace`
  )
}

/** For how long it takes records behind event time: the end of the window that a record needs, at the earliest, and the grace. */
function waitsMs(spec: OperatorSpec): number | undefined {
  switch (spec.op) {
    case 'windowAggregate': {
      const { window } = spec
      if (window.type === 'unlimited') return undefined
      return window.type === 'session' ? window.gapMs + window.graceMs : window.graceMs
    }
    case 'streamJoin': {
      // One that tells of records without a partner does so once the partner can no more be in time: then it must have been told.
      if (spec.waitingStore !== undefined) return spec.graceMs
      return (spec.side === 'left' ? spec.afterMs : spec.beforeMs) + spec.graceMs
    }
    case 'selfJoin':
      return Math.max(spec.beforeMs, spec.afterMs) + spec.graceMs
    default:
      return undefined
  }
}

/** The nearest ones on each way. */
function holdersAbove(topology: CompiledTopology, node: CompiledNode, throughTopics: boolean): CompiledNode[] {
  const seen = new Set<number>()
  const found: CompiledNode[] = []
  const look = (of: CompiledNode): void => {
    for (const index of parentsOf(topology, of, throughTopics)) {
      if (seen.has(index)) continue
      seen.add(index)
      const parent = topology.nodes[index] as CompiledNode
      if (holds(parent.spec)) found.push(parent)
      else if (passes(parent.spec)) look(parent)
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

function passes(spec: OperatorSpec): boolean {
  return passing.has(spec.op) || ['windowAggregate', 'streamJoin', 'selfJoin', 'streamTableJoin'].includes(spec.op)
}

/** By how much at most event time has passed the end of the shortest window for a record when the holder tells it. */
function laterMs(topology: CompiledTopology, holder: CompiledNode, follower: OperatorSpec): number {
  const { spec } = holder
  switch (spec.op) {
    case 'windowAggregate':
      return ofWindow(spec.window, follower, 'graceMs' in spec.window ? spec.window.graceMs : 0)
    case 'suppress': {
      if (spec.until.type === 'timeLimit') return spec.until.ms - 1
      const { graceMs } = spec.until
      return Math.max(0, ...windowsAbove(topology, holder).map((window) => ofWindow(window, follower, graceMs)))
    }
    case 'streamJoin':
      return Math.max(spec.beforeMs, spec.afterMs) + spec.graceMs
    case 'streamTableJoin':
      return spec.grace?.ms ?? 0
    default:
      return 0
  }
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

function windowsAbove(topology: CompiledTopology, node: CompiledNode): WindowSpec[] {
  return node.parents.flatMap((index): WindowSpec[] => {
    const parent = topology.nodes[index] as CompiledNode
    return parent.spec.op === 'windowAggregate' ? [parent.spec.window] : windowsAbove(topology, parent)
  })
}
