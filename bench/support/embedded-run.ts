/**
 * One run of one workload on the embedded broker in a process of its own; prints one line of JSON.
 * `node bench/support/embedded-run.ts WORKLOAD RECORDS LANES STORE [PARTITIONS [USERS [steady]]]`
 *
 * With `steady` there is a row of each user before the span begins, and all of them are written to the disk; and the span
 * ends when what it brought is written as well. `BENCH_SETTINGS` holds further settings as JSON.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { assert } from '../../src/base/assert.ts'
import { engineIndex, laneIndex } from '../../src/base/counters.ts'
import { startRuntime } from '../../src/runtime/index.ts'
import type { Serde } from '../../src/serde/serde.ts'
import { EmbeddedRegistry } from '../../src/serde/registry/index.ts'
import { connectSerde } from '../../src/testing/embedded-schemas.ts'
import { produceEachUser, produceEvents, produceUsers } from './events.ts'
import { eventSerdes, type Format } from './formats.ts'
import { difference, peakMebibytes, processSeconds, threadSeconds } from './usage.ts'

const [workload = 'map', recordsText = '1000000', lanes = '2', store = 'memory', ...more] = process.argv.slice(2)
const records = Number(recordsText)
const partitions = Number(more[0] ?? 4)
const users = Number(more[1] ?? 100_000)
const isSteady = more[2] === 'steady'

process.env.BENCH_WORKLOAD = workload
const format = (process.env.BENCH_FORMAT ?? 'json') as Format
const registry = new EmbeddedRegistry()
const { event } = eventSerdes(format)
const eventOf = event.forTopic?.('ev', 'value') ?? event
connectSerde(eventOf as Serde<unknown>, registry)
const stateDir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
const runtime = await startRuntime({
  registry,
  application: join(import.meta.dirname, 'app.ts'),
  config: {
    'runtime.http.enabled': false,
    'broker.bootstrap-servers': 'embedded:',
    'schema-registry.url': 'embedded',
    'broker.embedded.partitions': partitions,
    'engine.lanes.count': Number(lanes),
    'engine.state.store': store as 'memory' | 'lmdb',
    'engine.state.dir': stateDir,
    'log.level': 'warn',
    ...(JSON.parse(process.env.BENCH_SETTINGS ?? '{}') as Record<string, string | number>),
  },
  environment: {},
})
try {
  const { view, commands, broker } = runtime
  while (view.state().current !== 'RUNNING') await sleep(5)
  commands.pause()
  while (view.state().current !== 'PAUSED') await sleep(5)
  if (workload === 'join') await produceUsers(broker, 'users', partitions, users)
  if (workload === 'rekey-join') await produceUsers(broker, 'users', partitions, 2000, 'p')
  const counters = view.counters()
  assert(counters !== null, 'the engine runs and has no counters')
  const { engine } = counters
  const written = async (): Promise<void> => {
    await runtime.untilIdle()
    while (counters.lanes.some((lane) => (lane[laneIndex.unwrittenBytes] as number) > 0)) await sleep(20)
  }
  if (isSteady) {
    await produceEachUser(broker, 'ev', partitions, { users, pages: 2000, seed: 7 })
    commands.unpause()
    await written()
    commands.pause()
    while (view.state().current !== 'PAUSED') await sleep(5)
  }
  const first = isSteady ? users : 0
  await produceEvents(broker, 'ev', partitions, {
    records,
    users,
    pages: 2000,
    seed: 7,
    first,
    ...(format !== 'json' && { serialize: (each) => eventOf.serialize(each) }),
  })
  const dispatched = (): number => engine[engineIndex.recordsDispatched] as number
  const before = dispatched()
  commands.unpause()
  while (dispatched() === before) await sleep(1)
  const startedAt = performance.now()
  const cpu = processSeconds()
  const threads = threadSeconds()
  const commits = engine[engineIndex.commitsCommitted] as number
  await (isSteady ? written() : runtime.untilIdle())
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
