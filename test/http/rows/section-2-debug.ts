import assert from 'node:assert/strict'
import { commitPhases } from '../../../src/view/view.ts'
import type { Json } from '../support/client.ts'
import { expectError, expectJson, expectKeys, metricsType } from '../support/expect.ts'
import type { Row } from '../support/subject.ts'

const states = /^(RUNNABLE|WAITING|BLOCKED)$/

export const section213: readonly Row[] = [
  {
    rules: ['2.13.threads', 'R33', 'R27', '4.threads'],
    name: '/debug/threads lists engine and platform threads',
    check: async (instance) => {
      const answer = await instance.ask({ path: '/debug/threads' })
      expectJson(answer)
      const engineThreads = answer.json.engineThreads as unknown as Json[]
      const names = engineThreads.map((thread) => String(thread.name))
      for (const name of ['control', 'engine', 'lane-0']) assert.ok(names.includes(name), names.join(', '))
      for (const thread of engineThreads) {
        expectKeys(thread, ['name', 'state', 'stack'])
        assert.match(String(thread.state), states)
        const stack = thread.stack as unknown as unknown[]
        assert.ok(stack.every((frame) => typeof frame === 'string'))
        assert.ok(stack.length <= 40)
      }
      const platformThreads = answer.json.platformThreads as unknown as Json[]
      if (process.platform === 'linux') assert.ok(platformThreads.length > 0)
      for (const thread of platformThreads) assert.match(String(thread.state), states)
    },
  },
  {
    rules: ['R27', '4.2.filter'],
    name: 'filter=stuck keeps what is not RUNNABLE',
    check: async (instance) => {
      const { json } = await instance.ask({ path: '/debug/threads?filter=stuck' })
      for (const list of ['engineThreads', 'platformThreads']) {
        for (const thread of json[list] as unknown as Json[]) assert.notEqual(thread.state, 'RUNNABLE')
      }
    },
  },
  {
    rules: ['4.2.filter', 'R27'],
    name: 'filter=known leaves out the threads of the platform',
    check: async (instance) => {
      const { json } = await instance.ask({ path: '/debug/threads?filter=known' })
      const known = (json.engineThreads as unknown as Json[]).map((thread) => String(thread.name))
      assert.deepEqual(known, ['control', 'engine', 'lane-0', 'lane-1'])
      for (const { name, tid } of json.platformThreads as unknown as Json[]) {
        assert.ok(known.includes(String(name)) || Number(tid) === process.pid, String(name))
      }
    },
  },
  {
    rules: ['4.2.depth', '8.depth'],
    name: 'depth is 40 frames unless given',
    given: () => undefined,
    check: async (instance) => {
      await instance.ask({ path: '/debug/threads' })
      await instance.ask({ path: '/debug/threads?depth=1' })
      await instance.ask({ path: '/debug/threads?depth=1000' })
      assert.deepEqual(instance.fake?.askedDepths, [40, 1, 1000])
    },
  },
  ...[
    'depth=0',
    'depth=1001',
    'depth=-1',
    'depth=1.5',
    'depth=abc',
    'depth=',
    'depth=+4',
    'depth=0x10',
    'depth=1e2',
    'depth=4&depth=4',
    'filter=',
    'filter=STUCK',
    'filter=other',
    'filter=all&filter=all',
  ].map(
    (query): Row => ({
      rules: ['R13', 'R14', 'R36', '4.2.depth', '4.2.filter'],
      name: `/debug/threads?${query} is 400`,
      check: async (instance) => expectError(await instance.ask({ path: `/debug/threads?${query}` }), 400),
    }),
  ),
  {
    rules: ['2.13.barriers', 'R33', '4.barriers'],
    name: '/debug/barriers tells phase, epoch, lanes, restarts and the last commits',
    check: async (instance) => {
      const answer = await instance.ask({ path: '/debug/barriers' })
      expectJson(answer)
      const { json } = answer
      assert.ok((commitPhases as readonly string[]).includes(String(json.phase)), String(json.phase))
      expectKeys(json, ['outstandingLanes', 'epoch', 'lanes', 'restarts', 'last', 'queued', 'ageMs'])
      assert.ok(Array.isArray(json.outstandingLanes))
      expectKeys(json.restarts, ['used', 'max', 'causes'])
    },
  },
  {
    rules: ['2.13.barriers', 'R33'],
    name: 'a lane that a commit waits for is named with what it is at',
    given: () => undefined,
    check: async (instance) => {
      const { json } = await instance.ask({ path: '/debug/barriers' })
      assert.deepEqual(json.outstandingLanes, ['lane-1'])
      assert.equal(json.ageMs, 5000)
      const lane = (json.lanes as unknown as Json[])[1]
      assert.deepEqual(lane?.at, { topic: 'words', partition: 1, offset: 7 })
      assert.equal(lane.progressAgeMs, 9000)
    },
  },
  {
    rules: ['7.404'],
    name: 'disabled, /debug is unknown',
    when: { config: { debugEnabled: false } },
    check: async (instance) => {
      expectError(await instance.ask({ path: '/debug/threads' }), 404)
      expectError(await instance.ask({ path: '/debug/barriers' }), 404)
    },
  },
  {
    rules: ['4.metrics', 'R38'],
    name: '/metrics has its content type, whatever is accepted',
    check: async (instance) => {
      for (const accept of ['application/openmetrics-text', 'application/json', '*/*']) {
        const answer = await instance.ask({ path: '/metrics', headers: { accept } })
        assert.equal(answer.status, 200)
        assert.equal(answer.headers['content-type'], metricsType)
        assert.match(answer.body, /^# HELP engine_info /m)
      }
    },
  },
  {
    rules: ['R11', 'R35', '4.metrics', '7.503'],
    name: 'disabled, /metrics is 503, with a wrong method 405',
    when: { config: { metricsEnabled: false } },
    check: async (instance) => {
      expectError(await instance.ask({ path: '/metrics' }), 503, /runtime\.metrics\.enabled/)
      expectError(await instance.ask({ method: 'POST', path: '/metrics' }), 405)
    },
  },
]
