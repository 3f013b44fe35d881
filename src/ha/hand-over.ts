/**
 * Giving the token up: the engine drains, commits and lets the producer go, then a RELEASE names the successor. Nothing
 * is lost where this breaks off: the successor begins from the last commit, whichever that is.
 */
import { assert } from '../base/assert.ts'
import { type Candidate, candidates, volunteer } from './decide.ts'
import type { Out } from './events.ts'
import type { HandOver, Pod } from './pod.ts'
import { encode } from './log/records.ts'
import { dropVerifications } from './verify.ts'

export interface HandOverWish {
  readonly target: string | null
  readonly commandOffset: number | null
  readonly exhausted: boolean
  /** The engine cannot drain: it steps down. */
  readonly hard: boolean
}

/** Stages of a promotion: under this token epoch nothing was processed yet. */
const onTheWay: ReadonlySet<string> = new Set(['promoting', 'taken', 'proceeding'])

export function beginHandOver(pod: Pod, out: Out, wish: HandOverWish, now: number): void {
  const { target, commandOffset, exhausted, hard } = wish
  assert(pod.run !== undefined, 'a pod hands over that does not hold the token')
  assert(target !== pod.podId, 'a pod hands over to itself')
  const commitId = pod.run?.commitId ?? null
  const appendedAt = Number.NEGATIVE_INFINITY
  const handOver: HandOver = {
    id: pod.nextHandOver(),
    target,
    commandOffset,
    exhausted,
    stage: 'draining',
    startedAt: now,
    appendedAt,
    commitId,
    unused: onTheWay.has(pod.engine),
  }
  pod.handOver = handOver
  out.log('info', `handing over to ${target === null ? 'whoever is ready' : `pod ${target}`}`)
  if (hard) stepDownFirst(pod, out, handOver, 'the token is given to another pod')
  else {
    pod.engine = 'handing-over'
    out.engine({ type: 'ha-hand-over', id: handOver.id })
  }
}

export function handedOver(pod: Pod, id: number, commitId: string): void {
  const { handOver } = pod
  if (handOver?.id !== id || handOver.stage !== 'draining') return
  handOver.stage = 'releasing'
  handOver.commitId = commitId
}

/** Nothing is committed any more; where the disk is full it may be long until the stores are open. */
export function steppedDown({ handOver }: Pod): void {
  if (handOver?.stage === 'stepping-down') handOver.stage = 'releasing'
}

export function goOnHandingOver(pod: Pod, out: Out, now: number): void {
  const { handOver, run, settings, view } = pod
  if (handOver === undefined || run === undefined) return
  if (handOver.stage === 'draining' && now - handOver.startedAt > settings.handoffTimeoutMs) {
    stepDownFirst(pod, out, handOver, `draining took longer than ${settings.handoffTimeoutMs} ms`)
  }
  if (handOver.stage === 'stepping-down' && pod.engine === 'standby') handOver.stage = 'releasing'
  if (handOver.stage !== 'releasing') return
  if (view.releases.has(run.epoch)) {
    pod.handOver = undefined
    pod.run = undefined
    pod.handOvers++
    out.log('info', `token epoch ${run.epoch} is released`)
    return
  }
  if (now - handOver.appendedAt < settings.heartbeatIntervalMs) return
  handOver.appendedAt = now
  const { podId, incarnation, paused, faults } = pod
  const { target, commitId, commandOffset, exhausted, unused } = handOver
  const fields = { target, commitId, paused, commandOffset, exhausted, unused, faults }
  out.append(encode({ kind: 'release', epoch: run.epoch, podId, incarnation, ...fields }))
}

/**
 * Why a pause, or its end, cannot be taken on any more; null where whoever runs next will follow it. A RELEASE is written
 * again until it is read back, and the first one counts: from then on another pod goes by what that one says.
 */
export function tooLateToPause({ run, handOver }: Pod): string | null {
  const next = 'ask the pod that becomes active, which GET /ha/status names'
  if (run === undefined) return `this pod has given the active role up; ${next}`
  if (handOver === undefined || handOver.appendedAt === Number.NEGATIVE_INFINITY) return null
  const { target } = handOver
  return `this pod has given the active role up${target === null ? '' : ` for pod ${target}`}; ${next}`
}

function stepDownFirst(pod: Pod, out: Out, handOver: HandOver, reason: string): void {
  dropVerifications(pod, out)
  handOver.stage = 'stepping-down'
  pod.engine = 'stepping-down'
  out.engine({ type: 'ha-step-down', reason })
}

/** The restart budget is spent: another pod may do better, unless the same record has failed there too. */
export function exhausted(
  pod: Pod,
  out: Out,
  place: Parameters<Pod['view']['failedElsewhere']>[0] | null,
  now: number,
): void {
  const { run, view } = pod
  if (run === undefined) return
  // A drain under way may be what used the restarts up; it is given up with them.
  const chained = view.releases.get(run.epoch - 1)?.exhausted === true
  const poison = place === null ? chained : view.failedElsewhere(place, pod.podId)
  const target = willing(pod)
  if (!poison && target !== undefined) {
    out.log('warn', `the restarts of this pod are used up; pod ${target.podId} takes over`)
    const commandOffset = pod.handOver?.commandOffset ?? null
    beginHandOver(pod, out, { target: target.podId, commandOffset, exhausted: true, hard: true }, now)
    return
  }
  pod.inhibited = poison
  const why = poison
    ? 'what failed here has failed on another pod too: nobody takes over by itself; correct the cause, then promote a pod'
    : view.failoverPaused
      ? 'failover is paused: the role stays here'
      : 'no pod is ready to take over by itself'
  out.log('error', `the restarts of this pod are used up, and ${why}`)
  out.engine({ type: 'ha-fail' })
}

/** Whom this pod lets take over for its own trouble; nobody while failover is paused. */
export function willing(pod: Pod): Candidate | undefined {
  const { view, settings } = pod
  return view.failoverPaused ? undefined : volunteer(candidates(view, pod.podId, pod.fresh.value, settings))
}

/** SIGTERM: an active pod hands over; then it says goodbye. */
export function goOnStopping(pod: Pod, out: Out, now: number): void {
  if (!pod.stopping || pod.run === undefined || pod.handOver) return
  if (pod.engine === 'failed') {
    pod.run = undefined
    return
  }
  const target = volunteer(candidates(pod.view, pod.podId, pod.fresh.value, pod.settings))
  const wish = { target: target?.podId ?? null, commandOffset: null, exhausted: false }
  beginHandOver(pod, out, { ...wish, hard: pod.engine !== 'running' }, now)
}
