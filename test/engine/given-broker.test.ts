/** A broker that the program gives is named by what it is, not by a setting that it does not follow. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { TestEngine } from './support/engine.ts'

async function nameOf(t: TestContext, folder?: string): Promise<string> {
  const broker = await startEmbeddedBroker({ partitions: 1, ...(folder !== undefined && { folder }) })
  t.after(() => broker.close())
  const engine = await TestEngine.start(t, 'shopper-timers', { 'broker.bootstrap-servers': 'kafka:9092' }, broker)
  return engine.runtime.view.broker().bootstrapServers
}

test('a broker with a folder is named with it, and one without is in memory: what a restart costs rests on that', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-given-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  assert.equal(await nameOf(t, folder), `embedded:${folder}`)
  assert.equal(await nameOf(t), 'embedded:')
})
