import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { loadConfig } from '../../../src/config/load.ts'
import { logFilterOf, logOf } from '../../../src/runtime/log.ts'

function written(set: readonly string[]): string[] {
  const isWritten = logFilterOf(loadConfig({ set }))
  const lines = ['engine', 'ha', 'http'].flatMap((component) =>
    (['debug', 'info', 'warn', 'error'] as const).map((level) => ({ component, level, message: 'x' })),
  )
  return lines.filter(isWritten).map(({ component, level }) => `${component} ${level}`)
}

describe('which lines of the log are written', () => {
  test('from the level on that is asked for', () => {
    assert.deepEqual(written(['log.level=error']), ['engine error', 'ha error', 'http error'])
  })

  test('a component may have a level of its own, a lower or a higher one', () => {
    const lines = written(['log.level=warn', 'log.levels=ha=debug,http=error'])
    const ofHa = ['ha debug', 'ha info', 'ha warn', 'ha error']
    assert.deepEqual(lines, ['engine warn', 'engine error', ...ofHa, 'http error'])
  })

  test('what is no level is refused with the key', () => {
    assert.throws(() => written(['log.levels=ha=loud']), /log\.levels/)
    assert.throws(() => written(['log.levels=debug']), /log\.levels/)
  })
})

describe('a line of the log', () => {
  test('is told by its own time, level and component, whatever fields an application gives', (t) => {
    const texts: string[] = []
    t.mock.method(process.stderr, 'write', (text: string) => texts.push(text) > 0)
    const fields = { time: 'yesterday', level: 'gold', component: 'till', message: 'mine', shop: 'b' }
    logOf({ application: 'app.ts' }, loadConfig())({ level: 'warn', component: 'app', message: 'a sentence', fields })
    t.mock.restoreAll()
    const { time, ...line } = JSON.parse(texts.join('')) as Record<string, unknown>
    assert.ok(!Number.isNaN(Date.parse(String(time))))
    assert.deepEqual(line, {
      level: 'warn',
      component: 'app',
      message: 'a sentence',
      time_: 'yesterday',
      level_: 'gold',
      component_: 'till',
      message_: 'mine',
      shop: 'b',
    })
  })

  test('has its component in a logger of the application as well', () => {
    const given: object[] = []
    const at = (fields: object) => void given.push(fields)
    const logger = { debug: at, info: at, warn: at, error: at }
    const line = { level: 'info', component: 'app', message: 'x', fields: { component: 'till' } } as const
    logOf({ application: 'app.ts', logger }, loadConfig())(line)
    assert.deepEqual(given, [{ component: 'app', component_: 'till' }])
  })
})
