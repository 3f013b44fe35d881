/**
 * What the operators of a task hold back: windows that have not told their result, records that wait for a partner, timers.
 * Windows behind them that close in quiet must not close over it: it has come, though not to them.
 */
import { smallest } from '../../base/smallest.ts'
import type { CompiledNode, CompiledTopology } from '../../topology/compiled.ts'
import { heldBackBy } from '../../topology/levels/held-back.ts'
import { closesInQuiet } from '../../topology/plan.ts'
import type { Operator } from '../contract.ts'

/** Nothing is held back. */
export const nothing = Number.POSITIVE_INFINITY

export class HeldBack {
  readonly #operators: readonly Operator[]
  readonly #wakes: Float64Array
  /** By operator: the time from a record's own until the timer that lets it go. */
  readonly #spans: readonly number[]
  /** By operator that closes in quiet: the places of those above it. */
  readonly #above: ReadonlyMap<Operator, readonly number[]>
  /** Shallower stages of the same task. */
  readonly #before: readonly HeldBack[]
  /** By operator, at the last mark. */
  readonly #marked: Float64Array

  /** `wakes`: the event time at which each operator wants to be called. All come in node order. */
  constructor(
    nodes: readonly CompiledNode[],
    operators: readonly Operator[],
    wakes: Float64Array,
    before: readonly HeldBack[],
  ) {
    this.#operators = operators
    this.#wakes = wakes
    this.#before = before
    this.#spans = nodes.map(({ spec }) => heldBackBy(spec) ?? 0)
    this.#marked = new Float64Array(nodes.length).fill(nothing)
    const quiet = nodes.flatMap((node, i) => (closesInQuiet(node.spec) ? [i] : []))
    this.#above = new Map(quiet.map((i) => [operators[i] as Operator, placesAbove(nodes, i)]))
  }

  /** A commit's mark has come, behind all that was processed: what is held back now counts until the next one. */
  mark(): void {
    for (let i = 0; i < this.#marked.length; i++) this.#marked[i] = this.#from(i)
  }

  /** The earliest event time of what was held back at the last mark. */
  get marked(): number {
    return smallest(this.#marked)
  }

  /** The same, of those above an operator of this task. */
  above(operator: Operator): number {
    let least = nothing
    for (const { marked } of this.#before) least = Math.min(least, marked)
    for (const i of this.#above.get(operator) ?? []) least = Math.min(least, this.#marked[i] as number)
    return least
  }

  #from(i: number): number {
    return this.#operators[i]?.heldFrom?.() ?? (this.#wakes[i] as number) - (this.#spans[i] as number)
  }
}

/** Undefined where no windows of the application close in quiet. */
export function heldBackOf(
  {
    topology,
    before = [],
  }: { topology: CompiledTopology; before?: readonly { readonly held: HeldBack | undefined }[] },
  nodes: readonly CompiledNode[],
  operators: readonly Operator[],
  wakes: Float64Array,
): HeldBack | undefined {
  if (!topology.nodes.some(({ spec }) => closesInQuiet(spec))) return undefined
  const shallower = before.flatMap(({ held }) => held ?? [])
  return new HeldBack(nodes, operators, wakes, shallower)
}

/** Places of the nodes from which records come to this one. */
function placesAbove(nodes: readonly CompiledNode[], place: number): number[] {
  const reaching = new Set([(nodes[place] as CompiledNode).index])
  const above: number[] = []
  // Parents stand before their children.
  for (let i = place - 1; i >= 0; i--) {
    const { index, children } = nodes[i] as CompiledNode
    if (!children.some((child) => reaching.has(child))) continue
    reaching.add(index)
    above.push(i)
  }
  return above
}
