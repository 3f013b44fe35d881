/** The pods of one status, and how people read them. */
import type { HaHistory, HaStatus } from '../../http/ha-seam.ts'

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
    failoverPriority: status.selfFailoverPriority ?? null,
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
  if (status.failoverPaused) {
    lines.push("Failover is paused: nobody takes over by itself; 'millrace ha resume' ends that.")
  }
  // Fields that a pod of an older build does not have.
  if (typeof status.notReady === 'string') lines.push(`${status.selfPodId} could not take over: ${status.notReady}.`)
  const [last] = status.commands ?? []
  if (last) {
    const what = [last.command, ...(last.target === null ? [] : [last.target]), ...(last.force ? ['(forced)'] : [])]
    lines.push(`Last command, at offset ${last.commandOffset}: ${what.join(' ')}: ${last.outcome}, ${last.reason}.`)
  }
  if (status.restartRequired !== null) lines.push(`${status.selfPodId} must be restarted: ${status.restartRequired}.`)
  return `${lines.join('\n')}\n`
}

/** The lines of `millrace ha history`, newest first. */
export function historyText({ events }: HaHistory): string {
  const lines = events.map(({ at, event, podId, tokenEpoch, cause, why, commandOffset, issuer }) => {
    const who = event === 'TAKEOVER' ? `epoch ${tokenEpoch}: ${podId} took over (${cause})` : event
    const asked = commandOffset === null ? '' : `; command at offset ${commandOffset}${issuer ? ` by ${issuer}` : ''}`
    return `${at ?? 'time unknown'}  ${who}: ${why || 'no reason told'}${asked}`
  })
  return lines.length === 0 ? 'Nobody was active yet.\n' : `${lines.join('\n')}\n`
}

/** One line about who is what, for progress and for messages. */
export function rolesLine(status: HaStatus): string {
  const roles = membersOf(status).map(
    ({ podId, state, restarting }) => `${podId} ${state}${restarting ? ' (restarting)' : ''}`,
  )
  return `epoch ${status.tokenEpoch}: ${roles.join(', ')}`
}
