/**
 * The control thread answers whoever asks, from the first moment on. Loading the client of Kafka takes seconds on a busy
 * machine, so other threads do.
 */
import assert from 'node:assert/strict'
import { registerHooks } from 'node:module'
import { type TestContext, test } from 'node:test'
import type { TestEngine as Engine } from './support/engine.ts'
import { eventually } from '../support/millrace.ts'

/** What this thread has loaded. */
const loaded = new Set<string>()
registerHooks({
  resolve: (specifier, context, next) => {
    const found = next(specifier, context)
    loaded.add(found.url)
    return found
  },
})
const { TestEngine } = await import('./support/engine.ts')

/** Nobody listens there: enough for all that talk to the broker to try. */
const nowhere = { 'broker.bootstrap-servers': '127.0.0.1:1', 'engine.state.store': 'memory' }

async function talks(t: TestContext, settings: Readonly<Record<string, unknown>>): Promise<void> {
  const engine: Engine = await TestEngine.start(t, 'standing', { ...nowhere, ...settings })
  const asked = assert.rejects(engine.broker.topics(['works']), { code: 'UNREACHABLE', message: /127\.0\.0\.1:1/ })
  await eventually('the engine has asked the broker', () => engine.runtime.view.broker().fault !== null)
  await asked
}

test('the control thread never loads the client of Kafka, whoever asks the broker', async (t) => {
  await Promise.all([talks(t, {}), talks(t, { 'ha.mode': 'hot-standby', 'ha.pod-id': 'one' })])
  const has = (part: string): string[] => [...loaded].filter((url) => url.includes(part))
  assert.equal(has('/src/runtime/runtime.ts').length, 1, 'what is loaded is seen')
  assert.equal(has('/src/ha/coordinator-shell.ts').length, 1, 'what is loaded later is seen')
  assert.deepEqual(has('@platformatic/kafka'), [])
})
