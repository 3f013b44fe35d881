/**
 * Whose timers records meet: what such a timer does depends on the records that came before it, or those behind it find
 * what it did. The records of a task wait for these where they could overtake them. A window that closes is none of them
 * by itself: it was decided which records belong to it before it is due.
 */
import type { CompiledNode, CompiledTopology } from '../compiled.ts'
import type { OperatorSpec } from '../operator-spec.ts'
import type { Stage } from './stages.ts'

/** By position in the stage: 1 where records wait for the operator's timers. */
export function timersMet(topology: CompiledTopology, { nodes }: Stage): Uint8Array {
  const here = new Set(nodes)
  const nodeAt = (index: number): CompiledNode => topology.nodes[index] as CompiledNode
  return Uint8Array.from(nodes, (index) => {
    const { spec } = nodeAt(index)
    if (actsOnRows(spec)) return 1
    return putsOutLater(spec) && below(nodeAt(index), here, nodeAt).some(keepsSomething) ? 1 : 0
  })
}

/**
 * Somebody there may ask for a timer when its time has passed. It fires at the next instant, which follows from the place of the record
 * that asked.
 */
export function asksInRetrospect(topology: CompiledTopology, subtopology: number): boolean {
  return (topology.subtopologies[subtopology]?.nodes ?? []).some((index) => {
    const { spec } = topology.nodes[index] as CompiledNode
    return spec.op === 'process' && spec.timerStore !== undefined
  })
}

/**
 * The next record of its key may change what it tells, or keep it from telling anything. A join counts in: a record that was told to
 * have no partner is joined no more, and one that waits is, also by a record that is in time but came behind the end of the wait. What
 * waits for late rows of a table is told in the order of its times, and before what came too late to wait.
 */
function actsOnRows(spec: OperatorSpec): boolean {
  switch (spec.op) {
    case 'process':
      return spec.timerStore !== undefined
    case 'suppress':
      return spec.until.type === 'timeLimit'
    case 'streamJoin':
      return spec.waitingStore !== undefined
    case 'streamTableJoin':
      return spec.grace !== undefined
    default:
      return false
  }
}

/** What it tells is decided before it is due. */
function putsOutLater(spec: OperatorSpec): boolean {
  switch (spec.op) {
    case 'windowAggregate':
      return spec.emit === 'close'
    case 'suppress':
      return true
    default:
      return false
  }
}

function keepsSomething({ spec, stores, hiddenStores }: CompiledNode): boolean {
  return spec.op === 'process' || stores.length > 0 || hiddenStores.length > 0
}

function below(node: CompiledNode, here: ReadonlySet<number>, nodeAt: (index: number) => CompiledNode): CompiledNode[] {
  const found = new Set(node.children.filter((child) => here.has(child)))
  // The set grows while the loop walks it. Each node is visited once.
  for (const each of found) for (const child of nodeAt(each).children) if (here.has(child)) found.add(child)
  return [...found].map(nodeAt)
}
