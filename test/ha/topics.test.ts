/** Topics that come to match a pattern while pods follow, take over and run, in the group and beside it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { byKey, firstTime } from '../engine/support/engine.ts'
import { Pods } from './support/pods.ts'

const application = new URL('./apps/growing.ts', import.meta.url)
const minute = 60_000

async function put(pods: Pods, topic: string, value: number, timestamp: number): Promise<void> {
  await pods.client.createTopics([{ topic, partitions: 1 }])
  await pods.put(topic, [{ key: topic, value, timestamp: firstTime + timestamp }])
}

async function sums(pods: Pods, topic: string, expected: readonly number[]): Promise<void> {
  const read = async () => byKey<number>(await pods.read('out'))[topic] ?? []
  await pods.until(`${topic} is read`, async () => (await read()).length >= expected.length, 20_000)
  assert.deepEqual(await read(), expected)
}

for (const mode of ['join', 'assign']) {
  test(`whoever takes over holds the watermark for topics that came while it followed (${mode})`, async (t) => {
    const pods = await Pods.none(t, application, { 'consumer.metadata.max.age.ms': 300, 'ha.group-mode': mode })
    await put(pods, 'in-a', 1, 0)
    await pods.add('pod-a')
    await pods.active()
    await pods.add('pod-b')
    const active = await pods.ready()
    await put(pods, 'in-b', 1, 0)
    await sums(pods, 'in-b', [1])
    await put(pods, 'in-a', 2, 60 * minute)
    await sums(pods, 'in-a', [1, 2])
    await pods.carryOut(active, '/ha/switch')
    const successor = await pods.active()
    assert.notEqual(successor, active)
    await put(pods, 'in-a', 3, 120 * minute)
    await sums(pods, 'in-a', [1, 2, 3])
    await put(pods, 'in-b', 10, 1)
    await sums(pods, 'in-b', [1, 11])
  })
}

test('a pod beside the group finds topics that come while it runs, and again behind a restart in place', async (t) => {
  const pods = await Pods.none(t, application, { 'consumer.metadata.max.age.ms': 300, 'ha.group-mode': 'assign' })
  await put(pods, 'in-a', 1, 0)
  const active = await pods.add('pod-a')
  await pods.active()
  await sums(pods, 'in-a', [1])
  await put(pods, 'in-b', 1, 0)
  await sums(pods, 'in-b', [1])
  // Somebody takes the identity and does nothing with it: the pod is fenced at its next commit, and goes on.
  await pods.client.initProducer('growing-active', 60_000)
  await put(pods, 'in-a', 10, 1)
  await sums(pods, 'in-a', [1, 11])
  assert.ok(active.log.some(({ message }) => message.includes('restarting in place')))
  await put(pods, 'in-c', 1, 0)
  await sums(pods, 'in-c', [1])
})
