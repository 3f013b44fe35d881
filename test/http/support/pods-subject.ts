/**
 * Real pods as the subject of the rows: real runtimes with their coordinators over one embedded broker. Where a row wants
 * a peer in a certain state, that peer is a stream of real heartbeats on the coordinator topic.
 */
import { after } from 'node:test'
import type { HaPeer } from '../../../src/http/ha-seam.ts'
import { type Pod, Pods, type Settings } from '../../ha/support/pods.ts'
import { type PeerLooks, SyntheticPeer } from '../../ha/support/synthetic-peer.ts'
import { ask } from './client.ts'
import type { Instance, Situation, Subject } from './subject.ts'

const application = new URL('../apps/conformance-app.ts', import.meta.url)
const applicationId = 'late-flights'
const staleMs = 10_000

/** Nobody fails over while rows are asked; a role that nobody takes comes back soon. */
const patient: Settings = {
  'ha.failover-timeout': 60_000,
  'ha.handoff-timeout': 500,
  'ha.command-ttl': 1000,
  'runtime.shutdown.timeout': 3000,
}

type Kind = 'active' | 'restarting' | 'stale' | 'ready' | 'behind'

interface Group {
  readonly pods: Pods
  /** The pod that is asked. */
  readonly self: Pod
  readonly peer: SyntheticPeer | undefined
}

const readyLooks: PeerLooks = {
  role: 'STANDBY',
  state: 'READY_STANDBY',
  restarting: false,
  failoverPriority: 1,
  lagRecords: 3,
  lagMs: 20,
}

function looksOf(peer: HaPeer): PeerLooks {
  const { role, state, restarting, failoverPriority, replicationLagRecords, replicationLagMs } = peer
  return { role, state, restarting, failoverPriority, lagRecords: replicationLagRecords, lagMs: replicationLagMs }
}

function kindOf({ state, ha }: Situation): Kind {
  if (state === 'STANDBY') return ha?.selfState === 'CATCHING_UP' ? 'behind' : 'ready'
  if (ha !== undefined && ha.tailFreshnessMs > staleMs) return 'stale'
  return ha?.selfRestarting === true ? 'restarting' : 'active'
}

const ways: Readonly<Record<Kind, (pods: Pods) => Promise<Group>>> = {
  async active(pods) {
    const self = await pods.add('pod-a')
    await pods.active()
    return { pods, self, peer: await SyntheticPeer.start(pods, applicationId, 'pod-b', readyLooks) }
  },
  /** A record that never ends makes every run time out: the waits between the restarts grow longer and longer. */
  async restarting(pods) {
    const self = await pods.add('pod-a', {
      'commit-barrier.timeout-ms': 200,
      'commit-barrier.max-engine-restarts': 1000,
      'runtime.shutdown.timeout': 500,
    })
    await pods.active()
    const peer = await SyntheticPeer.start(pods, applicationId, 'pod-b', readyLooks)
    await pods.put('words', [{ key: 'slow', value: { text: 'slow', slowMs: 3_600_000 } }])
    const restarts = (): number => self.log.filter(({ message }) => message.includes('restarting in place')).length
    await pods.until('the restarts lie far apart', () => restarts() >= 4)
    return { pods, self, peer }
  },
  async stale(pods) {
    const self = await pods.add('pod-a', { 'runtime.shutdown.timeout': 500 })
    await pods.active()
    await pods.broker.close()
    await pods.until('the view is stale', () => (self.status?.tailFreshnessMs ?? 0) > staleMs)
    return { pods, self, peer: undefined }
  },
  async ready(pods) {
    await pods.add('pod-b')
    await pods.active()
    const self = await pods.add('pod-a')
    await pods.ready()
    return { pods, self, peer: undefined }
  },
  async behind(pods) {
    await pods.add('pod-b')
    await pods.active()
    const self = await pods.add('pod-a', { 'ha.ready-max-lag': 0 })
    await pods.until('it follows', () => self.lifecycle === 'STANDBY' && self.status !== null)
    return { pods, self, peer: undefined }
  },
}

/** One group of pods a situation, kept for all its rows. */
export function podsSubject(): Subject {
  const kept = new Map<Kind, Promise<Group>>()
  after(async () => {
    for (const group of await Promise.allSettled(kept.values())) {
      if (group.status === 'fulfilled') await group.value.pods.close()
    }
  })
  const none = { after: (): void => undefined }
  const start = async (kind: Kind): Promise<Group> => ways[kind](await Pods.none(none, application, patient))
  return {
    name: 'real pods',
    isFake: false,
    cannot: (situation) => reasonAgainst(situation),
    start: async (situation) => {
      const kind = kindOf(situation)
      const known = kept.get(kind) ?? start(kind)
      kept.set(kind, known)
      const group = await known
      await settle(kind, group, situation)
      return instanceOf(group)
    },
  }
}

/** The peer looks as the row wants it, and the pod that is asked has seen it. */
async function settle(kind: Kind, { pods, self, peer }: Group, { ha }: Situation): Promise<void> {
  if (kind === 'restarting') await pods.until('it restarts', () => self.status?.selfRestarting)
  if (kind === 'active') await pods.until('it is active', () => self.active && self.status?.selfRestarting === false)
  // A row may have moved the role: it goes back to where it was.
  if (kind === 'ready' && (await pods.ready()) === self) {
    await self.ask('POST', '/ha/switch')
    await pods.until('the other pod is active again', () => !self.active && pods.living.some((pod) => pod.active))
    await pods.ready()
  }
  const [wanted] = ha?.peers ?? []
  if (!peer || !wanted) return
  peer.looks = looksOf(wanted)
  await pods.until('the peer is seen', () => {
    const [seen] = self.status?.peers ?? []
    return seen?.state === wanted.state && seen.role === wanted.role && seen.restarting === wanted.restarting
  })
}

function instanceOf({ pods, self }: Group): Instance {
  const url = String(self.runtime.url)
  const commands: number[] = []
  return {
    url,
    fake: undefined,
    published: [],
    get log() {
      return self.log.map((line) => `${line.level} ${line.message}`)
    },
    ask: async (question) => {
      const answer = await ask(url, question)
      const offset = answer.status === 202 ? answer.json.commandOffset : undefined
      if (typeof offset === 'number') commands.push(offset)
      return answer
    },
    // What a row asked for is carried out, or refused, before the next one asks.
    stop: async () => {
      for (const offset of commands) {
        await pods.until(`command ${offset} is settled`, () =>
          pods.all.some(({ log }) => log.some(({ message }) => message.includes(`(offset ${offset}): `))),
        )
      }
    },
  }
}

function reasonAgainst({ state, ha, config, license, schemaRegistry }: Situation): string | undefined {
  if (state !== undefined && state !== 'RUNNING' && state !== 'STANDBY') return `${state} is for one process`
  if (ha === undefined && state !== 'STANDBY') return 'needs no pods'
  const roles = ha === undefined ? [] : [ha.selfRole, ...ha.peers.map(({ role }) => role)]
  if (state !== 'STANDBY' && !roles.includes('ACTIVE')) return 'a group of real pods has an active one'
  if (config !== undefined || license !== undefined || schemaRegistry !== undefined) return 'is for one process'
  return undefined
}
