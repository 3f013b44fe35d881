/** What is told of a lane whose thread has ended, and whom the advice sends to work. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { whyEnded } from '../../../src/runtime/engine/lane-end.ts'
import { causeAdvice } from '../../../src/view/diagnosis/wording/cause-advice.ts'

const facts = { broker: { address: 'kafka:9092' } } as unknown as Parameters<typeof causeAdvice>[2]
const advice = (reason: string): string => causeAdvice([`lane-0 has ended: ${reason}`], ['LANE_FAILED'], facts)

function thrown(message: string, file: string): Error {
  const error = new Error(message)
  error.stack = `Error: ${message}\n    at work (${file}:7:9)\n    at listOnTimeout (node:internal/timers:1:1)`
  return error
}

test('an error of the application that nothing caught is told with its place, and is for its developers', () => {
  const reason = whyEnded(1, { error: thrown('connection lost', 'file:///srv/orders/app.ts') })
  assert.equal(reason, 'nothing caught an error, thrown at work (app.ts:7): connection lost')
  assert.match(advice(reason), /of the application, or of a library.+developers have to handle it/)
  assert.doesNotMatch(advice(reason), /maintainers/)
})

test('one of a library is no error of the engine, although it has no place in the application', () => {
  const reason = whyEnded(1, { error: thrown('reset', 'file:///srv/orders/node_modules/pg/client.js') })
  assert.equal(reason, 'nothing caught an error: reset')
  assert.doesNotMatch(advice(reason), /maintainers/)
})

test('one of the engine is for its maintainers', () => {
  const reason = whyEnded(1, { error: thrown('oh', new URL('../../../src/lanes/lane-core.ts', import.meta.url).href) })
  assert.equal(reason, 'nothing caught an error, in code of Millrace: oh')
  assert.match(advice(reason), /maintainers of Millrace/)
})

test('a rejection that nobody handled is told as that, and no policy for records is advised', () => {
  const rejected = (error: unknown): Error => {
    const stack = error instanceof Error ? error.stack : ''
    return Object.assign(new Error(error instanceof Error ? error.message : String(error)), {
      code: 'LANE_FAILED',
      stack,
    })
  }
  const reason = whyEnded(1, { error: rejected(thrown('no token', 'file:///srv/orders/app.ts')) })
  assert.equal(reason, 'nobody handled the rejection of a promise, thrown at work (app.ts:7): no token')
  assert.match(advice(reason), /of the application, or of a library.+developers have to await or return the promise/)
  assert.doesNotMatch(advice(reason), /maintainers|dead-letter/)
  assert.equal(whyEnded(1, { error: rejected('just text') }), 'nobody handled the rejection of a promise: just text')
  const own = new URL('../../../src/lanes/lane-core.ts', import.meta.url).href
  const ours = whyEnded(1, { error: rejected(thrown('oh', own)) })
  assert.match(ours, /, in code of Millrace: oh$/)
  assert.match(advice(ours), /maintainers of Millrace/)
})

test('something that is no error, the end of memory and an exit code are told', () => {
  assert.equal(whyEnded(1, { error: 'just text' }), 'nothing caught an error: just text')
  const error = Object.assign(new Error('reached its limit'), { code: 'ERR_WORKER_OUT_OF_MEMORY' })
  assert.equal(whyEnded(1, { error }), 'its thread ran out of memory (reached its limit)')
  assert.match(advice(whyEnded(1, { error })), /more of it/)
  assert.match(whyEnded(5, undefined), /exit code 5/)
  assert.match(advice(whyEnded(5, undefined)), /process\.exit/)
})
