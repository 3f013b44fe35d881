import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, type FunctionContext, type Logger, serdes } from '../../../src/index.ts'
import { LogLines } from '../../../src/lanes/tasks/log-lines.ts'
import { type DriverLogLine, TopologyTestDriver } from '../../../src/testing/index.ts'

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('context.logger', () => {
  test('says which node wrote for which record, in streams and processors, also behind awaits and in timers', async () => {
    const lines: DriverLogLine[] = []
    const contexts = new Set<FunctionContext>()
    const loggers = new Set<Logger>()
    const app = defineApp({
      applicationId: 'logging',
      build: (topology) => {
        const numbers = topology.stream('numbers', { key: serdes.string, value: serdes.number })
        numbers
          .filter(
            (value, _key, _record, context) => {
              contexts.add(context)
              loggers.add(context.logger)
              context.logger.info({ value }, 'seen')
              return value < 100
            },
            { name: 'small' },
          )
          .mapValues(
            async (value, _key, _record, { logger }) => {
              await tick()
              await tick()
              logger.warn({ value, asked: new Error('no') }, 'asked')
              return value
            },
            { name: 'asked' },
          )
          .processValues<number>(
            ({ logger, timers, forward }) => ({
              process: async (value, key) => {
                await tick()
                timers.set(key, 5000)
                logger.child({ shop: 'b' }).error(new RangeError(`${value} is odd`))
                await forward(value)
              },
              onTimer: () => logger.info('timer'),
            }),
            { name: 'timed', timers: true },
          )
          .to('out')
      },
    })
    const driver = new TopologyTestDriver(app, { log: (line) => lines.push(line) })
    const keys = ['a', 'b', 'c', 'd']
    await driver.input('numbers').pipeAll(keys.map((key, value) => ({ key, value, timestamp: value })))
    await driver.input('numbers').pipe('a', 100, { timestamp: 60_000 })
    await driver.close()

    const of = (node: string): DriverLogLine[] => lines.filter(({ fields }) => fields.node === node)
    assert.deepEqual(
      of('small').map(({ level, message, fields }) => [level, message, fields.value, fields.topic, fields.offset]),
      [0, 1, 2, 3, 100].map((value, offset) => ['info', 'seen', value, 'numbers', offset]),
    )
    const asked = of('asked').map(({ fields }) => [fields.value, fields.offset])
    assert.deepEqual(
      asked.sort(),
      [
        [0, 0],
        [1, 1],
        [2, 2],
        [3, 3],
      ],
      'behind an await as before it',
    )
    assert.partialDeepStrictEqual(of('asked')[0]?.fields, { asked: { type: 'Error', message: 'no' }, lane: 0 })
    const timed = of('timed').filter(({ level }) => level === 'error')
    assert.deepEqual(
      timed.map(({ message, fields }) => [message, fields.offset, fields.shop]).sort(),
      [0, 1, 2, 3].map((n) => [`${n} is odd`, n, 'b']),
    )
    const fired = of('timed').filter(({ message }) => message === 'timer')
    assert.equal(fired.length, 4)
    assert.deepEqual(fired[0]?.fields, { node: 'timed', lane: 0 })
    assert.equal(contexts.size, 1, 'no context is made for a record')
    assert.equal(loggers.size, 1, 'no logger is made for a record')
  })

  test('follows log.levels, and asks for fields only of what is written', async () => {
    const lines: DriverLogLine[] = []
    const enabled: boolean[] = []
    const app = defineApp({
      applicationId: 'levels',
      config: { 'log.levels': 'app=warn' },
      build: (topology) =>
        topology
          .stream('numbers', { key: serdes.string, value: serdes.number })
          .foreach((value, _k, _r, { logger }) => {
            logger.info(
              {
                get value() {
                  return assert.fail('nobody reads this')
                },
              },
              'never',
            )
            enabled.push(logger.isLevelEnabled('info'), logger.isLevelEnabled('warn'))
            logger.warn({ circle: circular(), big: 2n ** 64n, fn: () => value }, 'odd fields')
            logger.warn({ big: 2n ** 64n, fn: () => value }, 'odd fields')
          }),
    })
    const driver = new TopologyTestDriver(app, { log: (line) => lines.push(line) })
    await driver.input('numbers').pipe('a', 1)
    await driver.close()
    assert.deepEqual(enabled, [false, true])
    assert.equal(lines.length, 2)
    assert.match(String(lines[0]?.fields.unreadable), /circular/i)
    assert.equal(lines[1]?.fields.big, '18446744073709551616')
    assert.doesNotThrow(() => structuredClone(lines))
  })

  test('leaves out what a log could not take, and says how much', () => {
    let now = 5000
    const lines: Array<{ message: string }> = []
    const log = new LogLines('info', 0, { now: () => now } as never, (line) => lines.push(line), 10)
    for (let i = 0; i < 35; i++) log.write('info', {}, undefined, `line ${i}`)
    assert.equal(lines.length, 10)
    now += 1000
    log.write('info', {}, undefined, 'next')
    assert.match(lines[10]?.message ?? '', /^25 lines .* were left out/)
    assert.equal(lines[11]?.message, 'next')
    now += 1000
    log.write('info', {}, undefined, 'and next')
    assert.equal(lines.length, 13)
  })
})

function circular(): unknown {
  const circle: { self?: unknown } = {}
  circle.self = circle
  return circle
}
