import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { loadConfig } from '../../../src/config/load.ts'
import { logFilterOf } from '../../../src/runtime/log.ts'

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
