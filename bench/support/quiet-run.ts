/**
 * One application with little to do in a process of its own; prints one line of JSON.
 * `node bench/support/quiet-run.ts RATE SECONDS WARMUP LANES COMMIT_MS`; `$BOOTSTRAP` names a Kafka. Another process feeds it there, so that its
 * work is not counted; on the embedded broker the feeding is a thread's own, which is left out by its name.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { assert } from '../../src/base/assert.ts'
import { engineIndex } from '../../src/base/counters.ts'
import { keySlot } from '../../src/base/hash.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { startRuntime } from '../../src/runtime/index.ts'
import { threadSeconds } from './usage.ts'

const [rate = 1000, seconds = 20, warmup = 10, lanes = 2, commitMs = 100] = process.argv.slice(2).map(Number)
const partitions = 4
const stepMs = 5
const bootstrap = process.env.BOOTSTRAP ?? 'embedded:'
const id = `mr-quiet-${Date.now().toString(36)}`
Object.assign(process.env, {
  BENCH_WORKLOAD: 'rekey-count',
  BENCH_IN: `${id}-in`,
  BENCH_OUT: `${id}-out`,
  BENCH_APPLICATION: id,
})

/** What is fed in so many milliseconds. */
async function feed(broker: BrokerPort, forMs: number): Promise<void> {
  if (rate === 0) {
    await sleep(forMs)
    return
  }
  const startedAt = performance.now()
  let fed = 0
  for (let spent = 0; spent < forMs; spent = performance.now() - startedAt) {
    const builders = Array.from({ length: partitions }, () => new RecordBatchBuilder())
    for (; fed < (spent / 1000) * rate; fed++) {
      const key = Buffer.from(`u${(fed * 7919) % 100_000}`)
      const at = Date.now()
      const value = `{"user":"${key}","page":"p${(fed * 31) % 2000}","ms":${fed % 5000},"ts":${at},"ok":true}`
      builders[keySlot(key) % partitions]?.append(at, key, Buffer.from(value), [])
    }
    const batches = builders.flatMap((builder, partition) =>
      builder.count === 0 ? [] : [{ topic: `${id}-in`, partition, records: builder.finish() }],
    )
    if (batches.length > 0) await broker.produce({ transactionalId: null, batches })
    await sleep(stepMs)
  }
}

const stateDir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
const options = { bootstrapServers: [bootstrap], clientId: id, requestTimeoutMs: 30_000 }
const { connectBroker } = await import('../../src/broker/connect.ts')
const kafka = process.env.BOOTSTRAP === undefined ? undefined : await connectBroker({ kind: 'kafka', options })
const topics = [`${id}-in`, `${id}-out`].map((topic) => ({ topic, partitions, config: {} }))
await kafka?.createTopics(topics)
const runtime = await startRuntime({
  application: join(import.meta.dirname, 'app.ts'),
  config: {
    'runtime.http.enabled': false,
    'broker.bootstrap-servers': bootstrap,
    'broker.embedded.partitions': partitions,
    'engine.lanes.count': lanes,
    'engine.state.store': 'memory',
    'engine.state.dir': stateDir,
    'commit-barrier.interval-ms': commitMs,
    'log.level': 'warn',
    ...(JSON.parse(process.env.BENCH_SETTINGS ?? '{}') as Record<string, string | number>),
  },
  environment: {},
})
try {
  const { view, broker } = runtime
  while (view.state().current !== 'RUNNING') await sleep(20)
  const counters = view.counters()
  assert(counters !== null, 'the engine runs and has no counters')
  const commits = (): number => counters.engine[engineIndex.commitsCommitted] as number
  await feed(kafka ?? broker, warmup * 1000)
  const [before, threads, startedAt] = [commits(), threadSeconds(), performance.now()]
  await feed(kafka ?? broker, seconds * 1000)
  const took = (performance.now() - startedAt) / 1000
  const used: Record<string, number> = {}
  for (const [name, now] of threadSeconds()) {
    const cpu = now - (threads.get(name) ?? 0)
    // The main thread feeds; without anything to feed it is the application's control thread alone.
    if (cpu > 0 && (rate === 0 || name !== 'MainThread')) used[name] = (cpu * 100) / took
  }
  process.stdout.write(`${JSON.stringify({ rate, commitsPerSecond: (commits() - before) / took, threads: used })}\n`)
} finally {
  await runtime.stop()
  await kafka?.deleteTopics(
    (await kafka.topics(null)).map(({ topic }) => topic).filter((topic) => topic.startsWith(id)),
  )
  await kafka?.close()
  rmSync(stateDir, { recursive: true, force: true })
}
