/** Which broker owes the answer that a step of a commit waits for. */
import type { BrokerNode, CallKind } from '../../broker/port.ts'
import type { BarrierSnapshot } from '../view.ts'

export type CommitPhase = BarrierSnapshot['phase']

const callsOf: Readonly<Partial<Record<CommitPhase, readonly CallKind[]>>> = {
  FLUSHING: ['produce'],
  SENDING_OFFSETS: ['group', 'transaction'],
  IN_TX_COMMIT: ['transaction'],
  RESOLVING_OUTCOME: ['group', 'transaction'],
  ABORTING: ['transaction'],
}

export interface Owing extends Pick<BrokerNode, 'id' | 'address'> {
  readonly what: string
}

/** The broker that has owed such an answer for longest; undefined where none does. */
export function owingFor(phase: CommitPhase, nodes: readonly BrokerNode[]): Owing | undefined {
  const kinds = callsOf[phase] ?? []
  const waiting = nodes.flatMap(({ id, address, calls }) =>
    calls
      .filter(({ kind }) => kinds.includes(kind))
      .map(({ what, sinceMs }) => ({ owing: { id, address, what }, sinceMs })),
  )
  return waiting.toSorted((a, b) => a.sinceMs - b.sinceMs)[0]?.owing
}
