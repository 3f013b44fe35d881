/** Records and batches of all sizes against the limits of topics: the same on every broker. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { EmbeddedBroker } from '../../src/broker/embedded/start.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { type LogLine, type Runtime, startRuntime } from '../../src/runtime/index.ts'
import { dropReasons, dropSlot } from '../../src/base/counters.ts'
import { appFile, consume, type In, type Out, produce } from '../engine/support/engine.ts'
import { eventually } from './millrace.ts'

export interface SomeBroker {
  readonly config: Readonly<Record<string, unknown>>
  readonly embedded?: EmbeddedBroker
  readonly client: BrokerPort
}

interface Scene {
  readonly id: string
  readonly runtime: Runtime
  readonly client: BrokerPort
  topic(name: string): string
}

type Limits = Readonly<Record<string, number | 'compact' | 'an hour ahead' | 'a day old' | 'any time'>>

const topics = ['orders', 'rows', 'sized', 'other', 'refused']
const orders = (sizes: readonly number[], more: object = {}): In[] =>
  sizes.map((bytes, n) => ({ key: `k${n}`, value: { n, bytes, ...more } }))
const times = (count: number, bytes: number): number[] => Array.from({ length: count }, () => bytes)
const numbersOf = (records: readonly Out[]): number[] => records.map(({ value }) => (value as { n: number }).n)
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

export function tooLargeTests(
  broker: () => Promise<SomeBroker> | SomeBroker,
  skip: string | false,
  needsKeys: boolean,
): void {
  const scene = (
    name: string,
    limits: Limits,
    config: Readonly<Record<string, unknown>>,
    check: (scene: Scene) => Promise<void>,
  ): void => {
    test(name, { skip }, async () => {
      const { client, embedded, config: common } = await broker()
      const id = `sized-${randomUUID().slice(0, 8)}`
      const topic = (each: string): string => `${id}-${each}`
      const limited = (each: string): Record<string, string> => {
        const limit = limits[each]
        if (limit === 'compact') return { 'cleanup.policy': 'compact' }
        if (limit === 'an hour ahead') return { 'message.timestamp.after.max.ms': '3600000' }
        if (limit === 'a day old') return { 'message.timestamp.before.max.ms': '86400000' }
        if (limit === 'any time') return { 'message.timestamp.after.max.ms': '9223372036854775807' }
        return limit === undefined ? {} : { 'max.message.bytes': String(limit) }
      }
      // Letters without a key go round the partitions.
      const partitionsOf = (each: string): number => (each === 'refused' ? 8 : 1)
      await client.createTopics(
        topics.map((each) => ({ topic: topic(each), partitions: partitionsOf(each), config: limited(each) })),
      )
      const log = limited('latest-changelog')
      if ('max.message.bytes' in log) {
        const config = { 'cleanup.policy': 'compact', ...log }
        await client.createTopics([{ topic: topic('latest-changelog'), partitions: 1, config }])
      }
      const application = pathToFileURL(appFile('sized'))
      application.searchParams.set('id', id)
      const lines: LogLine[] = []
      const runtime = await startRuntime({
        application,
        ...(embedded !== undefined && { broker: embedded }),
        config: {
          'runtime.http.enabled': false,
          'engine.lanes.count': 1,
          'engine.state.store': 'memory',
          'errors.dead-letter-topic': topic('refused'),
          ...common,
          ...config,
        },
        log: (line) => lines.push(line),
      })
      try {
        await check({ id, runtime, client, topic })
      } catch (error) {
        throw new Error(lines.map(({ message }) => message).join('\n'), { cause: error })
      } finally {
        await runtime.stop()
      }
    })
  }
  batches(scene)
  beside(scene)
  policies(scene)
  ahead(scene)
  old(scene)
  oldLetters(scene)
  if (needsKeys) keys(scene)
}

type AddScene = (
  name: string,
  limits: Limits,
  config: Readonly<Record<string, unknown>>,
  check: (scene: Scene) => Promise<void>,
) => void

function batches(scene: AddScene): void {
  scene('a large record behind many small ones is written, in order', {}, {}, async ({ runtime, client, topic }) => {
    await produce(client, topic('orders'), orders([...times(260, 900), 900_000, ...times(10, 900)]))
    await settled(runtime)
    assert.deepEqual(numbersOf(await consume(client, topic('sized'))), upTo(271))
  })

  scene('a topic of small batches takes small records, in order', { sized: 10_000 }, {}, async (here) => {
    const { runtime, client, topic } = here
    await produce(client, topic('orders'), orders(times(2000, 60)))
    await settled(runtime)
    assert.deepEqual(numbersOf(await consume(client, topic('sized'))), upTo(2000))
  })

  for (const small of [false, true]) {
    const limits: Limits = small ? { 'latest-changelog': 10_000 } : {}
    const name = small ? 'rows of a store in a changelog of small batches' : 'a large row of a store behind small ones'
    scene(`${name}: all are written`, limits, {}, async ({ runtime, client, topic }) => {
      const sizes = small ? times(2000, 60) : [...times(260, 900), 900_000]
      await produce(client, topic('rows'), orders(sizes))
      await settled(runtime)
      const written = numbersOf(await consume(client, topic('latest-changelog')))
      assert.deepEqual(
        written.toSorted((a, b) => a - b),
        upTo(sizes.length),
      )
    })
  }
}

function beside(scene: AddScene): void {
  // Both leave in one request; what is refused of it is written again in parts, and the rest of it as it was.
  scene('results of small batches beside rows of a store: all are written', { sized: 10_000 }, {}, async (here) => {
    const { runtime, client, topic } = here
    await Promise.all(['orders', 'rows'].map((each) => produce(client, topic(each), orders(times(2000, 60)))))
    await settled(runtime)
    assert.deepEqual(numbersOf(await consume(client, topic('sized'))), upTo(2000))
    const written = numbersOf(await consume(client, topic('latest-changelog')))
    assert.deepEqual(
      [...new Set(written)].toSorted((a, b) => a - b),
      upTo(2000),
    )
    assert.equal(runtime.view.state().current, 'RUNNING')
  })
}

function policies(scene: AddScene): void {
  const sizes = [100, 100, 2_000_000, 100]

  scene('`fail` names topic, record and sizes', {}, { 'errors.producing': 'fail' }, async (here) => {
    const { runtime, client, topic } = here
    await produce(client, topic('orders'), orders(sizes))
    await eventually('it has failed', () => runtime.view.state().current === 'FAILED')
    const sentence = runtime.view.state().failure?.message ?? ''
    assert.match(sentence, new RegExp(`for the topic ${topic('sized')} made from the record ${topic('orders')}/0`))
    assert.match(sentence, /at offset 2 takes 2000\d\d\d bytes, and `max.message.bytes` of .* allows 1048588/)
  })

  scene('`skip` counts and drops it', {}, { 'errors.producing': 'skip' }, async ({ runtime, client, topic }) => {
    await produce(client, topic('orders'), orders(sizes))
    await settled(runtime)
    assert.deepEqual(numbersOf(await consume(client, topic('sized'))), [0, 1, 3])
    assert.equal(dropped(runtime), 1)
  })

  scene(
    '`skip` holds for a topic that nobody named before',
    { other: 5000 },
    { 'errors.producing': 'skip' },
    async (here) => {
      const { runtime, client, topic } = here
      await produce(client, topic('orders'), orders([9000, 100, 9000, 100], { to: 'other' }))
      await settled(runtime)
      assert.deepEqual(numbersOf(await consume(client, topic('other'))), [1, 3])
      assert.equal(dropped(runtime), 2)
    },
  )

  scene(
    '`dead-letter` keeps what came in, with the reason',
    {},
    { 'errors.producing': 'dead-letter' },
    async (here) => {
      const { runtime, client, topic } = here
      await produce(client, topic('orders'), orders(sizes))
      await settled(runtime)
      assert.deepEqual(numbersOf(await consume(client, topic('sized'))), [0, 1, 3])
      const [letter, ...others] = await consume(client, topic('refused'))
      assert.deepEqual(others, [])
      assert.deepEqual(letter?.value, { n: 2, bytes: 2_000_000 })
      assert.match(letter?.headers['__streams.errors.message'] ?? '', /takes 2000\d\d\d bytes/)
      assert.equal(letter?.headers['__streams.errors.offset'], '2')
    },
  )

  const narrow = { sized: 5000, refused: 3000 }
  const letters = '`dead-letter` of a record too large for that topic as well keeps the reason'
  scene(letters, narrow, { 'errors.producing': 'dead-letter' }, async ({ runtime, client, topic }) => {
    const large = { key: 'k0', value: { n: 0, bytes: 6000, left: 'y'.repeat(4000) } }
    await produce(client, topic('orders'), [large, ...orders([100])])
    await settled(runtime)
    assert.equal((await consume(client, topic('sized'))).length, 1)
    const [letter] = await consume(client, topic('refused'))
    assert.equal(letter?.value, null)
    assert.match(letter?.headers['__streams.errors.message'] ?? '', /takes 6\d\d\d bytes/)
    assert.match(letter?.headers['__streams.errors.left-out'] ?? '', /key and value: \d+ bytes, where 3000 are allowed/)
    assert.equal(letter?.headers['__streams.errors.offset'], '0')
  })
}

/** Records that are dated further ahead of the clock than their topic takes. */
function ahead(scene: AddScene): void {
  const limits = { orders: 'any time', rows: 'any time', sized: 'an hour ahead', refused: 'an hour ahead' } as const
  const dated = (): In[] => {
    const now = Date.now()
    return orders(times(4, 10)).map((order, n) => ({ ...order, timestamp: n === 2 ? now + 7_200_000 : now }))
  }

  scene('`fail` names what is ahead of the clock', limits, {}, async ({ runtime, client, topic }) => {
    await produce(client, topic('orders'), dated())
    await eventually('it has failed', () => runtime.view.state().current === 'FAILED')
    const sentence = runtime.view.state().failure?.message ?? ''
    assert.match(sentence, new RegExp(`for the topic ${topic('sized')} made from the record ${topic('orders')}/0`))
    assert.match(
      sentence,
      /at offset 2 has the event time 20\S+Z, and `message.timestamp.after.max.ms` of .* beyond 20\S+Z/,
    )
  })

  const policy = { 'errors.producing': 'dead-letter' }
  scene('`dead-letter` of what is ahead of the clock', limits, policy, async ({ runtime, client, topic }) => {
    await produce(client, topic('orders'), dated())
    await settled(runtime)
    assert.deepEqual(numbersOf(await consume(client, topic('sized'))), [0, 1, 3])
    const [letter, ...others] = await consume(client, topic('refused'))
    assert.deepEqual(others, [])
    // It came with that time, which the topic of dead letters does not take either.
    assert.match(letter?.headers['__streams.errors.left-out'] ?? '', /key and value: the time is 20\S+Z/)
    assert.equal(letter?.headers['__streams.errors.offset'], '2')
  })

  scene('rows of stores may be as far ahead as they like', limits, {}, async ({ runtime, client, topic }) => {
    await produce(client, topic('rows'), dated())
    await settled(runtime)
    assert.deepEqual(numbersOf(await consume(client, topic('latest-changelog'))).toSorted(), upTo(4))
  })
}

/** Records that are older than their topic takes. */
function old(scene: AddScene): void {
  const limits = { sized: 'a day old', refused: 'a day old' } as const
  const dated = (): In[] => {
    const now = Date.now()
    const ages = [0, 86_000_000, 86_500_000, 86_300_000, 1e12, 0]
    return orders(times(6, 10)).map((order, n) => ({ ...order, timestamp: now - (ages[n] as number) }))
  }

  scene('`fail` names what is too old', limits, {}, async ({ runtime, client, topic }) => {
    await produce(client, topic('orders'), dated())
    await eventually('it has failed', () => runtime.view.state().current === 'FAILED')
    const sentence = runtime.view.state().failure?.message ?? ''
    assert.match(
      sentence,
      /at offset 2 has the event time 20\S+Z, and `message.timestamp.before.max.ms` of .* before 20/,
    )
  })

  const policy = { 'errors.producing': 'dead-letter' }
  scene('`dead-letter` of what is too old', limits, policy, async ({ runtime, client, topic }) => {
    await produce(client, topic('orders'), dated())
    await settled(runtime)
    assert.deepEqual(numbersOf(await consume(client, topic('sized'))), [0, 1, 3, 5])
    const letters = await consume(client, topic('refused'))
    assert.deepEqual(letters.map(({ headers }) => headers['__streams.errors.offset']).toSorted(), ['2', '4'])
    // They came with that time, which the topic of dead letters does not take either.
    for (const { headers } of letters)
      assert.match(headers['__streams.errors.left-out'] ?? '', /key and value: the time is \S+Z, where none before 20/)
  })
}

/** The clock goes on between two looks at a limit that moves with it. */
function oldLetters(scene: AddScene): void {
  const decoding = { 'errors.decoding': 'dead-letter' }
  const name = 'each undecodable record older than the dead-letter topic takes leaves its reason there'
  scene(name, { orders: 'any time', refused: 'a day old' }, decoding, async ({ runtime, client, topic }) => {
    const timestamp = Date.now() - 172_800_000
    const broken = upTo(3000).map((n) => ({ key: `k${n}`, value: Buffer.from('{'), timestamp }))
    await produce(client, topic('orders'), broken)
    await settled(runtime)
    const letters = await consume(client, topic('refused'))
    assert.deepEqual(
      letters.map(({ headers }) => Number(headers['__streams.errors.offset'])).sort((a, b) => a - b),
      upTo(3000),
    )
    assert.ok(letters.every(({ value }) => value === null))
  })
}

/** Records without a key for a topic that is compacted: of the brokers Kafka alone refuses them. */
function keys(scene: AddScene): void {
  const config = { 'errors.producing': 'dead-letter' }
  scene(
    '`dead-letter` of a record without the key that its topic needs',
    { sized: 'compact' },
    config,
    async (here) => {
      const { runtime, client, topic } = here
      const keyless = orders([10, 10, 10]).map((order, n) => (n === 1 ? { ...order, key: null } : order))
      await produce(client, topic('orders'), keyless)
      await settled(runtime)
      assert.deepEqual(numbersOf(await consume(client, topic('sized'))), [0, 2])
      const [letter] = await consume(client, topic('refused'))
      assert.match(letter?.headers['__streams.errors.message'] ?? '', /at offset 1 has no key, and .* is compacted/)
    },
  )
}

/** Fails at once where the engine has. */
async function settled(runtime: Runtime): Promise<void> {
  let idle = false
  const done = runtime.untilIdle().then(() => {
    idle = true
  })
  await eventually('it is idle', () => {
    const { current, failure } = runtime.view.state()
    assert.notEqual(current, 'FAILED', failure?.message)
    return idle
  })
  await done
}

function dropped(runtime: Runtime): number {
  const { layout, lanes } = runtime.view.counters() ?? assert.fail('no counters')
  let sum = 0
  for (const lane of lanes) {
    for (let sub = 0; sub < layout.subtopologies; sub++) {
      sum += lane[dropSlot(layout, sub, dropReasons.indexOf('handler'))] ?? 0
    }
  }
  return sum
}
