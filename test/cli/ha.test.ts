/** `millrace ha` against the real HTTP interface, with a group whose every status is told by the test. */
import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import type { HaCommand, HaPeer, HaStatus } from '../../src/http/ha-seam.ts'
import { startFake } from '../http/support/fake-subject.ts'
import { readyPeer, standby, withPeer } from '../http/support/ha-samples.ts'
import type { Situation } from '../http/support/subject.ts'
import { type CommandResult, millrace } from '../support/millrace.ts'

interface Group {
  readonly url: string
  readonly published: readonly HaCommand[]
}

const stops: Array<() => Promise<void>> = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

/** A group whose status is a function of how many commands were published, and how often it was asked for. */
async function group(
  status: (published: number, asked: number) => HaStatus,
  config: Situation['config'] = {},
): Promise<Group> {
  let asked = 0
  let published: readonly HaCommand[] = []
  const situation: Situation = {
    config: { haEnabled: true, ...config },
    get ha() {
      return status(published.length, asked++)
    },
  }
  const instance = await startFake(situation)
  published = instance.published as readonly HaCommand[]
  stops.push(() => instance.stop())
  return { url: instance.url, published }
}

const pods = (args: readonly string[], { url }: Group, env: Record<string, string> = {}): Promise<CommandResult> =>
  millrace(['ha', ...args, '--url', url], { env })

/** `pod-b` has taken over; `pod-a`, which was asked, follows. */
const switched: HaStatus = withPeer(
  { role: 'ACTIVE', state: 'ACTIVE' },
  { selfRole: 'STANDBY', selfState: 'CATCHING_UP', tokenEpoch: 8, tokenHolder: 'pod-b', readyStandbyCount: 0 },
)
const draining: HaStatus = { ...standby, selfState: 'DEMOTING' }

describe('millrace ha status', () => {
  test('shows every pod, who answered, the token and the redundancy', async () => {
    const { code, stdout, stderr } = await pods(['status'], await group(() => standby))
    assert.equal(stderr, '')
    assert.equal(code, 0)
    assert.match(stdout, /^POD +ROLE +STATE +LAG RECORDS +LAG MS +SEEN MS AGO +PRIORITY +RESTARTING\n/)
    assert.match(stdout, /^pod-a \* +ACTIVE +ACTIVE +0 +0 +- +100 +no$/m)
    assert.match(stdout, /^pod-b +STANDBY +READY_STANDBY +3 +20 +400 +1 +no$/m)
    assert.match(stdout, /^Token epoch 7, held by pod-a\. Ready standbys: 1 of 1 desired\.$/m)
  })

  test('tells low redundancy, a pod that must be restarted, and peers of a newer build', async () => {
    const odd = withPeer({ role: 'UNKNOWN', state: 'UNKNOWN' }, { redundancyBelowDesired: true, readyStandbyCount: 0 })
    const { stdout } = await pods(['status'], await group(() => ({ ...odd, restartRequired: 'topology-changed' })))
    assert.match(stdout, /^pod-b +UNKNOWN +UNKNOWN /m)
    assert.match(stdout, /0 of 1 desired - too few\.$/m)
    assert.match(stdout, /^pod-a must be restarted: topology-changed\.$/m)
  })

  test('--json is the answer of the interface', async () => {
    const { stdout } = await pods(['status', '--json'], await group(() => standby))
    assert.deepEqual(JSON.parse(stdout), standby)
  })

  test('--wait ends when one pod is active and enough are ready', async () => {
    const waiting: HaStatus = { ...standby, readyStandbyCount: 0, redundancyBelowDesired: true }
    const all = await group((_, asked) => (asked < 3 ? waiting : standby))
    const { code, stdout } = await pods(['status', '--wait', '30'], all)
    assert.equal(code, 0)
    assert.match(stdout, /1 of 1 desired\.$/m)
  })

  test('--wait in vain says for what, and what was seen last', async () => {
    const waiting: HaStatus = { ...standby, readyStandbyCount: 0, redundancyBelowDesired: true }
    const { code, stdout, stderr } = await pods(['status', '--wait', '0.5'], await group(() => waiting))
    assert.equal(code, 1)
    assert.equal(stdout, '')
    assert.match(stderr, /^millrace: Waited 0\.5 s: the group is not as it should be \(epoch 7: pod-a ACTIVE, /)
  })
})

describe('millrace ha switch, promote, demote', () => {
  const all = () => group((published) => (published === 0 ? standby : switched))

  test('say at which offset the command is', async () => {
    const those = await all()
    const { code, stdout } = await pods(['switch'], those)
    assert.equal(code, 0)
    assert.match(stdout, /^SWITCH is published at offset 4711; /)
    assert.deepEqual(those.published, [{ command: 'SWITCH', target: null, force: false }])
  })

  test('take a pod and the force flag', async () => {
    const those = await group(() => standby)
    await pods(['promote', 'pod-b', '--force'], those)
    const { stdout } = await pods(['demote', 'pod-a', '--json'], those)
    assert.deepEqual(those.published, [
      { command: 'PROMOTE', target: 'pod-b', force: true },
      { command: 'DEMOTE', target: 'pod-a', force: false },
    ])
    assert.deepEqual(JSON.parse(stdout), { command: 'DEMOTE', target: 'pod-a', force: false, commandOffset: 4711 })
  })

  for (const args of [['switch'], ['promote', 'pod-b'], ['demote', 'pod-a']]) {
    test(`${args[0]} --wait ends when the other pod is active`, async () => {
      let seen = 0
      const those = await group((published) => {
        if (published === 0) return standby
        return ++seen < 3 ? draining : switched
      })
      const { code, stdout, stderr } = await pods([...args, '--wait'], those)
      assert.equal(stderr, '')
      assert.equal(code, 0)
      assert.match(stdout, /^pod-b is ACTIVE in epoch 8, after \d+ ms\.$/m)
    })
  }

  test('--wait tells a switch that was rolled back', async () => {
    const those = await group((published) => (published === 0 ? standby : { ...standby, tokenEpoch: 8 }))
    const { code, stderr } = await pods(['switch', '--wait'], those)
    assert.equal(code, 1)
    assert.match(stderr, /The switch was not carried out: it was rolled back: pod-a is ACTIVE again, in epoch 8\.\n$/)
  })

  test('--wait ends where the acting pod refuses, with its reason', async () => {
    const result = { commandOffset: 4711, command: 'PROMOTE', target: 'nobody', force: true, issuer: 'pod-a' } as const
    const rejected = { ...result, outcome: 'REJECTED', reason: 'no pod nobody is known' } as const
    const those = await group((published) => (published === 0 ? standby : { ...standby, commands: [rejected] }))
    const { code, stdout, stderr } = await pods(['promote', 'nobody', '--force', '--wait'], those)
    assert.equal(code, 1)
    assert.equal(stdout, '')
    assert.match(stderr, /The promote was not carried out: REJECTED, no pod nobody is known\.\n$/)
    assert.match(
      (await pods(['status'], those)).stdout,
      /^Last command, at offset 4711: PROMOTE nobody \(forced\): REJ/m,
    )
  })

  test('force is not offered where it cannot help', async () => {
    for (const [pod, says] of [
      ['nobody', /pod nobody is unknown, not READY_STANDBY; force does not help/],
      ['pod-a', /pod pod-a is ACTIVE already; there is nothing to do/],
    ] as const) {
      const { code, stderr } = await pods(['promote', pod], await group(() => standby))
      assert.equal(code, 1)
      assert.match(stderr, says)
    }
    const lost = withPeer({ state: 'LOST' }, { readyStandbyCount: 0 })
    const { stderr } = await pods(['switch'], await group(() => lost))
    assert.match(stderr, /no pod is READY_STANDBY to take over, and none follows: force does not help/)
  })

  test('--wait tells that another pod was faster than the one to be promoted', async () => {
    const third: HaPeer = { ...readyPeer, podId: 'pod-c' }
    const those = await group((published) => {
      const now = published === 0 ? standby : switched
      return { ...now, peers: [...now.peers, third] }
    })
    const { code, stderr } = await pods(['promote', 'pod-c', '--wait'], those)
    assert.equal(code, 1)
    assert.match(stderr, /pod-b has become ACTIVE instead, in epoch 8/)
  })

  test('--wait with a result that does not come ends with the seconds given', async () => {
    const { code, stderr } = await pods(['switch', '--wait', '0.5'], await group(() => standby))
    assert.equal(code, 1)
    assert.match(stderr, /^millrace: Waited 0\.5 s: switch was published, but its result is not there; .*pod-a ACTIVE/)
  })

  test('--wait sends again what a restart in place has held up', async () => {
    const restarting: HaStatus = { ...standby, selfRestarting: true }
    let seen = 0
    const those = await group((published) => {
      if (published > 0) return switched
      return ++seen < 6 ? restarting : standby
    })
    const { code, stdout } = await pods(['switch', '--wait'], those)
    assert.equal(code, 0)
    assert.equal(those.published.length, 1)
    assert.match(stdout, /^pod-b is ACTIVE/)
  })

  test('without --wait a restart in place refuses the command', async () => {
    const { code, stderr } = await pods(['switch'], await group(() => ({ ...standby, selfRestarting: true })))
    assert.equal(code, 1)
    assert.match(stderr, /^millrace: The command is refused: pod pod-a restarts its engine in place/)
  })

  test('a command that no standby can carry out is refused in one sentence', async () => {
    const none = withPeer({ state: 'CATCHING_UP' }, { readyStandbyCount: 0 })
    for (const wait of [[], ['--wait']]) {
      const { code, stdout, stderr } = await pods(['switch', ...wait], await group(() => none))
      assert.equal(code, 1)
      assert.equal(stdout, '')
      assert.match(stderr, /^millrace: The command is refused: no pod is READY_STANDBY .*\n$/)
    }
  })
})

describe('millrace ha pause, resume, priority, history', () => {
  const done = (command: string, target: string | null = null) =>
    ({
      commandOffset: 4711,
      command,
      target,
      force: false,
      issuer: 'pod-a',
      outcome: 'DONE',
      reason: 'so it is',
    }) as const

  test('are published, and --wait ends when they hold', async () => {
    for (const [args, command] of [
      [['pause'], { command: 'PAUSE', target: null, force: false }],
      [['resume'], { command: 'RESUME', target: null, force: false }],
      [['priority', 'pod-b', '0'], { command: 'PRIORITY', target: 'pod-b', force: false, value: 0 }],
      [['priority', 'pod-b', 'default'], { command: 'PRIORITY', target: 'pod-b', force: false, value: null }],
    ] as const) {
      const now = { ...standby, commands: [done(command.command, command.target)] }
      const those = await group((published) => (published === 0 ? standby : now))
      const { code, stdout, stderr } = await pods([...args, '--wait'], those)
      assert.equal(stderr, '')
      assert.deepEqual([code, stdout], [0, 'so it is.\n'])
      assert.deepEqual(those.published, [command])
    }
  })

  test('a priority of a pod that nobody knows, or that is no number, is refused', async () => {
    const unknown = await pods(['priority', 'pod-z', '0'], await group(() => standby))
    assert.match(unknown.stderr, /no pod pod-z is known/)
    const odd = await pods(['priority', 'pod-b', 'high'], await group(() => standby))
    assert.match(odd.stderr, /'value' must be a whole number up to 1000000, or default/)
    assert.deepEqual([unknown.code, odd.code], [1, 2])
  })

  test('the status tells that failover is paused, and why a pod could not take over', async () => {
    const now = { ...standby, failoverPaused: true, notReady: 'its stores are on another machine' }
    const { stdout } = await pods(['status'], await group(() => now))
    assert.match(stdout, /^Failover is paused: nobody takes over by itself; 'millrace ha resume' ends that\.$/m)
    assert.match(stdout, /^pod-a could not take over: its stores are on another machine\.$/m)
  })

  test('the history says who, when and why', async () => {
    const { code, stdout } = await pods(['history'], await group(() => standby))
    assert.equal(code, 0)
    assert.equal(
      stdout,
      '2026-03-01T10:00:00.000Z  epoch 7: pod-a took over (PROMOTE): pod pod-b gave the token up; ' +
        'command at offset 4711 by pod-b\n' +
        'time unknown  PAUSE: failover is paused: nobody takes over by itself; command at offset 12 by pod-a\n',
    )
  })
})

describe('millrace ha and its interface', () => {
  test('the address and the token come from the configuration too', async () => {
    const protectedGroup = await group(() => standby, { token: 'open-sesame' })
    const env = { RUNTIME_HTTP_AUTH_TOKEN: 'open-sesame', RUNTIME_HTTP_PORT: new URL(protectedGroup.url).port }
    const { code, stderr } = await millrace(['ha', 'status'], { env })
    assert.equal(stderr, '')
    assert.equal(code, 0)
  })

  test('a missing token is told', async () => {
    const { code, stderr } = await pods(['status'], await group(() => standby, { token: 'open-sesame' }))
    assert.equal(code, 2)
    assert.match(stderr, /asks for a token; give it with RUNTIME_HTTP_AUTH_TOKEN/)
  })

  test('a pod without high availability is told', async () => {
    const { code, stderr } = await pods(['switch', '--wait'], await group(() => standby, { haEnabled: false }))
    assert.equal(code, 2)
    assert.match(stderr, /^millrace: http:.* has no \/ha endpoints: high availability is off there/)
  })

  test('a name that no pod can have is wrong usage', async () => {
    const { code, stderr } = await pods(['promote', 'pod b'], await group(() => standby))
    assert.equal(code, 2)
    assert.match(stderr, /does not take the command: /)
  })

  test('a pod that does not answer is told, with what to do', async () => {
    const gone = await startFake({})
    await gone.stop()
    const { code, stderr } = await millrace(['ha', 'status', '--url', gone.url])
    assert.equal(code, 1)
    assert.match(stderr, /^millrace: http:.* does not answer \(ECONNREFUSED\)\. Name a pod that runs with --url\.\n$/)
  })

  for (const [args, says] of [
    [['ha', 'promote'], /missing required argument 'pod'/],
    [['ha', 'switch', '--wait', 'long'], /a number of seconds above 0/],
    [['ha', 'status', '--url', 'ftp://pod'], /it is the address of a pod/],
    [['ha', 'swich'], /unknown command 'swich'\n\(Did you mean switch\?\)/],
  ] as const) {
    test(`refuses 'millrace ${args.join(' ')}'`, async () => {
      const { code, stdout, stderr } = await millrace([...args])
      assert.equal(stdout, '')
      assert.match(stderr, says)
      assert.equal(code, 2)
    })
  }
})
