/**
 * Rolling updates: pods of two builds of one application in one group. What `millrace topology --diff` lets go on takes
 * over like any other; what would leave a store behind is asked for by name; what breaks rows is refused.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { byKey } from '../engine/support/engine.ts'
import { Feed } from './support/feed.ts'
import { type Pod, Pods } from './support/pods.ts'

const application = new URL('../engine/apps/running-sum.ts', import.meta.url)
const next = new URL('./apps/running-sum-next.ts', import.meta.url)
const otherForm = new URL('./apps/running-sum-other-form.ts', import.meta.url)

async function knows(pods: Pods, pod: Pod, why: RegExp): Promise<void> {
  await pods.until(`${pod.id} says why it is not ready`, () => why.test(pod.status?.notReady ?? ''))
  assert.notEqual(pod.haState, 'READY_STANDBY')
}

async function outcomeOf(pods: Pods, pod: Pod, commandOffset: number): Promise<{ outcome: string; reason: string }> {
  return pods.until('the command has a result', () =>
    pod.status?.commands.find((each) => each.commandOffset === commandOffset && each.outcome !== 'PENDING'),
  )
}

describe('rolling updates', () => {
  for (const store of ['memory', 'with a lane each']) {
    test(`one store more goes through, pod by pod, and loses nothing (${store})`, async (t) => {
      const settings = store === 'memory' ? {} : { 'engine.lanes.count': 4 }
      const pods = await Pods.start(t, application, ['pod-a', 'pod-b'], settings)
      const old = await pods.ready()
      const feed = Feed.start(pods)
      await feed.flowing()
      const standby = pods.living.find((pod) => pod !== old) as Pod
      await standby.stop()
      const updated = await pods.add(standby.id, {}, next)
      // The update waits for this, and goes on with the active pod.
      await pods.until('the updated pod is ready', () => updated.haState === 'READY_STANDBY')
      assert.deepEqual([updated.status?.restartRequired, updated.status?.notReady], [null, null])
      await old.stop()
      await pods.until('the updated pod is active', () => updated.active)
      await feed.flowing()
      await pods.add(old.id, {}, next)
      await pods.ready()
      await updated.kill()
      await pods.active()
      await feed.flowing()
      await feed.complete()
      // The new store has everything since it came: nothing in it came twice, and nothing is missing.
      for (const lists of Object.values(byKey<number[]>(await pods.read('since-the-update')))) {
        const last = lists.at(-1) ?? []
        assert.deepEqual(
          last,
          last.map((_, i) => (last[0] ?? 0) + 10 * i),
        )
      }
    })
  }

  test('a build that lacks a store takes over by name alone, whatever happens to the active pod', async (t) => {
    const pods = await Pods.start(t, next, ['pod-a'], { 'ha.failover-timeout': 1500 })
    const first = await pods.active()
    const feed = Feed.start(pods)
    await feed.flowing()
    const less = await pods.add('pod-b', {}, application)
    await knows(pods, less, /has no store since-the-update, .*: millrace ha promote pod-b --force$/)
    await pods.until('it says what to do', () => less.status?.restartRequired === 'topology-changed')
    assert.equal((await first.ask('POST', '/ha/promote?pod=pod-b')).status, 409)
    const forcedSwitch = await pods.command(first, '/ha/switch?force=true')
    assert.equal((await outcomeOf(pods, first, Number(forcedSwitch.commandOffset))).outcome, 'REJECTED')
    await pods.until('its stores are filled', () => less.haState === 'CATCHING_UP')
    await first.kill()
    await pods.until('the standby has noticed', () => less.status?.peers[0]?.state === 'LOST')
    // By itself a pod that is not ready would follow after twice the timeout.
    await new Promise((resolve) => setTimeout(resolve, 4500))
    assert.deepEqual([less.haState, less.status?.tokenEpoch], ['CATCHING_UP', 1])
    await pods.command(less, '/ha/promote?pod=pod-b&force=true')
    await pods.until('it is active', () => less.active)
    await feed.flowing()
    await feed.complete()
  })

  test('a build that keeps a store in another form is refused, with force too', async (t) => {
    const pods = await Pods.start(t, application, ['pod-a'])
    const first = await pods.active()
    const feed = Feed.start(pods)
    await feed.flowing()
    const broken = await pods.add('pod-b', {}, otherForm)
    await knows(pods, broken, /keeps the store sums in another form than pod pod-a: .*force does not help$/)
    const { commandOffset } = await pods.command(first, '/ha/promote?pod=pod-b&force=true')
    const { outcome, reason } = await outcomeOf(pods, first, Number(commandOffset))
    assert.equal(outcome, 'REJECTED')
    assert.match(reason, /pod-b cannot go on with the state: it keeps the store sums in another form/)
    await feed.flowing()
    await feed.complete()
  })
})
