/** When the fetch loop asks again, where little trickles in. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VirtualClock } from '../../../src/base/clock.ts'
import { FetchPace } from '../../../src/engine/input/fetch-pace.ts'
import { PartitionBuffer } from '../../../src/engine/input/partition-buffer.ts'

const slackMs = 40

function bufferAt(offset: number): PartitionBuffer {
  const nothing = (): void => undefined
  const events = { arrived: nothing, polled: nothing, hungry: nothing, failed: nothing }
  const options = { capacity: 10, maxPollRecords: 4, isolation: 'read_committed' as const }
  return new PartitionBuffer({ topic: 't', partition: 0, offset, ...options }, events)
}

/** How long it waits where heads wait, or not, and so many records of a hundred that came. */
function leftMs(starving: boolean, waiting: number, buffer = bufferAt(0)): number {
  const clock = new VirtualClock(0)
  const events = { starving: () => starving, waiting: () => waiting, slackMs: () => slackMs }
  return new FetchPace(5, clock, events).leftMs([{ buffer }], { began: clock.monotonic(), atHand: 100 })
}

describe('the next request', () => {
  test('comes shortly before the next commit where nothing waits for it', () => {
    assert.equal(leftMs(false, 0), slackMs)
    assert.equal(leftMs(false, 100), slackMs, 'what has not been dispatched yet waits for no record')
  })

  test('comes at once where a good part of what came waits for a record, and is not hurried by a few that do', () => {
    assert.equal(leftMs(true, 100), 0)
    assert.equal(leftMs(true, 13), 0)
    assert.equal(leftMs(true, 12), slackMs)
  })

  test('is hurried by what waits once, and not for what still waits behind that', () => {
    const clock = new VirtualClock(0)
    const events = { starving: () => true, waiting: () => 100, slackMs: () => slackMs }
    const pace = new FetchPace(5, clock, events)
    const lefts = Array.from({ length: 4 }, () => {
      const last = { began: clock.monotonic(), atHand: 100 }
      return [pace.leftMs([], last), pace.leftMs([], last)]
    })
    const [paced, hurried] = [
      [slackMs, slackMs],
      [0, 0],
    ]
    assert.deepEqual(lefts, [hurried, paced, hurried, paced])
  })

  test('comes at once where the last one has left something there, and not for what came since', () => {
    const behind = bufferAt(10)
    behind.sawEnds(10, 10, 0)
    assert.equal(leftMs(false, 0, behind), slackMs)
    behind.endsAtLeast(12, 1)
    assert.deepEqual([behind.lag, behind.backlog], [2, 0])
    assert.equal(leftMs(false, 0, behind), slackMs)
    behind.sawEnds(12, 12, 2)
    assert.equal(behind.backlog, 2)
    assert.equal(leftMs(false, 0, behind), 0)
  })
})
