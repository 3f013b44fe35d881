/** What operators look for, on live data, through HTTP alone. */
import assert from 'node:assert/strict'
import { after, describe, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Json } from './support/client.ts'
import { endLeftThreads, type Live, type LiveOptions, type LiveRecord, startLive } from './support/live.ts'
import { readPrometheus } from './support/prometheus.ts'

after(endLeftThreads)

async function start(t: TestContext, options: LiveOptions): Promise<Live> {
  const live = await startLive(options)
  t.after(() => live.stop())
  await live.untilState('RUNNING')
  return live
}

/** A scrape may be as old as this. */
const scrapeCacheMs = 1100

const base = Date.parse('2026-03-01T12:00:00.000Z')
const at = (seconds: number, value: unknown, partition: number): LiveRecord => ({
  key: `k${seconds}`,
  value,
  timestamp: base + seconds * 1000,
  partition,
})

async function metric(live: Live, name: string): Promise<number> {
  const families = readPrometheus((await live.ask({ path: '/metrics' })).body)
  const samples = families.find((family) => family.name === name)?.samples ?? []
  return samples.reduce((sum, sample) => sum + sample.value, 0)
}

describe('watermarks', () => {
  test('[2.7.binding] a quiet source binds its alignment group: the hold names it, outlasts a pause, and ends by idleness', async (t) => {
    const live = await start(t, { app: 'aligned-app', config: { 'broker.embedded.partitions': 1 } })
    await live.feed('slow', [at(0, 1, 0)])
    await live.feed('fast', [at(0, 1, 0), at(30, 2, 0), at(3000, 3, 0)])
    // Until the records of `fast` have come, it is the one without any, and `slow` waits.
    const binding = await live.until('the hold shows', async () => {
      const found = (await live.get('/watermarks')).alignmentBinding
      return String(found?.partition) === 'fast:0' && found
    })
    assert.equal(binding.group, 'feeds')
    assert.deepEqual(binding.emptyLaggards, ['slow:0'])
    const { partitions, alignmentGroupMins } = await live.get('/watermarks')
    assert.equal(partitions?.['fast:0']?.alignmentHeld, true)
    assert.equal(partitions['fast:0']?.idle, false)
    assert.deepEqual(alignmentGroupMins, { feeds: base })
    assert.equal((await live.get('/consumer')).assignment?.['fast:0']?.paused, false, 'alignment pauses no partition')

    assert.equal((await live.ask({ method: 'POST', path: '/pause' })).status, 200)
    await live.untilState('PAUSED')
    await live.until(
      'the hold gives way to the pause',
      async () => (await live.get('/watermarks')).alignmentBinding === null,
    )
    assert.equal((await live.ask({ method: 'POST', path: '/unpause' })).status, 200)
    const again = await live.until('the hold shows again', async () => {
      const found = (await live.get('/watermarks')).alignmentBinding
      return found !== null && found
    })
    assert.equal(again.sinceMs, binding.sinceMs)

    await live.until('idleness ends the hold', async () => {
      const json = await live.get('/watermarks')
      return json.alignmentBinding === null && json.partitions?.['slow:0']?.idle
    })
    await live.until('the held record is dispatched', async () => {
      return Number((await live.get('/watermarks')).partitions?.['fast:0']?.watermarkMs) === base + 3_000_000
    })
  })

  test('a source without records goes idle and no longer holds back the global watermark', async (t) => {
    const live = await start(t, {
      app: 'scenario-app',
      config: { 'broker.embedded.partitions': 2, 'watermark.idleness-timeout': '500ms' },
    })
    await live.feed('orders', [at(0, {}, 0), at(0, {}, 1)])
    await live.runtime.untilIdle()
    const { partitions, globalMs } = await live.until('partition 1 is idle and 0 is not', async () => {
      await live.feed('orders', [at(60, {}, 0)])
      const json = await live.get('/watermarks')
      const idle = json.partitions?.['orders:1']?.idle as unknown as boolean
      const busy = !(json.partitions?.['orders:0']?.idle as unknown as boolean)
      return idle && busy && Number(json.globalMs) > base && json
    })
    assert.equal(globalMs, partitions?.['orders:0']?.watermarkMs)
    assert.equal(partitions?.['orders:1']?.idlenessTimeoutMs, 500)
  })
})

describe('buffers', () => {
  test('[2.9.threshold] [2.9.paused] a full buffer shows as paused, over its threshold by less than a poll', async (t) => {
    const live = await start(t, {
      app: 'scenario-app',
      config: {
        'engine.lanes.count': 1,
        'broker.embedded.partitions': 1,
        'engine.processing.buffered-records-per-partition': 100,
        'consumer.max.poll.records': 40,
        'lane.queue-bytes': 65_536,
      },
    })
    const blocking = at(0, { blockMs: 4000 }, 0)
    await live.feed('orders', [blocking])
    await live.until('the lane blocks', async () => (await metric(live, 'engine_lane_records_received_total')) >= 1)
    const many = Array.from({ length: 20_000 }, (_, i) => at(1 + i / 1000, {}, 0))
    await live.feed('orders', many)
    const buffer = await live.until('the partition is paused', async () => {
      const found = (await live.get('/consumer')).assignment?.['orders:0']
      return (found?.paused as unknown as boolean) && Number(found?.buffered) > 0 && found
    })
    assert.equal(buffer.bufferCapacity, 100)
    assert.ok(Number(buffer.buffered) >= 100 && Number(buffer.buffered) <= 139, `${buffer.buffered} buffered`)
    assert.equal(await live.state(), 'RUNNING')
    await live.runtime.untilIdle()
    await live.until('all is read', async () => {
      const { buffered, paused } = ((await live.get('/consumer')).assignment?.['orders:0'] ?? {}) as unknown as {
        buffered: number
        paused: boolean
      }
      return buffered === 0 && !paused
    })
    await live.until('all is committed', async () => Number((await live.get('/offsets')).totalLag) === 0)
  })
})

describe('pause', () => {
  test('a slow record is drained, then nothing is processed, until unpause', async (t) => {
    const live = await start(t, { app: 'scenario-app' })
    await live.feed('orders', [at(0, { slowMs: 1500 }, 0)])
    await live.until(
      'it is being processed',
      async () => (await metric(live, 'engine_lane_async_in_flight_records')) === 1,
    )
    const answer = await live.ask({ method: 'POST', path: '/pause' })
    assert.deepEqual(answer.json, { status: 'pausing', state: 'DRAINING' })
    assert.equal((await live.get('/state')).current, 'DRAINING')
    assert.equal((await live.ask({ path: '/health/ready' })).status, 200)
    const assigned = Object.values((await live.get('/consumer')).assignment ?? {}) as Json[]
    assert.ok(assigned.every((buffer) => (buffer.paused as unknown as boolean) === true))
    await live.untilState('PAUSED')
    await sleep(scrapeCacheMs)
    const done = await metric(live, 'engine_sink_records_total')
    assert.equal(done, 1)
    await live.feed('orders', [at(1, {}, 0), at(2, {}, 1)])
    await sleep(scrapeCacheMs)
    assert.equal(await metric(live, 'engine_sink_records_total'), done)
    assert.equal((await live.get('/state')).current, 'PAUSED')
    const resumed = await live.ask({ method: 'POST', path: '/unpause' })
    assert.deepEqual(resumed.json, { status: 'resumed', state: 'RUNNING' })
    await live.until(
      'the rest is processed',
      async () => (await metric(live, 'engine_sink_records_total')) === done + 2,
    )
    const states = ((await live.get('/state')).history as unknown as Json[]).map((entry) => entry.state)
    assert.deepEqual(states.slice(0, 3), ['RUNNING', 'PAUSED', 'DRAINING'])
  })
})

describe('a lane in an endless loop', () => {
  test('shows with the name of the function, holds up the commit by name, and costs the interface nothing', async (t) => {
    const live = await start(t, { app: 'scenario-app', config: { 'commit-barrier.timeout-ms': 600_000 } })
    await live.feed('orders', [at(0, { loop: true }, 0)])
    const lane = await live.until('a lane shows the loop', async () => {
      const { json } = await live.ask({ path: '/debug/threads' })
      const threads = json.engineThreads as unknown as Array<{ name: string; state: string; stack: string[] }>
      const found = threads.find((thread) => thread.stack.some((frame) => frame.startsWith('loopWithoutEnd ')))
      // The record may come between the look at its state, which waits, and the look at its stack.
      return found?.state === 'RUNNABLE' && found
    })
    assert.match(lane.name, /^lane-\d$/)
    assert.match(lane.stack[0] ?? '', /^loopWithoutEnd \(test\/http\/apps\/scenario-app\.ts:\d+\)$/)
    const barriers = await live.until('the commit waits for the lane', async () => {
      const json = await live.get('/debug/barriers')
      const outstanding = json.outstandingLanes as unknown as string[]
      const row = (json.lanes as unknown as Json[]).find((each) => (each.lane as unknown as string) === lane.name)
      return outstanding.includes(lane.name) && row?.at !== null && { phase: json.phase, at: row?.at }
    })
    assert.equal(barriers.phase, 'AWAITING_LANE_ACKS')
    assert.deepEqual(barriers.at, { topic: 'orders', partition: 0, offset: 0 })
    for (const path of [
      '/health/live',
      '/health/ready',
      '/metrics',
      '/watermarks',
      '/offsets',
      '/consumer',
      '/state',
    ]) {
      assert.equal((await live.ask({ path })).status, 200, path)
    }
  })
})
