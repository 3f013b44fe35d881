/** `GET /why` of pods: nothing is found in a rolling update under load but what is so, and a group without an active pod is. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WhyAnswer } from '../../src/view/diagnosis/answer.ts'
import { watched } from '../engine/support/why.ts'
import { Feed } from './support/feed.ts'
import { type Pod, Pods } from './support/pods.ts'

const application = new URL('../engine/apps/running-sum.ts', import.meta.url)
const ids = ['pod-a', 'pod-b', 'pod-c']
/** What a pod that follows, starts or stops says of itself. */
const trueHere = ['STANDBY', 'RESTORING', 'STOPPING']

/** One that is about to end may not answer any more. */
const why = (pod: Pod): Promise<WhyAnswer | undefined> =>
  pod.ask('GET', '/why').then(
    ({ body }) => body as unknown as WhyAnswer,
    () => undefined,
  )

test('a standby tells that no pod is active, why none takes over, and how one does', async (t) => {
  const pods = await Pods.start(t, application, ['pod-a', 'pod-b'])
  const active = await pods.ready()
  await pods.carryOut(active, '/ha/pause')
  const standby = pods.living.find((pod) => pod !== active) as Pod
  await active.kill()
  const answer = await pods.until(
    'it is found',
    async () => {
      const now = await why(standby)
      return now?.findings[0]?.code === 'NOBODY_ACTIVE' && now
    },
    240_000,
  )
  assert.equal(answer.status, 'STANDING')
  assert.match(answer.verdict, /has been a standby .+ knows of no active pod/)
  assert.match(
    answer.findings[0]?.next ?? '',
    /Somebody has paused failover .+ ago .+, by a command to the pod \S+ from the address 127\.0\.0\.1 \(its own host .+\), so no pod takes over/,
  )
  await pods.command(standby, '/ha/resume')
  await pods.until('it is over', async () => (await why(standby))?.status === 'FLOWING', 240_000)
})

test('two rolling updates of three pods under load are no standstill', async (t) => {
  const pods = await Pods.start(t, application, ids)
  await pods.ready()
  const feed = Feed.start(pods)
  await feed.flowing()
  const ask = () => pods.all.map(why)
  const { falseAlarms, answers } = await watched(trueHere, ask, async () => {
    for (const id of [...ids, ...ids]) {
      await pods.pod(id).stop()
      await pods.add(id)
      await pods.ready()
      await feed.flowing()
    }
  })
  await feed.complete()
  t.diagnostic(`${answers} answers`)
  assert.ok(answers > 20)
  assert.deepEqual(falseAlarms, [])
})
