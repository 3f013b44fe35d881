/** Flow, rows of stores, dead letters and their way back, on the running engine. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { DeadLetters, Redriven, StoreRows } from '../../src/http/data-seam.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { redrive } from '../../src/runtime/data/redrive.ts'
import { scan, spansOf } from '../../src/runtime/data/topic-scan.ts'
import { startRuntime } from '../../src/runtime/index.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { FlowRates } from '../../src/view/flow-rates.ts'
import { laneIndex, nodeSlot, sourceTopicSlot } from '../../src/base/counters.ts'
import { keySlot } from '../../src/base/hash.ts'
import { dyingAt, redriveSteps } from '../support/dying-broker.ts'
import { eventually, millrace } from '../support/millrace.ts'
import { ask } from './support/client.ts'
import { type Served, served } from './support/dead-letters.ts'
import { FakeEngine } from './support/fake-engine.ts'
import { startFake } from './support/fake-subject.ts'
import { endLeftThreads, type Live, startLive } from './support/live.ts'

after(() => endLeftThreads())

const shown = { 'runtime.endpoints.stores.enabled': true, 'runtime.endpoints.dead-letters.enabled': true }
const canary = 'kanarienvogel-51c0'
const t0 = 1_700_000_000_000

async function startData(config: Readonly<Record<string, unknown>> = {}): Promise<Live> {
  const live = await startLive({
    app: 'data-app',
    config: { ...shown, 'errors.processing': 'dead-letter', 'errors.decoding': 'dead-letter', ...config },
  })
  await live.untilState('RUNNING')
  return live
}

async function rows(live: Live, path: string): Promise<StoreRows> {
  const answer = await live.ask({ path })
  assert.equal(answer.status, 200, answer.body)
  return answer.json as unknown as StoreRows
}

describe('GET /stores', () => {
  test('rows of all kinds are committed ones, by the serdes, page by page', async (t) => {
    // One lane has several partitions then, and what it gives first is not what one of them has first.
    const live = await startData({ 'engine.lanes.count': 1 })
    t.after(() => live.stop())
    const keys = Array.from({ length: 50 }, (_, i) => `key-${String(i).padStart(2, '0')}`)
    const events = keys.map((key, i) => ({ key, value: { amount: i % 7 }, timestamp: t0 + i * 1000 }))
    await live.feed('events', [...events, { key: canary, value: { amount: 3 }, timestamp: t0 + 60_000 }])
    await live.runtime.untilIdle()

    const list = await live.get('/stores')
    assert.equal(list.rowsShown, true)
    const names = (list.stores as unknown as Array<{ store: string; kind: string }>).map(({ store, kind }) => [
      store,
      kind,
    ])
    assert.deepEqual(Object.fromEntries(names), {
      counts: 'key-value',
      'by-window': 'window',
      'by-session': 'session',
      'by-amount': 'key-value',
    })

    const found: unknown[] = []
    for (let from: string | null = '', pages = 0; from !== null && pages < 20; pages++) {
      const page: StoreRows = await rows(
        live,
        `/stores/counts?limit=7${from === '' ? '' : `&from=${encodeURIComponent(from)}`}`,
      )
      found.push(...page.rows.map(({ key }) => key))
      assert.equal(page.more, page.next !== null)
      from = page.next
    }
    assert.deepEqual(found, [canary, ...keys].sort(), 'each row once, in the order of the keys')

    const reader = live.runtime.store<string, number>('counts')
    assert.equal((await rows(live, '/stores/counts?key=key-07')).rows[0]?.value, await reader.get('key-07'))
    assert.deepEqual((await rows(live, '/stores/counts?key=nobody')).rows, [])
    assert.deepEqual((await rows(live, '/stores/counts?key=%22%22')).rows, [], 'the empty text')
    assert.equal((await rows(live, '/stores/counts?from=key-10&to=key-12')).rows.length, 3)
    const [amount] = (await rows(live, '/stores/by-amount?key=3')).rows
    assert.deepEqual([amount?.key, amount?.value], [3, 8])
    const windows = (await rows(live, `/stores/by-window?key=key-11`)).rows
    assert.deepEqual(
      windows.map(({ key, value, start, end }) => ({ key, value, start, end })),
      [{ key: 'key-11', value: 1, start: t0 + 10_000, end: t0 + 20_000 }],
    )
    const until = new Date(t0 + 20_000).toISOString()
    const many = await rows(live, `/stores/by-window?from=${t0 + 10_000}&to=${until}&limit=5`)
    assert.equal(many.rows.length, 5)
    assert.equal(many.more, true)
    const [session] = (await rows(live, '/stores/by-session?key=key-20')).rows
    assert.deepEqual([session?.start, session?.end], [t0 + 20_000, t0 + 20_000])

    for (const [path, status, what] of [
      ['/stores/nothing', 404, /by-amount, by-session, by-window, counts/],
      ['/stores/counts/', 404, /unknown path/],
      ['/stores/%ff', 404, /unknown path/],
      ['/stores/by-window?from=yesterday', 400, /instants/],
      ['/stores/counts?limit=0', 400, /1 to 1000/],
      ['/stores/counts?key=', 400, /'key' is empty; give .* `""` for the empty one/],
      [`/stores/counts?key=${'k'.repeat(1025)}`, 400, /'key' must be 1 to 1024 characters/],
    ] as const) {
      const answer = await live.ask({ path })
      assert.equal(answer.status, status, `${path}: ${answer.body}`)
      assert.match(String(answer.json.error), what)
    }

    const others = [
      '/stores',
      '/flow',
      '/info',
      '/why',
      '/state',
      '/topology',
      '/metrics',
      '/debug/barriers',
      '/config',
    ]
    for (const path of others) {
      const { body } = await live.ask({ path })
      assert.ok(!body.includes(canary), `${path} tells of a row`)
    }
    assert.ok(live.log.every((line) => !JSON.stringify(line).includes(canary)))
  })

  test('shows no rows unless it is asked to, and asks for a token where others could ask', async (t) => {
    const fake = await startFake()
    t.after(() => fake.stop())
    assert.equal((await fake.ask({ path: '/stores/counts' })).status, 404)
    assert.equal((await fake.ask({ path: '/dead-letters' })).status, 404)
    assert.equal((await fake.ask({ path: '/stores' })).json.rowsShown, false)
    const application = new URL('apps/data-app.ts', import.meta.url)
    for (const key of Object.keys(shown)) {
      const config = { [key]: true, 'runtime.http.port': 0 }
      await assert.rejects(startRuntime({ application, config, log: () => undefined }), /token/)
    }
    const live = await startData({ 'runtime.http.auth.token': 'open-sesame' })
    t.after(() => live.stop())
    const refused = await ask(live.url, { path: '/stores/counts' })
    assert.equal(refused.status, 401)
    const headers = { authorization: 'Bearer open-sesame' }
    assert.equal((await ask(live.url, { path: '/stores/counts', headers })).status, 200)
  })
})

describe('GET /flow', () => {
  test('counts what goes in and out, by topic, node and lane', async (t) => {
    const live = await startData()
    t.after(() => live.stop())
    await live.feed(
      'events',
      Array.from({ length: 30 }, (_, i) => ({ key: `k${i}`, value: { amount: 1 }, timestamp: t0 })),
    )
    await live.runtime.untilIdle()
    const flow = await live.get('/flow?history=true')
    const source = (flow.sources as unknown as Array<{ topic: string; records: number }>).find(
      (each) => each.topic === 'events',
    )
    assert.equal(source?.records, 30)
    const nodes = flow.nodes as unknown as Array<{ node: string; type: string; records: number; byLane: number[] }>
    assert.equal(nodes.find(({ type }) => type === 'source')?.records, 30)
    assert.ok(nodes.every(({ byLane }) => byLane.length === 2))
    assert.equal((flow.lanes as unknown as unknown[]).length, 2)
    assert.ok((flow.stages as unknown as Array<{ stage: string }>).some(({ stage }) => stage === 'commit'))
  })

  test('counts topics that become known as records come, and dead letters; what is too many of them together', async (t) => {
    const live = await startLive({
      app: 'topics-app',
      config: { 'errors.processing': 'dead-letter', 'consumer.metadata.max.age.ms': 200 },
    })
    t.after(() => live.stop())
    await live.untilState('RUNNING')
    // The history tells of what comes after the first look.
    await live.until('rates are taken', async () => Number((await live.get('/flow')).windowMs) > 0)
    const { broker } = live.runtime
    const outs = Array.from({ length: 70 }, (_, i) => `out-${i}`)
    await broker.createTopics(['in-a', 'in-b', ...outs].map((topic) => ({ topic, partitions: 2 })))
    const records = Array.from({ length: 700 }, (_, i) => ({ key: `k${i % 9}`, value: i, timestamp: t0 }))
    for (const topic of ['in-a', 'in-b']) await live.feed(topic, records)
    const processed = async (): Promise<boolean> => (await valuesOf(broker, 'fixed')).length === 2 * 630
    await live.until('all of it is processed', processed)
    await live.runtime.untilIdle()
    const flow = await live.until('a line of the history has records', async () => {
      const answer = await live.get('/flow?history=true')
      const { recordsIn, recordsOut } = answer.history as unknown as Record<string, number[]>
      return recordsIn?.some((rate) => rate > 0) && recordsOut?.some((rate) => rate > 0) && answer
    })
    const counted = (topics: unknown): Record<string, number> =>
      Object.fromEntries(
        (topics as Array<{ topic: string; records: number }>).map((each) => [each.topic, each.records]),
      )
    assert.deepEqual(counted(flow.sources), { 'in-a': 700, 'in-b': 700 })
    const { fixed, 'topics-dead-letters': letters, '(others)': others, ...chosen } = counted(flow.sinks)
    assert.deepEqual([fixed, letters], [1260, 140])
    const each = Object.entries(chosen)
    assert.ok(
      each.every(([topic, count]) => outs.includes(topic) && count === 20),
      JSON.stringify(chosen),
    )
    // Every tenth number fails: 63 topics are written, and dead letters have a place of their own among the 63.
    assert.deepEqual([each.length, others], [62, 20])
    const { body } = await live.ask({ path: '/metrics' })
    assert.match(body, /^engine_source_records_total\{topic="in-b"\} 700$/m)
    assert.match(body, /^engine_sink_records_total\{topic="topics-dead-letters"\} 140$/m)
    assert.match(body, /^engine_sink_records_total\{topic="\(others\)"\} 20$/m)
  })

  test('takes rates over ten seconds, anew after a restart, and keeps a quarter of an hour', () => {
    const engine = new FakeEngine()
    const counters = engine.countersView
    assert.ok(counters !== null)
    const slot = sourceTopicSlot(counters.layout, 0)
    const rates = new FlowRates(engine)
    const [lane] = counters.lanes
    assert.ok(lane !== undefined)
    for (let second = 0; second <= 2000; second++) {
      counters.engine[slot] = second * 100
      lane[nodeSlot(counters.layout, 0)] = second * 50
      lane[laneIndex.finishedRecords] = second * 40
      rates.sample(second * 1000, t0 + second * 1000)
    }
    const report = rates.report(t0, [], true)
    assert.equal(report.windowMs, 10_000)
    assert.equal(report.sources[0]?.recordsPerSecond, 100)
    assert.equal(report.nodes[0]?.byLane[0], 50)
    assert.equal(report.lanes[0]?.recordsPerSecond, 40)
    assert.equal(report.history?.atMs.length, 180)
    assert.ok(report.history?.recordsIn.every((rate) => rate === 100))
    counters.engine[slot] = 10
    rates.sample(2_001_000, t0 + 2_001_000)
    assert.equal(rates.report(t0, [], false).sources[0]?.recordsPerSecond, 0, 'no rate across a restart')
  })
})

/** Committed values of a topic, by partition and offset. */
async function valuesOf(broker: BrokerPort, topic: string): Promise<string[]> {
  const found: string[] = []
  await scan(broker, topic, (await spansOf(broker, topic)) ?? [], ({ partition, timestamp, key, value, headers }) => {
    found.push(
      JSON.stringify([
        partition,
        timestamp,
        String(key && Buffer.from(key)),
        String(value && Buffer.from(value)),
        headers,
      ]),
    )
    return true
  })
  return found
}

interface Letter {
  readonly message: string
  readonly partition: number
  readonly offset: number
}

/** Writes letters about these records of `events`; what to give them back with. */
async function withLetters(
  broker: BrokerPort,
  about: readonly Letter[],
  to = 0,
): Promise<Parameters<typeof redrive>[0]> {
  const letters = new RecordBatchBuilder()
  for (const { message, partition, offset } of about) {
    const headers = Object.entries({ message, topic: 'events', partition: String(partition), offset: String(offset) })
    const named = headers.map(([name, value]) => [`__streams.errors.${name}`, value] as const)
    letters.append(t0, Buffer.from('k'), null, named)
  }
  const topic = 'data-dead-letters'
  if ((await broker.topics([topic])).length === 0) await broker.createTopics([{ topic, partitions: 1 }])
  await broker.produce({ transactionalId: null, batches: [{ topic, partition: to, records: letters.finish() }] })
  const isSource = (name: string): boolean => name === 'events'
  return { broker, deadLetterTopic: topic, isSource, now: () => t0 }
}

/** Answers to what is called `name` come once `thaw` is called. */
function frozenAt(broker: BrokerPort, name: keyof BrokerPort): { broker: BrokerPort; thaw(): void } {
  const thawed = Promise.withResolvers<void>()
  const frozen = new Proxy(broker, {
    get(target, member) {
      const value = Reflect.get(target, member, target) as unknown
      if (typeof value !== 'function') return value
      if (member !== name) return value.bind(target)
      return async (...given: unknown[]) => {
        await thawed.promise
        return (await value.apply(target, given)) as unknown
      }
    },
  })
  return { broker: frozen, thaw: () => thawed.resolve() }
}

describe('dead letters', () => {
  test('while the broker is silent the answer is 503, and says whether they may have been put back', async (t) => {
    const live = await startData()
    t.after(() => live.stop())
    await live.feed('events', [{ key: 'k', value: { amount: 1, fail: true }, timestamp: t0 }])
    await live.runtime.untilIdle()
    await live.ask({ method: 'POST', path: '/pause' })
    await live.untilState('PAUSED')
    const { broker } = live.runtime
    const withData = (port: BrokerPort): Promise<Served> =>
      served(t, port, { topic: 'data-dead-letters', patienceMs: 1500, topics: ['events'] })
    const before = (await valuesOf(broker, 'events')).length
    const redriven = { method: 'POST', path: '/dead-letters/redrive?dry-run=false' }

    const deaf = frozenAt(broker, 'fetch')
    const first = await withData(deaf.broker)
    const answers = await Promise.all([first.ask({ path: '/dead-letters' }), first.ask(redriven), first.ask(redriven)])
    for (const { status, json } of answers) {
      assert.equal(status, 503)
      assert.match(String(json.error), /the broker did not do it: it has not answered for 1\.5 s/)
    }
    assert.match(answers[1].body, /nothing was put back/)
    deaf.thaw()
    const shown = await first.ask({ path: '/dead-letters' })
    assert.equal((shown.json.letters as unknown as DeadLetters['letters'])[0]?.redriven, false)
    assert.equal((await valuesOf(broker, 'events')).length, before, 'what was given up is not done later')

    const mute = frozenAt(broker, 'endTransaction')
    const second = await withData(mute.broker)
    const unsure = await second.ask(redriven)
    assert.equal(unsure.status, 503, unsure.body)
    assert.match(String(unsure.json.error), /letters may have been put back all the same; ask again/)
    mute.thaw()
    await eventually('the record is there again', async () => (await valuesOf(broker, 'events')).length > before)
    const { already, redriven: again } = (await second.ask(redriven)).json as unknown as Redriven
    assert.deepEqual([already, again], [1, 0])
  })

  test('are shown newest first with their reason, and put back once, by reason, topic and time', async (t) => {
    const live = await startData()
    t.after(() => live.stop())
    const failing = Array.from({ length: 6 }, (_, i) => ({
      key: `k${i}`,
      value: { amount: i, fail: true },
      timestamp: t0 + i,
    }))
    await live.feed('events', [...failing, { key: 'good', value: { amount: 1 }, timestamp: t0 }])
    await live.runtime.untilIdle()
    const list = (await live.get('/dead-letters')) as unknown as DeadLetters
    assert.equal(list.topic, 'data-dead-letters')
    assert.deepEqual(list.byReason, { TypeError: 6 })
    assert.deepEqual(
      list.letters.map(({ key, message }) => [key, message]),
      [5, 4, 3, 2, 1, 0].map((i) => [`k${i}`, `cannot take ${i}`]),
    )
    assert.equal(list.letters[0]?.source?.topic, 'events')

    const before = await valuesOf(live.runtime.broker, 'events')
    const post = async (query: string): Promise<Omit<Redriven, 'ends'>> => {
      const answer = await live.ask({ method: 'POST', path: `/dead-letters/redrive?${query}` })
      assert.equal(answer.status, 200, answer.body)
      const { ends, ...counts } = answer.json as unknown as Redriven
      assert.match(ends, /^(\d:\d+(,\d:\d+)?)?$/)
      return counts
    }
    const none = { dryRun: true, matched: 0, redriven: 0, already: 0, gone: 0, more: false }
    assert.deepEqual(await post('reason=Nothing'), none)
    assert.deepEqual(await post('topic=elsewhere'), none)
    assert.deepEqual(await post(`since=${t0 + 4}`), { ...none, matched: 2, redriven: 2 })
    assert.deepEqual(await valuesOf(live.runtime.broker, 'events'), before, 'a dry run writes nothing')
    assert.deepEqual(await post(`since=${t0 + 4}&dry-run=false`), { ...none, dryRun: false, matched: 2, redriven: 2 })
    await live.runtime.untilIdle()
    // They fail again, and are letters of their own then.
    assert.deepEqual(await post('reason=TypeError'), { ...none, matched: 8, redriven: 6, already: 2 })
    const after = await valuesOf(live.runtime.broker, 'events')
    assert.equal(after.length, before.length + 2)
    const twice = after.filter((line, i) => after.indexOf(line) !== i)
    assert.equal(twice.length, 2, 'key, value, headers, timestamp and partition are those of the original')
    assert.equal((await post(`ends=0:0,1:0&dry-run=false`)).matched, 0, 'what was written since is not meant')
    assert.equal((await live.ask({ method: 'POST', path: '/dead-letters/redrive?ends=all' })).status, 400)
    const again = (await live.get('/dead-letters?limit=100')) as unknown as DeadLetters
    assert.equal(again.letters.filter(({ redriven }) => redriven).length, 2)
  })

  test('are put back once each, although the process dies at every step of it', async (t) => {
    const live = await startData()
    t.after(() => live.stop())
    const count = 21
    const failing = Array.from({ length: count }, (_, i) => ({
      key: `k${i}`,
      value: { amount: i, fail: true },
      timestamp: t0 + i,
    }))
    await live.feed('events', failing)
    await live.runtime.untilIdle()
    const { broker } = live.runtime
    // The engine would make further letters of what comes back.
    await live.ask({ method: 'POST', path: '/pause' })
    await live.untilState('PAUSED')
    const options = {
      deadLetterTopic: 'data-dead-letters',
      isSource: (topic: string) => topic === 'events',
      now: () => t0,
    }
    const how = { dryRun: false, limit: 4 }
    for (const step of redriveSteps) {
      await assert.rejects(redrive({ ...options, broker: dyingAt(broker, step) }, {}, how), /died/, step)
    }
    for (let calls = 0; calls < count; calls++) {
      const { more } = await redrive({ ...options, broker }, {}, how)
      if (!more) break
    }
    const lines = await valuesOf(broker, 'events')
    assert.equal(lines.length, 2 * count)
    assert.ok(
      [...new Set(lines)].every((line) => lines.filter((other) => other === line).length === 2),
      'each is there as it came, and once more',
    )
  })

  test('put a record back once, however many of its letters are put back', async (t) => {
    const live = await startData()
    t.after(() => live.stop())
    await live.feed('events', [{ key: 'k', value: { amount: 1 }, timestamp: t0 }])
    const { broker } = live.runtime
    const partition = keySlot(Buffer.from('k')) % ((await broker.topics(['events']))[0]?.partitions ?? 1)
    const messages = ['one branch', 'another branch', 'a third one']
    const options = await withLetters(
      broker,
      messages.map((message) => ({ message, partition, offset: 0 })),
    )
    const before = (await valuesOf(broker, 'events')).length
    const ends = '0:2'
    const first = await redrive(options, {}, { dryRun: false, limit: 10, ends })
    assert.deepEqual([first.matched, first.redriven, first.already], [2, 1, 1])
    const second = await redrive(options, {}, { dryRun: false, limit: 10 })
    assert.deepEqual([second.matched, second.redriven, second.already], [3, 0, 3])
    assert.equal((await valuesOf(broker, 'events')).length, before + 1)
  })

  test('are put back call by call by the command, from a topic of a thousand partitions', async (t) => {
    const live = await startData()
    t.after(() => live.stop())
    const count = 2000
    const record = (amount: number) => ({ key: 'k', value: { amount }, timestamp: t0 + amount })
    await live.feed(
      'events',
      Array.from({ length: count }, (_, i) => record(i)),
    )
    const { broker } = live.runtime
    const partition = keySlot(Buffer.from('k')) % ((await broker.topics(['events']))[0]?.partitions ?? 1)
    await broker.deleteTopics(['data-dead-letters'])
    await broker.createTopics([{ topic: 'data-dead-letters', partitions: 1000 }])
    for (let first = 0; first < count; first += 10) {
      const about = Array.from({ length: 10 }, (_, i) => ({ message: 'no', partition, offset: first + i }))
      await withLetters(broker, about, first / 2)
    }
    const done = await millrace(['dlq', 'redrive', '--yes', '--limit', '300', '--url', live.url])
    assert.match(done.stdout, /^2000 put back\. 2000 fit; 0 were put back before; 0 cannot be\./, done.stderr)
    const values = await valuesOf(broker, 'events')
    assert.equal(values.length, 2 * count)
    assert.equal(new Set(values).size, count, 'each is there as it came, and once more')
  })

  test('of large records are put back some megabytes a call, and a call says that there are more', async (t) => {
    const live = await startData()
    t.after(() => live.stop())
    const count = 30
    // Nothing of it needs to be processed.
    await live.ask({ method: 'POST', path: '/pause' })
    await live.untilState('PAUSED')
    const { broker } = live.runtime
    const pad = 'x'.repeat(700_000)
    for (let amount = 0; amount < count; amount++) {
      await live.feed('events', [{ key: 'k', value: { amount, pad }, timestamp: t0 + amount, partition: amount % 2 }])
    }
    const offsets = Array.from({ length: count }, (_, i) => ({ partition: i % 2, offset: Math.floor(i / 2) }))
    await withLetters(
      broker,
      offsets.map((place) => ({ message: 'no', ...place })),
    )
    const post = async (query: string): Promise<Redriven> => {
      const answer = await live.ask({ method: 'POST', path: `/dead-letters/redrive?limit=1000${query}` })
      assert.equal(answer.status, 200, answer.body)
      return answer.json as unknown as Redriven
    }
    const plan = await post('')
    assert.deepEqual([plan.redriven, plan.more], [count, false], 'to say what would be done takes no room')
    const calls: Redriven[] = []
    do calls.push(await post(`&dry-run=false&ends=${plan.ends}`))
    while (calls.at(-1)?.more === true && calls.length < count)
    assert.ok(calls.length > 1 && calls.length < 6, `${calls.length} calls`)
    assert.ok(
      calls.every(({ redriven }) => redriven * pad.length < 9_000_000),
      JSON.stringify(calls),
    )
    const { matched, already, gone } = calls.at(-1) as Redriven
    assert.deepEqual([matched, already, gone], [count, count - (calls.at(-1)?.redriven ?? 0), 0])
    const lines = await valuesOf(broker, 'events')
    assert.equal(lines.length, 2 * count)
    assert.equal(new Set(lines).size, count, 'each is there as it came, and once more')
  })

  test('whose records are gone do not keep those behind them from being put back', async (t) => {
    const live = await startData()
    t.after(() => live.stop())
    const { broker } = live.runtime
    const kept = [0, 1].map((i) => ({ key: 'k', value: { amount: i }, timestamp: t0, partition: 0 }))
    await live.feed('events', kept)
    const offsets = [70, 71, 72, 0, 73, 1]
    const options = await withLetters(
      broker,
      offsets.map((offset) => ({ message: 'no', partition: 0, offset })),
    )
    const before = (await valuesOf(broker, 'events')).length
    const calls: Array<[redriven: number, gone: number, more: boolean]> = []
    for (let more = true; more && calls.length < 6; ) {
      const answer = await redrive(options, {}, { dryRun: false, limit: 1 })
      more = answer.more
      calls.push([answer.redriven, answer.gone, more])
    }
    assert.deepEqual(calls, [
      [1, 3, true],
      [1, 4, false],
    ])
    assert.equal((await valuesOf(broker, 'events')).length, before + 2)
  })

  test('that are many are put back by reading their topics in one way, whatever their order', async (t) => {
    const live = await startData()
    t.after(() => live.stop())
    const { broker } = live.runtime
    const records = Array.from({ length: 300 }, (_, i) => ({
      key: 'k',
      value: { amount: i },
      timestamp: t0,
      partition: i % 2,
    }))
    await live.feed('events', records)
    const about = records.map(({ partition }, i) => ({ message: 'no', partition, offset: Math.floor(i / 2) })).reverse()
    const options = await withLetters(broker, about)
    let fetches = 0
    const counting = new Proxy(broker, {
      get(target, name) {
        if (name === 'fetch') fetches++
        const value = Reflect.get(target, name, target) as unknown
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const answer = await redrive({ ...options, broker: counting }, {}, { dryRun: false, limit: 250 })
    assert.deepEqual([answer.redriven, answer.more], [250, true])
    assert.ok(fetches < 25, `${fetches} fetches for 250 letters`)
    const rest = await redrive(options, {}, { dryRun: false, limit: 250 })
    assert.deepEqual([rest.redriven, rest.already, rest.more], [50, 250, false])
    const lines = await valuesOf(broker, 'events')
    assert.ok([...new Set(lines)].every((line) => lines.filter((other) => other === line).length === 2))
    assert.equal(lines.length, 600)
  })
})
