import assert from 'node:assert/strict'
import { join } from 'node:path'
import { startRuntime } from '../../src/runtime/index.ts'
import { eventually } from '../support/millrace.ts'

export interface Licensed {
  readonly url: string
  readonly log: readonly string[]
  stop(): Promise<void>
}

/** A whole running application with a license. */
export async function startLicensed(settings: Readonly<Record<string, unknown>>): Promise<Licensed> {
  const log: string[] = []
  const runtime = await startRuntime({
    application: join(import.meta.dirname, 'apps', 'quiet.ts'),
    config: {
      'runtime.http.host': '127.0.0.1',
      'runtime.http.port': 0,
      'engine.lanes.count': 1,
      ...settings,
    },
    log: (line) => log.push(JSON.stringify(line)),
  })
  const { url } = runtime
  assert.ok(url !== undefined)
  await eventually('the engine runs', () => runtime.view.state().current === 'RUNNING')
  return {
    url,
    log,
    stop: async () => assert.equal(await runtime.stop(), 0),
  }
}
