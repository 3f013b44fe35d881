/**
 * What a pod shows of high availability, and whether it takes a command. Without a view, `/ha/*` is answered 404.
 * Roles and states are open strings: a newer build may publish some that this one does not know (`UNKNOWN`).
 */
export interface HaPeer {
  readonly podId: string
  readonly role: string
  readonly state: string
  readonly replicationLagRecords: number
  readonly replicationLagMs: number
  /** Its stores wait for room on the disk. */
  readonly diskFull: boolean
  /** Commands through it that this pod refused for their signature, since either began, or since one was right. */
  readonly commandsRefused: number
  readonly generation: number
  readonly freshnessMs: number
  readonly failoverPriority: number
  readonly restarting: boolean
}

/** `GET /ha/status`, field by field. */
export interface HaStatus {
  readonly selfPodId: string
  readonly selfRole: string
  readonly selfState: string
  /** The engine restarts in place; the role stays. */
  readonly selfRestarting: boolean
  readonly replicationLagRecords: number
  readonly replicationLagMs: number
  /** Age of this pod's view of the coordinator. */
  readonly tailFreshnessMs: number
  readonly tailCaughtUp: boolean
  readonly readyStandbyCount: number
  readonly desiredStandbys: number
  readonly redundancyBelowDesired: boolean
  readonly tokenEpoch: number
  readonly tokenHolder: string
  readonly restartRequired: string | null
  readonly peers: readonly HaPeer[]
  /** Why this pod could not take over, in one sentence; null where it could, or is active. */
  readonly notReady: string | null
  /** An operator paused failover: nobody takes over by himself. */
  readonly failoverPaused: boolean
  readonly selfFailoverPriority: number
  /** The last commands and what became of them, newest first. */
  readonly commands: readonly HaCommandResult[]
}

export interface HaCommandResult {
  readonly commandOffset: number
  readonly command: string
  readonly target: string | null
  readonly force: boolean
  /** Pod that was asked. */
  readonly issuer: string
  /** `PENDING` until the acting pod has decided; `EXPIRED` where nobody did in time. */
  readonly outcome: 'PENDING' | 'DONE' | 'REJECTED' | 'EXPIRED' | 'UNKNOWN'
  readonly reason: string
}

/** `GET /ha/history`: who became active, when and why, and what operators said; newest first. */
export interface HaHistory {
  readonly events: readonly HaHistoryEvent[]
}

export interface HaHistoryEvent {
  /** Null where the record has no time. */
  readonly at: string | null
  readonly event: 'TAKEOVER' | 'PAUSE' | 'RESUME' | 'PRIORITY'
  /** The pod that took over, or that the command is about. */
  readonly podId: string | null
  /** Of a takeover; 0 for commands. */
  readonly tokenEpoch: number
  /** FAILOVER, SWITCH, PROMOTE, BOOT; of commands null. */
  readonly cause: string | null
  readonly why: string
  /** The command behind it, and the pod through which it came; null: nobody asked. */
  readonly commandOffset: number | null
  readonly issuer: string | null
  /** Address from which that pod was asked; null: nobody asked, or it is not known. */
  readonly from: string | null
}

export interface HaCommand {
  readonly command: 'SWITCH' | 'PROMOTE' | 'DEMOTE' | 'PAUSE' | 'RESUME' | 'PRIORITY'
  readonly target: string | null
  readonly force: boolean
  /** Of PRIORITY: null for the one of the configuration. */
  readonly value?: number | null
}

export interface HaAcknowledgement extends HaCommand {
  /** Offset of the published command; usable as an idempotency token. */
  readonly commandOffset: number
}

export interface HaView {
  /** Null while the engine is not initialised. */
  status(): HaStatus | null
  /** Null while the coordinator topic is not read. */
  history(): HaHistory | null
  /**
   * Publishes a command that was judged admissible; resolves with its offset once the broker has it. `from`: address of
   * who asks, where it is known.
   */
  publish(command: HaCommand, from?: string): Promise<number>
}

/** Beyond this age the view of the coordinator is stale, and nothing is decided on it. */
export const staleViewMs = 10_000

export type HaVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly status: 409 | 503; readonly reason: string }

const accepted: HaVerdict = { ok: true }
const refused = (reason: string): HaVerdict => ({ ok: false, status: 409, reason })

interface Member {
  readonly podId: string
  readonly role: string
  readonly state: string
  readonly restarting: boolean
}

/**
 * Whether a command may be published, judged on this pod's view. The acting pod judges again. A pod that has not heard the one with the token
 * since it began knows too little to say that nobody is there.
 */
export function judgeHaCommand(status: HaStatus, command: HaCommand): HaVerdict {
  const verdict = judged(status, command)
  const { tokenHolder } = status
  const members = membersOf(status)
  const isKnown = (podId: string | null): boolean => members.some((member) => member.podId === podId)
  if (verdict.ok || verdict.status !== 409 || tokenHolder === '' || isKnown(tokenHolder)) return verdict
  if (members.some(({ role }) => role === 'ACTIVE') && (command.target === null || isKnown(command.target)))
    return verdict
  const reason = `this pod has not heard ${tokenHolder}, which was active last, since it began; ask again in a moment, or ask another pod`
  return { ok: false, status: 503, reason }
}

function judged(status: HaStatus, command: HaCommand): HaVerdict {
  if (status.tailFreshnessMs > staleViewMs) {
    const seconds = Math.round(status.tailFreshnessMs / 1000)
    return {
      ok: false,
      status: 503,
      reason: `this pod's view of the coordinator is ${seconds} s old; ask again once it is fresh, or ask another pod`,
    }
  }
  const members = membersOf(status)
  if (command.command === 'PAUSE' || command.command === 'RESUME') return accepted
  if (command.command === 'PRIORITY') {
    const known = members.some((member) => member.podId === command.target)
    return known ? accepted : refused(`no pod ${command.target} is known; not overridable`)
  }
  const active = members.find((member) => member.role === 'ACTIVE')
  const target = members.find((member) => member.podId === command.target)
  const restarting = [active, target].find((member) => member?.restarting === true)
  if (restarting) {
    return refused(
      `pod ${restarting.podId} restarts its engine in place; not overridable; poll GET /ha/status until restarting is false, then ask again`,
    )
  }
  if (command.command === 'DEMOTE' && target?.role !== 'ACTIVE') {
    return refused(`pod ${command.target} is not ACTIVE (${target?.state ?? 'unknown pod'}); not overridable`)
  }
  if (command.command === 'SWITCH' && !members.some((member) => handsOver(member, status))) {
    return refused(
      'no pod is ACTIVE that could hand over; not overridable; promote a pod by name, or wait until one is ACTIVE',
    )
  }
  if (command.force) return accepted
  if (command.command === 'PROMOTE') return judgePromotion(command, target)
  const successors = members.filter((member) => member.state === 'READY_STANDBY')
  if (successors.length > 0) return accepted
  const helps = members.some((member) => member !== active && follows(member))
  return refused(
    helps
      ? 'no pod is READY_STANDBY to take over; overridable with force=true'
      : 'no pod is READY_STANDBY to take over, and none follows: force does not help; start one, or wait for it',
  )
}

/** It carries a switch out, now or once it is promoted; whoever has the token under a newer build may be active too. */
function handsOver({ podId, role, state }: Member, { tokenHolder }: HaStatus): boolean {
  return role === 'ACTIVE' || state === 'PROMOTING' || (role === 'UNKNOWN' && podId === tokenHolder)
}

/** It can be promoted by force: it restores what is left before it processes. */
function follows({ role, state }: Member): boolean {
  return role === 'STANDBY' && ['BOOTSTRAPPING', 'CATCHING_UP', 'READY_STANDBY'].includes(state)
}

function judgePromotion(command: HaCommand, target: Member | undefined): HaVerdict {
  if (target?.state === 'READY_STANDBY') return accepted
  if (target === undefined) {
    return refused(
      `pod ${command.target} is unknown, not READY_STANDBY; force does not help: look at the names of the pods`,
    )
  }
  if (target.role === 'ACTIVE')
    return refused(`pod ${command.target} is ${target.state} already; there is nothing to do`)
  const why = `pod ${command.target} is ${target.state}, not READY_STANDBY`
  return refused(`${why}; ${follows(target) ? 'overridable with force=true' : 'force does not help while it is'}`)
}

function membersOf(status: HaStatus): Member[] {
  const self: Member = {
    podId: status.selfPodId,
    role: status.selfRole,
    state: status.selfState,
    restarting: status.selfRestarting,
  }
  return [self, ...status.peers.filter((peer) => peer.podId !== self.podId)]
}
