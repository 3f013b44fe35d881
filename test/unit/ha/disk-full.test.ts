/** A pod whose disk has no room for its stores: not counted on while another one is there, and never in the way of it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { compareCandidates, successor } from '../../../src/ha/decide.ts'
import { historyOf } from '../../../src/ha/shown/history.ts'
import { Bench, claimOf, commandRecord, result, standingBy } from './support.ts'

const sentence = 'The disk has no room for the store of partition 1 in /state/p1: enlarge the volume.'
const full = { type: 'disk-full', sentence } as const
const hasRoom = { type: 'disk-full', sentence: null } as const

const told = (bench: Bench, key: string): Record<string, unknown> =>
  JSON.parse(bench.log.findLast((each) => each.key === key)?.value ?? '{}') as Record<string, unknown>

/** This pod has claimed the token, and its engine is about to become active. */
function promoting() {
  const { bench } = standingBy()
  bench.pass(1100)
  assert.deepEqual([bench.state, bench.commands.at(-1)?.type], ['PROMOTING', 'ha-promote'])
  bench.fact({ type: 'identity-taken', tokenEpoch: 2 })
  const peer = bench.beats({ podId: 'peer' })
  bench.pass(50, peer)
  assert.equal(bench.commands.at(-1)?.type, 'ha-proceed')
  return { bench, peer }
}

describe('a standby whose disk is full', () => {
  test('is not ready from that moment on, says why, and tells the others; it is again once there is room', () => {
    const { bench, beats } = standingBy()
    assert.equal(bench.state, 'READY_STANDBY')
    bench.fact(full)
    assert.equal(bench.state, 'CATCHING_UP')
    assert.equal(
      bench.status.notReady,
      'the disk has no room for the store of partition 1 in /state/p1: enlarge the volume',
    )
    assert.partialDeepStrictEqual(told(bench, 's/me'), { state: 'CATCHING_UP', diskFull: true })
    bench.pass(500, beats)
    assert.equal(bench.state, 'CATCHING_UP')
    bench.fact(hasRoom)
    bench.pass(100, beats)
    assert.equal(bench.state, 'READY_STANDBY')
    assert.partialDeepStrictEqual(told(bench, 's/me'), { state: 'READY_STANDBY', diskFull: false })
  })

  test('lets one take over that is ready, whatever the priorities', () => {
    const { bench } = standingBy({ failoverPriority: 300 })
    bench.fact(full)
    bench.pass(4000, bench.beats({ podId: 'peer', failoverPriority: 1 }))
    assert.equal(bench.keys('t/2/').length, 0)
  })

  test('comes last among those that are not ready', () => {
    const { bench } = standingBy({ claimStaggerMs: 400 })
    bench.fact({ type: 'standby-progress', progress: { open: true, lagRecords: 5000, lagMs: 0, freshnessMs: 0 } })
    const first = { podId: 'full', state: 'CATCHING_UP', failoverPriority: 900 } as const
    const peer = bench.beats({ ...first, diskFull: true })
    bench.pass(2200, peer)
    assert.equal(bench.status.peers.find(({ podId }) => podId === 'full')?.diskFull, true)
    assert.equal(bench.keys('t/2/me').length, 1, 'it does not go first')
    const each = { ready: false, barred: false, lagRecords: 0, diskFull: false, failoverPriority: 1 }
    const others = [
      { ...each, podId: 'full', diskFull: true, failoverPriority: 9 },
      { ...each, podId: 'behind', lagRecords: 5000 },
    ]
    assert.equal(successor(others, true)?.podId, 'behind')
    assert.equal(others.toSorted(compareCandidates)[0]?.podId, 'behind')
  })
})

describe('a promotion that waits for room on the disk', () => {
  test('is given up for a ready pod after the hand-off timeout, without waiting for the own stores to open', () => {
    const { bench, peer } = promoting()
    bench.fact(full)
    bench.pass(900, peer)
    assert.equal(bench.told('ha-step-down'), 0)
    bench.pass(200, peer)
    assert.equal(bench.told('ha-step-down'), 1)
    assert.equal(bench.keys('l/2').length, 0, 'its engine has not let go yet')
    bench.fact({ type: 'stepped-down' })
    bench.pass(50, peer)
    assert.partialDeepStrictEqual(told(bench, 'l/2'), { target: 'peer', unused: true, commandOffset: null })
    assert.equal(bench.status.selfRole, 'STANDBY')
  })

  test('goes on where nobody else is ready, and where it has room again in time', () => {
    const alone = promoting().bench
    alone.fact(full)
    alone.pass(5000, alone.beats({ podId: 'peer', state: 'CATCHING_UP' }))
    assert.equal(alone.state, 'PROMOTING')
    const { bench, peer } = promoting()
    bench.fact(full)
    bench.pass(900, peer)
    bench.fact(hasRoom)
    bench.pass(5000, peer)
    assert.equal(bench.state, 'PROMOTING')
    bench.fact({ type: 'running' })
    assert.equal(bench.state, 'ACTIVE')
  })

  test('is no takeover in the history, which says that it came to nothing', () => {
    const { bench, peer } = promoting()
    bench.fact(full)
    bench.pass(1200, peer)
    bench.fact({ type: 'stepped-down' })
    bench.pass(50, peer)
    assert.match(
      historyOf(bench.machine.pod).events[0]?.why ?? '',
      /; it gave the token on without having become ACTIVE$/,
    )
  })
})

test('an active pod that cannot open its stores again after a drain was cut off gives the token up all the same', () => {
  const bench = new Bench()
  bench.active()
  const peer = bench.beats({ podId: 'peer' })
  bench.pass(100, peer)
  bench.fact(full)
  bench.write({ ...commandRecord({ id: 'c', target: null, force: false, expectEpoch: 1 }), command: 'SWITCH' })
  bench.pass(1200, peer)
  assert.equal(bench.told('ha-step-down'), 1)
  bench.fact({ type: 'stepped-down' })
  bench.pass(50, peer)
  assert.partialDeepStrictEqual(told(bench, 'l/1'), { target: 'peer', unused: false })
})

describe('the result of a command', () => {
  const release = {
    kind: 'release',
    incarnation: 'life',
    commitId: null,
    paused: false,
    exhausted: false,
    faults: [],
  } as const

  /** A switch from `active` to `full`, which never becomes active; this pod takes over after it. */
  function afterwards(command: 'SWITCH' | 'PROMOTE', seen: 'PROMOTING' | 'ACTIVE') {
    const { bench } = standingBy()
    const target = command === 'PROMOTE' ? 'full' : null
    const offset = bench.write({ ...commandRecord({ id: 'c', target, force: true, expectEpoch: 1 }), command })
    const from = { ...release, epoch: 1, podId: 'active', unused: false }
    bench.write({ ...from, target: 'full', commandOffset: offset })
    bench.write({ ...claimOf(2, 'full'), cause: 'SWITCH', commandOffset: offset })
    const role = seen === 'ACTIVE' ? 'ACTIVE' : 'STANDBY'
    bench.pass(200, bench.beats({ podId: 'full', role, state: seen, tokenEpoch: 2 }))
    const unused = seen !== 'ACTIVE'
    bench.pass(50, bench.beats({ podId: 'full', role: 'ACTIVE', state: 'DEMOTING', tokenEpoch: 2 }))
    bench.write({ ...release, epoch: 2, podId: 'full', target: 'me', commandOffset: null, unused })
    bench.pass(100)
    const without = unused ? ', and did not become ACTIVE' : ''
    assert.equal(told(bench, bench.keys('t/3/me')[0] ?? '').why, `pod full gave the token up${without}`)
    bench.promote()
    bench.pass(50)
    return result(bench, offset)
  }

  test('names the pod that became active, and the one that did not', () => {
    assert.partialDeepStrictEqual(afterwards('SWITCH', 'PROMOTING'), {
      outcome: 'DONE',
      reason: 'pod full had the token, and did not become ACTIVE; pod me took over',
    })
    assert.partialDeepStrictEqual(afterwards('PROMOTE', 'PROMOTING'), {
      outcome: 'REJECTED',
      reason: 'pod full had the token, and did not become ACTIVE; pod me took over instead',
    })
    assert.partialDeepStrictEqual(afterwards('SWITCH', 'ACTIVE'), { outcome: 'DONE', reason: 'pod full took over' })
  })

  test('says so as well where the pod before did not give the token up itself', () => {
    const { bench } = standingBy()
    const offset = bench.write({
      ...commandRecord({ id: 'c', target: null, force: false, expectEpoch: 1 }),
      command: 'SWITCH',
    })
    bench.write({ ...release, epoch: 1, podId: 'active', unused: false, target: 'full', commandOffset: offset })
    bench.write({ ...claimOf(2, 'full'), cause: 'SWITCH', commandOffset: offset })
    bench.pass(200, bench.beats({ podId: 'full', role: 'STANDBY', state: 'PROMOTING', tokenEpoch: 2 }))
    bench.pass(1500)
    bench.promote()
    bench.pass(50)
    assert.equal(result(bench, offset)?.reason, 'pod full had the token, and did not become ACTIVE; pod me took over')
  })
})
