import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import {
  commitHistogram,
  dropReasons,
  dropSlot,
  engineBlockLength,
  engineIndex,
  laneBlockLength,
  laneIndex,
  newBlock,
  nodeSlot,
  processHistogram,
  sinkLatencyHistogram,
  sinkTopicSlot,
  sourceLatencyHistogram,
  sourceTopicSlot,
  storeSlot,
  subtopologySlot,
  functionSlot,
} from '../../src/base/counters.ts'
import { durationBounds, eventTimeBounds, observe, processBounds } from '../../src/base/histograms.ts'
import { createMetrics, histogramTable, metricTable, observedTable } from '../../src/metrics/index.ts'
import { noKeyLicense } from '../../src/http/license-seam.ts'
import { epochMs, FakeEngine, sampleLayout, sampleWatermarks, quietPartition } from './support/fake-engine.ts'
import { haGroup, standby } from './support/ha-samples.ts'
import { sampleTopology } from './support/sample-topology.ts'
import { type PrometheusFamily, readPrometheus } from './support/prometheus.ts'

const health = {
  report: () => ({ components: [{ name: 'engine', status: 'UP' as const }] }),
}

function metricsOf(engine: FakeEngine, over: Partial<Parameters<typeof createMetrics>[0]> = {}) {
  const clock = { now: () => epochMs + 5000, monotonic: () => performance.now() }
  return createMetrics({
    view: engine,
    health,
    license: noKeyLicense(),
    haMode: 'off',
    version: '0.1.0',
    clock,
    ...over,
  })
}

async function scraped(engine: FakeEngine, over?: Partial<Parameters<typeof createMetrics>[0]>) {
  const metrics = metricsOf(engine, over)
  const text = await metrics.scrape()
  metrics.close()
  return { text, families: readPrometheus(text) }
}

const value = (
  families: readonly PrometheusFamily[],
  name: string,
  labels: Record<string, string> = {},
): number | undefined =>
  families
    .find((family) => family.name === name)
    ?.samples.find((sample) => Object.entries(labels).every(([label, wanted]) => sample.labels[label] === wanted))
    ?.value

describe('metrics', () => {
  test('a scrape is valid text, sorted by name, in every state of knowledge', async () => {
    const engine = new FakeEngine()
    const nothing = new FakeEngine('CREATED')
    nothing.initialized = false
    for (const [subject, over] of [
      [engine, {}],
      [nothing, {}],
      [engine, { ha: haGroup, haMode: 'hot-standby' }],
    ] as const) {
      const { families } = await scraped(subject, over)
      const names = families.map((family) => family.name)
      assert.deepEqual(names, [...names].sort())
    }
  })

  test('names and labels follow the conventions', async () => {
    const { families } = await scraped(new FakeEngine(), { ha: haGroup })
    for (const { name, type, help, samples } of families.filter((family) => family.name.startsWith('engine_'))) {
      assert.match(name, /^engine_[a-z0-9]+(_[a-z0-9]+)*$/)
      assert.equal(name.endsWith('_total'), type === 'counter', `${name} is a ${type}`)
      assert.doesNotMatch(name, /_(ms|millis|kb|minutes|hours)(_|$)/)
      assert.match(help, /\.$/)
      for (const { labels } of samples) {
        const odd = Object.keys(labels).filter((label) => !/^[a-z][a-z0-9_]*$/.test(label) || label.startsWith('__'))
        assert.deepEqual(odd, [])
      }
    }
  })

  test('no name breaks a rule of promtool, those of the process included', async () => {
    const { text, families } = await scraped(new FakeEngine(), { ha: haGroup })
    for (const { name, type } of families) {
      if (type !== 'counter') assert.doesNotMatch(name, /_total$/)
      assert.doesNotMatch(name, /_(counter|gauge|histogram|summary)$/)
      assert.doesNotMatch(name, /_(milliseconds|minutes|hours|days|weeks|kilobytes|megabytes)(_|$)/)
    }
    const { status, stdout, stderr, error } = spawnSync('promtool', ['check', 'metrics'], {
      input: text,
      encoding: 'utf8',
    })
    if (error === undefined) assert.equal(status, 0, stdout + stderr)
  })

  test('every row of the table shows when there is something to show, and nothing beside the table does', async () => {
    const engine = new FakeEngine('RESTORING')
    engine.watermarkSnapshot = {
      ...sampleWatermarks(),
      alignmentGroupMins: { feeds: epochMs },
      partitions: { 'words:0': { ...quietPartition, alignmentGroup: 'feeds', driftFromGroupMinMs: 5 } },
    }
    // A function that was asynchronous has a limit.
    const { layout, lanes } = engine.countersView as NonNullable<FakeEngine['countersView']>
    ;(lanes[0] as Float64Array)[functionSlot(layout, 0, 'limit')] = 16
    const times = [{ stage: 'fetch', ms: { busy: 1000, idle: 2000, held: 0, waiting: 0 } }]
    const why = () => ({ verdict: '', status: 'FLOWING' as const, sinceMs: 0, findings: [], flow: [], times })
    const metrics = metricsOf(engine, { ha: haGroup, why })
    metrics.observeRequest('GET', '/state', 200, 0.001)
    const families = readPrometheus(await metrics.scrape())
    metrics.close()
    const shown = families.map((family) => family.name).filter((name) => name.startsWith('engine_'))
    const tables = [...metricTable, ...histogramTable].map((row) => row.name)
    const known = [...tables, ...Object.keys(observedTable)].sort()
    assert.deepEqual(shown, known)
    for (const row of metricTable) {
      const family = families.find((each) => each.name === row.name)
      assert.equal(family?.type, row.type)
      for (const { labels } of family.samples) assert.deepEqual(Object.keys(labels), row.labels)
    }
  })

  test('counters begin at 0 and show what lanes and engine have counted', async () => {
    const engine = new FakeEngine()
    const { engine: block, lanes } = engine.countersView as NonNullable<FakeEngine['countersView']>
    const fresh = await scraped(engine)
    assert.equal(value(fresh.families, 'engine_records_dropped_total', { reason: 'late' }), 0)
    const [first, second] = lanes as [Float64Array, Float64Array]
    first[laneIndex.busyMs] = 1500
    first[nodeSlot(sampleLayout, 4)] = 3
    second[nodeSlot(sampleLayout, 4)] = 4
    second[subtopologySlot(sampleLayout, 1)] = 9
    first[dropSlot(sampleLayout, 1, dropReasons.indexOf('null_key'))] = 2
    second[storeSlot(sampleLayout, 0, 3)] = 11
    block[engineIndex.commitsAborted] = 5
    block[sourceTopicSlot(sampleLayout, 0)] = 100
    block[sourceTopicSlot(sampleLayout, 0) + 1] = 4096
    block[sinkTopicSlot(sampleLayout, 0)] = 7
    const { families } = await scraped(engine)
    assert.equal(value(families, 'engine_lane_busy_seconds_total', { lane: 'lane-0' }), 1.5)
    assert.equal(value(families, 'engine_node_records_total', { node: 'KSTREAM-AGGREGATE-0000000002' }), 7)
    assert.equal(value(families, 'engine_records_processed_total', { subtopology: '1', lane: 'lane-1' }), 9)
    assert.equal(value(families, 'engine_records_dropped_total', { subtopology: '1', reason: 'null_key' }), 2)
    assert.equal(value(families, 'engine_store_operations_total', { store: 'counts', op: 'put' }), 11)
    assert.equal(value(families, 'engine_commits_total', { outcome: 'aborted' }), 5)
    assert.equal(value(families, 'engine_source_records_total', { topic: 'words' }), 100)
    assert.equal(value(families, 'engine_source_bytes_total', { topic: 'words' }), 4096)
    assert.equal(value(families, 'engine_sink_records_total', { topic: 'totals' }), 7)
    assert.equal(value(families, 'engine_source_lag_records', { topic: 'words', partition: '0' }), 60)
    assert.equal(value(families, 'engine_watermark_delay_seconds'), 605)
  })

  test('distributions show what lanes and engine have measured, cumulated and with their sums', async () => {
    const engine = new FakeEngine()
    const { engine: block, lanes } = engine.countersView as NonNullable<FakeEngine['countersView']>
    const [first, second] = lanes as [Float64Array, Float64Array]
    observe(first, processHistogram(sampleLayout, 1), processBounds, 0.000_05, 100)
    observe(second, processHistogram(sampleLayout, 1), processBounds, 0.2)
    observe(block, commitHistogram(sampleLayout, 0), durationBounds, 0.03)
    observe(block, commitHistogram(sampleLayout, 0), durationBounds, 11)
    observe(block, commitHistogram(sampleLayout, 4), durationBounds, 0.004)
    observe(first, sinkLatencyHistogram(sampleLayout, 0), eventTimeBounds, 90, 7)
    const { families } = await scraped(engine)
    const sampled = (family: string, suffix: string, labels: Record<string, string>): number | undefined =>
      families
        .find(({ name }) => name === family)
        ?.samples.find(
          (sample) =>
            sample.name === `${family}_${suffix}` &&
            Object.entries(labels).every(([label, wanted]) => sample.labels[label] === wanted),
        )?.value
    const process = 'engine_process_duration_seconds'
    const buckets = ['0.00001', '0.0001', '0.1', '0.25', '+Inf']
    const counts = buckets.map((le) => sampled(process, 'bucket', { subtopology: '1', le }))
    assert.deepEqual(counts, [0, 100, 100, 101, 101])
    assert.equal(sampled(process, 'count', { subtopology: '1' }), 101)
    assert.equal(sampled(process, 'count', { subtopology: '0' }), 0)
    assert.ok(Math.abs((sampled(process, 'sum', { subtopology: '1' }) ?? 0) - 0.205) < 1e-9)
    const commits = 'engine_commit_duration_seconds'
    assert.deepEqual(
      ['0.025', '0.05', '10', '+Inf'].map((le) => sampled(commits, 'bucket', { le })),
      [0, 1, 1, 2],
    )
    assert.equal(sampled('engine_commit_phase_duration_seconds', 'count', { phase: 'end_transaction' }), 1)
    assert.equal(sampled('engine_record_e2e_latency_seconds', 'count', { kind: 'sink' }), 7)
    assert.equal(sampled('engine_record_e2e_latency_seconds', 'bucket', { kind: 'sink', le: '60' }), 0)
  })

  test('a source of several topics is one series of latency, with the records of all of them', async () => {
    const engine = new FakeEngine()
    const layout = { ...sampleLayout, sourceTopics: ['phrases', 'words'] }
    const lane = newBlock(laneBlockLength(layout))
    observe(lane, sourceLatencyHistogram(layout, 0), eventTimeBounds, 90, 2)
    observe(lane, sourceLatencyHistogram(layout, 1), eventTimeBounds, 0.002, 3)
    engine.countersView = { layout, engine: newBlock(engineBlockLength(layout)), lanes: [lane] }
    const { sources, ...rest } = sampleTopology
    const both = sources.map((source) =>
      source.kind === 'topics' ? { ...source, topics: layout.sourceTopics } : source,
    )
    engine.topology = () => ({ ...rest, sources: both })
    const { families } = await scraped(engine)
    const latency = families.find(({ name }) => name === 'engine_record_e2e_latency_seconds')
    const counted = latency?.samples.filter(({ name, labels }) => name.endsWith('_count') && labels.kind === 'source')
    assert.deepEqual(
      counted?.map(({ value: count }) => count),
      [5],
    )
  })

  test('high availability shows what the pod is, and counts what it did', async () => {
    const { families } = await scraped(new FakeEngine(), { ha: haGroup, haMode: 'hot-standby' })
    assert.equal(value(families, 'engine_ha_role', { role: 'ACTIVE' }), 1)
    assert.equal(value(families, 'engine_ha_role', { role: 'STANDBY' }), 0)
    assert.equal(value(families, 'engine_ha_state', { state: 'ACTIVE' }), 1)
    assert.equal(value(families, 'engine_ha_token_epoch'), standby.tokenEpoch)
    assert.equal(value(families, 'engine_ha_promotions_total', { reason: 'SWITCH' }), 4)
    assert.equal(value(families, 'engine_ha_commands_total', { outcome: 'REJECTED' }), 2)
    assert.equal(value(families, 'engine_ha_last_promotion_seconds'), 0.14)
    assert.equal(value(families, 'engine_ha_heartbeat_age_seconds'), 0.25)
  })

  test('the restart gauge is there with the mode, before anything is known of the group', async () => {
    const unknown = { ha: { status: () => null }, haMode: 'hot-standby' }
    const { families } = await scraped(new FakeEngine(), unknown)
    assert.equal(value(families, 'engine_ha_restarting'), 0)
    assert.equal(value(families, 'engine_ha_role'), undefined)
    const off = await scraped(new FakeEngine())
    assert.equal(value(off.families, 'engine_ha_restarting'), undefined)
  })

  test('process and Node.js metrics have the names that stock dashboards chart', async () => {
    const { families } = await scraped(new FakeEngine())
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'nodejs_eventloop_lag_p99_seconds',
      'nodejs_heap_size_used_bytes',
      'nodejs_version_info',
    ]) {
      assert.ok(
        families.some((family) => family.name === name),
        name,
      )
    }
  })

  test('each transition counts once, however often it is looked at', async () => {
    const engine = new FakeEngine()
    const clock = { at: 0 }
    const metrics = metricsOf(engine, { clock: { now: () => epochMs, monotonic: () => clock.at } })
    const scrape = async (): Promise<PrometheusFamily[]> => {
      clock.at += 2000
      return readPrometheus(await metrics.scrape())
    }
    await scrape()
    await scrape()
    engine.pause()
    const families = await scrape()
    assert.equal(value(families, 'engine_state_transitions_total', { from: 'RUNNING', to: 'DRAINING' }), 1)
    assert.equal(value(families, 'engine_state_transitions_total', { from: 'STARTING', to: 'RUNNING' }), 1)
    metrics.close()
  })

  test('a scrape is made at most once a second, and shared', async () => {
    const engine = new FakeEngine()
    let at = 0
    const metrics = metricsOf(engine, { clock: { now: () => epochMs, monotonic: () => at } })
    const first = metrics.scrape()
    assert.equal(metrics.scrape(), first)
    at = 999
    assert.equal(metrics.scrape(), first)
    at = 1000
    assert.notEqual(metrics.scrape(), first)
    await metrics.scrape()
    metrics.close()
  })

  test('thousands of partitions end in a bounded number of series and a whole total', async () => {
    const engine = new FakeEngine()
    const partitions = Array.from({ length: 5000 }, (_, partition) => ({
      partition,
      committedOffset: 0,
      logEndOffset: 2,
      withheld: 0,
    }))
    engine.offsetsSnapshot = { sources: [{ topic: 'wide', partitions }], changelogs: [] }
    const { families } = await scraped(engine)
    const lag = families.find((family) => family.name === 'engine_source_lag_records')
    assert.equal(lag?.samples.length, 2000)
    assert.equal(value(families, 'engine_lag_records'), 10_000)
  })

  test('labels are escaped', async () => {
    const engine = new FakeEngine()
    engine.offsetsSnapshot = {
      sources: [
        { topic: 'a"b\\c\nd', partitions: [{ partition: 0, committedOffset: 0, logEndOffset: 1, withheld: 0 }] },
      ],
      changelogs: [],
    }
    const { text } = await scraped(engine)
    assert.ok(text.includes('engine_source_lag_records{topic="a\\"b\\\\c\\nd",partition="0"} 1'))
  })

  test('unknown methods and paths do not make series of their own', async () => {
    const metrics = metricsOf(new FakeEngine())
    for (const method of ['BREW', 'FETCH', 'X'.repeat(100)]) metrics.observeRequest(method, 'unmatched', 404, 0.001)
    const families = readPrometheus(await metrics.scrape())
    metrics.close()
    const requests = families.find((family) => family.name === 'engine_http_requests_total')
    assert.deepEqual(
      requests?.samples.map((sample) => sample.labels.method),
      ['other'],
    )
    assert.equal(requests.samples[0]?.value, 3)
  })

  test('types that the format does not know, and spaces between labels, spoil no scrape', async () => {
    const metrics = metricsOf(new FakeEngine())
    const info = '# HELP app_build Build.\n# TYPE app_build info\napp_build_info{version="1", commit="2"} 1\n'
    metrics.append(() => `${info}# HELP app_x X.\n# TYPE app_x unknown\napp_x{ a="b" } 3\n`)
    const text = await metrics.scrape()
    metrics.close()
    assert.ok(text.includes('# TYPE app_x untyped\napp_x{ a="b" } 3\n'))
    assert.ok(text.includes('app_build_info{version="1", commit="2"} 1\n'))
    assert.doesNotMatch(text, /^# TYPE \S+ (?!counter|gauge|histogram|summary|untyped)/m)
  })

  test('registries of the application join the scrape; taken names and broken ones are left out and logged', async () => {
    const log: string[] = []
    const metrics = metricsOf(new FakeEngine(), { log: (_, message) => log.push(message) })
    metrics.append(
      () => '# HELP app_orders_total Orders.\n# TYPE app_orders_total counter\napp_orders_total{kind="a"} 4\n',
    )
    metrics.append(async () => '# HELP engine_info Mine.\n# TYPE engine_info gauge\nengine_info 2\n')
    metrics.append(() => 'this is {no metric\n')
    metrics.append(() => Promise.reject(new Error('gone')))
    const families = readPrometheus(await metrics.scrape())
    metrics.close()
    assert.equal(value(families, 'app_orders_total', { kind: 'a' }), 4)
    assert.equal(value(families, 'engine_info'), 1)
    assert.equal(log.length, 3)
  })
})
