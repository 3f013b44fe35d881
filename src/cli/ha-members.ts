/** The pods of one status, and how people read them. */
import type { HaStatus } from '../http/ha-seam.ts'

export interface Member {
  readonly podId: string
  readonly role: string
  readonly state: string
  readonly lagRecords: number
  readonly lagMs: number
  readonly restarting: boolean
  /** Null for the pod that was asked: it knows itself. */
  readonly freshnessMs: number | null
  readonly failoverPriority: number | null
}

export function membersOf(status: HaStatus): Member[] {
  const self: Member = {
    podId: status.selfPodId,
    role: status.selfRole,
    state: status.selfState,
    lagRecords: status.replicationLagRecords,
    lagMs: status.replicationLagMs,
    restarting: status.selfRestarting,
    freshnessMs: null,
    failoverPriority: null,
  }
  const others = status.peers
    .filter((peer) => peer.podId !== self.podId)
    .map((peer) => ({ ...peer, lagRecords: peer.replicationLagRecords, lagMs: peer.replicationLagMs }))
  return [self, ...others].toSorted((a, b) => (a.podId < b.podId ? -1 : 1))
}

/** The pod that processes now: neither on its way there nor on its way out. */
export function activeOf(status: HaStatus): Member | undefined {
  const actives = membersOf(status).filter((member) => member.role === 'ACTIVE' && member.state === 'ACTIVE')
  // The last status of a pod that was lost may still read ACTIVE; the token says who took its place.
  return actives.find((member) => member.podId === status.tokenHolder) ?? actives[0]
}

const columns = ['POD', 'ROLE', 'STATE', 'LAG RECORDS', 'LAG MS', 'SEEN MS AGO', 'PRIORITY', 'RESTARTING'] as const

/** The table of `millrace ha status`. */
export function statusText(status: HaStatus): string {
  const rows = membersOf(status).map((member) => [
    member.podId === status.selfPodId ? `${member.podId} *` : member.podId,
    member.role,
    member.state,
    String(member.lagRecords),
    String(member.lagMs),
    String(member.freshnessMs ?? '-'),
    String(member.failoverPriority ?? '-'),
    member.restarting ? 'yes' : 'no',
  ])
  const widths = columns.map((column, i) => Math.max(column.length, ...rows.map((row) => row[i]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd()
  const holder = status.tokenHolder === '' ? 'held by nobody yet' : `held by ${status.tokenHolder}`
  const redundancy = status.redundancyBelowDesired ? ' - too few' : ''
  const lines = [
    line(columns),
    ...rows.map(line),
    '',
    `Token epoch ${status.tokenEpoch}, ${holder}. Ready standbys: ${status.readyStandbyCount} of ${status.desiredStandbys} desired${redundancy}.`,
    `* answered; its view of the coordinator is ${status.tailFreshnessMs} ms old${status.tailCaughtUp ? '' : ' and not caught up'}.`,
  ]
  if (status.restartRequired !== null) lines.push(`${status.selfPodId} must be restarted: ${status.restartRequired}.`)
  return `${lines.join('\n')}\n`
}

/** One line about who is what, for progress and for messages. */
export function rolesLine(status: HaStatus): string {
  const roles = membersOf(status).map(
    ({ podId, state, restarting }) => `${podId} ${state}${restarting ? ' (restarting)' : ''}`,
  )
  return `epoch ${status.tokenEpoch}: ${roles.join(', ')}`
}
