import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { encode } from '../../../src/ha/log/records.ts'
import { judgeHaCommand } from '../../../src/ha/shown/view.ts'
import { Bench, claimOf, commandRecord, result, standingBy, statusRecord } from './support.ts'

describe('a life of a pod', () => {
  test('alone it claims, proves that the token is its own, and runs', () => {
    const bench = new Bench()
    bench.join()
    bench.pass(400)
    assert.deepEqual(bench.keys('t/').length, 1)
    assert.equal(bench.told('ha-promote'), 1)
    assert.equal(bench.told('ha-proceed'), 0)
    bench.fact({ type: 'identity-taken', tokenEpoch: 1 })
    assert.equal(bench.told('ha-proceed'), 0, 'not before the log was read through')
    bench.pass(25)
    assert.equal(bench.told('ha-proceed'), 1)
    assert.equal(bench.state, 'PROMOTING')
    bench.fact({ type: 'running' })
    assert.deepEqual([bench.state, bench.status.selfRole, bench.status.tokenEpoch], ['ACTIVE', 'ACTIVE', 1])
  })

  test('where commits exist without a log, it gives their author time to speak, and counts on from them', () => {
    const bench = new Bench()
    bench.join(7)
    bench.pass(900)
    assert.equal(bench.keys('t/').length, 0)
    bench.pass(400)
    assert.match(bench.keys('t/')[0] ?? '', /^t\/8\//)
  })

  test('a newer claim during a promotion ends it', () => {
    const bench = new Bench()
    bench.join()
    bench.pass(400)
    bench.write(statusRecord({ podId: 'other' }))
    bench.write(claimOf(2, 'other'))
    bench.fact({ type: 'identity-taken', tokenEpoch: 1 })
    bench.pass(50)
    assert.equal(bench.told('ha-proceed'), 0)
    assert.equal(bench.told('ha-step-down'), 1)
    bench.fact({ type: 'standby' })
    assert.equal(bench.state, 'CATCHING_UP')
  })

  test('of two claims of one epoch the first in the log counts', () => {
    const bench = new Bench()
    bench.join()
    bench.pass(25)
    bench.write(statusRecord({ podId: 'other', failoverPriority: 0 }))
    const own = bench.machine.pod
    bench.write(claimOf(1, 'other'))
    bench.pass(400)
    assert.equal(own.holdsToken(), false)
    assert.equal(bench.status.tokenHolder, 'other')
    assert.equal(bench.told('ha-promote'), 0)
  })

  test('a claim that shows in the log although it was given up for lost is followed', () => {
    const bench = new Bench()
    bench.join()
    bench.pass(150)
    bench.writable = false
    bench.pass(150)
    const lost = bench.effects.findLast(
      (effect) => effect.type === 'append' && effect.records.some(({ key }) => key.startsWith('t/')),
    )
    assert.ok(lost?.type === 'append')
    bench.pass(600)
    assert.equal(bench.machine.pod.claim, undefined)
    bench.log.push(...lost.records)
    bench.writable = true
    bench.pass(25)
    assert.equal(bench.told('ha-promote'), 1)
  })

  test('the younger of two processes with one id stays', () => {
    const bench = new Bench()
    bench.active()
    bench.write(statusRecord({ podId: 'me', incarnation: 'younger' }))
    bench.pass(50)
    const failed = bench.effects.find((effect) => effect.type === 'fail')
    assert.match(failed?.type === 'fail' ? failed.error.message : '', /pod id me/)
    assert.equal(bench.told('ha-step-down'), 1)
    // Nothing is heard any more, and what is shown stays true.
    bench.fact({ type: 'standby' })
    bench.pass(1000)
    assert.deepEqual([bench.status.selfRole, bench.state], ['STANDBY', 'FAILED'])
    assert.match(bench.status.notReady ?? '', /engine has failed/)
  })

  test('late words of an earlier life change nothing', () => {
    const bench = new Bench()
    bench.write(statusRecord({ podId: 'me', incarnation: 'earlier' }))
    bench.active()
    bench.write(statusRecord({ podId: 'me', incarnation: 'earlier', generation: 0 }))
    bench.pass(200)
    assert.equal(bench.state, 'ACTIVE')
  })
})

describe('suspicion', () => {
  test('a holder that is silent is followed by the ready standby', () => {
    const { bench } = standingBy()
    assert.equal(bench.state, 'READY_STANDBY')
    bench.pass(850)
    assert.equal(bench.keys('t/2/').length, 0)
    bench.pass(400)
    assert.equal(bench.keys('t/2/me').length, 1)
    assert.equal(bench.told('ha-promote'), 1)
  })

  test('time during which the broker did not answer does not count', () => {
    const { bench, beats } = standingBy()
    bench.online = false
    bench.pass(60_000)
    assert.equal(bench.status.tailFreshnessMs >= 60_000, true)
    bench.online = true
    bench.pass(500)
    assert.equal(bench.keys('t/2/').length, 0)
    bench.pass(500, beats)
    assert.equal(bench.keys('t/2/').length, 0)
  })

  test('a pod whose own heartbeats do not come back judges nobody', () => {
    const { bench } = standingBy()
    bench.writable = false
    bench.pass(10_000)
    assert.equal(bench.machine.pod.claim, undefined)
    assert.equal(bench.keys('t/2/').length, 0)
  })

  test('a process that was stopped does not take its own sleep for silence', () => {
    const { bench, beats } = standingBy()
    bench.now += 60_000
    bench.pass(400)
    assert.equal(bench.keys('t/2/').length, 0)
    bench.pass(500, beats)
    assert.equal(bench.keys('t/2/').length, 0)
  })

  test('a holder that restarts in place is none of it', () => {
    const { bench, active } = standingBy()
    bench.pass(5000, bench.beats({ ...active, restarting: true }))
    assert.equal(bench.keys('t/2/').length, 0)
  })

  test('a holder that says it has failed is followed at once', () => {
    const { bench, active } = standingBy()
    bench.write(statusRecord({ ...active, role: 'STANDBY', state: 'FAILED' }))
    bench.pass(100)
    assert.equal(bench.keys('t/2/me').length, 1)
  })

  test('a holder whose claim alone is there, for the log was emptied, is given time to be heard', () => {
    const bench = new Bench()
    bench.write(claimOf(1, 'active'))
    bench.join(1)
    bench.pass(75)
    const beats = bench.beats({ podId: 'active', role: 'ACTIVE', state: 'ACTIVE', tokenEpoch: 1 })
    bench.pass(3000, beats)
    assert.equal(bench.keys('t/2/').length, 0)
    assert.equal(bench.state, 'READY_STANDBY')
  })

  test('a pod that is heard to run holds the token, whatever the log has lost', () => {
    const bench = new Bench()
    bench.join(1)
    const beats = bench.beats({ podId: 'active', role: 'ACTIVE', state: 'ACTIVE', tokenEpoch: 1 })
    bench.pass(5000, beats)
    assert.equal(bench.keys('t/').length, 0)
    assert.deepEqual([bench.status.tokenHolder, bench.status.tokenEpoch], ['active', 1])
    bench.pass(3000)
    assert.match(bench.keys('t/')[0] ?? '', /^t\/2\/me/)
  })

  test('an active pod tells its claim again to one that does not know it', () => {
    const bench = new Bench()
    bench.active()
    bench.pass(300, bench.beats({ podId: 'peer', tokenEpochSeen: 1 }))
    assert.equal(bench.keys('t/1/me').length, 1)
    bench.pass(100, bench.beats({ podId: 'peer', tokenEpochSeen: 0 }))
    assert.equal(bench.keys('t/1/me').length, 2)
    assert.equal(bench.state, 'ACTIVE')
  })

  test('a holder that has said goodbye, or was started anew, is followed at once', () => {
    const left = standingBy().bench
    left.write({ key: 's/active', value: null })
    left.pass(100)
    assert.equal(left.keys('t/2/me').length, 1)
    const again = standingBy().bench
    again.write(statusRecord({ podId: 'active', incarnation: 'second', state: 'JOINING' }))
    again.pass(100)
    assert.equal(again.keys('t/2/me').length, 1)
  })

  test('priority 0 never claims by itself, and a lower one lets the higher go first', () => {
    const never = standingBy({ failoverPriority: 0 }).bench
    never.pass(20_000)
    assert.equal(never.keys('t/2/').length, 0)
    const { bench } = standingBy({ failoverPriority: 10, claimStaggerMs: 400 })
    const better = bench.beats({ podId: 'better', failoverPriority: 20 })
    bench.pass(1200, better)
    assert.equal(bench.keys('t/2/').length, 0)
    bench.pass(400, better)
    assert.equal(bench.keys('t/2/me').length, 1, 'the better one had its time')
  })

  test('without anybody ready the best of the others takes over after twice the time, where that is allowed', () => {
    const behind = { open: true, lagRecords: 5000, lagMs: 0, freshnessMs: 0 }
    for (const allowUnreadyFailover of [true, false]) {
      const { bench } = standingBy({ allowUnreadyFailover })
      bench.fact({ type: 'standby-progress', progress: behind })
      bench.pass(1600)
      assert.equal(bench.state, 'CATCHING_UP')
      assert.equal(bench.keys('t/2/').length, 0)
      bench.pass(1000)
      assert.equal(bench.keys('t/2/').length, allowUnreadyFailover ? 1 : 0)
    }
  })

  test('between two automatic promotions lies the least time that is set', () => {
    const { bench } = standingBy({ minPromotionIntervalMs: 5000 })
    const other = { podId: 'other', role: 'ACTIVE', state: 'ACTIVE', tokenEpoch: 2 } as const
    bench.write(statusRecord(other))
    bench.write({ ...claimOf(2, 'other'), cause: 'FAILOVER' } as const)
    bench.pass(300, bench.beats(other))
    bench.pass(3000)
    assert.equal(bench.keys('t/3/').length, 0)
    bench.pass(2500)
    assert.equal(bench.keys('t/3/me').length, 1)
  })
})

describe('a peer of a newer build', () => {
  const unknownStatus = {
    key: 's/new',
    value: '{"v":1,"incarnation":"n","role":"OBSERVER","state":"WARMING","failoverPriority":999}',
  }

  test('shows UNKNOWN, is alive, and takes part in no decision', () => {
    const { bench } = standingBy()
    let at = Number.NEGATIVE_INFINITY
    const beats = (): void => {
      if (bench.now - at >= 100) {
        at = bench.now
        bench.write(unknownStatus)
      }
    }
    bench.pass(500, beats)
    const peer = bench.status.peers.find(({ podId }) => podId === 'new')
    assert.deepEqual([peer?.role, peer?.state], ['UNKNOWN', 'UNKNOWN'])
    assert.ok((peer?.freshnessMs ?? 1000) <= 100)
    assert.equal(bench.status.readyStandbyCount, 1)
    // Its priority would let it go first, were it a candidate.
    bench.pass(700, beats)
    assert.equal(bench.keys('t/2/me').length, 1)
  })

  test('is no target, not even by force', () => {
    const bench = new Bench()
    bench.active()
    bench.write(unknownStatus)
    const offset = bench.write(commandRecord({ id: 'c', target: 'new', force: true, expectEpoch: 1 }))
    bench.pass(50)
    assert.equal(result(bench, offset)?.outcome, 'REJECTED')
    assert.equal(bench.state, 'ACTIVE')
  })

  test('keeps the token while its heartbeats are fresh, and loses it when they end', () => {
    const bench = new Bench()
    bench.write(unknownStatus)
    bench.write(claimOf(1, 'new', 'n'))
    bench.join()
    let at = Number.NEGATIVE_INFINITY
    bench.pass(5000, () => {
      if (bench.now - at >= 100) {
        at = bench.now
        bench.write(unknownStatus)
      }
    })
    assert.equal(bench.keys('t/2/').length, 0)
    bench.pass(1200)
    assert.equal(bench.keys('t/2/me').length, 1)
  })
})

describe('self-fencing', () => {
  test('without acknowledged heartbeats the pod isolates itself, and goes on once the token is proved', () => {
    const bench = new Bench()
    bench.active()
    bench.online = false
    bench.pass(700)
    assert.equal(bench.state, 'ACTIVE')
    bench.pass(200)
    assert.equal(bench.state, 'ISOLATED')
    assert.deepEqual(bench.commands.at(-1), { type: 'ha-isolate', isolated: true })
    bench.online = true
    bench.pass(300)
    assert.equal(bench.state, 'ACTIVE')
    assert.deepEqual(bench.commands.at(-1), { type: 'ha-isolate', isolated: false })
  })

  test('an answer that comes late, when heartbeats are not acknowledged again, ends no isolation', () => {
    const bench = new Bench()
    bench.active()
    bench.online = false
    bench.pass(900)
    assert.equal(bench.state, 'ISOLATED')
    bench.online = true
    for (const asked = bench.keys('v/').length; bench.keys('v/').length === asked; ) bench.pass(25)
    bench.online = false
    bench.pass(1000)
    const told = bench.commands.length
    bench.online = true
    bench.read()
    assert.deepEqual([bench.state, bench.commands.slice(told)], ['ISOLATED', []])
    bench.pass(300)
    assert.equal(bench.state, 'ACTIVE')
    assert.deepEqual(bench.commands.slice(told), [{ type: 'ha-isolate', isolated: false }])
  })

  test('a pod that was taken over meanwhile steps down instead', () => {
    const bench = new Bench()
    bench.active()
    bench.online = false
    bench.pass(1500)
    bench.write(statusRecord({ podId: 'other' }))
    bench.write(claimOf(2, 'other'))
    bench.online = true
    bench.pass(300)
    assert.equal(bench.told('ha-step-down'), 1)
    assert.equal(bench.status.selfRole, 'STANDBY')
  })

  test('a restart in place asks the log for the token first', () => {
    const bench = new Bench()
    bench.active()
    bench.fact({ type: 'restarting', cause: 'test' })
    assert.deepEqual([bench.status.selfRestarting, bench.status.selfRole], [true, 'ACTIVE'])
    bench.fact({ type: 'verify-token', id: 4 })
    assert.equal(bench.told('ha-token'), 0)
    bench.pass(25)
    assert.deepEqual(bench.commands.at(-1), { type: 'ha-token', id: 4, held: true })
    bench.fact({ type: 'running' })
    assert.equal(bench.status.selfRestarting, false)
    bench.write(statusRecord({ podId: 'other' }))
    bench.write(claimOf(2, 'other'))
    bench.fact({ type: 'verify-token', id: 5 })
    bench.pass(25)
    assert.deepEqual(bench.commands.at(-2), { type: 'ha-token', id: 5, held: false })
    assert.equal(bench.commands.at(-1)?.type, 'ha-step-down')
  })
})

describe('a standby that restarts in place', () => {
  const caughtUp = { open: true, lagRecords: 0, lagMs: 0, freshnessMs: 0 }

  test('shows it, is not ready, and is not promoted, until its stores are open again and followed', () => {
    const { bench, beats } = standingBy()
    bench.fact({ type: 'restarting', cause: 'test' })
    const told = bench.log.findLast(({ key }) => key === 's/me')?.value ?? ''
    assert.match(told, /"state":"CATCHING_UP","restarting":true/, 'the others hear of it at once')
    // The stores of the run that ended had caught up.
    bench.fact({ type: 'standby-progress', progress: caughtUp })
    bench.pass(1000, beats)
    const { selfState, selfRestarting, notReady } = bench.status
    assert.deepEqual([selfState, selfRestarting], ['CATCHING_UP', true])
    assert.match(notReady ?? '', /restarts in place/)
    for (const force of [false, true]) {
      const verdict = judgeHaCommand(bench.status, { command: 'PROMOTE', target: 'me', force })
      assert.match(verdict.ok ? '' : verdict.reason, /restarts its engine in place; not overridable/)
    }
    bench.fact({ type: 'standby' })
    bench.pass(300, beats)
    assert.deepEqual([bench.state, bench.status.selfRestarting], ['CATCHING_UP', false])
    bench.fact({ type: 'standby-progress', progress: caughtUp })
    bench.pass(300, beats)
    assert.equal(bench.state, 'READY_STANDBY')
  })

  test('claims nothing meanwhile', () => {
    const { bench } = standingBy()
    bench.fact({ type: 'restarting', cause: 'test' })
    bench.pass(5000)
    assert.equal(bench.keys('t/2/').length, 0)
    bench.fact({ type: 'standby' })
    bench.fact({ type: 'standby-progress', progress: caughtUp })
    bench.pass(500)
    assert.equal(bench.keys('t/2/me').length, 1)
  })

  test('ends it as well where it fails, or is told to step down over it', () => {
    const error = { code: 'RESTARTS_EXHAUSTED', message: 'spent', stack: undefined, details: {} } as const
    const fails = standingBy().bench
    fails.fact({ type: 'restarting', cause: 'test' })
    fails.fact({ type: 'failed', error, restartHelps: true })
    assert.deepEqual([fails.state, fails.status.selfRestarting], ['FAILED', false])
    const steps = new Bench()
    steps.active()
    steps.fact({ type: 'restarting', cause: 'test' })
    steps.write(statusRecord({ podId: 'other' }))
    steps.write(claimOf(2, 'other'))
    steps.pass(25)
    assert.equal(steps.status.selfRestarting, false)
    // Told before the engine heard of the step-down.
    steps.fact({ type: 'restarting', cause: 'test' })
    steps.fact({ type: 'standby' })
    assert.equal(steps.status.selfRestarting, false)
  })
})

describe('the topic is made anew', () => {
  test('an active pod claims its own epoch once more and goes on', () => {
    const bench = new Bench()
    bench.active()
    bench.log.length = 0
    bench.step({ type: 'topic-recreated', tagEpoch: 1 })
    assert.equal(bench.keys('t/1/me').length, 1)
    assert.equal(bench.told('ha-step-down'), 0)
    assert.equal(bench.state, 'ACTIVE')
  })

  test('a generation that a pod still tells of the old topic makes it no younger than its next life', () => {
    const bench = new Bench()
    bench.join()
    bench.write(statusRecord({ podId: 'peer', incarnation: 'old', generation: 5000 }))
    bench.pass(25)
    bench.write(statusRecord({ podId: 'peer', incarnation: 'new', state: 'JOINING' }))
    bench.pass(25)
    assert.equal(bench.status.peers[0]?.state, 'JOINING')
  })

  test('unless somebody has committed under a later one', () => {
    const bench = new Bench()
    bench.active()
    bench.log.length = 0
    bench.step({ type: 'topic-recreated', tagEpoch: 2 })
    assert.equal(bench.told('ha-step-down'), 1)
  })
})

test('a topology that differs from the active one keeps a pod from being ready; a configuration is only told', () => {
  const other = standingBy({ topologyHash: 'mine' }).bench
  assert.deepEqual([other.state, other.status.restartRequired], ['CATCHING_UP', 'topology-changed'])
  const { bench } = standingBy(
    { configHashes: { 'ha.failover-timeout': 'x' } },
    { configHashes: new Map([['ha.failover-timeout', 'y']]) },
  )
  assert.deepEqual([bench.state, bench.status.restartRequired], ['READY_STANDBY', 'config-changed:ha.failover-timeout'])
})

test('what cannot be read is counted and changes nothing', () => {
  const bench = new Bench()
  bench.active()
  bench.write({ key: 'c/x', value: 'no json' })
  bench.write({ key: 'whatever', value: '{}' })
  bench.write(encode({ ...claimOf(9, 'x'), epoch: 0 }))
  bench.pass(100)
  assert.deepEqual([bench.state, bench.machine.pod.badRecords], ['ACTIVE', 3])
})
