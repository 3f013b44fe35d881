import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { tooLateToPause } from '../../../src/ha/hand-over.ts'
import type { StatusRecord } from '../../../src/ha/log/records.ts'
import { signatureOf } from '../../../src/ha/log/signature.ts'
import { judgeHaCommand } from '../../../src/ha/shown/view.ts'
import { Bench, claimOf, commandRecord, result, standingBy, statusRecord } from './support.ts'

describe('commands', () => {
  function withPeer(change: Partial<StatusRecord> = {}) {
    const bench = new Bench()
    bench.active()
    const beats = bench.beats({ podId: 'peer', ...change })
    bench.pass(100, beats)
    return { bench, beats }
  }

  test('a switch drains, releases, and the pod stands by; the successor tells the result', () => {
    const { bench, beats } = withPeer()
    const offset = bench.write({
      ...commandRecord({ id: 'c', target: null, force: false, expectEpoch: 1 }),
      command: 'SWITCH',
    })
    bench.pass(25, beats)
    assert.equal(bench.state, 'DEMOTING')
    assert.deepEqual(bench.commands.at(-1), { type: 'ha-hand-over', id: 1 })
    assert.equal(bench.keys('l/').length, 0)
    bench.fact({ type: 'handed-over', id: 1, commitId: '1.5', changelogEnds: {} })
    bench.fact({ type: 'standby' })
    bench.pass(25, beats)
    const release = JSON.parse(bench.log.find(({ key }) => key === 'l/1')?.value ?? '{}') as Record<string, unknown>
    assert.deepEqual([release.target, release.commitId, release.commandOffset], ['peer', '1.5', offset])
    bench.pass(25, beats)
    assert.equal(bench.status.selfRole, 'STANDBY')
    assert.equal(result(bench, offset), undefined)
  })

  test('a demoted pod leaves it to the others who follows, and names one of priority 0, which comes no other way', () => {
    for (const [failoverPriority, target] of [
      [100, null],
      [0, 'peer'],
    ] as const) {
      const { bench, beats } = withPeer({ failoverPriority })
      bench.write({ ...commandRecord({ id: 'c', target: 'me', force: false, expectEpoch: 1 }), command: 'DEMOTE' })
      bench.pass(25, beats)
      bench.fact({ type: 'handed-over', id: 1, commitId: '1.5', changelogEnds: {} })
      const release = JSON.parse(bench.log.find(({ key }) => key === 'l/1')?.value ?? '{}') as Record<string, unknown>
      assert.equal(release.target, target)
    }
  })

  test('where the successor does not come, the pod goes on itself and says so', () => {
    const { bench, beats } = withPeer()
    const offset = bench.write({
      ...commandRecord({ id: 'c', target: null, force: false, expectEpoch: 1 }),
      command: 'SWITCH',
    })
    bench.pass(25, beats)
    bench.fact({ type: 'handed-over', id: 1, commitId: '1.5', changelogEnds: {} })
    bench.fact({ type: 'standby' })
    bench.pass(900, beats)
    assert.equal(bench.keys('t/2/').length, 0)
    bench.pass(300, beats)
    assert.equal(bench.keys('t/2/me').length, 1)
    bench.promote()
    bench.pass(50)
    assert.deepEqual([bench.state, result(bench, offset)?.outcome], ['ACTIVE', 'REJECTED'])
    assert.equal(bench.machine.pod.rollbacks, 1)
  })

  test('a drain that takes too long is cut off: nothing uncommitted survives, nothing committed is lost', () => {
    const { bench, beats } = withPeer()
    bench.write({ ...commandRecord({ id: 'c', target: null, force: false, expectEpoch: 1 }), command: 'SWITCH' })
    bench.pass(1200, beats)
    assert.equal(bench.told('ha-step-down'), 1)
    assert.equal(bench.keys('l/').length, 0)
    bench.fact({ type: 'standby' })
    bench.pass(50, beats)
    assert.equal(bench.keys('l/1').length, 1)
  })

  test('the acting pod judges again: target, restart, epoch, readiness unless by force', () => {
    const rows: ReadonlyArray<[Partial<StatusRecord>, Parameters<typeof commandRecord>[0], string | undefined]> = [
      [{}, { id: 'a', target: 'me', force: true, expectEpoch: 1 }, 'REJECTED'],
      [{}, { id: 'b', target: 'nobody', force: true, expectEpoch: 1 }, 'REJECTED'],
      [{}, { id: 'c', target: 'peer', force: false, expectEpoch: 0 }, 'EXPIRED'],
      [{ restarting: true }, { id: 'd', target: 'peer', force: true, expectEpoch: 1 }, 'REJECTED'],
      [{ state: 'CATCHING_UP' }, { id: 'e', target: 'peer', force: false, expectEpoch: 1 }, 'REJECTED'],
      [{ state: 'CATCHING_UP' }, { id: 'f', target: 'peer', force: true, expectEpoch: 1 }, undefined],
      [{}, { id: 'g', target: 'peer', force: false, expectEpoch: 1 }, undefined],
    ]
    for (const [peer, command, outcome] of rows) {
      const { bench, beats } = withPeer(peer)
      const offset = bench.write(commandRecord(command))
      bench.pass(50, beats)
      assert.equal(result(bench, offset)?.outcome, outcome, command.id)
      assert.equal(bench.state, outcome === undefined ? 'DEMOTING' : 'ACTIVE', command.id)
    }
  })

  test('a command that is written again under its name is not carried out again', () => {
    const { bench, beats } = withPeer({ state: 'CATCHING_UP' })
    const command = commandRecord({ id: 'c', target: 'peer', force: false, expectEpoch: 1 })
    const offset = bench.write(command)
    bench.pass(50, beats)
    assert.equal(result(bench, offset)?.outcome, 'REJECTED')
    const again = bench.write(command)
    bench.pass(300, beats)
    assert.equal(result(bench, again), undefined)
  })

  test('with a secret, only what is signed counts', () => {
    const bench = new Bench({ commandSecret: 'secret' })
    bench.active()
    const beats = bench.beats({ podId: 'peer' })
    bench.pass(100, beats)
    const command = commandRecord({ id: 'c', target: 'peer', force: false, expectEpoch: 1 })
    bench.write(command)
    bench.pass(100, beats)
    assert.deepEqual([bench.state, bench.machine.pod.badRecords], ['ACTIVE', 1])
    bench.write({ ...command, signature: signatureOf('secret', 'app', command) })
    bench.pass(50, beats)
    assert.equal(bench.state, 'DEMOTING')
  })

  test('a promotion where nobody is active is carried out by the pod it names, whatever its priority', () => {
    const { bench } = standingBy({ failoverPriority: 0 })
    bench.pass(1200)
    bench.write(commandRecord({ id: 'c', target: 'me', force: false, expectEpoch: 1 }))
    bench.pass(50)
    assert.equal(bench.keys('t/2/me').length, 1)
    bench.promote()
    bench.pass(50)
    assert.equal(bench.machine.pod.commandResults.DONE, 1)
  })

  test('a pod that has not heard the active one since it began asks to be asked again', () => {
    const { bench } = standingBy()
    const { status } = bench
    const [active] = status.peers.filter(({ role }) => role === 'ACTIVE')
    assert.ok(active !== undefined && status.tokenHolder === active.podId)
    const young = { ...status, peers: status.peers.filter((peer) => peer !== active) }
    const asked = (command: 'SWITCH' | 'PROMOTE' | 'DEMOTE', target: string | null) => {
      const verdict = judgeHaCommand(young, { command, target, force: false })
      return verdict.ok || verdict.status
    }
    assert.equal(asked('SWITCH', null), 503)
    assert.equal(asked('PROMOTE', active.podId), 503)
    assert.equal(asked('DEMOTE', active.podId), 503)
    assert.equal(asked('PROMOTE', status.selfPodId), true)
  })

  test('a switch without anybody who could hand over is refused, with force too; one on its way to ACTIVE will', () => {
    const { bench, active, beats } = standingBy()
    const verdict = (force: boolean) => judgeHaCommand(bench.status, { command: 'SWITCH', target: null, force })
    assert.equal(verdict(false).ok, true)
    const paused = {
      ...commandRecord({ id: 'p', target: null, force: false, expectEpoch: 1 }),
      command: 'PAUSE',
    } as const
    bench.write(paused)
    bench.pass(100, beats)
    bench.pass(3000)
    for (const force of [false, true]) {
      const refused = verdict(force)
      assert.ok(!refused.ok)
      assert.deepEqual([refused.status, /no pod is ACTIVE.*promote a pod by name/.test(refused.reason)], [409, true])
    }
    bench.write(statusRecord({ ...active, role: 'STANDBY', state: 'PROMOTING' }))
    bench.pass(25)
    assert.equal(verdict(false).ok, true)
  })

  test('a command that nobody decides shows as expired once it is too old to be carried out', () => {
    const command = {
      ...commandRecord({ id: 'c', target: null, force: false, expectEpoch: 1 }),
      command: 'SWITCH',
    } as const
    const nobody = standingBy({ failoverPriority: 0 }).bench
    nobody.write(command)
    nobody.pass(5000)
    assert.equal(nobody.status.commands[0]?.outcome, 'PENDING')
    nobody.pass(3000)
    assert.equal(nobody.status.commands[0]?.outcome, 'EXPIRED')
    // Somebody has begun in time, and is slow.
    const { bench, active } = standingBy({ failoverPriority: 0 })
    const commandOffset = bench.write(command)
    bench.pass(8000, bench.beats({ ...active, state: 'DEMOTING' }))
    assert.equal(bench.status.commands[0]?.outcome, 'PENDING')
    const release = { kind: 'release', epoch: 1, podId: 'active', incarnation: 'life', target: 'other' } as const
    bench.write({
      ...release,
      commitId: null,
      paused: false,
      commandOffset,
      exhausted: false,
      unused: false,
      faults: [],
    })
    bench.pass(8000)
    assert.equal(bench.status.commands[0]?.outcome, 'PENDING')
  })

  test('the judgement of the interface and of the acting pod is one', () => {
    const { bench } = withPeer({ state: 'CATCHING_UP' })
    const verdict = judgeHaCommand(bench.status, { command: 'SWITCH', target: null, force: false })
    assert.equal(verdict.ok, false)
  })
})

describe('pause, stop, poison', () => {
  test('paused follows the token', () => {
    const { bench } = standingBy({}, { paused: true })
    bench.pass(1200)
    assert.deepEqual(bench.commands.at(-1), { type: 'ha-promote', tokenEpoch: 2, paused: true })
  })

  test('a pause is told to the others at once', () => {
    const bench = new Bench()
    bench.active()
    bench.pass(25)
    const before = bench.keys('s/').length
    bench.step({ type: 'pause-intent', paused: true })
    assert.equal(bench.keys('s/').length, before + 1)
    assert.match(bench.log.at(-1)?.value ?? '', /"paused":true/)
  })

  test('a pause goes along while the pod drains; once the role is given up it is refused, for nobody would follow it', () => {
    const bench = new Bench()
    bench.active()
    const beats = bench.beats({ podId: 'peer' })
    bench.pass(100, beats)
    bench.write({ ...commandRecord({ id: 'c', target: null, force: false, expectEpoch: 1 }), command: 'SWITCH' })
    bench.pass(25, beats)
    assert.equal(bench.state, 'DEMOTING')
    assert.equal(tooLateToPause(bench.machine.pod), null)
    bench.step({ type: 'pause-intent', paused: true })
    // What is not read back is written again, and must say the same.
    bench.writable = false
    bench.fact({ type: 'handed-over', id: 1, commitId: '1.5', changelogEnds: {} })
    bench.writable = true
    assert.match(tooLateToPause(bench.machine.pod) ?? '', /up for pod peer; ask the pod that becomes active/)
    bench.step({ type: 'pause-intent', paused: false })
    bench.pass(200, beats)
    assert.match(bench.log.find(({ key }) => key === 'l/1')?.value ?? '', /"paused":true/)
    assert.equal(bench.status.selfRole, 'STANDBY')
    assert.match(tooLateToPause(bench.machine.pod) ?? '', /has given the active role up; ask the pod/)
  })

  test('a pod that has to step down takes no pause on, before its engine has let go', () => {
    const bench = new Bench()
    bench.active()
    bench.write(statusRecord({ podId: 'other' }))
    bench.write(claimOf(2, 'other'))
    bench.pass(25)
    assert.equal(bench.told('ha-step-down'), 1)
    assert.notEqual(tooLateToPause(bench.machine.pod), null)
  })

  test('a pod that stops hands over, and says goodbye', () => {
    const bench = new Bench()
    bench.active()
    bench.pass(100, bench.beats({ podId: 'peer' }))
    bench.step({ type: 'stop' })
    assert.equal(bench.told('ha-hand-over'), 1)
    bench.fact({ type: 'handed-over', id: 1, commitId: '1.1', changelogEnds: {} })
    bench.fact({ type: 'standby' })
    bench.pass(100)
    assert.match(bench.log.find(({ key }) => key === 'l/1')?.value ?? '', /"target":"peer"/)
    assert.deepEqual(
      bench.log.findLast(({ key }) => key === 's/me'),
      { key: 's/me', value: null },
    )
    assert.equal(bench.effects.at(-1)?.type, 'ended')
  })

  const place = { topic: 'in', partition: 0, offset: 7 }
  const error = { code: 'RESTARTS_EXHAUSTED', message: 'spent', stack: undefined, details: {} } as const

  test('a pod whose restarts are used up lets another one try', () => {
    const bench = new Bench()
    bench.active()
    bench.pass(100, bench.beats({ podId: 'peer' }))
    bench.fact({ type: 'restarts-exhausted', error, place })
    assert.deepEqual([bench.told('ha-step-down'), bench.told('ha-fail')], [1, 0])
    bench.fact({ type: 'standby' })
    bench.pass(50)
    assert.match(bench.log.find(({ key }) => key === 'l/1')?.value ?? '', /"exhausted":true.*"offset":7/)
  })

  test('without anybody ready it fails, and others may take over', () => {
    const bench = new Bench()
    bench.active()
    bench.fact({ type: 'restarting', cause: 'test' })
    bench.fact({ type: 'restarts-exhausted', error, place })
    assert.equal(bench.told('ha-fail'), 1)
    assert.equal(bench.status.selfRestarting, true)
    bench.fact({ type: 'failed', error, restartHelps: true })
    bench.pass(25)
    assert.equal(bench.status.selfRestarting, false, 'no restart is under way any more')
    assert.match(bench.log.findLast(({ key }) => key === 's/me')?.value ?? '', /"FAILED".*"handoffInhibited":false/)
  })

  test('a pod of priority 0 is not made to follow where no operator asks for it: not by a stop, not by a failure', () => {
    const stops = new Bench()
    stops.active()
    const beats = stops.beats({ podId: 'peer', failoverPriority: 0 })
    stops.pass(100, beats)
    stops.step({ type: 'stop' })
    stops.fact({ type: 'handed-over', id: 1, commitId: '1.1', changelogEnds: {} })
    stops.fact({ type: 'standby' })
    stops.pass(100, beats)
    assert.match(stops.log.find(({ key }) => key === 'l/1')?.value ?? '', /"target":null/)
    assert.equal(stops.effects.at(-1)?.type, 'ended')
    const fails = new Bench()
    fails.active()
    fails.pass(100, fails.beats({ podId: 'peer', failoverPriority: 0 }))
    fails.fact({ type: 'restarts-exhausted', error, place })
    assert.deepEqual([fails.told('ha-step-down'), fails.told('ha-fail')], [0, 1])
  })

  test('a record that has failed elsewhere stops here: it does not walk through all standbys', () => {
    const bench = new Bench()
    bench.write(statusRecord({ podId: 'first', faults: [{ ...place, count: 4 }] }))
    bench.active()
    bench.pass(100, bench.beats({ podId: 'third' }))
    bench.fact({ type: 'restarts-exhausted', error, place })
    assert.equal(bench.told('ha-fail'), 1)
    bench.fact({ type: 'failed', error, restartHelps: false })
    bench.pass(25)
    assert.match(bench.log.findLast(({ key }) => key === 's/me')?.value ?? '', /"handoffInhibited":true/)
  })

  test('nobody who saw that takes over by itself; an operator may let him', () => {
    const { bench, active } = standingBy()
    bench.write(statusRecord({ ...active, role: 'STANDBY', state: 'FAILED', handoffInhibited: true }))
    bench.pass(30_000)
    assert.equal(bench.keys('t/2/').length, 0)
    bench.write(commandRecord({ id: 'c', target: 'me', force: false, expectEpoch: 1 }))
    bench.pass(50)
    assert.equal(bench.keys('t/2/me').length, 1)
  })
})

describe('commands that stand', () => {
  const standing = (id: string, command: 'PAUSE' | 'RESUME' | 'PRIORITY', target: string | null = null) =>
    ({ ...commandRecord({ id, target, force: false, expectEpoch: 0 }), command }) as const

  test('outlive a topic that is made anew, and are written again by the active pod', () => {
    const bench = new Bench()
    bench.active()
    bench.write(standing('p', 'PAUSE'))
    bench.pass(100)
    assert.equal(bench.status.failoverPaused, true)
    bench.step({ type: 'topic-recreated', tagEpoch: 1 })
    assert.equal(bench.status.failoverPaused, true)
    bench.pass(50)
    assert.equal(bench.keys('c/p').length, 2)
  })

  test('are never tidied away, however long ago they were said', () => {
    const bench = new Bench()
    bench.active()
    bench.write(standing('p', 'PAUSE'))
    bench.write(standing('q', 'PRIORITY', 'me'))
    for (let i = 0; i < 100; i++) {
      bench.write(commandRecord({ id: `old-${i}`, target: 'nobody', force: true, expectEpoch: 1 }))
    }
    bench.pass(10_000)
    const deleted = bench.log.filter(({ value }) => value === null).map(({ key }) => key)
    assert.ok(deleted.includes('c/old-0'))
    assert.deepEqual(
      deleted.filter((key) => key === 'c/p' || key === 'c/q'),
      [],
    )
    assert.equal(bench.status.failoverPaused, true)
  })

  test('count only when signed, where there is a secret', () => {
    const bench = new Bench({ commandSecret: 'secret' })
    bench.active()
    const pause = standing('p', 'PAUSE')
    bench.write(pause)
    bench.pass(50)
    assert.equal(bench.status.failoverPaused, false)
    const never = { ...standing('q', 'PRIORITY', 'me'), value: 0 }
    bench.write({ ...never, signature: signatureOf('secret', 'app', { ...never, value: 7 }) })
    bench.pass(50)
    assert.equal(bench.status.selfFailoverPriority, 100, 'another value was signed')
    bench.write({ ...never, signature: signatureOf('secret', 'app', never) })
    bench.pass(50)
    assert.equal(bench.status.selfFailoverPriority, 0)
  })
})
