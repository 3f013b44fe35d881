/** When a command's result is there, read from nothing but `GET /ha/status`. */
import type { HaStatus } from '../../http/ha-seam.ts'
import type { HaVerb } from './ha-client.ts'
import { activeOf, membersOf } from './ha-members.ts'

/** What was so before the command was sent. */
export interface Before {
  readonly active: string | undefined
  readonly tokenEpoch: number
}

export function beforeOf(status: HaStatus): Before {
  return { active: activeOf(status)?.podId, tokenEpoch: status.tokenEpoch }
}

export type Progress =
  | { readonly done: false }
  /** `active`: empty where nobody is. `reason`: of a command that moves nobody. */
  | { readonly done: true; readonly active: string; readonly reason?: string }
  /** It came differently, for good: waiting on would be in vain. */
  | { readonly done: true; readonly failed: string }

const pending: Progress = { done: false }

export interface Sent {
  readonly verb: HaVerb
  readonly pod: string | undefined
  readonly commandOffset: number
}

export function commandProgress({ verb, pod, commandOffset }: Sent, before: Before, now: HaStatus): Progress {
  // A pod of an older build tells no results: then the roles alone do.
  const result = now.commands?.find((command) => command.commandOffset === commandOffset)
  if (result?.outcome === 'REJECTED' || result?.outcome === 'EXPIRED') {
    return { done: true, failed: `${result.outcome}, ${result.reason}` }
  }
  const active = activeOf(now)?.podId
  // What stands needs nobody to carry it out.
  if (verb !== 'switch' && verb !== 'promote' && verb !== 'demote') {
    return result?.outcome === 'DONE' ? { done: true, active: active ?? '', reason: result.reason } : pending
  }
  if (active === undefined) return pending
  const decided = now.tokenEpoch > before.tokenEpoch && now.tokenHolder === active
  if (verb === 'promote' && active === pod && (decided || active === before.active)) return { done: true, active }
  if (!decided) return pending
  if (active === before.active) {
    return { done: true, failed: `it was rolled back: ${active} is ACTIVE again, in epoch ${now.tokenEpoch}` }
  }
  if (verb === 'promote' && active !== pod) {
    return { done: true, failed: `${active} has become ACTIVE instead, in epoch ${now.tokenEpoch}` }
  }
  return { done: true, active }
}

/** Whether the group is as it should be: one pod processes, and as many are ready as are desired. */
export function groupIsReady(status: HaStatus): boolean {
  return activeOf(status) !== undefined && !status.redundancyBelowDesired
}

/** The pod whose restart in place holds the command up, if there is one. */
export function restartingPod(status: HaStatus, pod: string | undefined): string | undefined {
  const concerned = membersOf(status).filter((member) => member.role === 'ACTIVE' || member.podId === pod)
  return concerned.find((member) => member.restarting)?.podId
}
