/** Standstills brought about on a running application; `GET /why` alone names cause and place, and nothing else. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { WhyFinding } from '../../src/view/diagnosis/answer.ts'
import { type In, TestEngine } from './support/engine.ts'
import { engineIndex } from '../../src/base/counters.ts'
import type { BarrierSnapshot } from '../../src/view/view.ts'
import { eventually } from '../support/millrace.ts'
import { flows, found, keptBusy, meanwhile, patienceMs, quiet, why } from './support/why.ts'

async function start(t: TestContext, settings: Readonly<Record<string, unknown>> = {}): Promise<TestEngine> {
  const engine = await TestEngine.start(t, 'standing', { ...quiet, 'broker.embedded.partitions': 2, ...settings })
  await engine.reaches('RUNNING')
  return engine
}

/** Seconds that a lane, and the stages around it, have been at each of the four things they may do. */
async function timesOf(engine: TestEngine, lane: string) {
  const askedAtMs = Date.now()
  const text = await (await fetch(`${engine.runtime.url}/metrics`)).text()
  const atMs = Date.now()
  const value = (line: RegExp): number => Number(line.exec(text)?.[1])
  const [busy = 0, ...others] = ['busy', 'idle', 'waiting', 'backpressured'].map((what) =>
    value(new RegExp(`^engine_lane_${what}_seconds_total\\{.*lane="${lane}".*\\} (\\S+)$`, 'm')),
  )
  const stages = ['fetch', 'dispatch', 'commit', 'broker'].map((stage) =>
    ['busy', 'idle', 'held', 'waiting']
      .map((time) =>
        value(new RegExp(`^engine_stage_seconds_total\\{.*stage="${stage}",time="${time}".*\\} (\\S+)$`, 'm')),
      )
      .reduce((sum, seconds) => sum + seconds),
  )
  return { busy, sums: [others.reduce((sum, each) => sum + each, busy), ...stages], askedAtMs, atMs }
}

/** Whoever reads it waits until the test is over. */
function emptyPipe(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-pipe-'))
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  t.after(() => {
    // Not waiting for a reader: there may be none.
    closeSync(openSync(pipe, constants.O_RDWR))
    rmSync(folder, { recursive: true })
  })
  return pipe
}

const healthy = Array.from({ length: 20 }, (_, n): In => ({ key: `k${n}`, value: {} }))

describe('a function that does not return', () => {
  for (const [what, name] of [
    ['loop', 'loopForEver'],
    ['wait', 'waitForLock'],
    ['exec', 'waitForProgram'],
  ] as const) {
    test(`(${what}) is named with lane, node and record`, async (t) => {
      const pipe = emptyPipe(t)
      const engine = await start(t)
      await engine.put('works', healthy)
      await engine.idle()
      await engine.put('works', [{ key: 'k', value: { do: what, pipe }, partition: 1 }])
      // The thread tells its stack when it gets a processor; one that waits may not be able to.
      const isTold = ({ place, sentence }: WhyFinding): boolean =>
        what === 'loop' ? place.function !== undefined : sentence.includes('waits outside of JavaScript')
      const { first } = await found(engine, 'LANE_DOES_NOT_RETURN', isTold)
      assert.match(first.place.lane ?? '', /^lane-\d$/)
      assert.match(first.place.node ?? '', /MAPVALUES/)
      assert.deepEqual([first.place.topic, first.place.partition], ['works', 1])
      assert.match(first.sentence, /at the record works\/1 at offset \d+/)
      if (what === 'loop') assert.doesNotMatch(first.sentence, /outside of JavaScript/)
      if (first.place.function !== undefined) assert.ok(first.place.function.includes(name), first.place.function)
      const times = await timesOf(engine, first.place.lane as string)
      const later = await found(engine, 'LANE_DOES_NOT_RETURN')
      assert.equal(later.first.since, first.since)
      assert.ok(engine.log.filter(({ message }) => message.startsWith('LANE_DOES_NOT_RETURN')).length === 1)
      await new Promise((done) => setTimeout(done, 2000))
      const after = await timesOf(engine, first.place.lane as string)
      // Each answer was made at some moment while it was waited for.
      const [least, most] = [(after.askedAtMs - times.atMs) / 1000, (after.atMs - times.askedAtMs) / 1000]
      for (const [i, sum] of after.sums.entries()) {
        const passed = sum - (times.sums[i] as number)
        assert.ok(passed >= least * 0.95 && passed <= most * 1.05, `four times: ${passed} of ${least} to ${most} s`)
      }
      assert.ok(after.busy > times.busy, 'a lane that is stuck is busy')
    })
  }
})

describe('asynchronous functions', () => {
  for (const [what, name] of [
    ['loop', 'loopForEver'],
    ['wait', 'waitForLock'],
  ] as const) {
    test(`a function behind one that does not return (${what}) is named, and not the promise that was kept`, async (t) => {
      const engine = await start(t)
      await engine.put('calls', healthy)
      await engine.idle()
      await engine.put('calls', [{ key: 'k', value: { do: what, ms: 5 }, partition: 1 }])
      const { first, codes } = await found(engine, 'LANE_DOES_NOT_RETURN')
      assert.ok(first.place.function?.includes(name), first.place.function)
      assert.match(first.sentence, /in one call of \w+ \(\S+standing\.ts:\d+\), step \S*MAPVALUES\S*, for \d+ s/)
      assert.ok(!codes.includes('PROMISE_PENDING'), String(codes))
    })
  }

  test('a promise that never settles is told with node, record and age', async (t) => {
    const engine = await start(t)
    await engine.put('calls', healthy)
    await engine.idle()
    await engine.put('calls', [{ key: 'lost', value: { do: 'pend' }, partition: 0 }])
    const { first } = await found(engine, 'PROMISE_PENDING')
    assert.match(
      first.sentence,
      /asynchronous call that the step \S*MAPVALUES\S* made in lane-\d has not ended for \d+ s, .+ promise is pending/,
    )
    assert.deepEqual([first.place.topic, first.place.partition], ['calls', 0])
    assert.equal(typeof first.place.offset, 'number')
    const [evidence] = first.evidence
    const index = Number(/^lanes\[(\d+)\]\.at\.offset$/.exec(evidence?.field ?? '')?.[1])
    const barriers = (await (await fetch(`${engine.runtime.url}/debug/barriers`)).json()) as BarrierSnapshot
    assert.equal(barriers.lanes[index]?.at?.offset, evidence?.value)
    assert.equal(barriers.lanes[index]?.lane, first.place.lane)
  })

  test('a promise that never settles is told with its first age, also after the engine has restarted in place for it', async (t) => {
    const engine = await start(t, { 'commit-barrier.timeout-ms': 10_000 })
    await engine.put('calls', healthy)
    await engine.idle()
    await engine.put('calls', [{ key: 'lost', value: { do: 'pend' }, partition: 0 }])
    const { first } = await found(engine, 'PROMISE_PENDING')
    const dispatched = (): number => engine.runtime.view.counters()?.engine[engineIndex.recordsDispatched] ?? 0
    const before = dispatched()
    const { first: again } = await found(engine, 'PROMISE_PENDING', ({ sentence }) =>
      sentence.includes('has restarted in place because of it'),
    )
    assert.ok(dispatched() >= before, `a counter never falls: ${before}, then ${dispatched()}`)
    assert.deepEqual([again.since, again.place], [first.since, first.place])
  })

  test('a call that fails and is made again is told with function, record and age, until others speak against the record', async (t) => {
    const settings = { ...quiet, 'broker.embedded.partitions': 2, 'errors.processing': 'dead-letter' }
    const engine = await TestEngine.start(t, 'failing-calls', settings)
    await engine.reaches('RUNNING')
    await engine.put('asks', healthy)
    await engine.idle()
    await engine.put('asks', [{ key: 'lost', value: { do: 'throw' }, partition: 0 }])
    const { first } = await found(engine, 'CALLS_FAIL')
    assert.match(
      first.sentence,
      /^A call that the step \S*MAPVALUES\S* \(function askNeighbour\) made in lane-\d has failed again and again for \d+ s/,
    )
    assert.deepEqual([first.place.topic, first.place.partition], ['asks', 0])
    assert.equal(typeof first.place.offset, 'number')
    assert.match(first.next, /`errors\.processing` \(now dead-letter\)/)
    assert.ok(engine.log.some(({ message }) => /has failed 3 times .+ nobody answers$/.test(message)))
    // More than are let in beside it at once, and of many keys.
    const others = Array.from({ length: 2000 }, (_, n): In => ({ key: `o${n}`, value: {} }))
    await engine.put('asks', others)
    await engine.idle()
    assert.equal((await engine.read('asked')).length, healthy.length + others.length)
    await flows(engine)
  })

  test('a joiner that never answers is named, and not the sink to which the pair before it went', async (t) => {
    const engine = await TestEngine.start(t, 'asked-joins', { ...quiet, 'broker.embedded.partitions': 2 })
    await engine.reaches('RUNNING')
    await engine.put('left', [
      { key: 'k', value: {}, timestamp: 1_000_000, partition: 0 },
      { key: 'k', value: { pend: true }, timestamp: 1_000_001, partition: 0 },
    ])
    await engine.idle()
    await engine.put('right', [{ key: 'k', value: {}, timestamp: 1_000_002, partition: 0 }])
    const { first } = await found(engine, 'PROMISE_PENDING')
    assert.match(first.place.node ?? '', /OUTEROTHER/)
    assert.deepEqual([first.place.topic, first.place.partition], ['right', 0])
  })

  test('one hot key is told by hash, node, partition and rate, and never by its name', async (t) => {
    const engine = await start(t)
    const hot = Array.from({ length: 60 }, (): In => ({ key: 'secret-key', value: { ms: 250 }, partition: 1 }))
    const { first, codes } = await keptBusy(engine, 'calls', hot, () => found(engine, 'HOT_KEY'))
    assert.match(first.place.keyHash ?? '', /^[0-9a-f]{8}$/)
    assert.deepEqual([first.place.topic, first.place.partition], ['calls', 1])
    assert.match(first.place.node ?? '', /MAPVALUES/)
    assert.match(first.sentence, /\d records a second/)
    assert.ok(!codes.includes('LANE_DOES_NOT_RETURN') && !codes.includes('PROMISE_PENDING'), String(codes))
    const text = await (await fetch(`${engine.runtime.url}/why`, { headers: { Accept: 'text/plain' } })).text()
    assert.ok(!text.includes('secret-key'))
    await flows(engine)
  })
})

test('a slow function is slow, not stuck: its rate and its name', async (t) => {
  const engine = await start(t)
  const slow = Array.from({ length: 60 }, (): In => ({ key: 'k', value: { ms: 250 }, partition: 0 }))
  const { first, codes } = await keptBusy(engine, 'works', slow, () =>
    found(engine, 'LANE_SLOW', ({ place }) => place.function !== undefined),
  )
  assert.match(first.sentence, /slow, not stuck: it finishes [\d.]+ records a second/)
  assert.match(first.place.function ?? '', /takesTime|work/)
  assert.ok(!codes.includes('LANE_DOES_NOT_RETURN'))
})

test('commits that wait for a slow function are not put down to the stores', async (t) => {
  const engine = await start(t)
  // Few enough not to be a backlog, and always one at work when a commit is to be applied.
  const slow = Array.from({ length: 6 }, (): In => ({ key: 'k', value: { ms: 1500 }, partition: 0 }))
  const told = new Set<string>()
  const waited = async (): Promise<boolean> => {
    for (const { sentence } of (await why(engine)).findings) told.add(sentence)
    const { last } = engine.runtime.view.barriers() as BarrierSnapshot
    return last.length >= 4 && last.slice(0, 4).every(({ durationsMs }) => durationsMs.apply >= 700)
  }
  await keptBusy(engine, 'works', slow, () => eventually('commits wait for the function', waited, patienceMs))
  assert.deepEqual(
    [...told].filter((sentence) => sentence.includes('write the stores')),
    [],
  )
})

test('a partition without records that holds the watermark is named, with the setting', async (t) => {
  const engine = await start(t, { 'watermark.idleness-timeout': 0 })
  let n = 0
  const steadily = async (): Promise<void> => {
    const timestamp = 1_700_000_000_000 + n++ * 60_000
    const both = [0, 1].map((partition): In => ({ key: 'a', value: {}, partition, timestamp }))
    await engine.put('works', both)
    await engine.put('calls', both)
    await engine.put('events', both.slice(0, 1))
  }
  const { first } = await meanwhile(steadily, () => found(engine, 'WATERMARK_HELD'))
  assert.deepEqual([first.place.topic, first.place.partition], ['events', 1])
  assert.match(first.sentence, /watermark\.idleness-timeout\) is off/)
})

test('timestamps ahead of the clock: the record, by how much, what is late', async (t) => {
  const engine = await start(t)
  const now = Date.now()
  await engine.put('events', [{ key: 'a', value: {}, partition: 0, timestamp: now }])
  await engine.idle()
  await engine.put('events', [{ key: 'a', value: {}, partition: 0, timestamp: now + 3_650 * 86_400_000 }])
  await engine.idle()
  let n = 0
  const steadily = (): Promise<void> =>
    engine.put('events', [{ key: 'a', value: {}, partition: 0, timestamp: now + n++ }])
  const { first } = await meanwhile(steadily, () => found(engine, 'TIMESTAMP_AHEAD'))
  assert.deepEqual(first.place, { topic: 'events', partition: 0, offset: 1 })
  assert.match(first.sentence, /9 years ahead of the clock/)
})
