/**
 * Broken variants of the protocol. Each is a mistake that somebody could make; the checkers have to notice every one of
 * them, or they check nothing. Where it takes a rare coincidence for one to show, its `world` makes that less rare.
 */
import { Commits } from '../../src/engine/commit/commits.ts'
import { vacancy } from '../../src/ha/decide.ts'
import type { HaEffect } from '../../src/ha/events.ts'
import { FreshClock } from '../../src/ha/fresh-clock.ts'
import { type Claim, LogView, type Moment } from '../../src/ha/log/log-view.ts'
import type { Pod } from '../../src/ha/pod.ts'
import { defaultRules } from '../../src/ha/coordinator.ts'
import type { Deletion, Encoded, HaRecord } from '../../src/ha/log/records.ts'
import { replaced } from '../simulation/level-order.ts'
import { calm, type Derived } from './derived.ts'
import type { Mutant } from './sim-pod.ts'

type EffectOf<T extends HaEffect['type']> = Extract<HaEffect, { type: T }>

/** Changes the records that are appended; those left out are never written. */
function appended(change: (record: Encoded, pod: Pod) => readonly Encoded[]): Mutant['effect'] {
  return (effect, pod) => {
    if (effect.type !== 'append') return [effect]
    const records = effect.records.flatMap((record) => change(record, pod))
    return records.length > 0 ? [{ type: 'append', records }] : []
  }
}

/** Changes the commands to the engine. */
function told(
  change: (command: EffectOf<'engine'>['command'], pod: Pod) => ReadonlyArray<EffectOf<'engine'>['command']>,
): Mutant['effect'] {
  return (effect, pod) =>
    effect.type === 'engine'
      ? change(effect.command, pod).map((command) => ({ type: 'engine' as const, command }))
      : [effect]
}

const never = (prefix: string): Mutant['effect'] =>
  appended((record) => (record.key.startsWith(prefix) ? [] : [record]))

/** A field of a record's value, set to something else. */
function withField(record: Encoded, field: string, value: unknown): Encoded {
  if (record.value === null) return record
  const fields = JSON.parse(record.value) as Record<string, unknown>
  return { key: record.key, value: JSON.stringify({ ...fields, [field]: value }) }
}

/** The active pod is often cut off from the coordinator's topic, and has something to commit. */
const coordinatorAway: Partial<Derived> = {
  ...calm,
  profile: 'wild',
  pods: 2,
  priorities: [100, 100],
  cuts: 6,
  records: 100,
}

/** The token goes to whoever claimed last. */
class LastClaimWins extends LogView {
  #last: Claim | undefined

  override get holder(): Claim | undefined {
    return this.#last
  }

  override apply(record: HaRecord | Deletion, offset: number, moment: Moment): void {
    super.apply(record, offset, moment)
    if (record.kind === 'claim' && record.epoch === this.epoch) this.#last = { ...record, ...moment, offset }
  }
}

export const mutants: readonly Mutant[] = [
  // What the engine must do.
  {
    name: 'nobody-is-fenced',
    engine: { ownIdentity: true },
    // Whoever was stopped goes on beside its successor while there is input.
    world: { profile: 'wild', pods: 2, priorities: [100, 100], crashes: 0, freezes: 6, cuts: 0, records: 100 },
  },
  {
    name: 'changelog-not-read-to-its-end',
    engine: { skipsDrain: true },
    // The next one takes over before the tail has come to it.
    world: { profile: 'wild', commands: 8, terminations: 3, slowestMs: 15, hiccup: 0.02, records: 100 },
  },
  {
    name: 'unknown-outcome-taken-for-committed',
    engine: { takesUnknownForCommitted: true },
    // A commit that never reached the broker, and a restart before the next one carries its transaction along.
    world: { profile: 'wild', lostRequest: 0.05, restarts: 6, records: 100 },
  },
  { name: 'applied-before-the-commit', engine: { appliesBeforeCommit: true } },
  { name: 'standby-follows-uncommitted', engine: { readsUncommitted: true } },
  { name: 'step-down-ignored', engine: { ignoresStepDown: true } },
  { name: 'commits-while-isolated', engine: { goesOnWhenIsolated: true }, world: coordinatorAway },
  {
    name: 'real-engine-commits-while-isolated',
    breaks: () => replaced(Commits.prototype, 'hold', { value: () => undefined }),
    // Nobody else takes over: there is time for a commit that is due.
    world: { ...coordinatorAway, pods: 1, priorities: [100] },
  },
  // When to suspect.
  {
    name: 'suspicion-by-a-plain-clock',
    // A broker outage makes every heartbeat look old.
    world: { ...calm, profile: 'outages', outages: 8, readOnlyOutages: 0 },
    prepare: (pod) => Object.assign(pod, { fresh: new FreshClock(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY) }),
  },
  {
    name: 'suspicion-without-being-heard',
    // The pod reads, and cannot write: the others cannot either.
    prepare: (pod) => Object.assign(pod, { fresh: new FreshClock(400, Number.POSITIVE_INFINITY) }),
    world: { ...calm, profile: 'outages', outages: 8, readOnlyOutages: 1 },
  },
  {
    name: 'restarting-counts-as-dead',
    rules: {
      vacancy: (view, self, fresh, settings) => {
        const peer = view.peers.get(view.holder?.podId ?? '')
        if (peer?.status.restarting) return { kind: 'silent', since: peer.fresh, why: 'it restarts' }
        return vacancy(view, self, fresh, settings)
      },
    },
  },
  {
    name: 'unheard-counts-as-dead',
    // A pod that has just joined takes the active pod, of which it heard nothing yet, for gone.
    rules: {
      vacancy: (view, self, fresh, settings) => {
        const peer = view.peers.get(view.holder?.podId ?? '')
        if (view.holder && !view.release && peer && !peer.live) return { kind: 'gone', since: 0, why: 'not heard' }
        return vacancy(view, self, fresh, settings)
      },
    },
  },
  {
    name: 'no-heartbeat-while-restarting',
    effect: appended((record, pod) => (pod.restarting && record.key.startsWith('s/') ? [] : [record])),
  },
  {
    name: 'nobody-is-ever-suspected',
    rules: {
      vacancy: (view, self, fresh, settings) => {
        const found = vacancy(view, self, fresh, settings)
        return found?.kind === 'silent' || found?.kind === 'gone' ? undefined : found
      },
    },
  },
  // Who runs.
  {
    name: 'last-claim-wins',
    prepare: (pod) => {
      pod.view = new LastClaimWins()
    },
  },
  {
    name: 'priority-ignored',
    rules: {
      turn: (view, self, vacant, fresh, settings) => {
        const candidate = { ...self.candidate, failoverPriority: 100 }
        return defaultRules.turn(view, { ...self, candidate }, vacant, fresh, settings)
      },
    },
  },
  {
    name: 'promoted-on-the-claim-sent',
    // The engine is promoted when the claim is sent, not when it has won.
    event: (event, pod) => {
      const { claim } = pod
      if (claim && pod.run === undefined && pod.engine === 'standby') {
        const now = claim.at
        pod.run = {
          epoch: claim.epoch,
          cause: 'FAILOVER',
          startedAt: now,
          commitId: null,
          isolated: false,
        }
        pod.reclaiming = true
        pod.engine = 'promoting'
        promotedEarly.add(pod)
      }
      return [event]
    },
    effect: (effect, pod) => {
      if (!promotedEarly.delete(pod)) return [effect]
      const tokenEpoch = pod.run?.epoch ?? 0
      return [{ type: 'engine', command: { type: 'ha-promote', tokenEpoch, paused: pod.view.paused } }, effect]
    },
  },
  {
    name: 'claims-the-epoch-that-is',
    effect: appended((record) => {
      const [kind, epoch, ...rest] = record.key.split('/')
      const used = Math.max(1, Number(epoch) - 1)
      return kind === 't' ? [{ key: ['t', used, ...rest].join('/'), value: record.value }] : [record]
    }),
  },
  { name: 'newer-claim-ignored', effect: told((command) => (command.type === 'ha-step-down' ? [] : [command])) },
  {
    name: 'promotion-not-verified',
    // P4 is left out: the engine goes on with the identity, whatever was claimed since. It comes to it late enough where it
    // was cut off at that very moment.
    world: { profile: 'wild', pods: 3, priorities: [100, 100, 100], crashes: 4, cutsAtPromotion: 0.6, records: 100 },
    event: (event, pod) => {
      for (const each of pod.verifications) if (each.purpose.type === 'promotion') each.answered = true
      return [event]
    },
  },
  // Hand-over and commands.
  { name: 'no-release', effect: never('l/') },
  { name: 'no-claim', effect: never('t/') },
  { name: 'no-result', effect: never('r/') },
  {
    name: 'carried-out-in-every-epoch',
    world: { profile: 'wild', commands: 10 },
    event: (event, pod) => {
      for (const [offset, command] of pod.view.commands) {
        const { epoch } = pod.view
        pod.view.commands.set(offset, { ...command, expectEpoch: epoch, now: Number.POSITIVE_INFINITY })
      }
      for (const [epoch, release] of pod.view.releases) {
        pod.view.releases.set(epoch, { ...release, commandOffset: null })
      }
      return [event]
    },
  },
  {
    name: 'unpaused-by-a-promotion',
    effect: told((command) => (command.type === 'ha-promote' ? [{ ...command, paused: false }] : [command])),
  },
  {
    name: 'pause-not-published',
    world: { profile: 'wild', pauses: 4, crashes: 4, terminations: 4 },
    effect: appended((record) =>
      record.key.startsWith('s/') || record.key.startsWith('l/') ? [withField(record, 'paused', false)] : [record],
    ),
  },
  // What the log has lost, what it does not take, and what operators and builds have said.
  {
    name: 'heard-active-is-no-holder',
    world: { ...calm, profile: 'emptied', pods: 4, crashes: 4, emptyings: 2 },
    rules: {
      vacancy: (view, self, fresh, settings) =>
        view.holder === undefined
          ? { kind: 'none-yet', since: self.joinedFresh, why: 'nobody has run yet' }
          : vacancy(view, self, fresh, settings),
    },
    // Nor does the active pod tell its claim again.
    prepare: (pod) => Object.assign(pod, { retoldAt: Number.POSITIVE_INFINITY }),
  },
  {
    name: 'ready-without-being-heard',
    world: { ...calm, profile: 'wild', mutes: 4 },
    prepare: ({ readiness }) => {
      const check = readiness.check.bind(readiness)
      Object.assign(readiness, {
        check: (...[facts, settings]: Parameters<typeof check>) => check({ ...facts, ackAgeMs: 0 }, settings),
      })
    },
  },
  {
    name: 'maintenance-ignored',
    world: {
      profile: 'wild',
      maintenances: 3,
      crashes: 8,
      update: false,
      emptyings: 0,
      recreations: 0,
      outages: 0,
      cuts: 0,
    },
    event: (event, pod) => {
      Object.defineProperty(pod.view, 'failoverPaused', { get: () => false, configurable: true })
      return [event]
    },
  },
  {
    name: 'any-build-takes-over',
    // Pods are replaced one by one, and then the active one dies.
    world: {
      ...calm,
      profile: 'wild',
      update: true,
      pods: 4,
      priorities: [100, 100, 100, 100],
      crashes: 2,
      terminations: 4,
      slowestMs: 5,
    },
    settings: { topologyHash: 'any', topologyShape: new Map() },
  },
  // Isolation.
  {
    name: 'never-isolated',
    world: coordinatorAway,
    effect: told((command) => (command.type === 'ha-isolate' && command.isolated ? [] : [command])),
  },
  {
    name: 'isolated-for-ever',
    effect: told((command) => (command.type === 'ha-isolate' && !command.isolated ? [] : [command])),
  },
]

const promotedEarly = new Set<Pod>()
