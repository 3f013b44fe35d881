/** What this pod shows: its own STATUS record, and its view of all pods. */
import { candidates, heardHolder, isAlive, isFresh, isUnderstood } from '../decide.ts'
import { commandResults } from './history.ts'
import { notReady } from './not-ready.ts'
import type { Pod } from '../pod.ts'
import type { StatusRecord } from '../log/records.ts'
import type { HaPeer, HaStatus } from './view.ts'

export function statusOf(pod: Pod, now: number): HaStatus {
  const { settings, view, progress, fresh } = pod
  const active = pod.role === 'ACTIVE'
  const heard = heardHolder(view, pod.podId, fresh.value, settings)
  const readyStandbyCount =
    candidates(view, pod.podId, fresh.value, settings).filter((candidate) => candidate.ready).length +
    (pod.state === 'READY_STANDBY' ? 1 : 0)
  return {
    selfPodId: pod.podId,
    selfRole: pod.role,
    selfState: pod.state,
    selfRestarting: pod.restarting,
    replicationLagRecords: active ? 0 : (progress?.lagRecords ?? 0),
    replicationLagMs: active ? 0 : Math.round(progress?.lagMs ?? 0),
    tailFreshnessMs: Math.round(Math.min(fresh.tailAge(now), Number.MAX_SAFE_INTEGER)),
    tailCaughtUp: pod.joined && fresh.tailAge(now) <= settings.failoverTimeoutMs,
    readyStandbyCount,
    desiredStandbys: settings.desiredStandbys,
    redundancyBelowDesired: readyStandbyCount < settings.desiredStandbys,
    tokenEpoch: heard?.status.tokenEpoch ?? view.epoch,
    tokenHolder: heard?.status.podId ?? view.holder?.podId ?? '',
    restartRequired: pod.restartRequired,
    peers: peersOf(pod, now),
    notReady: notReady(pod, now),
    failoverPaused: view.failoverPaused,
    selfFailoverPriority: pod.failoverPriority,
    commands: commandResults(pod),
  }
}

function peersOf(pod: Pod, now: number): HaPeer[] {
  const peers: HaPeer[] = []
  for (const [podId, peer] of pod.view.peers) {
    // What was there before this pod joined may be years old: a peer shows once it is heard.
    if (podId === pod.podId || !peer.live) continue
    const { status, generation } = peer
    const alive = isAlive(peer, pod.fresh.value, pod.settings)
    const refused = pod.refusals.get(podId)
    peers.push({
      podId,
      role: alive ? status.role : 'STANDBY',
      state: alive ? stateOf(peer) : 'LOST',
      replicationLagRecords: status.lagRecords,
      replicationLagMs: status.lagMs,
      diskFull: status.diskFull,
      commandsRefused: refused?.incarnation === status.incarnation ? refused.commands : 0,
      generation,
      freshnessMs: Math.round(now - peer.now),
      failoverPriority: status.failoverPriority,
      restarting: alive && status.restarting,
    })
  }
  return peers.sort((a, b) => (a.podId < b.podId ? -1 : 1))

  /** A ready standby that missed heartbeats is not counted on, and does not show as ready. */
  function stateOf(peer: Parameters<typeof isUnderstood>[0]): string {
    const { state } = peer.status
    if (!isUnderstood(peer)) return state
    return state === 'READY_STANDBY' && !isFresh(peer, pod.fresh.value, pod.settings) ? 'CATCHING_UP' : state
  }
}

export function ownStatus(pod: Pod): StatusRecord {
  const { settings, view, progress, run } = pod
  const active = pod.role === 'ACTIVE'
  return {
    kind: 'status',
    podId: pod.podId,
    understood: true,
    incarnation: pod.incarnation,
    generation: pod.generation,
    role: pod.role,
    state: pod.state,
    restarting: pod.restarting,
    paused: run ? pod.paused : view.paused,
    tokenEpoch: run?.epoch ?? 0,
    tokenEpochSeen: view.epoch,
    commitId: run?.commitId ?? null,
    lagRecords: active ? 0 : (progress?.lagRecords ?? 0),
    lagMs: active ? 0 : Math.round(progress?.lagMs ?? 0),
    diskFull: pod.diskFull !== undefined,
    failoverPriority: pod.failoverPriority,
    topologyHash: settings.topologyHash,
    topologyShape: settings.topologyShape,
    configHashes: new Map(Object.entries(settings.configHashes)),
    build: settings.build,
    faults: pod.faults,
    handoffInhibited: pod.inhibited && pod.engine === 'failed',
    commandRead: view.commandRead,
    refusedCommands: view.refusedCommands,
    heartbeat: pod.heartbeat,
  }
}

/** What others should hear of at once, not with the next heartbeat. */
export function shownOf(pod: Pod): string {
  const { run, failoverPriority, diskFull, view } = pod
  const held = run ? [pod.paused, run.epoch] : ['', 0]
  const said = [failoverPriority, diskFull !== undefined, view.commandRead]
  return [pod.role, pod.state, pod.restarting, ...held, ...said].join(' ')
}
