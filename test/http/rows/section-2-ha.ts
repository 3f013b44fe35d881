import assert from 'node:assert/strict'
import type { HaStatus } from '../../../src/http/ha-seam.ts'
import type { Json } from '../support/client.ts'
import { expectError, expectJson } from '../support/expect.ts'
import { readyPeer, standby, withPeer } from '../support/ha-samples.ts'
import type { Row, Situation } from '../support/subject.ts'

interface Case {
  readonly rules: Row['rules']
  readonly name: string
  readonly path: string
  readonly ha?: HaStatus
  readonly status: number
  readonly saying?: RegExp
  readonly ack?: { readonly command: string; readonly target: string | null; readonly force: boolean }
}

const restartingPeer = withPeer({ restarting: true })
const restartingSelf = withPeer({}, { selfRestarting: true })
const noStandby = withPeer({ state: 'CATCHING_UP' })
const nobodyActive = withPeer({}, { selfRole: 'STANDBY', selfState: 'READY_STANDBY' })
const unknownPeer = withPeer({ role: 'UNKNOWN', state: 'UNKNOWN' })

const cases: readonly Case[] = [
  {
    rules: ['4.ha-switch', '2.12.ack', '3.2.target'],
    name: 'switch with a ready standby',
    path: '/ha/switch',
    status: 202,
    ack: { command: 'SWITCH', target: null, force: false },
  },
  {
    rules: ['7.409', '4.ha-switch', '3.2.target'],
    name: 'switch without a ready standby',
    path: '/ha/switch',
    ha: noStandby,
    status: 409,
    saying: /overridable with force=true/,
  },
  {
    rules: ['4.2.force', '4.3.6', '2.12.ack'],
    name: 'forced switch without a ready standby',
    path: '/ha/switch?force=true',
    ha: noStandby,
    status: 202,
    ack: { command: 'SWITCH', target: null, force: true },
  },
  {
    rules: ['4.3.8', '7.409'],
    name: 'switch while the active restarts in place',
    path: '/ha/switch?force=true',
    ha: restartingSelf,
    status: 409,
    saying: /not overridable/,
  },
  {
    rules: ['7.409'],
    name: 'forced switch while nobody is active',
    path: '/ha/switch?force=true',
    ha: nobodyActive,
    status: 409,
    saying: /no pod is ACTIVE.*not overridable/,
  },
  {
    rules: ['2.11.unknown'],
    name: 'switch to a peer in an unknown state',
    path: '/ha/switch',
    ha: unknownPeer,
    status: 409,
  },
  {
    rules: ['4.ha-promote', 'R22', '4.3.4'],
    name: 'promote a ready standby',
    path: '/ha/promote?pod=pod-b',
    status: 202,
    ack: { command: 'PROMOTE', target: 'pod-b', force: false },
  },
  {
    rules: ['4.3.4', '7.409'],
    name: 'promote a standby that is behind',
    path: '/ha/promote?pod=pod-b',
    ha: noStandby,
    status: 409,
    saying: /CATCHING_UP.*overridable with force=true/,
  },
  {
    rules: ['4.3.4', '4.2.force'],
    name: 'forced promotion of a standby that is behind',
    path: '/ha/promote?pod=pod-b&force=true',
    ha: noStandby,
    status: 202,
    ack: { command: 'PROMOTE', target: 'pod-b', force: true },
  },
  {
    rules: ['4.3.4', '4.3.8'],
    name: 'forced promotion of a pod that restarts in place',
    path: '/ha/promote?pod=pod-b&force=true',
    ha: restartingPeer,
    status: 409,
    saying: /pod-b.*not overridable/,
  },
  {
    rules: ['4.3.8', '4.3.4'],
    name: 'forced promotion while the active restarts in place',
    path: '/ha/promote?pod=pod-b&force=true',
    ha: restartingSelf,
    status: 409,
    saying: /pod-a.*not overridable/,
  },
  {
    rules: ['R20'],
    name: 'forced promotion of the active',
    path: '/ha/promote?pod=pod-a&force=true',
    status: 202,
    ack: { command: 'PROMOTE', target: 'pod-a', force: true },
  },
  {
    rules: ['R20'],
    name: 'forced promotion of an unknown pod',
    path: '/ha/promote?pod=pod-z&force=true',
    status: 202,
    ack: { command: 'PROMOTE', target: 'pod-z', force: true },
  },
  {
    rules: ['4.3.4'],
    name: 'promotion of an unknown pod',
    path: '/ha/promote?pod=pod-z',
    status: 409,
    saying: /force does not help/,
  },
  {
    rules: ['4.ha-demote', 'R22', '4.3.5'],
    name: 'demote the active with a ready standby',
    path: '/ha/demote?pod=pod-a',
    status: 202,
    ack: { command: 'DEMOTE', target: 'pod-a', force: false },
  },
  {
    rules: ['4.3.5', '7.409'],
    name: 'demote the active without a ready standby',
    path: '/ha/demote?pod=pod-a',
    ha: noStandby,
    status: 409,
    saying: /overridable with force=true/,
  },
  {
    rules: ['4.3.5', '4.2.force'],
    name: 'forced demotion without a ready standby',
    path: '/ha/demote?pod=pod-a&force=true',
    ha: noStandby,
    status: 202,
    ack: { command: 'DEMOTE', target: 'pod-a', force: true },
  },
  {
    rules: ['4.3.5', '4.3.8'],
    name: 'forced demotion of a pod that restarts in place',
    path: '/ha/demote?pod=pod-a&force=true',
    ha: restartingSelf,
    status: 409,
    saying: /not overridable/,
  },
  {
    rules: ['R19'],
    name: 'forced demotion of a standby',
    path: '/ha/demote?pod=pod-b&force=true',
    status: 409,
    saying: /not ACTIVE.*not overridable/,
  },
  {
    rules: ['R21'],
    name: 'a command on a stale view',
    path: '/ha/switch?force=true',
    ha: { ...standby, tailFreshnessMs: 10_001 },
    status: 503,
    saying: /\d+ s old/,
  },
  {
    rules: ['2.12.ack'],
    name: 'failover is paused',
    path: '/ha/pause',
    status: 202,
    ack: { command: 'PAUSE', target: null, force: false },
  },
  {
    rules: ['2.12.ack'],
    name: 'failover is resumed',
    path: '/ha/resume',
    status: 202,
    ack: { command: 'RESUME', target: null, force: false },
  },
  { rules: ['R13'], name: 'a priority that is no number', path: '/ha/priority?pod=pod-b&value=high', status: 400 },
  { rules: ['4.2.pod', '7.400'], name: 'promote without a pod', path: '/ha/promote', status: 400, saying: /pod/ },
  { rules: ['4.2.pod', '7.400'], name: 'demote without a pod', path: '/ha/demote', status: 400, saying: /pod/ },
  { rules: ['4.2.pod'], name: 'promote of an empty pod', path: '/ha/promote?pod=', status: 400 },
  { rules: ['R13'], name: 'promote of a malformed pod', path: '/ha/promote?pod=a%0Ab', status: 400 },
  {
    rules: ['R13', '4.2.force'],
    name: 'force that is neither true nor false',
    path: '/ha/switch?force=1',
    status: 400,
  },
  { rules: ['R13'], name: 'force in capitals', path: '/ha/switch?force=TRUE', status: 400 },
  { rules: ['R14'], name: 'force twice', path: '/ha/switch?force=true&force=true', status: 400 },
  { rules: ['R14'], name: 'pod twice', path: '/ha/promote?pod=pod-b&pod=pod-b', status: 400 },
  {
    rules: ['R1'],
    name: 'a missing pod before a stale view',
    path: '/ha/promote',
    ha: { ...standby, tailFreshnessMs: 99_000 },
    status: 400,
  },
]

const commandRows: Row[] = cases.map(({ rules, name, path, ha = standby, status, saying, ack }) => ({
  rules,
  name: `${name}: ${status}`,
  when: { ha },
  check: async (instance) => {
    const answer = await instance.ask({ method: 'POST', path })
    if (ack === undefined) {
      expectError(answer, status, saying)
      assert.deepEqual(instance.published, [])
      return
    }
    expectJson(answer, status)
    const { commandOffset, ...rest } = answer.json
    assert.deepEqual(rest, ack)
    if (instance.fake === undefined) {
      assert.ok(Number.isSafeInteger(commandOffset))
      return
    }
    assert.equal(commandOffset, 4711)
    assert.deepEqual(instance.published, [ack])
  },
}))

/** Every field is there and of its kind; what is measured may differ. */
function expectStatusLike(seen: Json, sample: HaStatus): void {
  assert.deepEqual(Object.keys(seen), Object.keys(sample))
  const measured = ['replicationLagMs', 'tailFreshnessMs', 'tokenEpoch']
  assert.ok(Array.isArray(seen.commands))
  const { peers, commands: _, ...rest } = sample
  for (const [name, value] of Object.entries(rest)) {
    if (measured.includes(name)) assert.equal(typeof seen[name], 'number', name)
    else assert.equal(seen[name], value, name)
  }
  const [peer] = peers
  const [seenPeer] = seen.peers as unknown as Json[]
  assert.deepEqual(Object.keys(seenPeer ?? {}), Object.keys(peer ?? {}))
  for (const [name, value] of Object.entries(peer ?? {})) {
    if (name === 'generation' || name === 'freshnessMs') assert.equal(typeof seenPeer?.[name], 'number', name)
    else assert.equal(seenPeer?.[name], value, name)
  }
}

const off: Situation = {}

export const section211: readonly Row[] = [
  ...commandRows,
  {
    rules: ['2.11.fields'],
    name: '/ha/history tells who became active, and /health/active that it is this pod',
    when: { ha: { ...standby, peers: [readyPeer] } },
    check: async (instance) => {
      const history = await instance.ask({ path: '/ha/history' })
      expectJson(history)
      assert.ok(Array.isArray(history.json.events))
      expectJson(await instance.ask({ path: '/health/active' }))
    },
  },
  {
    rules: ['2.11.fields', '4.ha-status'],
    name: '/ha/status holds every field',
    when: { ha: { ...standby, peers: [readyPeer] } },
    check: async (instance) => {
      const answer = await instance.ask({ path: '/ha/status' })
      expectJson(answer)
      if (instance.fake !== undefined) assert.deepEqual(answer.json, standby)
      else expectStatusLike(answer.json, standby)
    },
  },
  {
    rules: ['2.11.gauge'],
    name: 'the restart in place is a gauge, there whenever high availability is on',
    when: { ha: restartingSelf },
    check: async (instance) => {
      assert.match((await instance.ask({ path: '/metrics' })).body, /^engine_ha_restarting 1$/m)
    },
  },
  {
    rules: ['4.3.9', '7.404'],
    name: 'with ha.mode off every /ha path is unknown, whatever the method',
    when: off,
    check: async (instance) => {
      for (const path of ['/ha/status', '/ha/switch', '/ha/promote', '/ha/demote']) {
        for (const method of ['GET', 'POST', 'HEAD']) {
          assert.equal((await instance.ask({ method, path })).status, 404, `${method} ${path}`)
        }
      }
    },
  },
]
