/** Which stages do not ask what time it is: their tasks need not be advanced before each record. */
import type { CompiledNode, CompiledTopology } from '../compiled.ts'
import type { OperatorSpec } from '../operator-spec.ts'
import { promptOperators } from './prompt.ts'
import type { Stage } from './stages.ts'

const timeless: ReadonlySet<OperatorSpec['op']> = new Set<OperatorSpec['op']>([
  ...promptOperators,
  'foreignKeySend',
  'foreignKeyReceive',
  'foreignKeyJoin',
  'foreignTableJoin',
  'foreignKeyResolve',
])

/** No timers, windows or waiting records, and no rows that are forgotten as time goes by. */
export function isTimeless(topology: CompiledTopology, { nodes, stores }: Stage): boolean {
  const lasting = stores.every((name) => {
    const spec = topology.stores.get(name)
    return spec === undefined || (spec.kind === 'key-value' && spec.ttlMs === undefined)
  })
  return lasting && nodes.every((node) => asksForNoTime((topology.nodes[node] as CompiledNode).spec))
}

function asksForNoTime(spec: OperatorSpec): boolean {
  return timeless.has(spec.op) || (spec.op === 'streamTableJoin' && spec.grace === undefined)
}
