/** Planned changes of the active pod: switch, promote, demote, with and without force; nothing is lost over any of them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Pods } from './support/pods.ts'
import { Feed } from './support/feed.ts'

const application = new URL('../engine/apps/running-sum.ts', import.meta.url)

describe('planned changes', () => {
  test('one pod becomes active, the others ready; a switch moves the role and loses nothing', async (t) => {
    const pods = await Pods.start(t, application, ['pod-a', 'pod-b', 'pod-c'])
    const first = await pods.ready()
    const feed = Feed.start(t, pods)
    await feed.flowing()
    const answer = await first.ask('POST', '/ha/switch')
    assert.equal(answer.status, 202)
    const second = await pods.until('another pod is active', () =>
      pods.living.find((pod) => pod !== first && pod.active),
    )
    await feed.flowing()
    await pods.ready()
    await feed.complete()
    assert.notEqual(second, first)
  })
})
