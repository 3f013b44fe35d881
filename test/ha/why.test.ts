/** `GET /why` of all pods while they are updated one after the other under load: nothing is found but what is so. */
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
