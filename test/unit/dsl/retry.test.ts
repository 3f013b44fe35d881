import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, EngineError, serdes, withRetry } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

class Unavailable extends Error {
  override readonly name = 'Unavailable'
}

describe('withRetry', () => {
  test('calls again until it works, one key at a time and in order', async () => {
    const calls: string[] = []
    const app = defineApp({
      applicationId: 'retries',
      build(topology) {
        topology
          .stream('in', { key: serdes.string, value: serdes.json<number>() })
          .mapValues(
            withRetry(
              async (value, key) => {
                calls.push(`${key}${value}`)
                if (value === 1 && calls.length < 3) throw new Unavailable('not now')
                return value * 10
              },
              { attempts: 3, backoff: 1 },
            ),
          )
          .to('out', { value: serdes.json<number>() })
      },
    })
    const driver = new TopologyTestDriver(app)
    await driver.input('in').pipe('a', 1)
    await driver.input('in').pipe('a', 2)
    assert.deepEqual(calls, ['a1', 'a1', 'a1', 'a2'])
    assert.deepEqual(
      driver
        .output('out')
        .readAll()
        .map((record) => record.value),
      [10, 20],
    )
  })

  test('gives up with the last error, or at once where another call is no use', async () => {
    let calls = 0
    const failing = (): Promise<number> => {
      calls++
      return Promise.reject(new Unavailable(`call ${calls}`))
    }
    await assert.rejects(withRetry(failing, { attempts: 3, backoff: 1 })(), { message: 'call 3' })
    calls = 0
    await assert.rejects(withRetry(failing, { backoff: 1, retryIf: () => false })(), { message: 'call 1' })
  })

  test('takes functions that throw rather than reject, and passes on all arguments', async () => {
    let first = true
    const sum = (a: number, b: number): number => {
      if (!first) return a + b
      first = false
      throw new Unavailable('once')
    }
    assert.equal(await withRetry(sum, { backoff: 1 })(2, 3), 5)
  })

  test('refuses settings that make no sense when the topology is built', () => {
    const isInvalid = (error: unknown): boolean => EngineError.is(error) && error.code === 'TOPOLOGY_INVALID'
    assert.throws(() => withRetry(() => 1, { attempts: 0 }), isInvalid)
    assert.throws(() => withRetry(() => 1, { backoff: 'soon' as never }), isInvalid)
  })
})
