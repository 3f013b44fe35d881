/**
 * What the operators of a task hold back: windows that have not told their result, records that wait for a partner, timers.
 * Windows behind them that close in quiet must not close over it: it has come, though not to them.
 */
import type { CompiledNode, CompiledTopology } from '../../topology/compiled.ts'
import { nodesAbove, quietNodes } from '../../topology/levels/quiet-ways.ts'
import type { Operator } from '../contract.ts'

/** Nothing is held back. */
export const nothing = Number.POSITIVE_INFINITY

/** A node and the earliest event time of what it holds back. */
export interface HeldByNode {
  readonly node: number
  readonly from: number
}

export class HeldBack {
  readonly #operators: readonly Operator[]
  readonly #nodes: readonly number[]
  /** By operator that closes in quiet: its node, and those from which records come to it here. */
  readonly #above = new Map<Operator, { readonly node: number; readonly above: ReadonlySet<number> }>()
  /** Shallower stages of the task. */
  readonly #before: readonly HeldBack[]
  /** As of the last mark: those that hold something back. */
  #marked: readonly HeldByNode[] = []
  /** What shallower stages held back as of that mark, which came to them earlier: what they let go since is on its way. */
  #markedBefore: readonly HeldByNode[] = []

  /** `before`: shallower stages of the same task. */
  constructor(
    topology: CompiledTopology,
    nodes: readonly CompiledNode[],
    operators: readonly Operator[],
    before: readonly HeldBack[],
  ) {
    this.#operators = operators
    this.#nodes = nodes.map(({ index }) => index)
    this.#before = before
    for (const { node } of quietNodes(topology)) {
      const operator = operators[this.#nodes.indexOf(node)]
      if (operator !== undefined) this.#above.set(operator, { node, above: nodesAbove(topology, node) })
    }
  }

  /** A commit's mark has come, behind all that was processed: what is held back now counts until the next one. */
  mark(): void {
    const marked: HeldByNode[] = []
    for (const [i, operator] of this.#operators.entries()) {
      const from = operator.heldFrom?.() ?? nothing
      if (from !== nothing) marked.push({ node: this.#nodes[i] as number, from })
    }
    this.#marked = marked
    this.#markedBefore = this.#before.flatMap((stage) => stage.marked)
  }

  get marked(): readonly HeldByNode[] {
    return this.#marked
  }

  /** What is held back above this operator; `elsewhere`: in other sub-topologies, from which records come to a node. */
  above(operator: Operator, elsewhere: (node: number) => number): number {
    const at = this.#above.get(operator)
    if (at === undefined) return nothing
    let least = elsewhere(at.node)
    for (const marked of [this.#marked, this.#markedBefore])
      for (const { node, from } of marked) if (from < least && at.above.has(node)) least = from
    return least
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
): HeldBack | undefined {
  if (quietNodes(topology).length === 0) return undefined
  const shallower = before.flatMap(({ held }) => held ?? [])
  return new HeldBack(topology, nodes, operators, shallower)
}

/**
 * Up to when all is told of what these have in stores. Where a task starts, event time may be further: the application was told to wait
 * less than before, say. The task begins there all the same, and each is told at its own time, from rows that are there until then.
 */
export function toldTo(operators: readonly Operator[]): number {
  let untold = nothing
  for (const operator of operators) untold = Math.min(untold, operator.untoldFrom?.() ?? nothing)
  return untold - 1
}
