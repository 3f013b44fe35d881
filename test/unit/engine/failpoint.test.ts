import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commitSteps, failpointOf } from '../../../src/base/failpoint.ts'

test('a failpoint lets the process die at the step and the time that are named, and at no other', () => {
  for (const [text, step, times] of [
    ['S4:3', 'S4', 3],
    ['S0', 'S0', 1],
  ] as const) {
    let deaths = 0
    const passed = failpointOf(text, () => deaths++)
    assert.ok(passed)
    for (let commit = 1; commit <= 5; commit++) {
      for (const each of commitSteps) {
        passed(each)
        assert.equal(deaths, commit > times || (commit === times && each >= step) ? 1 : 0)
      }
    }
  }
})

test('there is none where nobody asks for one', () => {
  for (const text of [undefined, '', 'S8', 'S4:', 'S4:x', 'on']) {
    assert.equal(
      failpointOf(text, () => undefined),
      undefined,
    )
  }
})
