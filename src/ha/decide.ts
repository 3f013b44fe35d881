/** Decisions about who should run: facts in, decision out. Nothing here remembers anything. */
import type { HaSettings } from './contract.ts'
import type { LogView, Peer } from './log/log-view.ts'
import type { Cause } from './log/records.ts'
import { fitOf } from './topology-shape.ts'
import type { StandbyProgress } from '../engine/ha-contract.ts'

/** A pod that could take over, or might as well. */
export interface Candidate {
  readonly podId: string
  readonly ready: boolean
  /** Its application is not one that may take over without being asked for by name. */
  readonly barred: boolean
  /** Its stores wait for room: promoted, it would restore for as long as they do. */
  readonly diskFull: boolean
  readonly failoverPriority: number
  readonly lagRecords: number
}

/** This pod, as far as the decisions need it. */
export interface Self {
  readonly podId: string
  readonly incarnation: string
  readonly candidate: Candidate
  /** Moment of joining, by the clock of fresh views. */
  readonly joinedFresh: number
  /** The log looks new although commits exist: whoever runs may not have been able to say so yet. */
  readonly logIsNew: boolean
}

/** Heartbeats that may be missing before a pod is no longer counted on. */
export const freshHeartbeats = 3

export function isFresh(peer: Peer, fresh: number, settings: HaSettings): boolean {
  return peer.live && fresh - peer.fresh <= freshHeartbeats * settings.heartbeatIntervalMs
}

/** Heard of within the failover timeout. */
export function isAlive(peer: Peer, fresh: number, settings: HaSettings): boolean {
  return peer.live && fresh - peer.fresh <= settings.failoverTimeoutMs
}

/** A pod whose role or state this build does not know takes part in no decision. */
export function isUnderstood({ status }: Peer): boolean {
  return status.understood && status.role !== 'UNKNOWN' && status.state !== 'UNKNOWN'
}

const standbyStates: ReadonlySet<string> = new Set(['BOOTSTRAPPING', 'CATCHING_UP', 'READY_STANDBY'])

/** The others that could take over now. */
export function candidates(view: LogView, self: string, fresh: number, settings: HaSettings): Candidate[] {
  const found: Candidate[] = []
  for (const [podId, peer] of view.peers) {
    const { status } = peer
    if (podId === self || !isUnderstood(peer) || !isFresh(peer, fresh, settings)) continue
    if (status.role !== 'STANDBY' || status.restarting || !standbyStates.has(status.state)) continue
    const { failoverPriority, lagRecords, diskFull } = status
    const barred = fitOf(view, status).fit !== 'fits'
    found.push({ podId, ready: status.state === 'READY_STANDBY', barred, diskFull, failoverPriority, lagRecords })
  }
  return found
}

/** Who comes first: one whose disk has room, then the higher priority, then the smaller lag, then the name. */
export function compareCandidates(a: Candidate, b: Candidate): number {
  const byRoom = Number(a.diskFull) - Number(b.diskFull)
  return (
    byRoom || b.failoverPriority - a.failoverPriority || a.lagRecords - b.lagRecords || (a.podId < b.podId ? -1 : 1)
  )
}

/** The pod to hand over to without an operator: a ready one that may take over by itself. */
export function volunteer(all: readonly Candidate[]): Candidate | undefined {
  const from = all.filter(({ ready, barred, failoverPriority }) => ready && !barred && failoverPriority > 0)
  return from.toSorted(compareCandidates)[0]
}

/** The pod to hand over to on an operator's command: a ready one; with force any that follows. */
export function successor(all: readonly Candidate[], force: boolean): Candidate | undefined {
  const ready = all.filter((candidate) => candidate.ready && !candidate.barred)
  const from = ready.length > 0 || !force ? ready : all.filter((candidate) => !candidate.barred)
  // Priority 0 means never by itself; an operator's switch may still choose it when there is no other.
  const willing = from.filter((candidate) => candidate.failoverPriority > 0)
  return (willing.length > 0 ? willing : from).toSorted(compareCandidates)[0]
}

/** Why nobody holds the token, and since when. */
export interface Vacancy {
  readonly kind: 'none-yet' | 'released' | 'gone' | 'failed' | 'silent'
  /** By the clock of fresh views. */
  readonly since: number
  readonly why: string
}

/**
 * A pod that is heard to run under an epoch of which the log holds no claim: the log was emptied. It holds the token all
 * the same; the log is how pods agree on who runs, not what makes one run.
 */
export function heardHolder(view: LogView, self: string, fresh: number, settings: HaSettings): Peer | undefined {
  for (const [podId, peer] of view.peers) {
    const { tokenEpoch, state } = peer.status
    if (podId === self || tokenEpoch <= view.epoch || state === 'FAILED') continue
    if (isUnderstood(peer) && isAlive(peer, fresh, settings)) return peer
  }
  return undefined
}

/** While failover is paused the role stays with its pod: that one, and no other, takes it up again by itself. */
export function staysWithItsPod({ failoverPaused, holder, release }: LogView, self: string): boolean {
  return failoverPaused && release === undefined && holder !== undefined && holder.podId !== self
}

/** Undefined while somebody holds the token and is believed to be alive. */
export function vacancy(view: LogView, self: Self, fresh: number, settings: HaSettings): Vacancy | undefined {
  const { holder, release } = view
  const joined = self.joinedFresh
  if (heardHolder(view, self.podId, fresh, settings)) return undefined
  if (holder === undefined) return { kind: 'none-yet', since: joined, why: 'nobody has run yet' }
  if (release) {
    const without = release.unused ? ', and did not become ACTIVE' : ''
    const why = `pod ${holder.podId} gave the token up${without}`
    return { kind: 'released', since: Math.max(release.fresh, joined), why }
  }
  if (view.inhibitedEpoch === view.epoch) return undefined
  const peer = view.peers.get(holder.podId)
  const since = Math.max(holder.fresh, joined)
  if (peer === undefined) {
    // Without a goodbye it may be about to speak: a claim that was written again comes before the first heartbeat.
    const patienceMs = view.left.has(holder.podId) ? 0 : freshHeartbeats * settings.heartbeatIntervalMs
    return { kind: 'gone', since: since + patienceMs, why: `pod ${holder.podId} has left` }
  }
  if (!view.isCurrent(holder)) {
    return { kind: 'gone', since: Math.max(since, peer.lifeSince), why: `pod ${holder.podId} was started anew` }
  }
  if (peer.live && peer.status.state === 'FAILED') {
    return { kind: 'failed', since: Math.max(since, peer.stateSince), why: `pod ${holder.podId} has failed` }
  }
  const silence = fresh - Math.max(peer.fresh, since)
  if (silence <= settings.failoverTimeoutMs) return undefined
  const why = `pod ${holder.podId} has been silent for ${Math.round(silence)} ms while the view of this pod was fresh`
  return { kind: 'silent', since: Math.max(peer.fresh, since) + settings.failoverTimeoutMs, why }
}

export interface Turn {
  /** When it is this pod's turn to claim, by the clock of fresh views. */
  readonly at: number
  readonly cause: Cause
}

/** When, if ever, this pod claims a vacant token by itself. */
export function turn(
  view: LogView,
  self: Self,
  vacant: Vacancy,
  fresh: number,
  settings: HaSettings,
): Turn | undefined {
  const { release } = view
  if (release) return turnAfterRelease(view, self, vacant, fresh, settings)
  const cause: Cause = vacant.kind === 'silent' || vacant.kind === 'failed' ? 'FAILOVER' : bootOrFailover(view)
  const delay = rankDelay(view, self, undefined, fresh, settings)
  if (delay === undefined) return undefined
  let base = vacant.since
  if (vacant.kind === 'none-yet') {
    // One heartbeat's time for the others to be heard; where commits exist, time for their author to speak.
    base += self.logIsNew ? settings.failoverTimeoutMs : settings.heartbeatIntervalMs
  }
  const last = view.lastFailover
  if (cause === 'FAILOVER' && last?.live) base = Math.max(base, last.fresh + settings.minPromotionIntervalMs)
  return { at: base + delay, cause }
}

/** A whole deployment that starts again boots; a pod that outlives the holder fails over. */
function bootOrFailover(view: LogView): Cause {
  const { holder } = view
  return holder?.live === true ? 'FAILOVER' : 'BOOT'
}

function turnAfterRelease(
  view: LogView,
  self: Self,
  vacant: Vacancy,
  fresh: number,
  settings: HaSettings,
): Turn | undefined {
  const release = view.release
  if (release === undefined) return undefined
  const asked = view.commands.get(release.commandOffset ?? -1)?.command
  const cause: Cause = release.exhausted ? 'FAILOVER' : asked === 'PROMOTE' ? 'PROMOTE' : 'SWITCH'
  const mine = release.podId === self.podId && release.incarnation === self.incarnation
  // Nobody came: the pod that handed over goes on itself.
  if (mine) return { at: vacant.since + settings.handoffTimeoutMs, cause }
  if (release.target === self.podId) return { at: vacant.since, cause }
  const delay = rankDelay(view, self, release.podId, fresh, settings)
  if (delay === undefined) return undefined
  const patience = release.target === null || !release.live ? 0 : settings.handoffTimeoutMs + settings.claimStaggerMs
  return { at: vacant.since + patience + delay, cause }
}

/** How long this pod lets better ones go first; undefined: it does not take part. */
function rankDelay(
  view: LogView,
  self: Self,
  except: string | undefined,
  fresh: number,
  settings: HaSettings,
): number | undefined {
  const me = self.candidate
  if (me.failoverPriority === 0 || me.barred) return undefined
  const others = candidates(view, self.podId, fresh, settings).filter(
    (candidate) => candidate.failoverPriority > 0 && !candidate.barred && candidate.podId !== except,
  )
  const someReady = me.ready || others.some((candidate) => candidate.ready)
  if (someReady && !me.ready) return undefined
  if (!someReady && !settings.allowUnreadyFailover) return undefined
  const better = others.filter((other) => other.ready === me.ready && compareCandidates(other, me) < 0)
  // Without anybody ready the best of the others waits once more: it takes longer, and somebody may become ready.
  return (someReady ? 0 : settings.failoverTimeoutMs) + better.length * settings.claimStaggerMs
}

export interface ReadinessFacts {
  readonly progress: StandbyProgress | undefined
  readonly tailAgeMs: number
  /** Age of the newest own heartbeat that came back: a pod that cannot be heard can claim nothing. */
  readonly ackAgeMs: number
  readonly caughtUp: boolean
  readonly blocked: boolean
}

/** Whether the criteria of READY_STANDBY hold; `slack` widens what is measured. */
export function meetsCriteria(facts: ReadinessFacts, settings: HaSettings, slack: number): boolean {
  const { progress, tailAgeMs, ackAgeMs, caughtUp, blocked } = facts
  const freshMs = freshHeartbeats * settings.heartbeatIntervalMs * slack
  if (progress === undefined || !progress.open || blocked || !caughtUp) return false
  return (
    progress.lagRecords <= settings.readyMaxLagRecords * slack &&
    progress.lagMs <= settings.readyMaxLagMs * slack &&
    tailAgeMs <= freshMs &&
    ackAgeMs <= freshMs
  )
}

/** Entered after two checks in a row that hold, left when a check fails by twice the measure. */
export class Readiness {
  #passed = 0
  #ready = false

  get ready(): boolean {
    return this.#ready
  }

  reset(): void {
    this.#passed = 0
    this.#ready = false
  }

  check(facts: ReadinessFacts, settings: HaSettings): void {
    if (this.#ready) this.#ready = meetsCriteria(facts, settings, 2)
    else {
      this.#passed = meetsCriteria(facts, settings, 1) ? this.#passed + 1 : 0
      this.#ready = this.#passed >= 2
    }
    if (!this.#ready && this.#passed >= 2) this.#passed = 0
  }
}

/** Why a pod that runs cannot simply go on or take over: it differs from the holder. */
export function restartRequired(view: LogView, self: { podId: string }, settings: HaSettings): string | null {
  if (fitOf(view, settings).fit !== 'fits') return 'topology-changed'
  const { holder } = view
  if (holder === undefined || holder.podId === self.podId) return null
  const peer = view.peers.get(holder.podId)
  if (peer === undefined || !peer.live || !peer.status.understood || !view.isCurrent(holder)) return null
  for (const [key, hash] of peer.status.configHashes) {
    const own = Object.hasOwn(settings.configHashes, key) ? settings.configHashes[key] : undefined
    if (own !== undefined && own !== hash) return `config-changed:${key}`
  }
  return null
}
