/** A commit whose run ends in its midst. */
import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { test } from 'node:test'
import { VirtualClock } from '../../../src/base/clock.ts'
import type { BrokerPort } from '../../../src/broker/port.ts'
import { Committer, type CommitterHost } from '../../../src/engine/commit/committer.ts'
import type { Producer } from '../../../src/engine/commit/producer.ts'
import type { EngineSettings } from '../../../src/engine/settings.ts'

/** The broker has the rows of a commit, and answers when it is let. */
function flushing(guarantee: 'exactly-once' | 'at-least-once') {
  const steps: string[] = []
  const answers: Array<() => void> = []
  const producer: Partial<Producer> = {
    flush: () => new Promise((resolve) => answers.push(resolve)),
    // The rest of a commit is no matter here.
    end: () => new Promise(() => undefined),
    queue: () => void steps.push('queued'),
    send: () => undefined,
  }
  const host: Partial<CommitterHost> = {
    run: { number: 1 } as CommitterHost['run'],
    place: { isInGroup: false } as CommitterHost['place'],
    freeze: () => ({
      offsets: [],
      watermark: 0,
      seq: 0,
      dispatched: 0,
      extra: [],
      tell: () => {
        steps.push('told')
        return []
      },
    }),
    toLanes: () => undefined,
    slowestMs: () => 0,
  }
  const committer = new Committer(
    { lanes: 1, guarantee, barrierTimeoutMs: 1000, uncommittedMaxBytes: 1000 } as EngineSettings,
    {} as BrokerPort,
    producer as Producer,
    host as CommitterHost,
    new VirtualClock(0),
    { tokenEpoch: () => 1, groupId: 'g' },
    { tokenEpoch: 0, seq: 0 },
  )
  committer.trigger('interval')
  const { epoch } = committer.machine
  committer.laneMessage({ type: 'ack', lane: 0, epoch, run: 1, changelogs: [], taken: 0, sent: 0, received: 0 })
  const answer = async (): Promise<void> => {
    answers.shift()?.()
    await setImmediate()
  }
  return { committer, steps, answer }
}

test('says nothing of changelogs to the next run, nor writes to them there', async () => {
  const goesOn = flushing('exactly-once')
  await goesOn.answer()
  assert.ok(goesOn.steps.includes('told'))
  for (const guarantee of ['exactly-once', 'at-least-once'] as const) {
    const { committer, steps, answer } = flushing(guarantee)
    const before = [...steps]
    committer.close()
    await answer()
    await answer()
    assert.deepEqual(steps, before)
  }
})
