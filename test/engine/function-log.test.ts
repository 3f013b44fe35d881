/** What functions write goes from their lane to the log of the process, and to a logger of the application's own. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { type LogLine, startRuntime } from '../../src/runtime/index.ts'

interface Written {
  readonly level: string
  readonly fields: Record<string, unknown>
  readonly message: string
}

test('a logger of the shape of pino gets the lines of functions and of the engine, by level and component', async () => {
  const written: Written[] = []
  const at = (level: string) => (fields: Record<string, unknown>, message: string) =>
    void written.push({ level, fields, message })
  const logger = {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    isLevelEnabled: (level: string) => level !== 'warn',
  }
  const runtime = await startRuntime({
    application: join(import.meta.dirname, 'apps/logging.ts'),
    config: { 'runtime.http.enabled': false, 'engine.lanes.count': 2 },
    logger,
  })
  try {
    const keys = ['a', 'b', 'c', 'd', 'e', 'f']
    await runtime.produce(
      'in',
      keys.map((key, value) => ({ key, value, timestamp: value })),
    )
    await runtime.untilIdle()
  } finally {
    await runtime.stop()
  }
  const own = written.filter(({ fields }) => fields.component === 'app')
  assert.deepEqual(
    own.map(({ message }) => message).sort(),
    [0, 1, 2, 3, 4, 5].map((n) => `value ${n}`),
  )
  assert.equal(new Set(own.map(({ fields }) => `${fields.partition}/${fields.offset}`)).size, 6)
  for (const { level, fields } of own) {
    assert.equal(level, 'debug')
    assert.partialDeepStrictEqual(fields, { node: 'named', topic: 'in' })
  }
  assert.deepEqual([...new Set(own.map(({ fields }) => fields.lane))].sort(), [0, 1])
  const engine = written.filter(({ fields }) => fields.component === 'engine')
  assert.ok(engine.some(({ level, message }) => level === 'info' && message.endsWith('→ RUNNING')))
  assert.ok(
    engine.every(({ level }) => level !== 'debug'),
    'log.level is that of all others',
  )
})

test('whatever a function gives its logger ends no process, and no field tells a secret', async () => {
  const lines: LogLine[] = []
  const runtime = await startRuntime({
    application: join(import.meta.dirname, 'apps/logging-oddly.ts'),
    config: { 'runtime.http.enabled': false, 'engine.lanes.count': 1, 'schema-registry.password': 'correct-horse' },
    log: (line) => lines.push(line),
  })
  try {
    const values = ['error as sentence', 'number alone', 'nothing', 'it is correct-horse', 'postgres://me:hunter2@db/x']
    await runtime.produce(
      'in',
      values.map((value) => ({ key: 'k', value })),
    )
    await runtime.untilIdle()
  } finally {
    assert.equal(await runtime.stop(), 0)
  }
  const own = lines.filter(({ component }) => component === 'app')
  assert.deepEqual(
    own.map(({ message }) => message),
    ['no room left', '42', '', 'a secret', 'a secret', 'cannot reach postgres://******@db/x'],
  )
  assert.equal(own[0]?.fields?.step, 1)
  assert.deepEqual(own[4]?.fields?.given, { text: 'postgres://******@db/x' })
  assert.doesNotMatch(JSON.stringify(lines), /hunter2|correct-horse/)
})
