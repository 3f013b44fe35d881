/** A standby: whether it is ready, and whether it is its turn to claim a token that nobody holds. */
import { assert } from '../base/assert.ts'
import { freshHeartbeats, heardHolder, restartRequired, staysWithItsPod, type turn, type vacancy } from './decide.ts'
import type { Out } from './events.ts'
import type { Pod } from './pod.ts'
import { type Cause, encode } from './log/records.ts'

/** The two decisions that make a failover; the simulator breaks them to see whether its checkers notice. */
export interface Rules {
  readonly vacancy: typeof vacancy
  readonly turn: typeof turn
}

export function checkReadiness(pod: Pod, now: number): void {
  pod.restartRequired = restartRequired(pod.view, pod, pod.settings)
  const follows = pod.run === undefined && pod.engine === 'standby' && !pod.restarting && pod.joined && !pod.stopping
  if (!follows) {
    pod.readiness.reset()
    return
  }
  const { progress } = pod
  const tailAgeMs = pod.fresh.tailAge(now)
  const ackAgeMs = pod.fresh.ackAge(now)
  // Another configuration is worth a restart, but hinders nobody from taking over; another topology may.
  const blocked = pod.restartRequired === 'topology-changed' || pod.diskFull !== undefined
  pod.readiness.check({ progress, tailAgeMs, ackAgeMs, caughtUp: true, blocked }, pod.settings)
}

/** A pod whose disk is full falls behind, and could not restore: from this moment on it is not counted on. */
export function diskFull(pod: Pod, sentence: string | null, now: number): void {
  if (sentence === null) pod.diskFull = undefined
  else {
    pod.diskFull = { sentence, since: pod.diskFull?.since ?? now }
    pod.readiness.reset()
  }
}

/** Claims the token where it is vacant and this pod's turn has come, or where an operator names this pod. */
export function claimIfDue(pod: Pod, out: Out, rules: Rules, now: number): void {
  dropLostClaim(pod, now)
  if (!mayClaim(pod, now)) return
  const { view, fresh, settings } = pod
  const self = pod.self()
  const vacant = rules.vacancy(view, self, fresh.value, settings)
  const command = promotionAskedFor(pod, vacant !== undefined)
  if (command !== undefined) {
    const nobody = vacant?.why ?? 'no active pod answers'
    claim(pod, out, 'PROMOTE', command, `an operator asks for it, and ${nobody}`, now)
    return
  }
  if (vacant === undefined || staysWithItsPod(view, pod.podId)) return
  const due = rules.turn(view, self, vacant, fresh.value, settings)
  if (due === undefined || fresh.value < due.at) return
  claim(pod, out, due.cause, commandBehind(pod), vacant.why, now)
}

/** The command for which another pod gave the token up: to this one, or to whoever comes. */
function commandBehind({ view: { release }, podId }: Pod): number | null {
  if (release === undefined || release.podId === podId) return null
  return release.target === podId || release.target === null ? release.commandOffset : null
}

/** A claim that never shows in the log was lost on its way; one that shows was decided there. */
function dropLostClaim(pod: Pod, now: number): void {
  const { claim: pending, view, settings } = pod
  if (pending === undefined) return
  const decided = view.epoch >= pending.epoch && !pod.holds(pending.epoch)
  if (decided || now - pending.at > (freshHeartbeats + 1) * settings.heartbeatIntervalMs) pod.claim = undefined
}

function mayClaim(pod: Pod, now: number): boolean {
  if (pod.run || pod.claim || pod.stopping || pod.engine !== 'standby' || pod.restarting) return false
  if (pod.holdsToken() && pod.view.release === undefined) return false
  const beat = pod.settings.heartbeatIntervalMs
  // Claims are made on a fresh view alone, and by a pod that can be heard.
  return pod.fresh.tailAge(now) <= freshHeartbeats * beat && pod.fresh.ackAge(now) <= freshHeartbeats * beat
}

/** An operator's promotion of this pod that the active pod cannot carry out: there is none, or it does not answer. */
function promotionAskedFor(pod: Pod, vacant: boolean): number | undefined {
  const { view, settings, fresh } = pod
  const alone = vacant || view.inhibitedEpoch === view.epoch
  for (const command of view.commands.values()) {
    if (command.command !== 'PROMOTE' || command.target !== pod.podId || !command.live) continue
    if (command.expectEpoch !== view.epoch || view.results.has(command.offset)) continue
    const age = fresh.value - command.fresh
    if (age > settings.commandTtlMs || (!command.force && !pod.readiness.ready)) continue
    if (alone || (view.release === undefined && age > 2 * settings.handoffTimeoutMs)) return command.offset
  }
  return undefined
}

function claim(pod: Pod, out: Out, cause: Cause, commandOffset: number | null, why: string, now: number): void {
  const heard = heardHolder(pod.view, pod.podId, pod.fresh.value, pod.settings)
  const epoch = Math.max(pod.view.epoch, pod.baseEpoch, heard?.status.tokenEpoch ?? 0) + 1
  assert(pod.run === undefined && pod.engine === 'standby', 'a pod claims the token that follows as a standby')
  assert(epoch > pod.view.epoch, 'a claim is newer than all others')
  const nonce = pod.nextName()
  const { podId, incarnation } = pod
  pod.claim = { epoch, nonce, at: now }
  out.log('info', `claiming token epoch ${epoch} (${cause}): ${why}`)
  out.append(encode({ kind: 'claim', epoch, podId, nonce, incarnation, cause, commandOffset, why }))
}
