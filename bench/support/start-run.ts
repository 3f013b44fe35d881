/**
 * Starts the `map` workload, HTTP interface included, as the command line does, and prints the milliseconds from the
 * process's beginning to RUNNING.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { keepCompiled } from '../../src/cli/compile-cache.ts'

keepCompiled()
const { startRuntime } = await import('../../src/runtime/index.ts')
const stateDir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
const runtime = await startRuntime({
  application: join(import.meta.dirname, 'app.ts'),
  config: {
    'runtime.http.host': '127.0.0.1',
    'runtime.http.port': 0,
    'broker.bootstrap-servers': process.argv[2] ?? 'embedded:',
    'broker.embedded.partitions': 4,
    'engine.lanes.count': 2,
    'engine.state.dir': stateDir,
    'log.level': 'warn',
  },
  environment: {},
})
while (runtime.view.state().current !== 'RUNNING') await sleep(1)
process.stdout.write(`${performance.now()}\n`)
await runtime.stop()
rmSync(stateDir, { recursive: true, force: true })
