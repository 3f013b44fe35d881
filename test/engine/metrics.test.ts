/** What a scrape of the running engine says of partitions that wait, of refused records, and of stores. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { type PrometheusFamily, readPrometheus } from '../http/support/prometheus.ts'
import { eventually } from '../support/millrace.ts'
import { TestEngine } from './support/engine.ts'

const start = 1_700_000_000_000

function startWith(t: TestContext, app: string, config: Readonly<Record<string, unknown>>): Promise<TestEngine> {
  return TestEngine.start(t, app, {
    'runtime.http.enabled': true,
    'runtime.http.host': '127.0.0.1',
    'runtime.http.port': 0,
    'broker.embedded.partitions': 1,
    ...config,
  })
}

async function scrape(engine: TestEngine): Promise<PrometheusFamily[]> {
  const answer = await fetch(new URL('/metrics', engine.runtime.url))
  return readPrometheus(await answer.text())
}

/** The sum of the samples with these labels. */
function sum(families: readonly PrometheusFamily[], name: string, labels: Readonly<Record<string, string>>): number {
  const family = families.find((each) => each.name === name || each.name === name.replace(/_(sum|count)$/, ''))
  return (family?.samples ?? [])
    .filter((sample) => sample.name === name)
    .filter((sample) => Object.entries(labels).every(([label, wanted]) => sample.labels[label] === wanted))
    .reduce((total, { value }) => total + value, 0)
}

/** Scrapes are a second old at most: waits until one says so. */
async function told(engine: TestEngine, what: string, says: (families: PrometheusFamily[]) => boolean): Promise<void> {
  await eventually(what, async () => says(await scrape(engine)))
}

const ofFast = { topic: 'fast', partition: '0' }
const ofSlow = { topic: 'slow', partition: '0' }

describe('metrics of the running engine', () => {
  test('the time for which alignment holds a partition adds up, and ends with the hold', async (t) => {
    const engine = await startWith(t, 'aligned', {})
    const held = 'engine_partition_alignment_held_seconds_total'
    await engine.put('slow', [{ key: 'k', value: 0, timestamp: start }])
    await eventually('the slow source has begun', async () => (await engine.read('slow-out')).length === 1)
    assert.equal(sum(await scrape(engine), held, ofFast), 0)
    await engine.put('fast', [{ key: 'k', value: 60, timestamp: start + 60_000 }])
    await told(engine, 'the held time grows', (families) => sum(families, held, ofFast) > 0.2)
    const ofSlowThen = sum(await scrape(engine), held, ofSlow)
    await told(engine, 'it goes on growing', (families) => sum(families, held, ofFast) > 0.5)
    assert.equal(sum(await scrape(engine), held, ofSlow), ofSlowThen, 'whom others wait for is not held')
    await engine.put('slow', [{ key: 'k', value: 60, timestamp: start + 60_000 }])
    await engine.idle()
    const watermarks = () => engine.runtime.view.watermarks()
    const total = (): number => watermarks()?.partitions['fast:0']?.alignmentHeldTotalMs ?? 0
    await eventually('the hold is over', () => watermarks()?.alignmentBinding === null)
    const before = total()
    await engine.put('slow', [{ key: 'k', value: 61, timestamp: start + 61_000 }])
    await engine.idle()
    await told(
      engine,
      'the scrape has what the engine has',
      (families) => sum(families, held, ofFast) === total() / 1000,
    )
    assert.equal(total(), before, 'it stands when nothing is held')
  })

  test('the time for which a partition is idle adds up, and ends with its next record', async (t) => {
    const engine = await startWith(t, 'aligned', { 'watermark.idleness-timeout': 50 })
    const idle = 'engine_partition_idle_seconds_total'
    await engine.put('fast', [{ key: 'k', value: 0, timestamp: start }])
    await told(engine, 'both partitions are idle', (families) =>
      [ofFast, ofSlow].every((labels) => sum(families, idle, labels) > 0.2),
    )
    await told(engine, 'the time goes on', (families) => sum(families, idle, ofSlow) > 0.5)
    const flag = sum(await scrape(engine), 'engine_partition_idle', ofSlow)
    assert.equal(flag, 1)
  })

  test('the bytes of a topic are those of keys and values, and nothing that the engine adds', async (t) => {
    const engine = await startWith(t, 'two-levels', {})
    const records = ['ant', 'bee', 'elephant'].map((value, n) => ({ key: `user-${n}`, value, timestamp: start + n }))
    await engine.put('words', records)
    await engine.idle()
    const bytes = records.reduce((total, { key, value }) => total + key.length + JSON.stringify(value).length, 0)
    const topic = { topic: 'words' }
    await told(engine, 'all are counted', (families) => sum(families, 'engine_source_records_total', topic) === 3)
    assert.equal(sum(await scrape(engine), 'engine_source_bytes_total', topic), bytes)
  })

  test('dead letters are counted by their reason', async (t) => {
    const engine = await startWith(t, 'faulty', {
      'errors.decoding': 'dead-letter',
      'errors.processing': 'dead-letter',
    })
    await engine.put('orders', [
      { key: 'a', value: { n: 1 } },
      { key: 'a', value: Buffer.from('{"n":') },
      { key: 'b', value: { n: 2, fault: 'throws' } },
      { key: 'b', value: { n: 3, fault: 'rejects' } },
    ])
    await engine.idle()
    const letters = 'engine_dead_letter_records_total'
    await told(engine, 'three dead letters are counted', (families) => sum(families, letters, {}) === 3)
    const families = await scrape(engine)
    assert.equal(sum(families, letters, { reason: 'deserialize' }), 1)
    assert.equal(sum(families, letters, { reason: 'handler' }), 2)
    assert.equal(sum(families, letters, { reason: 'late' }), 0)
  })

  test('of reads and writes of a store every so many are measured', async (t) => {
    const engine = await startWith(t, 'running-sum', { 'engine.lanes.count': 1 })
    const rounds = Array.from({ length: 1000 }, (_, n) => ({ key: `k${n % 200}`, value: n, timestamp: start + n }))
    await engine.put('numbers', rounds)
    await engine.idle()
    const durations = 'engine_store_operation_duration_seconds'
    const measured = (families: readonly PrometheusFamily[], op: string): number =>
      sum(families, `${durations}_count`, { store: 'sums', op })
    await told(engine, 'a thousand reads and writes are in the scrape', (families) =>
      ['get', 'put'].every((op) => sum(families, 'engine_store_operations_total', { store: 'sums', op }) === 1000),
    )
    const families = await scrape(engine)
    for (const op of ['get', 'put']) {
      assert.ok(measured(families, op) >= 5 && measured(families, op) <= 10, `${measured(families, op)} ${op} of 1000`)
      assert.ok(sum(families, `${durations}_sum`, { store: 'sums', op }) > 0)
    }
  })

  test('a lane that works behind an asynchronous function is busy, and not waiting', async (t) => {
    const engine = await startWith(t, 'busy-behind', { 'engine.lanes.count': 1 })
    await engine.put(
      'work',
      Array.from({ length: 20 }, (_, n) => ({ key: `k${n}`, value: 50 })),
    )
    await engine.idle()
    const worked = (await engine.read('worked')).reduce((total, { value }) => total + (value as number), 0) / 1000
    assert.ok(worked >= 1)
    const busy = (families: readonly PrometheusFamily[]) => sum(families, 'engine_lane_busy_seconds_total', {})
    // Its own clock and that of the lane round differently.
    await told(engine, 'the work counts', (families) => busy(families) > 0.95 * worked)
    const waiting = sum(await scrape(engine), 'engine_lane_waiting_seconds_total', {})
    assert.ok(waiting < worked / 2, `${waiting} s of waiting beside ${worked} s of work`)
    const places = () => engine.runtime.view.barriers()?.lanes.map(({ at }) => at)
    await eventually('an idle lane is at no record', () => places()?.every((at) => at === null) === true)
  })
})
