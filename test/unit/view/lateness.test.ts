import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Lateness } from '../../../src/view/diagnosis/lateness.ts'

describe('looks that come late', () => {
  test('are no lateness where each comes when it is due, or before', () => {
    const lateness = new Lateness(250, 40)
    for (const at of [0, 250, 500, 600, 850]) lateness.look(at)
    assert.deepEqual([lateness.meanMs, lateness.missedMs(0, 1100)], [0, 0])
  })

  test('tell a pause of the process, and how much of a time it took', () => {
    const lateness = new Lateness(250, 40)
    for (const at of [0, 250, 500, 8750, 9000]) lateness.look(at)
    assert.equal(lateness.missedMs(500, 9000), 8000)
    // What began within the pause was missed from there on.
    assert.equal(lateness.missedMs(3000, 9000), 5750)
    assert.equal(lateness.missedMs(8900, 9000), 0)
    assert.equal(lateness.meanMs, 1600)
  })

  test('count before they come: whoever asks first after a pause is told of it', () => {
    const lateness = new Lateness(250, 40)
    lateness.look(0)
    lateness.look(250)
    assert.equal(lateness.missedMs(0, 400), 0)
    assert.equal(lateness.missedMs(0, 40_500), 40_000)
  })

  test('tell when a process went on that had stood still, which one that is short of processors did not', () => {
    const lateness = new Lateness(250, 40)
    const stood = [0, 250, 2000, 9000, 9250, 10_500].map((at) => lateness.look(at))
    assert.deepEqual(stood, [0, 0, 0, 6750, 0, 0])
    assert.equal(lateness.wokeAt(10_600), 9000)
    assert.equal(lateness.wokeAt(20_000), 20_000, 'whoever asks first after a pause is told of it')
    const busy = new Lateness(250, 40)
    for (let at = 0; at < 20_000; at += 2000) assert.equal(busy.look(at), 0)
    assert.equal(busy.wokeAt(18_100), undefined)
  })

  test('are forgotten after a while', () => {
    const lateness = new Lateness(250, 4)
    for (const at of [0, 5000, 5250, 5500, 5750, 6000]) lateness.look(at)
    assert.deepEqual([lateness.meanMs, lateness.missedMs(0, 6000)], [0, 4750])
    for (let at = 6250; at <= 66_000; at += 250) lateness.look(at)
    assert.equal(lateness.missedMs(0, 66_000), 0)
  })
})
