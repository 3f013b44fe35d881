/** Settings that say "for ever": the platform's timers take three weeks and a half, and fire at once for what is longer. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'node:test'
import { type LogLine, startRuntime } from '../../src/runtime/index.ts'
import { appFile } from './support/engine.ts'

test('time-outs of a month are waited for, and are no busy loop', async (t) => {
  const warnings: string[] = []
  const warned = (warning: Error): void => void warnings.push(warning.name)
  process.on('warning', warned)
  t.after(() => process.off('warning', warned))
  const lines: LogLine[] = []
  const runtime = await startRuntime({
    application: appFile('running-sum'),
    config: {
      'runtime.http.enabled': false,
      'engine.lanes.count': 1,
      'consumer.metadata.max.age.ms': '30d',
      'runtime.shutdown.timeout': '30d',
    },
    log: (line) => lines.push(line),
  })
  await runtime.produce('numbers', [{ key: 'a', value: 1 }])
  await runtime.untilIdle()
  await sleep(200)
  assert.equal(await runtime.stop(), 0)
  assert.deepEqual(
    lines.filter(({ level }) => level === 'warn').map(({ message }) => message),
    [],
  )
  assert.deepEqual(warnings, [])
})
