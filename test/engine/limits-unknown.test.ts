/** Topics whose limits of sizes and event times may not be read, or are others by now: found out when a batch is refused. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, serdes } from 'millrace'
import { BrokerError, type ProduceRequest } from '../../src/broker/port.ts'
import { RecordCursor } from '../../src/broker/wire/record-batch.ts'
import type { ErrorPolicy } from '../../src/lanes/tasks/error-policy.ts'
import type { In } from './support/engine.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

interface Order {
  readonly n: number
  readonly bytes: number
}

const application = defineApp({
  applicationId: 'sizes',
  build(topology) {
    topology
      .stream('in', { key: serdes.string, value: serdes.json<Order>() })
      .mapValues(({ n, bytes }) => ({ n, pad: 'x'.repeat(bytes) }))
      .to('out')
  },
})

/** Nobody asks for the topic before a record names it. */
const choosing = defineApp({
  applicationId: 'sizes',
  build(topology) {
    topology
      .stream('in', { key: serdes.string, value: serdes.json<Order>() })
      .mapValues(({ n, bytes }) => ({ n, pad: 'x'.repeat(bytes) }))
      .to(() => 'out')
  },
})

const forbidden = (): never => {
  throw new BrokerError('TOPIC_AUTHORIZATION_FAILED', 'nobody may look at it')
}

async function started(
  producing: ErrorPolicy,
  config: () => Record<string, string>,
  app = application,
  guarantee: 'exactly-once' | 'at-least-once' = 'exactly-once',
): Promise<VirtualEngine> {
  const engine = new VirtualEngine({
    compile: () => app.compile(),
    settings: { sinkTopics: app === application ? ['out'] : [], maxRestarts: 3, restartWindowMs: 60_000, guarantee },
    policies: { producing },
    tamper: async (name, args, call) => (name === 'topicConfig' && args[0] === 'out' ? config() : call(args)),
  })
  const records = (sizes: readonly number[], from: number): In[] =>
    sizes.map((bytes, i) => ({ key: 'k', value: { n: from + i, bytes }, timestamp: 1_000_000 + from + i }))
  await engine.broker.createTopics([{ topic: 'in', partitions: 2 }])
  await engine.broker.createTopics([{ topic: 'out', partitions: 2, config: { 'max.message.bytes': '10000' } }])
  await engine.put('in', records([...Array.from({ length: 500 }, () => 60), 20_000, 60], 0))
  await engine.start()
  await engine.runs()
  return engine
}

const numbers = async (engine: VirtualEngine): Promise<number[]> =>
  (await engine.read('out')).map(({ value }) => (value as { n: number }).n)

const outdated = (): (() => Record<string, string>) => {
  let asked = 0
  return () => ({ 'max.message.bytes': asked++ === 0 ? '1048588' : '10000' })
}

for (const [what, config] of [
  ['may not be read', () => forbidden],
  ['was lowered after the start', outdated],
] as const) {
  describe(`a limit that ${what}`, () => {
    test('what is legal is written, in order, and `skip` drops the one that is not', async () => {
      const engine = await started('skip', config())
      await engine.settled()
      assert.deepEqual(
        await numbers(engine),
        Array.from({ length: 502 }, (_, n) => n).filter((n) => n !== 500),
      )
      assert.equal(engine.count('failed'), 0)
    })

    test('`fail` names topic, record and sizes', async () => {
      const engine = await started('fail', config())
      await engine.until('it has failed', () => engine.count('failed') > 0)
      const failed = engine.facts.find((fact) => fact.type === 'failed')
      const sentence = JSON.stringify(failed)
      assert.match(sentence, /for the topic out made from the record in\/\d at offset 500 takes 20\d\d\d bytes/)
      assert.deepEqual(
        (await numbers(engine)).filter((n) => n >= 500),
        [],
      )
    })

    test('holds for a topic that only records name, and dead letters have what came in', async () => {
      const engine = await started('dead-letter', config(), choosing)
      await engine.settled()
      assert.equal((await numbers(engine)).length, 501)
      const letters = await engine.read('dead')
      assert.deepEqual(
        letters.map(({ value }) => value),
        [{ n: 500, bytes: 20_000 }],
      )
    })
  })
}

describe('a limit of sizes that may not be read', () => {
  const falling = (from: number, count: number, by: number): number[] =>
    Array.from({ length: count }, (_, i) => from - i * by)
  const sized = (sizes: readonly number[], from: number): In[] =>
    sizes.map((bytes, i) => ({ key: `k${i}`, value: { n: from + i, bytes }, timestamp: 1_000_000 + from + i }))

  test('costs one restart for all that is at hand, however they fall, and passes over nothing that fits', async () => {
    const engine = await started('skip', () => forbidden())
    await engine.settled()
    const before = engine.count('restarting')
    // Each of them is smaller than the one before; those that fit lie between the smallest refused and the largest taken.
    const sizes = falling(19_900, 24, 500)
    await engine.put('in', sized(sizes, 502))
    await engine.settled()
    const fits = sizes.flatMap((bytes, i) => (bytes < 9_950 ? [502 + i] : []))
    assert.deepEqual(
      (await numbers(engine)).filter((n) => n >= 502).sort((a, b) => a - b),
      fits,
    )
    assert.ok(fits.length > 0)
    assert.equal(engine.count('restarting') - before, 1)
  })

  test('may be found out in any number of restarts: each of them teaches something', async () => {
    const engine = await started('skip', () => forbidden())
    await engine.settled()
    for (const [i, bytes] of falling(19_000, 9, 1000).entries()) {
      await engine.put('in', sized([bytes], 502 + i))
      await engine.settled()
    }
    assert.deepEqual([engine.count('restarting') > 5, engine.count('failed')], [true, 0])
    assert.equal((await numbers(engine)).length, 501)
  })

  test('leaves nothing out where results are written without transactions', async () => {
    const engine = await started('skip', () => forbidden(), application, 'at-least-once')
    await engine.put('in', sized([19_000, 60, 18_000, 60, 9900, 60], 502))
    await engine.settled()
    const left = [500, 502, 504]
    assert.deepEqual(
      [...new Set(await numbers(engine))].sort((a, b) => a - b),
      Array.from({ length: 508 }, (_, n) => n).filter((n) => !left.includes(n)),
    )
    assert.equal(engine.count('failed'), 0)
  })

  test('is told as such, with the right that is missing', async () => {
    const engine = await started('dead-letter', () => forbidden())
    await engine.settled()
    const [letter] = await engine.read('dead')
    assert.match(
      letter?.headers['__streams.errors.message'] ?? '',
      /takes 20\d\d\d bytes, and out has refused 20\d\d\d: .* The settings of out may not be read \(DESCRIBE_CONFIGS\), so the limit is not known\./,
    )
  })
})

test('a dead-letter topic that does not even take the reason alone ends the engine with that sentence', async () => {
  const engine = new VirtualEngine({
    compile: () => application.compile(),
    settings: { sinkTopics: ['out', 'dead'] },
    policies: { producing: 'dead-letter', decoding: 'dead-letter' },
  })
  for (const topic of ['in', 'out']) await engine.broker.createTopics([{ topic, partitions: 2 }])
  await engine.broker.createTopics([{ topic: 'dead', partitions: 2, config: { 'max.message.bytes': '120' } }])
  await engine.put('in', [{ key: 'k', value: Buffer.from('{') }])
  await engine.start()
  await engine.until('it has failed', () => engine.count('failed') > 0)
  const failed = JSON.stringify(engine.facts.find(({ type }) => type === 'failed'))
  assert.match(failed, /"CONFIG_INVALID","message":"The dead-letter topic dead does not even take the reason alone\./)
})

const hourMs = 3_600_000

/** `out` takes event times from a day behind to an hour ahead, and nobody may look at its settings. */
async function withTimes(producing: ErrorPolicy, tells: boolean, restoringMs = 0): Promise<VirtualEngine> {
  const engine: VirtualEngine = new VirtualEngine({
    compile: () => application.compile(),
    settings: { sinkTopics: ['out', 'dead'], maxRestarts: 3, restartWindowMs: 60_000 },
    policies: { producing },
    tamper: async (name, args, call) => {
      if (name === 'topicConfig' && ['out', 'dead'].includes(String(args[0]))) return forbidden()
      if (name === 'topics' && engine.count('restarting') > 0 && restoringMs > 0) await waits(engine, restoringMs)
      if (name === 'produce') refuseTimes(args[0] as ProduceRequest, engine.scheduler.clock.now(), tells)
      return call(args)
    },
  })
  for (const topic of ['in', 'out', 'dead']) await engine.broker.createTopics([{ topic, partitions: 2 }])
  await engine.start()
  await engine.runs()
  return engine
}

function waits({ scheduler }: VirtualEngine, ms: number): Promise<void> {
  return new Promise((resolve) => scheduler.at(ms, 0, resolve))
}

/** As Kafka does, which says what it would take. */
function refuseTimes({ batches }: ProduceRequest, now: number, tells: boolean): void {
  const [earliest, latest] = [Math.floor(now) - 24 * hourMs, Math.floor(now) + hourMs]
  for (const { topic, records } of batches) {
    if (topic !== 'out' && topic !== 'dead') continue
    const cursor = new RecordCursor({ verifyChecksums: false })
    cursor.reset(records, 0, [], 'read_uncommitted')
    while (cursor.next()) {
      if (cursor.timestamp >= earliest && cursor.timestamp <= latest) continue
      const range = `Timestamp ${cursor.timestamp} is out of range. The timestamp should be within [${earliest}, ${latest}]`
      throw new BrokerError('INVALID_TIMESTAMP', tells ? range : 'the timestamp is out of the acceptable range')
    }
  }
}

/** Each third one is three hours ahead, each third one two days old. */
function scattered(now: number, from: number): In[] {
  const offBy = [0, 3 * hourMs, -48 * hourMs]
  return Array.from({ length: 60 }, (_, i) => {
    const timestamp = now + (offBy[i % 3] as number) + i
    return { key: `k${i % 7}`, value: { n: from + i, bytes: 10 }, timestamp }
  })
}

for (const tells of [true, false]) {
  describe(`limits of event times that may not be read, of a broker that ${tells ? 'tells' : 'does not tell'} them`, () => {
    const inTime = (count: number): number[] => Array.from({ length: count }, (_, i) => i * 3)

    test('`skip` drops what is too far ahead and what is too old, and nothing else', async () => {
      const engine = await withTimes('skip', tells)
      // What is too far off at one moment is so at the next one as well: nothing has to be found out again.
      for (let round = 0; round < 5; round++) {
        await engine.put('in', scattered(engine.scheduler.clock.now(), round * 60))
        await engine.settled()
        await engine.passes(2000)
      }
      assert.deepEqual(
        (await numbers(engine)).sort((a, b) => a - b),
        inTime(100),
      )
      assert.equal(engine.count('failed'), 0)
      assert.ok(engine.count('restarting') <= (tells ? 1 : 2), `${engine.count('restarting')} restarts`)
    })

    test('what was refused is not taken after a long restart, though the clock has come nearer to it', async () => {
      const engine = await withTimes('skip', tells, 20_000)
      await engine.put('in', scattered(engine.scheduler.clock.now(), 0))
      await engine.settled()
      assert.equal((await numbers(engine)).length, 20)
      assert.ok(engine.count('restarting') <= (tells ? 1 : 3), `${engine.count('restarting')} restarts`)
    })

    test('`dead-letter` keeps the reasons, with the right that is missing, at times that the topic takes', async () => {
      const engine = await withTimes('dead-letter', tells)
      await engine.put('in', scattered(engine.scheduler.clock.now(), 0))
      await engine.settled()
      assert.deepEqual(
        (await numbers(engine)).sort((a, b) => a - b),
        inTime(20),
      )
      const reasons = (await engine.read('dead')).map(({ headers }) => headers['__streams.errors.message'] ?? '')
      assert.equal(reasons.filter((each) => /takes none beyond .*after\.max\.ms. of out\./.test(each)).length, 20)
      assert.equal(reasons.filter((each) => /takes none before .*before\.max\.ms. of out\./.test(each)).length, 20)
      assert.ok(reasons.every((each) => each.endsWith('(DESCRIBE_CONFIGS), so the limit is not known.')))
    })

    test('`fail` names the record', async () => {
      const engine = await withTimes('fail', tells)
      await engine.put('in', scattered(engine.scheduler.clock.now(), 0))
      await engine.until('it has failed', () => engine.count('failed') > 0)
      const failed = JSON.stringify(engine.facts.find(({ type }) => type === 'failed'))
      assert.match(failed, /for the topic out made from the record in\/\d at offset \d+ has the event time/)
    })
  })
}
