/** From holding the token to an engine that runs, and down again when somebody else holds it. */
import { assert } from '../base/assert.ts'
import type { Out } from './events.ts'
import { isFresh, isUnderstood } from './decide.ts'
import { beginHandOver, willing } from './hand-over.ts'
import type { Pod, Run } from './pod.ts'
import { deletion } from './pod.ts'
import type { Command } from './log/log-view.ts'
import { type Cause, type CommandRecord, encode } from './log/records.ts'
import { answered, dropVerifications, verify } from './verify.ts'

/** Stages in which the engine holds, or takes, the producer's identity. */
const engaged: ReadonlySet<string> = new Set(['promoting', 'taken', 'proceeding', 'running'])

/** A newer claim ends this pod's run: the other one is right, whatever this one was about to do. */
export function yieldToNewer(pod: Pod, out: Out): void {
  const { run } = pod
  if (run === undefined || pod.holds(run.epoch)) return
  if (pod.reclaiming && pod.view.epoch < run.epoch) return
  const holder = pod.view.holder
  stepDown(pod, out, `pod ${holder?.podId ?? 'unknown'} holds token epoch ${pod.view.epoch}`)
}

/** What is not committed is void; the engine follows as a standby. */
export function stepDown(pod: Pod, out: Out, reason: string): void {
  const draining = pod.handOver?.stage === 'draining'
  dropVerifications(pod, out)
  if (engaged.has(pod.engine) || draining) {
    out.engine({ type: 'ha-step-down', reason })
    pod.engine = 'stepping-down'
    pod.restarting = false
  }
  if (pod.run) out.log('warn', `stepping down from token epoch ${pod.run.epoch}: ${reason}`)
  pod.stepDowns++
  pod.run = undefined
  pod.handOver = undefined
  pod.reclaiming = false
  pod.readiness.reset()
}

/** A pod that holds the token runs, or gives it back; also where its claim came through after it had given up hope. */
export function engage(pod: Pod, out: Out, now: number): void {
  const { view, run } = pod
  if (run !== undefined || !pod.holdsToken() || view.release) return
  if (pod.stopping || pod.engine === 'failed') {
    if (!pod.inhibited) releaseUnused(pod, out, now)
    return
  }
  if (pod.engine !== 'standby') return
  const claim = view.holder
  const cause: Cause = claim === undefined || claim.cause === 'UNKNOWN' ? 'FAILOVER' : claim.cause
  const startedAt = pod.claim?.epoch === view.epoch ? pod.claim.at : now
  pod.run = { epoch: view.epoch, cause, startedAt, commitId: null, isolated: false }
  assert(pod.handOver === undefined, 'a pod takes over while it hands over')
  pod.claim = undefined
  pod.paused = view.paused
  pod.engine = 'promoting'
  if (pod.engineIsolated) isolateEngine(pod, out, false)
  out.log('info', `promoting this pod under token epoch ${view.epoch} (${cause})`)
  out.engine({ type: 'ha-promote', tokenEpoch: view.epoch, paused: view.paused })
}

/** The token came to a pod that cannot use it. */
function releaseUnused(pod: Pod, out: Out, now: number): void {
  if (now - pod.releasedAt < pod.settings.heartbeatIntervalMs) return
  pod.releasedAt = now
  const { podId, incarnation, view, faults } = pod
  const { epoch, paused } = view
  const commitId = null
  const fields = { target: null, commitId, paused, commandOffset: null, exhausted: false, unused: true, faults }
  out.append(encode({ kind: 'release', epoch, podId, incarnation, ...fields }))
}

/** P3 has fenced the predecessor; P4 asks whether the token is still this pod's. */
export function identityTaken(pod: Pod, out: Out, tokenEpoch: number, now: number): void {
  if (pod.engine !== 'promoting' || pod.run?.epoch !== tokenEpoch) return
  pod.engine = 'taken'
  verify(pod, out, { type: 'promotion', epoch: tokenEpoch }, now)
}

/** Answers of the log; a pod that does not hold the token any more has stepped down before. */
export function takeAnswers(pod: Pod, out: Out, now: number): void {
  for (const purpose of answered(pod)) {
    const { run } = pod
    if (purpose.type === 'token') out.engine({ type: 'ha-token', id: purpose.id, held: run !== undefined })
    else if (run === undefined) continue
    else if (purpose.type === 'isolation') endIsolation(pod, out, now)
    else if (run.epoch === purpose.epoch && pod.engine === 'taken') {
      pod.engine = 'proceeding'
      out.engine({ type: 'ha-proceed', tokenEpoch: run.epoch })
    }
  }
}

export function running(pod: Pod, out: Out, now: number): void {
  const { run } = pod
  if (run === undefined) return
  pod.restarting = false
  if (pod.engine !== 'proceeding') return
  pod.engine = 'running'
  pod.promotions[run.cause]++
  pod.lastPromotionMs = now - run.startedAt
  if (pod.view.release === undefined && pod.view.releases.get(run.epoch - 1)?.podId === pod.podId) pod.rollbacks++
  out.log('info', `this pod is ACTIVE under token epoch ${run.epoch}`)
}

/**
 * A holder that cannot take the identity (its link to the transaction coordinator alone is cut, say), or whose disk has
 * no room for its stores, keeps the others from trying, for its heartbeats are fresh. After a while it lets one that is
 * ready.
 */
export function giveUpWhereStuck(pod: Pod, out: Out, now: number): void {
  const { run } = pod
  if (run === undefined || pod.handOver || pod.stopping) return
  const why = whyStuck(pod, run, now)
  if (why === undefined) return
  const target = willing(pod)
  if (target === undefined) return
  out.log('warn', `${why}; handing the token to pod ${target.podId}`)
  beginHandOver(pod, out, { target: target.podId, commandOffset: null, exhausted: false, hard: true }, now)
}

/** What holds it up for longer than others should wait for it; undefined: nothing does. */
function whyStuck({ engine, diskFull, settings }: Pod, run: Run, now: number): string | undefined {
  const takesIdentity = engine === 'promoting' || engine === 'taken'
  const what = engine === 'running' ? 'this pod' : 'the promotion'
  if (!takesIdentity && engine !== 'proceeding' && engine !== 'running') return undefined
  const fullSince = diskFull === undefined ? undefined : Math.max(diskFull.since, run.startedAt)
  if (fullSince !== undefined && now - fullSince >= settings.handoffTimeoutMs) {
    return `${what} does not get on, for its stores have waited for room on the disk for ${Math.round(now - fullSince)} ms`
  }
  return takesIdentity && now - run.startedAt >= 3 * settings.failoverTimeoutMs ? `${what} does not get on` : undefined
}

/** Without an acknowledged heartbeat for long, others may already have taken over: no dispatch, no commit. */
export function selfFence(pod: Pod, out: Out, now: number): void {
  const { run, settings } = pod
  if (run === undefined || pod.engine !== 'running') return
  const ackAge = pod.fresh.ackAge(now)
  if (!run.isolated && ackAge > settings.selfFenceTimeoutMs) {
    run.isolated = true
    pod.isolations++
    isolateEngine(pod, out, true)
    const seconds = (ackAge / 1000).toFixed(1)
    out.log('warn', `no heartbeat was acknowledged for ${seconds} s: isolated, nothing is dispatched or committed`)
  } else if (run.isolated && isHeard(pod, now)) {
    const asked = pod.verifications.some(({ purpose }) => purpose.type === 'isolation')
    if (!asked) verify(pod, out, { type: 'isolation' }, now)
  }
}

/** Acknowledged so lately that it may do without for a while. */
function isHeard(pod: Pod, now: number): boolean {
  return pod.fresh.ackAge(now) <= pod.settings.selfFenceTimeoutMs / 2
}

/** A late answer says nothing of now: the link may have gone again since it was asked for, and then it is asked anew. */
function endIsolation(pod: Pod, out: Out, now: number): void {
  if (pod.run === undefined || !pod.run.isolated || !isHeard(pod, now)) return
  pod.run.isolated = false
  isolateEngine(pod, out, false)
  out.log('info', `the coordinator topic is reachable again, and token epoch ${pod.run.epoch} is still this pod's`)
}

function isolateEngine(pod: Pod, out: Out, isolated: boolean): void {
  pod.engineIsolated = isolated
  out.engine({ type: 'ha-isolate', isolated })
}

/** The topic was made anew under a run: the claim is written again, under the same epoch. */
export function reclaim(pod: Pod, out: Out, now: number): void {
  const { run, view } = pod
  if (!pod.reclaiming || run === undefined) return
  if (view.epoch >= run.epoch) {
    pod.reclaiming = false
    return
  }
  if (now - pod.reclaimedAt < 2 * pod.settings.heartbeatIntervalMs) return
  pod.reclaimedAt = now
  // Whatever was said since is newer.
  const lost = view.standing().filter(({ offset }) => offset < 0)
  tellAgain(pod, out, run, lost)
}

/**
 * The log was emptied while this pod ran: whoever reads it from its beginning does not know who holds the token. Those
 * that know the first claim take no notice of a second one.
 */
export function retell(pod: Pod, out: Out, now: number): void {
  const { run, view, settings } = pod
  const beat = settings.heartbeatIntervalMs
  if (run === undefined || pod.engine !== 'running' || !pod.holds(run.epoch) || view.release) return
  if (now - pod.retoldAt < settings.failoverTimeoutMs || now - run.startedAt < 3 * beat) return
  const unknowing = [...view.peers.values()].some(
    (peer) =>
      peer.status.podId !== pod.podId &&
      isUnderstood(peer) &&
      peer.status.tokenEpochSeen < run.epoch &&
      isFresh(peer, pod.fresh.value, settings),
  )
  if (!unknowing) return
  pod.retoldAt = now
  const why = 'it stood still, or the coordinator topic has lost records'
  out.log('warn', `a pod does not know the token of this one (${why}): telling it again`)
  tellAgain(pod, out, run, view.standing())
}

function tellAgain(pod: Pod, out: Out, run: Run, standing: readonly Command[] = []): void {
  const { podId, incarnation } = pod
  const claim = { epoch: run.epoch, podId, nonce: pod.nextName(), incarnation, cause: run.cause, commandOffset: null }
  const why = 'the coordinator topic had lost the claim'
  out.append(encode({ kind: 'claim', ...claim, why }), ...standing.map((command) => encode(commandOf(command))))
}

/** As its author wrote and signed it. */
function commandOf(each: Command): CommandRecord {
  const { kind, id, command, target, force, value, expectEpoch, issuer, from, signature } = each
  return { kind, id, command, target, force, value, expectEpoch, issuer, from, signature }
}

const goneForLongMs = 600_000

/** The active pod deletes what is long past, so that the topic stays small. */
export function tidy(pod: Pod, out: Out, now: number): void {
  const { settings, view } = pod
  if (pod.engine !== 'running' || now - pod.tidiedAt < 60 * settings.heartbeatIntervalMs) return
  pod.tidiedAt = now
  const keys = view.outdatedKeys().slice(0, 100)
  const goneMs = Math.max(goneForLongMs, 10 * settings.failoverTimeoutMs)
  for (const [podId, peer] of view.peers) {
    if (pod.fresh.value - Math.max(peer.fresh, pod.joinedFresh) > goneMs) keys.push(`s/${podId}`, `v/${podId}`)
  }
  if (keys.length > 0) out.append(...keys.map(deletion))
}
