/**
 * One run of one workload on the embedded broker in a process of its own; prints one line of JSON.
 * `node bench/support/embedded-run.ts WORKLOAD RECORDS LANES STORE [PARTITIONS [USERS]]`
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { assert } from '../../src/base/assert.ts'
import { engineIndex } from '../../src/base/counters.ts'
import { startRuntime } from '../../src/runtime/index.ts'
import { produceEvents, produceUsers } from './events.ts'
import { difference, peakMebibytes, processSeconds, threadSeconds } from './usage.ts'

const [workload = 'map', recordsText = '1000000', lanes = '2', store = 'memory', ...more] = process.argv.slice(2)
const records = Number(recordsText)
const partitions = Number(more[0] ?? 4)
const users = Number(more[1] ?? 100_000)

process.env.BENCH_WORKLOAD = workload
const stateDir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
const runtime = await startRuntime({
  application: join(import.meta.dirname, 'app.ts'),
  config: {
    'runtime.http.enabled': false,
    'broker.bootstrap-servers': 'embedded:',
    'broker.embedded.partitions': partitions,
    'engine.lanes.count': Number(lanes),
    'engine.state.store': store,
    'engine.state.dir': stateDir,
    'log.level': 'warn', 'commit-barrier.interval-ms': 20, 'commit-barrier.idle-interval-ms': 20,
  },
  environment: {},
})
try {
  const { view, commands, broker } = runtime
  while (view.state().current !== 'RUNNING') await sleep(5)
  commands.pause()
  while (view.state().current !== 'PAUSED') await sleep(5)
  if (workload === 'join') await produceUsers(broker, 'users', partitions, users)
  await produceEvents(broker, 'ev', partitions, { records, users, pages: 2000, seed: 7 })
  const counters = view.counters()
  assert(counters !== null, 'the engine runs and has no counters')
  const { engine } = counters
  const dispatched = (): number => engine[engineIndex.recordsDispatched] as number
  const before = dispatched()
  commands.unpause()
  while (dispatched() === before) await sleep(1)
  const startedAt = performance.now()
  const cpu = processSeconds()
  const threads = threadSeconds()
  const commits = engine[engineIndex.commitsCommitted] as number
  await runtime.untilIdle()
  const seconds = (performance.now() - startedAt) / 1000
  const cpuSeconds = processSeconds() - cpu
  const committed = (engine[engineIndex.commitsCommitted] as number) - commits
  const line = {
    workload,
    lanes: Number(lanes),
    store,
    records,
    seconds,
    recordsPerSecond: Math.round(records / seconds),
    cpuSeconds,
    microsecondsPerRecord: (cpuSeconds * 1e6) / records,
    commits: committed,
    peakMebibytes: peakMebibytes(),
    load: loadavg()[0],
    threads: Object.fromEntries(difference(threads, threadSeconds())),
  }
  process.stdout.write(`${JSON.stringify(line)}\n`)
} finally {
  await runtime.stop()
  rmSync(stateDir, { recursive: true, force: true })
}
