/**
 * Windows and joins behind windows wait for what these tell, beside their own grace: it is there before they close. A grace is
 * of what the sources bring; what operators above hold back is known, and nobody has to reckon it.
 */
import { isoDuration } from '../../base/duration.ts'
import type { StoreSpec } from '../../state/contract.ts'
import type { CompiledNode, CompiledTopology } from '../compiled.ts'
import type { OperatorSpec, WindowSpec } from '../operator-spec.ts'
import { toldLate, windowsAbove } from './told-late.ts'

/** An operator that waits longer than its grace says. */
export interface LongerWait {
  readonly node: string
  readonly byMs: number
  /** What it waits for: the nearest operator above that tells so late. */
  readonly holder: string
}

/**
 * The topology with the graces that its operators need, and the stores that keep rows for as long. `throughTopics`: topics lie
 * between sub-topologies, and event time is held back behind them by itself.
 */
export function waitForAbove(
  topology: CompiledTopology,
  throughTopics: boolean,
): { readonly topology: CompiledTopology; readonly waits: readonly LongerWait[] } {
  let waiting = topology
  const waits = new Map<string, LongerWait>()
  // Who waits longer tells later: whoever is below that comes in the next round. Nodes lie below one another in no circle.
  for (const _ of topology.nodes) {
    const late = toldLate(waiting, throughTopics)
    if (late.length === 0) break
    const longer = new Map<number, number>()
    for (const { follower, holder, graceMs, neededMs } of late) {
      const byMs = neededMs - graceMs
      const { node } = waits.get(follower) ?? { node: follower }
      waits.set(follower, { node, holder, byMs: byMs + (waits.get(follower)?.byMs ?? 0) })
      const { index } = waiting.nodes.find(({ name }) => name === follower) as CompiledNode
      for (const each of sharing(waiting, index)) longer.set(each, Math.max(longer.get(each) ?? 0, byMs))
    }
    waiting = withLonger(waiting, longer)
  }
  return { topology: waiting, waits: [...waits.values()] }
}

/** The line of the log. */
export function sayWait({ node, byMs, holder }: LongerWait): string {
  return `${node} waits ${isoDuration(byMs)} longer than its own grace, for results of ${holder} above it, which come so late`
}

/** Both sides of a join have one grace. */
function sharing({ nodes }: CompiledTopology, index: number): number[] {
  const { spec, children } = nodes[index] as CompiledNode
  if (spec.op !== 'streamJoin') return [index]
  return nodes
    .filter((node) => node.spec.op === 'streamJoin' && node.children[0] === children[0])
    .map((node) => node.index)
}

/** `longer`: by node, the milliseconds. */
function withLonger(topology: CompiledTopology, longer: ReadonlyMap<number, number>): CompiledTopology {
  const stores = new Map(topology.stores)
  const nodes = topology.nodes.map((node): CompiledNode => {
    const byMs = longer.get(node.index)
    if (byMs === undefined) return node
    const kept = storeKept(node.spec)
    const store = kept === undefined ? undefined : topology.stores.get(kept)
    if (store?.retentionMs !== undefined)
      stores.set(store.name, { ...store, retentionMs: store.retentionMs + byMs } satisfies StoreSpec)
    return { ...node, spec: withGrace(node.spec, byMs) }
  })
  const graced = { ...topology, nodes, stores }
  return { ...graced, nodes: nodes.map((node) => ({ ...node, spec: untilClosed(graced, node) })) }
}

/** Where the rows are that records in time are to find. Each side of a join looks into the other's. */
function storeKept(spec: OperatorSpec): string | undefined {
  switch (spec.op) {
    case 'windowAggregate':
      return spec.store?.name
    case 'streamJoin':
      return spec.otherStore
    case 'selfJoin':
      return spec.store
    default:
      return undefined
  }
}

function withGrace(spec: OperatorSpec, byMs: number): OperatorSpec {
  switch (spec.op) {
    case 'windowAggregate': {
      const { window } = spec
      if (window.type === 'unlimited') return spec
      const { graceMs, waitMs = 0 } = window
      return { ...spec, window: { ...window, graceMs: graceMs + byMs, waitMs: waitMs + byMs } }
    }
    case 'streamJoin':
    case 'selfJoin':
      return { ...spec, graceMs: spec.graceMs + byMs }
    default:
      return spec
  }
}

/** What is held back until windows close waits as long as they do. */
function untilClosed(topology: CompiledTopology, { spec, ...node }: CompiledNode): OperatorSpec {
  if (spec.op !== 'suppress' || spec.until.type !== 'windowCloses') return spec
  const { graceMs: before, waitMs = 0 } = spec.until
  const graceMs = Math.max(before, ...windowsAbove(topology, node).map(closesBehindMs))
  return { ...spec, until: { ...spec.until, graceMs, waitMs: waitMs + graceMs - before } }
}

/** From the end of a window until it takes in nothing more. */
function closesBehindMs(window: WindowSpec): number {
  if (window.type === 'unlimited') return 0
  return window.type === 'session' ? window.gapMs + window.graceMs : window.graceMs
}
