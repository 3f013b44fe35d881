/** What a pod says of itself to those around it: probes, processes of another kind, its own folder. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Feed } from './support/feed.ts'
import { type Pod, Pods } from './support/pods.ts'

const application = new URL('../engine/apps/running-sum.ts', import.meta.url)

describe('pods and what is around them', () => {
  test('a ready standby is ready to its probe, unless told otherwise; a process without high availability is refused', async (t) => {
    const pods = await Pods.start(t, application, ['pod-a', 'pod-b'])
    const active = await pods.ready()
    const standby = pods.living.find((pod) => pod !== active) as Pod
    assert.equal((await standby.ask('GET', '/health/ready')).status, 200)
    assert.equal((await active.ask('GET', '/health/ready')).status, 200)
    const shy = await pods.add('pod-c', { 'ha.readiness-when-standby': false })
    await pods.ready()
    const probe = await shy.ask('GET', '/health/ready')
    assert.equal(probe.status, 503)
    assert.equal((await shy.ask('GET', '/health/live')).status, 200)

    const alone = await pods.add('off', { 'ha.mode': 'off' })
    await pods.until('it has failed', () => alone.lifecycle === 'FAILED')
    assert.match(alone.runtime.view.state().failure?.message ?? '', /ha\.mode is off, but the pod pod-/)
    await alone.stop()
    // Nobody noticed.
    assert.equal((await pods.active()).id, active.id)
  })

  test('a ready standby tells how much it holds', async (t) => {
    const pods = await Pods.start(t, application, ['pod-a', 'pod-b'])
    const active = await pods.ready()
    const feed = Feed.start(pods)
    await feed.flowing()
    await feed.complete()
    const standby = pods.living.find((pod) => pod !== active) as Pod
    const held = async (pod: Pod): Promise<unknown> => {
      const { stores } = (await pod.ask('GET', '/stores')).body as { stores: Array<{ store: string; rows: number }> }
      return JSON.stringify(stores.map(({ store, rows }) => [store, rows]))
    }
    assert.doesNotMatch(String(await held(active)), /,0\]/)
    let told = ''
    await pods
      .until('it holds what the active one has', async () => {
        told = String(await held(standby))
        return told === (await held(active))
      })
      .catch((error: unknown) => assert.fail(`${String(error)}: ${told}`))
  })

  test('with the last pod gone a process without high availability goes on with what they left', async (t) => {
    const pods = await Pods.start(t, application, ['pod-a', 'pod-b'])
    await pods.ready()
    const feed = Feed.start(pods)
    await feed.flowing()
    for (const pod of pods.living) await pod.stop()
    const alone = await pods.add('off', { 'ha.mode': 'off' })
    await pods.until('it runs', () => alone.lifecycle === 'RUNNING')
    await feed.flowing()
    await feed.complete()
    await alone.stop()
    // And the other way round.
    const pod = await pods.add('pod-c')
    await pods.until('it is active', () => pod.active)
  })

  test('an active pod that reaches nobody is not ready, long before its broker counts as lost', async (t) => {
    const pods = await Pods.none(t, application)
    const alone = await pods.add('pod-a', { 'ha.self-fence-timeout': 1000, 'runtime.shutdown.timeout': 500 })
    await pods.until('it is active', () => alone.active)
    assert.equal((await alone.ask('GET', '/health/ready')).status, 200)
    await pods.broker.close()
    await pods.until('it has noticed', () => alone.haState === 'ISOLATED')
    const { status, body } = await alone.ask('GET', '/health/ready')
    assert.equal(status, 503)
    assert.match(JSON.stringify(body), /ISOLATED/)
    assert.equal((await alone.ask('GET', '/health/live')).status, 200)
  })

  test('pods on one machine have stores of their own below one folder', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'millrace-ha-'))
    t.after(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }))
    const pods = await Pods.start(t, application, ['pod-a', 'pod-b'], {
      'engine.state.store': 'lmdb',
      'engine.state.dir': dir,
    })
    await pods.ready()
    for (const pod of pods.living) assert.ok(existsSync(join(dir, pod.id)))
  })
})
