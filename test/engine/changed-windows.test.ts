/** Windows whose grace, and with it their retention, was changed between two starts: what was counted stays counted. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from 'node:test'
import { startEmbeddedBroker, startRuntime } from '../../src/runtime/index.ts'
import { appFile, consume, firstTime, lastByKey, produce } from './support/engine.ts'

for (const store of ['lmdb', 'memory'])
  for (const graces of [
    ['0s', '9s', '0s'],
    ['9s', '0s', '9s'],
  ])
    test(`windows go on where they stood (${store}, grace of ${graces.join(', then ')})`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'millrace-graced-'))
      t.after(() => rmSync(folder, { recursive: true, force: true }))
      const broker = await startEmbeddedBroker({ partitions: 2 })
      t.after(() => broker.close())
      const keys = Array.from({ length: 200 }, (_, i) => `k${i}`)
      for (const [run, grace] of graces.entries()) {
        const records = keys.map((key) => ({ key, value: run, timestamp: firstTime + 5000 }))
        await produce(broker.client(), 'in', records)
        const application = pathToFileURL(appFile('graced'))
        application.search = new URLSearchParams({ grace }).toString()
        const config = { 'runtime.http.enabled': false, 'engine.state.store': store, 'engine.state.dir': folder }
        const runtime = await startRuntime({ application, broker, config, log: () => undefined })
        await runtime.untilIdle()
        await runtime.stop()
        const told = lastByKey(await consume(broker.client(), 'out'))
        assert.deepEqual(told, Object.fromEntries(keys.map((key) => [key, run + 1])))
      }
    })
