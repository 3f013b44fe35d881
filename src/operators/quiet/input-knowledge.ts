/** What a task knows of the records that come to it, for windows that close while nothing comes. */
import type { CompiledTopology } from '../../topology/compiled.ts'
import { heldBackMs } from '../../topology/levels/held-back.ts'
import { quietNodes } from '../../topology/levels/quiet-ways.ts'
import type { InputKnowledge } from '../contract.ts'
import { type HeldBack, nothing } from './held-back.ts'

/** When the last record came to a task; noted where somebody asks. */
export interface Arrivals {
  at: number
  isNoted: boolean
}

interface Parts {
  readonly topology: CompiledTopology
  readonly subtopology: number
  readonly host: { wallClock(): number; readonly input?: HostInput | undefined }
}

/** What the host knows. One that has none knows of all at any moment. */
export interface HostInput extends Pick<InputKnowledge, 'knownTo' | 'blindMs'> {
  /** Earliest event time of what other sub-topologies hold back from which records come to this node. */
  heldFrom(node: number): number
}

export function inputOf(
  { topology, subtopology, host }: Parts,
  arrivals: Arrivals,
  held: () => HeldBack | undefined,
): InputKnowledge {
  arrivals.isNoted = quietNodes(topology).some((node) => node.subtopology === subtopology)
  const { knownTo, blindMs, heldFrom } = host.input ?? {
    knownTo: () => host.wallClock(),
    blindMs: () => 0,
    heldFrom: () => nothing,
  }
  return {
    knownTo,
    blindMs,
    behindMs: arrivals.isNoted ? slackMs * holdingLevels(topology, subtopology, new Set()) : 0,
    disorderMs: arrivals.isNoted ? mostDisorder(topology, subtopology, new Set()) : 0,
    cameAt: () => arrivals.at,
    heldFrom: (operator) => held()?.above(operator, heldFrom) ?? nothing,
  }
}

/** Of its sources, and of those of the sub-topologies above it. */
function mostDisorder(topology: CompiledTopology, subtopology: number, seen: Set<number>): number {
  if (seen.has(subtopology)) return 0
  seen.add(subtopology)
  const own = topology.sources.filter((source) => source.kind !== 'global' && source.subtopology === subtopology)
  const above = topology.boundaries.filter(({ toSubtopology }) => toSubtopology === subtopology)
  return Math.max(
    0,
    ...own.map(({ watermark }) => watermark.maxOutOfOrdernessMs),
    ...above.map(({ fromSubtopology }) => mostDisorder(topology, fromSubtopology, seen)),
  )
}

/** What windows tell when they close has to get to those behind them. */
const slackMs = 2000

/** How many sub-topologies above this one, on the longest way, hold records back. */
function holdingLevels(topology: CompiledTopology, subtopology: number, seen: ReadonlySet<number>): number {
  if (seen.has(subtopology)) return 0
  const path = new Set([...seen, subtopology])
  return topology.boundaries
    .filter(({ toSubtopology }) => toSubtopology === subtopology)
    .map((boundary) => {
      const own = heldBackMs(topology, boundary) === 0 ? 0 : 1
      return own + holdingLevels(topology, boundary.fromSubtopology, path)
    })
    .reduce((most, levels) => Math.max(most, levels), 0)
}
