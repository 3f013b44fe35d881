/** Why a pod could not take over, in a sentence for whoever asks it. */
import { coordinatorTopic } from '../contract.ts'
import { freshHeartbeats, meetsCriteria } from '../decide.ts'
import type { Pod, Refusal } from '../pod.ts'
import { fitOf } from '../topology-shape.ts'

const advice: Readonly<Record<string, string>> = {
  INVALID_TIMESTAMP:
    "the clock of this machine is too far from the broker's; set it right, or let the topic take the broker's time " +
    '(message.timestamp.type=LogAppendTime)',
  TOPIC_AUTHORIZATION_FAILED: 'grant its principal WRITE on the topic',
  CLUSTER_AUTHORIZATION_FAILED: 'grant its principal WRITE on the topic, or IDEMPOTENT_WRITE on the cluster',
}

export function refusalText(applicationId: string, { code, message }: Refusal): string {
  const what = `the broker refuses what this pod writes to the coordinator topic ${coordinatorTopic(applicationId)}`
  return `${what} (${code}), so the others do not know it and it cannot take over: ${advice[code] ?? message}`
}

/** Null for a pod that is active, or could be at once. */
export function notReady(pod: Pod, now: number): string | null {
  const { fresh, settings, state } = pod
  const waitMs = freshHeartbeats * settings.heartbeatIntervalMs
  if (state === 'ACTIVE' || state === 'READY_STANDBY') return null
  // A coordinator that ended with its engine hears nothing either, and that is not the reason.
  if (state === 'FAILED') return 'its engine has failed; GET /state says why'
  const ackAgeMs = fresh.ackAge(now)
  if (pod.joined && ackAgeMs > waitMs) {
    if (pod.refused) return refusalText(settings.applicationId, pod.refused)
    const since = Number.isFinite(ackAgeMs) ? `for ${Math.round(ackAgeMs)} ms` : 'yet'
    return `none of its heartbeats has come back through the coordinator topic ${since}`
  }
  if (pod.diskFull) return withoutRoom(pod.diskFull.sentence)
  const fit = fitOf(pod.view, settings)
  if (fit.fit !== 'fits') return `${fit.why}; ${fit.fit === 'lacks' ? byName(pod) : 'force does not help'}`
  return state === 'CATCHING_UP' ? behind(pod, now) : `it is ${state}`
}

/** As the log has it, which begins and ends as a sentence of its own. */
function withoutRoom(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1).replace(/\.$/, '')
}

function byName({ podId }: Pod): string {
  return `if that is meant, move the role to it by name: millrace ha promote ${podId} --force`
}

function behind(pod: Pod, now: number): string {
  const { progress, settings, fresh } = pod
  const tailAgeMs = fresh.tailAge(now)
  const facts = { progress, tailAgeMs, ackAgeMs: fresh.ackAge(now), caughtUp: true, blocked: false }
  if (pod.restarting) return 'its engine restarts in place'
  if (progress === undefined || meetsCriteria(facts, settings, 1)) return 'it is about to be ready'
  const { lagRecords, lagMs } = progress
  if (lagRecords > settings.readyMaxLagRecords || lagMs > settings.readyMaxLagMs) {
    return `it is ${lagRecords} records and ${(lagMs / 1000).toFixed(1)} s behind`
  }
  return `its view of the group is ${Math.round(Math.min(tailAgeMs, Number.MAX_SAFE_INTEGER))} ms old`
}
