/** Calls that a breaker makes again, and calls that do not answer in time: as in the engine, and without its waiting. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type CallSettings, defineApp, serdes } from '../../../src/index.ts'
import { type DriverOptions, type TestedApplication, TopologyTestDriver } from '../../../src/testing/index.ts'

const number = { key: serdes.string, value: serdes.json<number>() }
const skip = { 'errors.processing': 'skip' } as const

function asking(ask: (value: number) => unknown, calls: CallSettings, options: DriverOptions = {}): TopologyTestDriver {
  const app = defineApp({
    applicationId: 'asking',
    build: (topology) => {
      topology
        .stream('in', number)
        .mapValues(async (value) => (await ask(value)) as number, { ...calls, name: 'ask' })
        .to('out', number)
    },
  })
  return new TopologyTestDriver(app, options)
}

function results(driver: TopologyTestDriver): unknown[] {
  return driver
    .output('out')
    .readAll()
    .map(({ value }) => value)
}

function dropped(tested: Pick<TestedApplication, 'dropped'>): unknown[] {
  return tested.dropped().map(({ reason, node, value }) => [reason, node, value])
}

function records(...values: number[]): Array<{ key: string; value: number }> {
  return values.map((value) => ({ key: `k${value}`, value }))
}

function never(): Promise<never> {
  return new Promise(() => undefined)
}

function really<T>(ms: number, value: T): Promise<T> {
  return new Promise((resolve) => setTimeout(resolve, ms, value))
}

describe('a breaker', () => {
  test('has calls made again that have failed', async () => {
    let made = 0
    const driver = asking(
      (value) => {
        if (++made < 9) throw new Error('away')
        return value
      },
      { breaker: {} },
    )
    await driver.input('in').pipe('a', 1)
    await driver.input('in').pipe('a', 2)
    assert.deepEqual(results(driver), [1, 2])
    assert.equal(made, 10)
    assert.equal(driver.now(), 0)
  })

  test('has them made again in an aggregate too, and in a commit that the test asks for', async () => {
    let made = 0
    const app = defineApp({
      applicationId: 'sums',
      build: (topology) => {
        const add = async (sum: number, value: number): Promise<number> => {
          if (made++ % 2 === 0) throw new Error('away')
          return sum + value
        }
        topology
          .stream('in', number)
          .groupByKey()
          .aggregate(() => 0, add, { ...{ store: { name: 'sums', value: number.value }, breaker: {} } })
          .toStream()
          .to('out', number)
      },
    })
    const driver = new TopologyTestDriver(app, { commits: 'interval' })
    for (const value of [1, 2, 3]) await driver.input('in').pipe('a', value)
    await driver.commit()
    assert.deepEqual(results(driver), [1, 3, 6])
  })

  test('gives up on a record that alone fails while others come through', async () => {
    const made: number[] = []
    const driver = asking(
      (value) => {
        made.push(value)
        if (value === 1) throw new Error('never')
        return value
      },
      { breaker: { after: 3 } },
      { config: skip },
    )
    await driver.input('in').pipeAll(records(1, 2, 3))
    assert.deepEqual(results(driver), [2, 3])
    assert.deepEqual(dropped(driver), [['handler', 'ask', 1]])
    assert.ok(made.filter((value) => value === 1).length > 1)
  })

  test('lets no pause pass ahead of a call that is really under way', async () => {
    let isBack = false
    let failed = 0
    const driver = asking(
      async (value) => {
        if (value === 2) {
          await really(30, 0)
          isBack = true
        }
        if (isBack) return value
        failed++
        throw new Error('away')
      },
      { breaker: { after: 2 } },
    )
    await driver.input('in').pipeAll(records(1, 2))
    assert.deepEqual(results(driver).toSorted(), [1, 2])
    assert.ok(failed < 10, `${failed} calls were made meanwhile`)
  })

  test('lets a pause pass beside a call that waits for the one made again', async () => {
    const { promise, resolve } = Promise.withResolvers<number>()
    let made = 0
    const driver = asking(
      (value) => {
        if (value === 2) return promise
        if (++made < 2) throw new Error('away')
        resolve(2)
        return value
      },
      { breaker: {} },
    )
    await driver.input('in').pipeAll(records(1, 2))
    assert.deepEqual(results(driver).toSorted(), [1, 2])
  })

  test('moves neither the clock on the wall nor what goes by it', async () => {
    let made = 0
    const fired: number[] = []
    const app = defineApp({
      applicationId: 'clocks',
      build: (topology) => {
        const stream = topology.stream('in', number)
        const ask = async (value: number): Promise<number> => {
          if (++made % 20 !== 0) throw new Error('away')
          return value
        }
        stream.mapValues(ask, { breaker: {} }).to('out', number)
        stream
          .process((context) => {
            context.schedule('1s', 'wall-clock', (at) => void fired.push(at))
            return () => undefined
          })
          .to('none')
      },
    })
    const driver = new TopologyTestDriver(app)
    await driver.input('in').pipe('a', 1)
    assert.deepEqual([fired, driver.now()], [[], 0])
    await driver.advanceWallClock('2s')
    await driver.input('in').pipe('a', 2)
    assert.deepEqual([fired, driver.now()], [[1000, 2000], 2000])
    assert.deepEqual(results(driver), [1, 2])
  })

  test('a call that never comes through is told by node, record and error, and may come through later', async () => {
    let isBack = false
    const driver = asking(
      (value) => {
        if (!isBack) throw new Error('no such service')
        return value
      },
      { breaker: {} },
    )
    await assert.rejects(driver.input('in').pipe('a', 1), {
      code: 'USAGE',
      message: /A call of ask fails for the record in\/0 at offset 0 .*`pipeAll`.*no such service/,
    })
    isBack = true
    await driver.input('in').pipe('a', 2)
    assert.deepEqual(results(driver), [1, 2])
  })
})

describe('a timeout', () => {
  test('ends a call that does not answer, by the policy', async () => {
    const driver = asking((value) => (value === 2 ? never() : value), { timeout: '20ms' }, { config: skip })
    await driver.input('in').pipeAll(records(1, 2, 3))
    assert.deepEqual(results(driver).toSorted(), [1, 3])
    assert.deepEqual(dropped(driver), [['handler', 'ask', 2]])
  })

  test('fails the application where the policy says so', async () => {
    const driver = asking(never, { timeout: '20ms' })
    await assert.rejects(driver.input('in').pipe('a', 1), {
      code: 'PROCESSING_FAILED',
      message: /had no answer within 20 ms/,
    })
  })

  test('of a long one no more is waited for than the patience of the driver', async () => {
    const driver = asking(never, { timeout: '10m' }, { config: skip, patience: '20ms' })
    await driver.input('in').pipe('a', 1)
    assert.deepEqual(dropped(driver), [['handler', 'ask', 1]])
    assert.equal(driver.now(), 0)
  })

  test('cuts off nobody who really answers', async () => {
    let failed = 0
    const driver = asking(
      (value) => {
        if (value !== 1) return really(60, value)
        if (++failed < 4) throw new Error('away')
        return value
      },
      { timeout: '10s', breaker: {} },
      { config: skip },
    )
    await driver.input('in').pipeAll(records(1, 2, 3))
    assert.deepEqual(results(driver).toSorted(), [1, 2, 3])
    assert.deepEqual(driver.dropped(), [])
  })

  test('together with a breaker has the call made again', async () => {
    let made = 0
    const driver = asking((value) => (++made < 3 ? never() : value), { timeout: '20ms', breaker: {} })
    await driver.input('in').pipe('a', 1)
    assert.deepEqual([results(driver), made], [[1], 3])
  })

  test('of a call that is made again, and never answers, the driver tells', async () => {
    const driver = asking(never, { timeout: '20ms', breaker: {} }, { patience: '30ms' })
    await assert.rejects(driver.input('in').pipe('a', 1), {
      code: 'USAGE',
      message: /A call of ask fails for the record/,
    })
  })
})

describe('a call without a timeout that does not answer', () => {
  test('is told by node and record', async () => {
    const driver = asking((value) => (value === 2 ? never() : value), {}, { patience: '5ms' })
    await driver.input('in').pipe('a', 1)
    await assert.rejects(driver.input('in').pipe('a', 2), {
      code: 'USAGE',
      message: /A call of ask for the record in\/0 at offset 1 has not answered within 0.05 s.*`timeout`.*`patience`/,
    })
    driver.close()
  })

  test('is no hindrance to a restart', async () => {
    let made = 0
    const driver = asking((value) => (++made < 2 ? never() : value), {}, { patience: '5ms' })
    await assert.rejects(driver.input('in').pipe('a', 1), { code: 'USAGE' })
    await driver.restart()
    assert.deepEqual(results(driver), [1])
  })

  test('may take longer than its like with one', async () => {
    const driver = asking((value) => really(100, value), {}, { patience: '50ms' })
    await driver.input('in').pipe('a', 1)
    assert.deepEqual(results(driver), [1])
  })
})

describe('the other bounds', () => {
  test('let every call begin at once', async () => {
    const allBegan = Promise.withResolvers<number>()
    let begun = 0
    const ask = (): Promise<number> => {
      if (++begun === 5) allBegan.resolve(0)
      return allBegan.promise
    }
    const driver = asking(ask, { concurrency: 2, rate: '1/s' })
    await driver.input('in').pipeAll(records(1, 2, 3, 4, 5))
    assert.equal(results(driver).length, 5)
  })

  test('a patience that is no duration is refused', () => {
    assert.throws(() => asking(never, {}, { patience: 'long' as '1s' }), {
      code: 'USAGE',
      message: /"long" is no duration/,
    })
  })
})
