import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { noHead, Watermarks } from '../../../src/time/watermarks.ts'
import { passTo } from './story.ts'

const timing = { maxOutOfOrdernessMs: 0, idlenessMs: 0, alignment: undefined }
const unknown = Number.NEGATIVE_INFINITY

/** Two tasks: `pair` reads a partition of two topics, `single` one. */
function twoTasks(idlenessMs = 0) {
  const watermarks = new Watermarks({ byTask: true })
  const assign = (topic: string, task: string) =>
    watermarks.assign({ topic, partition: 0 }, { ...timing, idlenessMs }, { task, lag: 0, at: 0 })
  const [left, right, single] = [assign('left', 'pair'), assign('right', 'pair'), assign('single', 'single')]
  const go = (p: number, timestamp: number): number => {
    watermarks.headArrived(p, timestamp, timestamp, 0)
    assert.equal(watermarks.pick(0), p)
    return watermarks.dispatched(p, noHead, -1, 0)
  }
  const told = (): Array<[number, number]> => {
    const all: Array<[number, number]> = []
    watermarks.tellTasks((p, watermark) => all.push([p, watermark]))
    return all
  }
  return { watermarks, left, right, single, go, told }
}

describe('the watermark of a task', () => {
  test('follows its own partitions and no other task', () => {
    const { watermarks, left, right, single, go } = twoTasks()
    assert.equal(go(single, 500), 500)
    assert.equal(go(left, 100), unknown, 'its other partition has shown nothing')
    assert.equal(go(right, 200), 100)
    assert.equal(watermarks.inForce(left), 100)
    assert.equal(watermarks.inForce(single), 500)
    assert.equal(watermarks.global(), 100, 'what is shown is the least of all')
  })

  test('comes with the task and lifts no other', () => {
    const { watermarks, left, right, single } = twoTasks()
    watermarks.restoreTask(single, 900)
    watermarks.restoreTask(left, 300)
    assert.deepEqual(
      [left, right, single].map((p) => watermarks.inForce(p)),
      [300, 300, 900],
    )
    watermarks.restoreTask(right, 200)
    assert.equal(watermarks.inForce(left), 300, 'it never falls')
  })

  test('counts what a head will bring that waits behind an older one of its task, and not the older one itself', () => {
    const { watermarks, left, right, single } = twoTasks()
    watermarks.headArrived(single, 10, 0, 0)
    watermarks.headArrived(left, 50, 0, 0)
    watermarks.headArrived(right, 70, 0, 0)
    assert.equal(watermarks.pick(0), single)
    watermarks.dispatched(single, 60, 1, 0)
    assert.equal(watermarks.inForce(left), unknown)
    assert.equal(watermarks.pick(0), left)
    assert.equal(watermarks.dispatched(left, 80, 1, 0), 50)
    assert.equal(watermarks.pick(0), single)
    assert.equal(watermarks.inForce(right), 50, 'the head at 70 does not count before it goes')
  })

  test('is told once to its lane each time it rises', () => {
    const { watermarks, left, right, single, go, told } = twoTasks()
    go(single, 500)
    assert.deepEqual(told(), [[single, 500]])
    assert.deepEqual(told(), [])
    go(left, 600)
    go(right, 700)
    assert.deepEqual(told(), [[left, 600]])
    watermarks.restoreTask(single, 800)
    assert.deepEqual(told(), [], 'what a commit said came with the task')
  })

  test('goes on with the others while all of its partitions are idle', () => {
    const { watermarks, left, right, single, go } = twoTasks(10)
    go(left, 100)
    go(right, 100)
    for (const p of [left, right]) watermarks.evidence(p, 0, false, 0)
    watermarks.headArrived(single, 400, 0, 5)
    passTo(watermarks, 20)
    assert.ok(watermarks.isIdle(left) && watermarks.isIdle(right))
    watermarks.pick(20)
    watermarks.dispatched(single, noHead, -1, 20)
    assert.equal(watermarks.inForce(left), 400)
  })

  test('goes on while all of its partitions are idle no further than those have come who write to it', () => {
    const { watermarks, left, right, single, go } = twoTasks(10)
    watermarks.gate([left, right], left, () => unknown, 0)
    for (const p of [left, right]) watermarks.evidence(p, 0, false, 0)
    passTo(watermarks, 20)
    assert.ok(watermarks.isIdle(left) && watermarks.isIdle(right))
    go(single, 400)
    assert.equal(watermarks.inForce(left), unknown, 'what they have dispatched may not have come out yet')
    const reached = (upToMs: number, knownUpToMs: number) =>
      watermarks.cameTo(left, { upToMs, knownUpToMs }, new Map(), 20)
    reached(150, 150)
    assert.equal(watermarks.inForce(left), 150)
    reached(150, 300)
    assert.equal(watermarks.inForce(left), 300, 'who has nothing left to do holds nobody back')
    reached(900, 900)
    assert.equal(watermarks.inForce(left), 400)
  })

  test('is raised at the end of the input, and forgotten with its last partition', () => {
    const { watermarks, left, right, go } = twoTasks()
    go(left, 100)
    assert.equal(watermarks.raiseTask(right, 300), true)
    assert.equal(watermarks.raiseTask(left, 300), false)
    assert.equal(watermarks.inForce(left), 300)
    for (const topic of ['left', 'right']) watermarks.revoke({ topic, partition: 0 }, 0)
    const again = watermarks.assign({ topic: 'left', partition: 0 }, timing, { task: 'pair', lag: 0, at: 0 })
    assert.equal(watermarks.inForce(again), unknown)
  })
})
