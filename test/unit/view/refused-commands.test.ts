import assert from 'node:assert/strict'
import { test } from 'node:test'
import { diagnose } from '../../../src/view/diagnosis/diagnose.ts'
import { codesOf, healthy, now } from './facts.ts'

test('commands that are refused for their signature are told, with the pod through which they came', () => {
  const pod = { podId: 'a', role: 'ACTIVE', state: 'ACTIVE', notReady: null, failoverPaused: null }
  const ha = { ...pod, active: null, others: [{ podId: 'b', state: 'READY_STANDBY' }] }
  assert.deepEqual(codesOf({ ha }), [])
  const [found] = diagnose(now, { ...healthy, ha: { ...ha, refused: { podIds: ['b'], sinceMs: now - 5000 } } })
  assert.partialDeepStrictEqual(found, { code: 'COMMANDS_REFUSED', severity: 'SLOW', sinceMs: now - 5000 })
  assert.match(found?.sentence ?? '', /come through b, seen 5 s ago: .+`ha\.command-secret` there is not the one here/)
  assert.match(found?.next ?? '', /Set the same `ha\.command-secret` on all pods/)
})
