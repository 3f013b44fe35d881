/**
 * Keeping a group: what became of a command, who took over and why, maintenance without failover, priorities without a
 * restart, and the probe that only the active pod answers.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { HaHistoryEvent } from '../../src/http/ha-seam.ts'
import { Feed } from './support/feed.ts'
import { type Pod, Pods } from './support/pods.ts'

const application = new URL('../engine/apps/running-sum.ts', import.meta.url)
const failoverTimeoutMs = 1500
const settings = { 'ha.failover-timeout': failoverTimeoutMs }

const other = (pods: Pods, than: Pod): Pod => pods.living.find((pod) => pod !== than) as Pod

async function historyOf(pod: Pod): Promise<HaHistoryEvent[]> {
  return (await pod.ask('GET', '/ha/history')).body.events as HaHistoryEvent[]
}

describe('upkeep', () => {
  test('what became of a command can be asked of every pod, by the offset of its acknowledgement', async (t) => {
    const pods = await Pods.start(t, application, ['pod-a', 'pod-b'])
    const first = await pods.ready()
    const standby = other(pods, first)
    const { commandOffset } = await pods.command(standby, '/ha/promote?pod=nobody&force=true')
    for (const pod of pods.living) {
      const result = await pods.until('the result is there', () =>
        pod.status?.commands.find((each) => each.commandOffset === commandOffset && each.outcome !== 'PENDING'),
      )
      assert.deepEqual([result.outcome, result.reason], ['REJECTED', 'no pod nobody is known'])
    }
    assert.equal(first.status?.tokenEpoch, 1)
  })

  test('while failover is paused nobody takes over from a dead pod; resumed, the standby does', async (t) => {
    const pods = await Pods.start(t, application, ['pod-a', 'pod-b'], settings)
    const first = await pods.ready()
    const standby = other(pods, first)
    const feed = Feed.start(pods)
    await feed.flowing()
    // Any pod takes it, and whoever comes later knows of it.
    await pods.command(standby, '/ha/pause')
    await pods.until('both know', () => pods.living.every((pod) => pod.status?.failoverPaused === true))
    await first.kill()
    await pods.until('the death is noticed', () => standby.status?.peers[0]?.state === 'LOST')
    await sleep(3 * failoverTimeoutMs)
    assert.deepEqual([standby.haState, standby.status?.tokenEpoch], ['READY_STANDBY', 1])
    // Its own pod takes the role up again.
    const back = await pods.add(first.id)
    await pods.until('it is active again', () => back.active)
    assert.deepEqual([back.status?.tokenEpoch, back.status?.failoverPaused], [2, true])
    await feed.flowing()
    // An operator moves it all the same.
    await pods.ready()
    await pods.carryOut(back, '/ha/switch')
    await pods.until('the other one is active', () => standby.active)
    await pods.ready()
    await standby.kill()
    await pods.until('the death is noticed', () => back.status?.peers[0]?.state === 'LOST')
    await pods.command(back, '/ha/resume')
    await pods.until('the standby takes over', () => back.active)
    await feed.flowing()
    await feed.complete()
    const events = (await historyOf(back)).map(({ event, podId, cause }) => [event, podId, cause])
    assert.deepEqual(events[0], ['TAKEOVER', back.id, 'FAILOVER'])
    assert.deepEqual(events[1], ['RESUME', null, null])
    assert.deepEqual(events[2], ['TAKEOVER', standby.id, 'SWITCH'])
    assert.deepEqual(events.at(-2), ['PAUSE', null, null])
    const [failover] = await historyOf(back)
    assert.match(failover?.why ?? '', new RegExp(`^pod ${standby.id} has been silent for \\d+ ms`))
    assert.ok(Math.abs(Date.parse(failover?.at ?? '') - Date.now()) < 600_000)
    const moved = (await historyOf(back))[2]
    assert.ok(moved?.commandOffset !== null && moved?.issuer !== null, 'whom to ask is told')
    assert.equal((await historyOf(back)).at(-2)?.from, '127.0.0.1')
  })

  test('a priority set without a restart decides who follows, and outlives the pod', async (t) => {
    const pods = await Pods.start(t, application, ['pod-a', 'pod-b', 'pod-c'], settings)
    const first = await pods.ready()
    const [never, follows] = pods.living.filter((pod) => pod !== first) as [Pod, Pod]
    await pods.command(first, `/ha/priority?pod=${never.id}&value=0`)
    await pods.until('it is in force', () => never.status?.selfFailoverPriority === 0)
    await pods.until(
      'the others see it',
      () => first.status?.peers.find(({ podId }) => podId === never.id)?.failoverPriority === 0,
    )
    await never.kill()
    const again = await pods.add(never.id)
    await pods.until('it still holds', () => again.status?.selfFailoverPriority === 0)
    await pods.ready()
    await follows.stop()
    await first.kill()
    await pods.until('the death is noticed', () => again.status?.peers.some(({ state }) => state === 'LOST'))
    await sleep(2 * failoverTimeoutMs)
    assert.deepEqual([again.haState, again.status?.tokenEpoch], ['READY_STANDBY', 1])
    await pods.command(again, `/ha/priority?pod=${again.id}&value=default`)
    await pods.until('it takes over', () => again.active)
    assert.equal((await again.ask('POST', '/ha/priority?pod=nobody&value=1')).status, 409)
  })

  test('only the active pod answers its probe, and a standby names it to whoever wants to pause', async (t) => {
    const pods = await Pods.start(t, application, ['pod-a', 'pod-b'])
    const first = await pods.ready()
    const standby = other(pods, first)
    const probe = async (pod: Pod): Promise<number> => (await pod.ask('GET', '/health/active')).status
    assert.deepEqual([await probe(first), await probe(standby)], [200, 503])
    const refused = await standby.ask('POST', '/pause')
    assert.equal(refused.status, 400)
    assert.match(String(refused.body.error), new RegExp(`pod ${first.id} is active: ask that one$`))
    assert.equal((await first.ask('POST', '/pause')).status, 200)
    await pods.until('it is paused', () => first.lifecycle === 'PAUSED')
    assert.equal(await probe(first), 200)
    await pods.carryOut(first, '/ha/switch')
    await pods.until('the probe follows the role', async () => (await probe(standby)) === 200)
    assert.equal(await probe(first), 503)
    assert.match(String((await standby.ask('POST', '/unpause')).body.status), /resumed/)
  })
})
