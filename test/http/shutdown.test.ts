/** What probes and operators see of a process from its first moment to its last. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { freePort } from '../../scripts/free-ports.ts'
import { eventually, startMillrace } from '../support/millrace.ts'
import { type Answer, ask } from './support/client.ts'

test('[R51] from SIGTERM on: not ready but alive, STOPPING shown, the server there until the engine is gone', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-shutdown-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const feed = join(folder, 'orders.ndjson')
  writeFileSync(feed, `${JSON.stringify({ key: 'a', value: { slowMs: 4000 }, timestamp: 1e12 })}\n`)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const settings = ['runtime.http.host=127.0.0.1', `runtime.http.port=${port}`, 'engine.lanes.count=1']
  const app = join(import.meta.dirname, 'apps', 'scenario-app.ts')
  const run = startMillrace(['run', app, '--feed', `orders=${feed}`, ...settings.flatMap((each) => ['--set', each])])
  t.after(() => run.child.kill('SIGKILL'))
  const get = (path: string): Promise<Answer | undefined> => ask(url, { path }).catch(() => undefined)

  // Whatever the first answers are, they are those of a process that starts.
  await eventually('the probes answer', async () => (await get('/health/live'))?.status === 200)
  await eventually('it is ready', async () => (await get('/health/ready'))?.status === 200)
  await eventually('the slow record is being processed', async () => {
    const body = (await get('/metrics'))?.body ?? ''
    return /^engine_lane_async_in_flight_records\{lane="lane-0"\} 1$/m.test(body)
  })
  run.child.kill('SIGTERM')
  await eventually('readiness is gone', async () => (await get('/health/ready'))?.status === 503)
  const [live, state, metrics] = await Promise.all(['/health/live', '/state', '/metrics'].map(get))
  assert.equal(live?.status, 200)
  assert.equal(state?.json.current, 'STOPPING')
  assert.equal(metrics?.status, 200)
  const { code, stderr } = await run.result
  assert.equal(code, 0, stderr)
  assert.equal(await get('/health/live'), undefined)
})
