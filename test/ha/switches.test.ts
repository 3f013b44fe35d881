/**
 * Planned changes of the active pod: switch, promote, demote, with and without force, and a pod that is asked to stop.
 * Nothing is lost and nothing comes twice over any of them. `HA_SWITCHES` lengthens the run.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { HaHistoryEvent } from '../../src/http/ha-seam.ts'
import { Feed } from './support/feed.ts'
import { Gaps } from './support/gaps.ts'
import { type Pod, Pods, type Settings } from './support/pods.ts'

const application = new URL('../engine/apps/running-sum.ts', import.meta.url)
const switches = Number(process.env.HA_SWITCHES ?? 3)

function durable(t: TestContext): Settings {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-ha-'))
  t.after(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }))
  return { 'engine.state.store': 'lmdb', 'engine.state.dir': dir }
}

async function other(pods: Pods, than: Pod): Promise<Pod> {
  return pods.until('another pod is active', () => pods.living.find((pod) => pod !== than && pod.active))
}

describe('planned changes', () => {
  for (const store of ['memory', 'lmdb']) {
    test(`a switch moves the role and loses nothing, with stores in ${store}`, async (t) => {
      const settings = store === 'lmdb' ? durable(t) : {}
      const pods = await Pods.start(t, application, ['pod-a', 'pod-b', 'pod-c'], settings)
      let active = await pods.ready()
      const feed = Feed.start(pods)
      await feed.flowing()
      const gaps = Gaps.of(pods, 'sums')
      const seen: number[] = []
      for (let n = 0; n < switches; n++) {
        gaps.take()
        const before = active
        await pods.carryOut(active, '/ha/switch')
        active = await other(pods, before)
        await feed.flowing()
        seen.push(Math.round(gaps.take()))
        await pods.ready()
        assert.equal(before.lifecycle, 'STANDBY')
      }
      await feed.complete()
      t.diagnostic(`longest pause of the output at each switch, milliseconds: ${seen.join(' ')}`)
    })
  }

  test('promote names the successor, demote the predecessor', async (t) => {
    const pods = await Pods.start(t, application, ['pod-a', 'pod-b', 'pod-c'])
    const first = await pods.ready()
    const feed = Feed.start(pods)
    const second = pods.living.filter((pod) => pod !== first).at(-1) as Pod
    // Any pod takes the command.
    await pods.carryOut(second, `/ha/promote?pod=${second.id}`)
    await pods.until('the named pod is active', () => second.active)
    await pods.ready()
    await pods.carryOut(first, `/ha/demote?pod=${second.id}`)
    await other(pods, second)
    const active = await pods.ready()
    await feed.flowing()
    await feed.complete()
    const { events } = (await active.ask('GET', '/ha/history')).body as unknown as { events: HaHistoryEvent[] }
    const [demoted, promoted] = events.filter(({ event }) => event === 'TAKEOVER')
    assert.deepEqual([demoted?.cause, demoted?.issuer], ['SWITCH', first.id])
    assert.deepEqual([promoted?.cause, promoted?.issuer], ['PROMOTE', second.id])
    assert.match(promoted?.why ?? '', new RegExp(`^(an operator asks for it, and )?pod ${first.id} gave the token up$`))
  })

  const ways: ReadonlyArray<readonly [string, Settings]> = [
    ['without membership in the group', { 'ha.group-mode': 'assign' }],
    ['with topics between sub-topologies', { 'topology.sub-topology-split': 'repartition-topics' }],
  ]
  for (const [way, settings] of ways) {
    test(`the role moves ${way}`, async (t) => {
      const pods = await Pods.start(t, application, ['pod-a', 'pod-b'], settings)
      const first = await pods.ready()
      const feed = Feed.start(pods)
      await feed.flowing()
      await pods.carryOut(first, '/ha/switch')
      const second = await other(pods, first)
      await feed.flowing()
      await pods.ready()
      await second.kill()
      await pods.active()
      await feed.flowing()
      await feed.complete()
    })
  }

  test('a pod alone has nobody to hand over to, with force neither: it goes on', async (t) => {
    const pods = await Pods.start(t, application, ['pod-a'])
    const alone = await pods.active()
    const feed = Feed.start(pods)
    await feed.flowing()
    assert.equal((await alone.ask('POST', '/ha/switch')).status, 409)
    await pods.command(alone, '/ha/switch?force=true')
    await pods.until('the acting pod refuses', () => alone.log.some(({ message }) => message.includes('REJECTED')))
    await feed.flowing()
    await feed.complete()
    assert.equal(alone.status?.tokenEpoch, 1)
  })

  test('with force a pod takes over that is not ready, and has everything nevertheless', async (t) => {
    const pods = await Pods.start(t, application, ['pod-a'])
    const first = await pods.active()
    const feed = Feed.start(pods)
    await feed.flowing()
    // Never ready: it would have to be caught up to the millisecond.
    const late = await pods.add('pod-b', { 'ha.ready-max-lag': 0 })
    await pods.until('both know one another', () => first.status?.peers.length === 1 && late.status?.peers.length === 1)
    assert.equal((await first.ask('POST', `/ha/promote?pod=${late.id}`)).status, 409)
    await pods.carryOut(first, `/ha/promote?pod=${late.id}&force=true`)
    await pods.until('it is active', () => late.active)
    await feed.flowing()
    await feed.complete()
  })

  test('a pod that is asked to stop hands over first', async (t) => {
    const pods = await Pods.start(t, application, ['pod-a', 'pod-b'])
    const first = await pods.ready()
    const feed = Feed.start(pods)
    await feed.flowing()
    const gaps = Gaps.of(pods, 'sums')
    const stopped = performance.now()
    assert.equal(await first.stop(), 0)
    const second = await pods.active()
    const tookMs = Math.round(performance.now() - stopped)
    await feed.flowing()
    await feed.complete()
    assert.equal(second.runtime.ha?.status()?.tokenHolder, second.id)
    t.diagnostic(`active ${tookMs} ms after the stop was asked for, longest pause ${Math.round(gaps.take())} ms`)
  })

  test('a deployment that is ended as a whole ends in good order, though the active hands over to a pod that goes', async (t) => {
    for (let round = 0; round < switches; round++) {
      const pods = await Pods.start(t, application, ['pod-a', 'pod-b', 'pod-c'], { 'ha.failover-timeout': 1500 })
      await pods.ready()
      assert.deepEqual(await Promise.all(pods.living.map((pod) => pod.stop())), [0, 0, 0])
      const late = pods.all.flatMap(({ log }) => log).filter(({ message }) => message.includes('shutdown was not over'))
      assert.deepEqual(late, [])
    }
  })

  test('a function of the application is told a token that rises with every takeover', async (t) => {
    const pods = await Pods.start(t, new URL('./apps/tokens.ts', import.meta.url), ['pod-a', 'pod-b'])
    const first = await pods.ready()
    const tokenOf = async (value: number): Promise<unknown> => {
      await pods.put('numbers', [{ key: 'k', value }])
      return pods.until(
        'the record is out',
        async () => (await pods.client.topics(['tokens'])).length > 0 && (await pods.read('tokens'))[value]?.value,
      )
    }
    assert.equal(await tokenOf(0), first.status?.tokenEpoch)
    await pods.carryOut(first, '/ha/switch')
    const second = await other(pods, first)
    assert.equal(await tokenOf(1), second.status?.tokenEpoch)
    assert.ok(Number(second.status?.tokenEpoch) > 1)
  })

  test('a pause goes along with the role, and ends on the pod that has it', async (t) => {
    const pods = await Pods.start(t, application, ['pod-a', 'pod-b'])
    const first = await pods.ready()
    assert.equal((await first.ask('POST', '/pause')).status, 200)
    await pods.until('it is paused', () => first.lifecycle === 'PAUSED')
    const standby = pods.living.find((pod) => pod !== first) as Pod
    assert.equal((await standby.ask('POST', '/pause')).status, 400)
    await pods.carryOut(first, '/ha/switch')
    await pods.until(
      'the other one is active, and paused',
      () => standby.haState === 'ACTIVE' && standby.lifecycle === 'PAUSED',
    )
    const feed = Feed.start(pods)
    assert.equal((await standby.ask('POST', '/unpause')).status, 200)
    await feed.flowing()
    await feed.complete()
  })

  const moments: ReadonlyArray<readonly [string, (from: Pod, to: Pod) => boolean]> = [
    ['drains', (from) => from.haState === 'DEMOTING'],
    ['has given it up', (from, to) => from.status?.selfRole === 'STANDBY' || to.haState === 'PROMOTING'],
  ]
  for (const [moment, isNow] of moments) {
    test(`a pause that is acknowledged by a pod that ${moment} is not lost with the role`, async (t) => {
      const pods = await Pods.start(t, application, ['pod-a', 'pod-b'])
      const from = await pods.ready()
      const to = pods.living.find((pod) => pod !== from) as Pod
      const moved = pods.carryOut(from, '/ha/switch')
      const deadline = performance.now() + 60_000
      // No moment is left out: its coordinator lives on this thread.
      while (!isNow(from, to) && performance.now() < deadline) await turn()
      const answer = from.runtime.commands.pause()
      const wanted = answer.ok ? 'PAUSED' : 'RUNNING'
      if (!answer.ok) assert.match(answer.reason, /still RUNNING, but .* ask the pod that becomes active|is STANDBY/)
      await moved
      await pods.until(`it is ${wanted}`, () => to.lifecycle === wanted, 20_000)
      t.diagnostic(answer.ok ? 'acknowledged' : answer.reason)
    })
  }
})
