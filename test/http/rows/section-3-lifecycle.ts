import assert from 'node:assert/strict'
import { expectError } from '../support/expect.ts'
import type { Row } from '../support/subject.ts'

export const section3: readonly Row[] = [
  {
    rules: ['R51', '3.1.health'],
    name: 'while stopping readiness is 503, liveness UP, and /state says so',
    when: { state: 'STOPPING' },
    check: async (instance) => {
      assert.equal((await instance.ask({ path: '/health/ready' })).status, 503)
      assert.equal((await instance.ask({ path: '/health/live' })).status, 200)
      assert.equal((await instance.ask({ path: '/state' })).json.current, 'STOPPING')
    },
  },
  {
    rules: ['R44', '3.1.pause', '2.9.paused'],
    name: 'DRAINING may be cancelled',
    when: { state: 'DRAINING' },
    check: async (instance) => {
      const answer = await instance.ask({ method: 'POST', path: '/unpause' })
      assert.deepEqual(answer.json, { status: 'resumed', state: 'RUNNING' })
    },
  },
  {
    rules: ['R1', 'R9'],
    name: 'an engine that is not initialized refuses /pause with 503, one that is not RUNNING with 400',
    when: { state: 'UNINITIALIZED' },
    check: async (instance) => expectError(await instance.ask({ method: 'POST', path: '/pause' }), 503),
  },
]
