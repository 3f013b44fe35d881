import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../support/properties.ts'
import { editDistance, nearestName } from '../../../src/config/nearest.ts'

test('a slip of the pen is found, something else is not', () => {
  const names = ['engine.lanes.count', 'runtime.http.port', 'ha.mode']
  assert.equal(nearestName('engine.lane.count', names), 'engine.lanes.count')
  assert.equal(nearestName('runtime.http.prot', names), 'runtime.http.port')
  assert.equal(nearestName('something-else', names), undefined)
})

test('the distance is a metric as far as it is used: zero for equals only, symmetric, bounded by the lengths', () => {
  const word = fc.stringMatching(/^[abc.]{0,8}$/)
  fc.assert(
    fc.property(word, word, (a, b) => {
      const distance = editDistance(a, b)
      assert.equal(distance === 0, a === b)
      assert.equal(distance, editDistance(b, a))
      assert.ok(distance <= Math.max(a.length, b.length))
      assert.ok(distance >= Math.abs(a.length - b.length))
      for (const most of [0, 1, 2, 3]) {
        const told = editDistance(a, b, most)
        if (distance <= most) assert.equal(told, distance)
        else assert.ok(told > most)
      }
    }),
  )
})
