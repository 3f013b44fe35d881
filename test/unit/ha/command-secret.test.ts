/** Pods that do not have the same `ha.command-secret`: each says what it refuses, and none says what does not hold. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { loadConfig } from '../../../src/config/load.ts'
import { type CommandRecord, type StatusRecord, decode } from '../../../src/ha/log/records.ts'
import { signatureOf } from '../../../src/ha/log/signature.ts'
import { haSettings } from '../../../src/ha/settings.ts'
import type { HaIdentity } from '../../../src/ha/contract.ts'
import { Bench, commandRecord, standingBy, statusRecord } from './support.ts'

const signed = (secret: string, command: CommandRecord): CommandRecord => ({
  ...command,
  signature: signatureOf(secret, 'app', command),
})

const pause = (id: string, issuer: string): CommandRecord => ({
  ...commandRecord({ id, target: null, force: false, expectEpoch: 1 }),
  command: 'PAUSE',
  issuer,
})

const lastStatus = (bench: Bench): StatusRecord => {
  const { key, value } = bench.log.findLast((each) => each.key === 's/me') ?? assert.fail('it has said nothing')
  const record = decode(key, value)
  return record.kind === 'status' ? record : assert.fail('it is no status')
}

describe('a pod that refuses a command for its signature', () => {
  /** Commands come through the pod `active`, which is heard. */
  function refusing() {
    const { bench, beats, active } = standingBy({ commandSecret: 'one' })
    const refused = (): number | undefined =>
      bench.status.peers.find(({ podId }) => podId === 'active')?.commandsRefused
    const offset = bench.write(signed('another', pause('p', 'active')))
    bench.pass(25, beats)
    return { bench, beats, active, refused, offset }
  }

  test('tells the others at once, and shows through which pod it came', () => {
    const { bench, refused, offset } = refusing()
    assert.deepEqual([bench.status.failoverPaused, refused()], [false, 1])
    const { commandRead, refusedCommands } = lastStatus(bench)
    assert.deepEqual([commandRead, refusedCommands], [offset, [offset]])
  })

  test('shows it no more once a command through that pod is right, or that pod was started anew', () => {
    const { bench, beats, refused } = refusing()
    const right = bench.write(signed('one', pause('q', 'active')))
    bench.pass(25, beats)
    assert.deepEqual([bench.status.failoverPaused, refused()], [true, 0])
    assert.equal(lastStatus(bench).commandRead, right)
    const again = refusing()
    again.bench.write(statusRecord({ ...again.active, incarnation: 'second' }))
    again.bench.pass(25)
    assert.equal(again.refused(), 0)
  })

  test('makes nothing of those that were there before it began, or came from nobody that it knows', () => {
    const bench = new Bench({ commandSecret: 'one' })
    bench.write(statusRecord({ podId: 'peer' }))
    bench.write(signed('old', pause('p', 'peer')))
    bench.join()
    bench.write(signed('old', pause('q', 'stranger')))
    bench.pass(100, bench.beats({ podId: 'peer' }))
    assert.deepEqual(
      bench.status.peers.map(({ commandsRefused }) => commandsRefused),
      [0],
    )
    assert.equal(bench.machine.pod.badRecords, 2)
  })
})

describe('the result of a command', () => {
  /** What this pod says of a command through it, while the active pod has read so far and refused that. */
  function said(command: 'PAUSE' | 'SWITCH', active: (offset: number) => Partial<StatusRecord>) {
    const { bench, active: looks } = standingBy()
    const offset = bench.write({ ...pause('p', 'me'), command })
    bench.pass(200, bench.beats({ ...looks, ...active(offset) }))
    return bench.status.commands[0]
  }

  test('that stands is told once every pod that is heard has read it', () => {
    const unread = said('PAUSE', (offset) => ({ commandRead: offset - 1 }))
    assert.partialDeepStrictEqual(unread, { outcome: 'PENDING', reason: 'pod active has not read it yet' })
    assert.equal(said('PAUSE', (offset) => ({ commandRead: offset }))?.outcome, 'DONE')
    assert.equal(said('PAUSE', () => ({ commandRead: null }))?.outcome, 'DONE', 'an older build tells nothing')
  })

  test('names the pods that refuse it', () => {
    const refused = (offset: number) => ({ commandRead: offset, refusedCommands: [offset] })
    assert.partialDeepStrictEqual(said('PAUSE', refused), {
      outcome: 'REJECTED',
      reason:
        'refused by active, where ha.command-secret is not that of pod me; it holds on the others alone: set the same on all pods',
    })
    assert.equal(said('SWITCH', refused)?.outcome, 'REJECTED')
    const standby = (offset: number) => ({ ...refused(offset), role: 'STANDBY' }) as const
    assert.equal(said('SWITCH', standby)?.outcome, 'PENDING', 'only the active pod decides on it')
    const since = (offset: number) => ({ ...refused(offset), tokenEpoch: 2 })
    assert.equal(said('SWITCH', since)?.outcome, 'PENDING', 'it has become active of that, maybe')
  })

  test('does not wait for a pod that is not heard', () => {
    const { bench, active } = standingBy()
    const offset = bench.write(pause('p', 'me'))
    bench.write(statusRecord({ ...active, commandRead: offset - 1 }))
    bench.pass(50)
    assert.equal(bench.status.commands[0]?.outcome, 'PENDING')
    bench.pass(400)
    assert.equal(bench.status.commands[0]?.outcome, 'DONE')
  })
})

test('pods tell whether they have one secret, and not which', () => {
  const identity: HaIdentity = {
    applicationId: 'app',
    groupId: 'app',
    hostname: 'host',
    topologyHash: 'same',
    topologyState: { stores: [], sources: [], repartitions: [] } as unknown as HaIdentity['topologyState'],
    build: 'test',
  }
  const told = (secret?: string): string | undefined => {
    const config = loadConfig({ environment: secret === undefined ? {} : { HA_COMMAND_SECRET: secret } })
    return haSettings(config, identity).configHashes['ha.command-secret']
  }
  assert.equal(told('aaa'), told('aaa'))
  assert.equal(new Set([told(), told('aaa'), told('bbb')]).size, 3)
  assert.match(told('aaa') ?? '', /^[0-9a-f]{16}$/)
  const { bench } = standingBy(
    { configHashes: { 'ha.command-secret': 'x' } },
    { configHashes: new Map([['ha.command-secret', 'y']]) },
  )
  assert.equal(bench.status.restartRequired, 'config-changed:ha.command-secret')
})
