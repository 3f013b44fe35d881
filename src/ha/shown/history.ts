/** Who became active, when and why; and what operators said: read out of the log, the same on every pod. */
import { isAlive, isFresh } from '../decide.ts'
import type { Claim, Command, Peer } from '../log/log-view.ts'
import { standingCommands } from '../log/records.ts'
import type { Pod } from '../pod.ts'
import type { HaCommandResult, HaHistory, HaHistoryEvent } from './view.ts'

const mostCommands = 20

export function historyOf({ view }: Pod): HaHistory {
  const commands = [...view.commands.values()]
  const takeovers = view.claims().map((claim) => {
    const unused = view.releases.get(claim.epoch)?.unused === true
    return { offset: claim.offset, event: takeover(claim, commands, unused) }
  })
  const said = commands
    .filter(({ command }) => standingCommands.has(command))
    .map((command) => ({ offset: command.offset, event: saying(command) }))
  const all = [...takeovers, ...said].toSorted((a, b) => b.offset - a.offset)
  return { events: all.map(({ event }) => event) }
}

const timeOf = (at: number | undefined): string | null =>
  at === undefined || !(at > 0) ? null : new Date(at).toISOString()

function takeover(claim: Claim, commands: readonly Command[], unused: boolean): HaHistoryEvent {
  const { at, podId, epoch, cause, commandOffset } = claim
  const why = unused ? `${claim.why}; it gave the token on without having become ACTIVE` : claim.why
  const command = commands.find(({ offset }) => offset === commandOffset)
  const issuer = command?.issuer ?? null
  const from = command?.from ?? null
  return { at: timeOf(at), event: 'TAKEOVER', podId, tokenEpoch: epoch, cause, why, commandOffset, issuer, from }
}

function saying({ at, command, target, value, offset, issuer, from }: Command): HaHistoryEvent {
  const event = command as 'PAUSE' | 'RESUME' | 'PRIORITY'
  const fields = { podId: target, tokenEpoch: 0, cause: null, commandOffset: offset, issuer }
  return { at: timeOf(at), event, ...fields, why: standingText(command, target, value), from }
}

/** What holds from a standing command on. */
export function standingText(command: string, target: string | null, value: number | null): string {
  if (command === 'PAUSE') return 'failover is paused: nobody takes over by itself'
  if (command === 'RESUME') return 'failover is automatic'
  if (value === 0) return `pod ${target} never takes over by itself`
  return `the failover priority of pod ${target} is ${value ?? 'the one of its configuration'}`
}

/** The last commands, newest first. */
export function commandResults(pod: Pod): HaCommandResult[] {
  const { view } = pod
  const newest = [...view.commands.values()].slice(-mostCommands).reverse()
  return newest.map((each) => {
    const { offset: commandOffset, command, target, force, issuer, value } = each
    const said = { commandOffset, command, target, force, issuer }
    const refusing = refusedBy(pod, each)
    if (refusing !== undefined) return { ...said, outcome: 'REJECTED', reason: refusing }
    const result = view.results.get(commandOffset)
    if (result) return { ...said, outcome: result.outcome, reason: result.reason }
    const unread = standingCommands.has(command) ? notYetRead(pod, commandOffset) : undefined
    if (unread !== undefined) return { ...said, outcome: 'PENDING', reason: `pod ${unread} has not read it yet` }
    // It holds from where it lies in the log, whoever is active.
    if (standingCommands.has(command)) return { ...said, outcome: 'DONE', reason: standingText(command, target, value) }
    if (isExpired(pod, each)) return { ...said, outcome: 'EXPIRED', reason: 'nobody carried it out in time' }
    return { ...said, outcome: 'PENDING', reason: 'the active pod has not decided yet' }
  })
}

/** What stands binds each pod by itself; anything else is for the pod that was active when it was asked for. */
function refusedBy(pod: Pod, { offset, command, issuer, expectEpoch }: Command): string | undefined {
  const refusing = heard(pod).filter(({ status }) => status.refusedCommands.includes(offset))
  const counts = refusing.filter(
    ({ status: { role, tokenEpoch } }) =>
      standingCommands.has(command) || (role === 'ACTIVE' && tokenEpoch === expectEpoch),
  )
  if (counts.length === 0) return undefined
  const names = counts.map(({ status }) => status.podId).join(', ')
  const elsewhere = standingCommands.has(command) ? '; it holds on the others alone' : ''
  return `refused by ${names}, where ha.command-secret is not that of pod ${issuer}${elsewhere}: set the same on all pods`
}

/** A pod that is heard, and has not come so far in the log. */
function notYetRead(pod: Pod, offset: number): string | undefined {
  const behind = heard(pod).find(({ status }) => status.commandRead !== null && status.commandRead < offset)
  return behind?.status.podId
}

function heard(pod: Pod): Peer[] {
  return [...pod.view.peers.values()].filter(
    (peer) => peer.status.podId !== pod.podId && isFresh(peer, pod.fresh.value, pod.settings),
  )
}

/** Nobody begins with it any more, and nobody has: how it ends is told where somebody did. */
function isExpired({ view, fresh, settings, handOver }: Pod, { offset, fresh: readAt }: Command): boolean {
  if (fresh.value - readAt <= settings.commandTtlMs || handOver) return false
  if ([...view.releases.values(), ...view.claims()].some(({ commandOffset }) => commandOffset === offset)) return false
  const draining = [...view.peers.values()].filter(({ status }) => status.state === 'DEMOTING')
  return !draining.some((peer) => isAlive(peer, fresh.value, settings))
}
