/** Rules that need settings or data of their own, on the running engine. The number in brackets names the rule. */
import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { after, describe, test, type TestContext } from 'node:test'
import { EngineError } from '../../src/base/errors.ts'
import { startRuntime } from '../../src/runtime/index.ts'
import { ask, type Json } from './support/client.ts'
import { expectError } from './support/expect.ts'
import { type PrometheusFamily, readPrometheus } from './support/prometheus.ts'
import { endLeftThreads, type Live, type LiveOptions, type LiveRecord, startLive } from './support/live.ts'

after(endLeftThreads)

async function start(t: TestContext, options: LiveOptions): Promise<Live> {
  const live = await startLive(options)
  t.after(() => live.stop())
  await live.untilState('RUNNING')
  return live
}

const base = Date.parse('2026-03-01T12:00:00.000Z')
const at = (seconds: number, value: unknown, partition: number): LiveRecord => ({
  key: `k${seconds}`,
  value,
  timestamp: base + seconds * 1000,
  partition,
})

describe('configuration', () => {
  test('[1.prefix] [1.bind] without settings the interface listens on port 8080 of all interfaces', async (t) => {
    try {
      const runtime = await startRuntime({
        application: new URL('apps/scenario-app.ts', import.meta.url),
        environment: {},
        config: { 'engine.lanes.count': 1, 'runtime.shutdown.timeout': 500 },
        log: () => undefined,
      })
      t.after(() => runtime.stop())
      assert.equal(runtime.url, 'http://127.0.0.1:8080')
      const { json } = await ask(runtime.url, { path: '/config', headers: { accept: 'application/json' } })
      assert.equal(json.runtime?.http?.host, '0.0.0.0')
      assert.equal(json.runtime?.http?.port, 8080)
    } catch (error) {
      // Somebody else on this machine has it: then that is what the sentence names.
      assert.ok(EngineError.is(error) && error.code === 'PORT_TAKEN', String(error))
      assert.match(error.message, /port 8080 of 0\.0\.0\.0/)
    }
  })

  test('[1.enabled] disabled, nothing listens; the handler still answers where it is mounted', async (t) => {
    const live = await start(t, { app: 'scenario-app', config: { 'runtime.http.enabled': false } })
    assert.equal(live.runtime.url, undefined)
  })

  test('[R34] [R47] keys have the names and defaults that others rely on', async (t) => {
    const live = await start(t, { app: 'scenario-app' })
    const { json } = await live.ask({ path: '/config', headers: { accept: 'application/json' } })
    assert.equal(json.ha?.mode, 'off')
    assert.equal(json.broker?.['bootstrap-servers'], 'embedded:')
    assert.ok('sasl' in (json.broker ?? {}) && 'tls' in (json.broker ?? {}))
    assert.equal(typeof json.consumer?.max?.poll?.records, 'number')
    assert.ok('transaction' in (json.producer ?? {}))
    assert.equal(json['schema-registry']?.url, null)
    assert.equal(json.license?.key, null)
    assert.equal(json.license['server-url'], null)
    assert.equal(json.runtime?.metrics?.enabled, true)
    assert.equal(json.runtime.endpoints?.config?.enabled, true)
    assert.equal(json.runtime.http?.debug?.enabled, true)
    assert.equal(json.engine?.processing?.['state-transition-history-size'], 20)
    assert.equal(json.engine.processing['buffered-records-per-partition'], 1000)
    await live.feed('orders', [at(0, {}, 0)])
    await live.runtime.untilIdle()
    assert.equal((await live.get('/consumer')).assignment?.['orders:0']?.bufferCapacity, 1000)
  })

  test('[2.2.lanes] without a setting there are as many lanes as processors, two at least, and the setting stays empty', async (t) => {
    const live = await start(t, { app: 'scenario-app', config: { 'engine.lanes.count': null } })
    const { json } = await live.ask({ path: '/config', headers: { accept: 'application/json' } })
    assert.equal(json.engine?.lanes?.count, null)
    const lanes = Math.max(2, availableParallelism())
    assert.equal((await live.get('/info')).app?.lanes, lanes)
    const { json: threads } = await live.ask({ path: '/debug/threads?filter=known' })
    const names = (threads.engineThreads as unknown as Json[]).map((thread) => String(thread.name))
    assert.equal(names.filter((name) => /^lane-\d+$/.test(name)).length, lanes)
  })
})

test('[2.2.fields] the uptime is that of the process, which was there before its runtime', async (t) => {
  const before = Date.now()
  const live = await start(t, { app: 'scenario-app' })
  const { uptime } = await live.get('/info')
  const startedAt = Date.parse(String(uptime?.startTime))
  assert.ok(startedAt < before, `${uptime?.startTime} is not before ${new Date(before).toISOString()}`)
})

describe('the history', () => {
  for (const [limit, setting] of [
    [20, {}],
    [3, { 'engine.processing.state-transition-history-size': 3 }],
  ] as const) {
    test(`[2.5.bounded] holds the last ${limit} transitions, newest first`, async (t) => {
      const live = await start(t, { app: 'scenario-app', config: setting })
      for (let i = 0; i < 12; i++) {
        assert.equal((await live.ask({ method: 'POST', path: '/pause' })).status, 200)
        assert.equal((await live.ask({ method: 'POST', path: '/unpause' })).status, 200)
      }
      const { history, since } = await live.get('/state')
      const entries = history as unknown as Array<{ state: string; from: string; at: string }>
      assert.equal(entries.length, limit)
      assert.equal(entries[0]?.state, 'RUNNING')
      assert.equal(entries[0].at, since as unknown)
      for (const [i, entry] of entries.slice(1).entries()) assert.equal(entries[i]?.from, entry.state)
    })
  }
})

describe('watermarks', () => {
  test('[R17] [R39] [R42] [R24] nothing is known before the first record; then it is the highest time less what may come late', async (t) => {
    const live = await start(t, { app: 'late-app' })
    const before = await live.get('/watermarks')
    assert.equal(before.globalMs, null)
    assert.equal(before.globalIso, null)
    const unknown = before.partitions?.['late:0']
    for (const name of ['watermarkMs', 'watermarkIso', 'lastEventTimeMs', 'lastEventTimeIso', 'driftFromGroupMinMs'])
      assert.equal(unknown?.[name], null, name)
    assert.equal(unknown?.idlenessTimeoutMs, 0)
    assert.equal(unknown.idle, false)
    const from = Date.now()
    await live.feed('late', [at(60, 1, 0), at(55, 2, 0)])
    await live.runtime.untilIdle()
    const { globalMs, partitions } = await live.get('/watermarks')
    assert.equal(partitions?.['late:0']?.watermarkMs, base + 50_000)
    const lastEventTimeMs = Number(partitions['late:0'].lastEventTimeMs)
    assert.ok(lastEventTimeMs >= from && lastEventTimeMs <= Date.now(), 'the wall clock of the last dispatch')
    assert.equal(partitions['late:1']?.watermarkMs, null)
    assert.notEqual(globalMs, undefined)
    await live.feed('late', [at(30, 3, 1)])
    await live.until('the global watermark is known', async () => {
      return Number((await live.get('/watermarks')).globalMs) >= base + 20_000
    })
  })

  test('[2.7.preview] [R40] [R41] a head that waits behind a held one shows what it counts for, and since when', async (t) => {
    const live = await start(t, { app: 'aligned-app' })
    await live.feed('slow', [at(0, 1, 0), at(0, 1, 1)])
    await live.feed('fast', [at(0, 1, 0), at(0, 1, 1), at(3000, 2, 0), at(4000, 3, 1)])
    const json = await live.until('a hold binds while another head waits', async () => {
      const found = await live.get('/watermarks')
      return found.alignmentBinding !== null && 'headHeldSinceMs' in (found.partitions?.['fast:1'] ?? {}) && found
    })
    assert.equal(json.alignmentBinding?.partition, 'fast:0')
    const waits = json.partitions?.['fast:1'] as Json
    assert.ok(Number.isInteger(waits.headHeldSinceMs))
    assert.equal(waits.previewWatermarkMs, base + 4_000_000)
    assert.equal(waits.previewWatermarkIso, new Date(base + 4_000_000).toISOString())
    assert.ok(Number(waits.previewWatermarkMs) > Number(waits.watermarkMs), 'shown only while higher')
    for (const key of ['fast:0', 'slow:0']) {
      for (const name of ['previewWatermarkMs', 'previewWatermarkIso', 'headHeldSinceMs']) {
        assert.ok(!(name in (json.partitions?.[key] ?? {})), `${name} of ${key}`)
      }
    }
    const mins = json.alignmentGroupMins as unknown as Record<string, number>
    for (const partition of Object.values(json.partitions ?? {}) as Json[]) {
      const drift = partition.driftFromGroupMinMs
      if (partition.watermarkMs === null) assert.equal(drift, null)
      else assert.equal(drift, Number(partition.watermarkMs) - Number(mins.feeds))
    }
    await live.until('all is dispatched, and the fields are gone', async () => {
      const { partitions } = await live.get('/watermarks')
      const fast = partitions?.['fast:1'] ?? {}
      return Number(fast.watermarkMs) === base + 4_000_000 && !('headHeldSinceMs' in fast)
    })
  })
})

describe('threads', () => {
  test('[8.depth] [4.2.depth] a stack is cut at 40 frames, or where the request says', async (t) => {
    const live = await start(t, { app: 'scenario-app', config: { 'commit-barrier.timeout-ms': 600_000 } })
    await live.feed('orders', [at(0, { deep: 200 }, 0)])
    const lengthOf = (query: string): Promise<number> =>
      live.until(`the loop shows with ${query || 'no depth'}`, async () => {
        const { json } = await live.ask({ path: `/debug/threads${query}` })
        const threads = json.engineThreads as unknown as Array<{ stack: string[] }>
        return threads.find(({ stack }) => /^(loopWithoutEnd|deeper) /.test(stack[0] ?? ''))?.stack.length
      })
    // On a busy machine it may be seen on its way down.
    await live.until('it is all the way down', async () => (await lengthOf('?depth=1000')) > 200)
    assert.equal(await lengthOf(''), 40)
    assert.equal(await lengthOf('?depth=1'), 1)
    assert.equal(await lengthOf('?depth=150'), 150)
  })
})

describe('metrics of the running engine', () => {
  test('stores have a size, every commit is in the histogram, polls, ages and times per record are measured', async (t) => {
    const live = await start(t, { app: 'conformance-app' })
    for (let i = 0; i < 3; i++) {
      const words = Array.from({ length: 50 }, (_, n) => ({
        key: `k${n}`,
        value: { text: `word-${n}` },
        timestamp: base + i * 1000 + n,
      }))
      await live.feed('words', words)
      await live.runtime.untilIdle()
    }
    const families = await live.until('the last commits are in the scrape', async () => {
      const found = readPrometheus((await live.ask({ path: '/metrics' })).body)
      const records = sum(found, 'engine_process_duration_seconds', '_count', { subtopology: '0' })
      const sizes = sum(found, 'engine_store_size_bytes', '', { store: 'counts' })
      // Measured every now and then: perhaps before all rows were there. A row is a short text and a count with its time.
      return records >= 150 && sizes >= 50 * 10 && found
    })
    const committed = sum(families, 'engine_commits_total', '', { outcome: 'committed' })
    assert.ok(committed >= 3)
    assert.equal(sum(families, 'engine_commit_duration_seconds', '_count'), committed)
    assert.equal(sum(families, 'engine_commit_phase_duration_seconds', '_count', { phase: 'apply' }), committed)
    assert.equal(sum(families, 'engine_poll_records', '_sum'), sum(families, 'engine_poll_records_total', ''))
    assert.ok(sum(families, 'engine_poll_duration_seconds', '_count') > 0)
    assert.equal(sum(families, 'engine_record_e2e_latency_seconds', '_count', { kind: 'source' }), 150)
    assert.ok(sum(families, 'engine_record_e2e_latency_seconds', '_count', { kind: 'sink' }) > 0)
    assert.equal(sum(families, 'engine_record_lateness_seconds', '_count', { topic: 'words' }), 150)
    assert.equal(sum(families, 'engine_restarts_total', ''), 0)
    assert.equal(sum(families, 'engine_lanes_alive', ''), 2)
    const size = sum(families, 'engine_store_size_bytes', '', { store: 'counts' })
    assert.ok(size <= 50 * 200, `${size} bytes, hardly a page for each`)
  })
})

function sum(
  families: readonly PrometheusFamily[],
  name: string,
  suffix: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const samples = families.find((family) => family.name === name)?.samples ?? []
  return samples
    .filter((each) => each.name === name + suffix)
    .filter((each) => Object.entries(labels).every(([label, wanted]) => each.labels[label] === wanted))
    .reduce((total, each) => total + each.value, 0)
}

describe('failures', () => {
  test('[R6] a broker that stays out of reach takes readiness away, not liveness', async (t) => {
    const beganAtMs = Date.now()
    const live = await startLive({ app: 'scenario-app', config: { 'broker.bootstrap-servers': '127.0.0.1:1' } })
    t.after(() => live.stop())
    const broker = await live.until('the broker is DOWN', async () => {
      const { components } = await live.get('/health/ready')
      const found = (components as unknown as Json[]).find((component) => String(component.name) === 'broker')
      return String(found?.status) === 'DOWN' && found
    })
    assert.ok(Number(broker?.details?.downForMs) >= 10_000, 'not at the first hiccup')
    assert.ok(Number(broker?.details?.downForMs) <= Date.now() - beganAtMs, 'no longer than it was looked for')
    assert.equal((await live.ask({ path: '/health/ready' })).status, 503)
    assert.equal((await live.ask({ path: '/health/live' })).status, 200)
    assert.equal(await live.state(), 'STARTING')
    // On a busy machine the engine has not come to its first call yet.
    const fault = await live.until(
      'the first call has failed',
      async () => (await live.get('/info')).broker?.fault ?? undefined,
    )
    assert.match(String(fault), /127\.0\.0\.1:1 is not reachable/)
    const isTold = ({ message }: { readonly message: string }): boolean =>
      /^the broker has not answered for \d+ s: .*127\.0\.0\.1:1/.test(message)
    await live.until('the outage is told', async () => live.log.some(isTold))
    assert.equal(live.log.filter(isTold).length, 1, 'an outage has one line')
  })

  test('[R6] where a restart of the process can help, a failure takes liveness too', async (t) => {
    const live = await start(t, { app: 'scenario-app' })
    await live.feed('orders', [at(0, { exit: true }, 0)])
    await live.untilState('FAILED')
    for (const probe of ['live', 'ready']) {
      const { status, json } = await live.ask({ path: `/health/${probe}` })
      assert.equal(status, 503)
      assert.equal(json.status, 'DOWN')
      const [engine] = json.components as unknown as [Json]
      assert.equal(engine.details?.state, 'FAILED')
      assert.ok(String(json.error).length > 10)
    }
    expectError(await live.ask({ method: 'POST', path: '/pause' }), 400, /FAILED/)
    await live.until('a lane is missing in the metrics', async () => {
      const families = readPrometheus((await live.ask({ path: '/metrics' })).body)
      return sum(families, 'engine_lanes_alive', '') === 1
    })
  })

  test('a record at which processing fails is named in the state, in the log, and by its parts', async (t) => {
    const live = await start(t, { app: 'scenario-app' })
    await live.feed('orders', [at(0, {}, 1), at(1, { fail: 'out of range' }, 1)])
    await live.untilState('FAILED')
    const { failure } = await live.get('/state')
    assert.equal(failure?.code, 'PROCESSING_FAILED')
    assert.match(String(failure.message), /orders\/1 at offset 1: out of range/)
    assert.deepEqual(failure.record, { topic: 'orders', partition: 1, offset: 1 })
    const { status } = await live.ask({ path: '/health/live' })
    assert.equal(status, 200, 'a process that is started again comes to the same record')
    const line = live.log.find((each) => each.fields?.code === 'PROCESSING_FAILED')
    assert.deepEqual([line?.fields?.topic, line?.fields?.partition, line?.fields?.offset], ['orders', 1, 1])
  })
})

describe('buffers', () => {
  test('[2.9.threshold] of repartition topics too are over their threshold by less than a poll, however much waits for its order', async (t) => {
    const live = await startLive({
      app: 'load-app',
      config: {
        'topology.sub-topology-split': 'repartition-topics',
        'engine.processing.buffered-records-per-partition': 10,
        'consumer.max.poll.records': 10,
      },
    })
    t.after(() => live.stop())
    await live.untilState('RUNNING')
    const hits = Array.from({ length: 20_000 }, (_, i) => at(i, { page: i, user: 'u', ms: i }, i % 2))
    await live.feed('hits', hits)
    const idle = live.runtime.untilIdle().then(() => true)
    let waited = 0
    while (!(await Promise.race([idle, Promise.resolve(false)]))) {
      const { assignment } = live.runtime.view.consumer() ?? {}
      const entries = Object.values(assignment ?? {})
      waited = Math.max(waited, ...entries.map(({ sorted = 0 }) => sorted))
      const shown = Object.entries(((await live.get('/consumer')).assignment ?? {}) as Record<string, Json>)
      for (const [partition, { buffered }] of shown) assert.ok(Number(buffered) < 20, `${partition} has ${buffered}`)
    }
    assert.ok(waited > 20, `${waited} records waited for their order`)
  })
})
