/** An application without the right to read the settings of its topics: what they do not take is found out, and policies hold. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { type LogLine, type Runtime, startRuntime } from '../../src/runtime/index.ts'
import { appFile, consume, type In, produce } from '../engine/support/engine.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually } from '../support/millrace.ts'

const secured = { username: 'alice', password: 'alice-secret' }
const kafka = await kafkaForTests({ own: true, secured })
const skip = 'skip' in kafka ? kafka.skip : false
const broker = 'skip' in kafka ? undefined : kafka.broker
const anyTime = '9223372036854775807'
const hourMs = 3_600_000

describe('settings of topics that may not be read', { skip }, () => {
  const admin = connectKafka({ bootstrapServers: [broker?.bootstrap ?? '127.0.0.1:1'], clientId: 'admin' })
  after(async () => {
    await admin.close()
    if (!('skip' in kafka)) await kafka.stop()
  })
  let isGranted = false
  const granted = async (): Promise<void> => {
    if (isGranted) return
    const allow = (...what: string[]): Promise<string> =>
      broker?.tool('org.apache.kafka.tools.AclCommand', [
        ...['--bootstrap-server', broker.bootstrap, '--add', '--allow-principal', 'User:alice'],
        ...['--resource-pattern-type', 'prefixed', ...what],
      ]) ?? Promise.resolve('')
    const operations = ['READ', 'WRITE', 'DESCRIBE', 'CREATE'].flatMap((operation) => ['--operation', operation])
    await allow(...operations, '--topic', 'unread')
    await allow('--operation', 'ALL', '--group', 'unread', '--transactional-id', 'unread')
    isGranted = true
  }

  /** The application has come through all of its orders. */
  async function over(
    config: Readonly<Record<string, unknown>>,
    orders: readonly In[],
    limits: Readonly<Record<string, string>>,
    check: (runtime: Runtime, id: string, lines: readonly LogLine[]) => Promise<void>,
  ): Promise<void> {
    await granted()
    const id = `unread-${randomUUID().slice(0, 8)}`
    const application = pathToFileURL(appFile('sized'))
    application.searchParams.set('id', id)
    const specs = ['orders', 'rows', 'sized'].map((name) => ({
      topic: `${id}-${name}`,
      partitions: 1,
      config: name === 'sized' ? limits : { 'message.timestamp.after.max.ms': anyTime },
    }))
    await admin.createTopics(specs)
    await produce(admin, `${id}-orders`, orders)
    const lines: LogLine[] = []
    const runtime = await startRuntime({
      application,
      config: {
        'broker.bootstrap-servers': broker?.saslBootstrap,
        'broker.sasl.mechanism': 'PLAIN',
        'broker.sasl.username': secured.username,
        'broker.sasl.password': secured.password,
        'runtime.http.enabled': false,
        'engine.lanes.count': 1,
        'engine.state.store': 'memory',
        ...config,
      },
      log: (line) => lines.push(line),
    })
    try {
      let isOver = false
      // That it has failed is for the test to judge.
      void runtime.untilIdle().then(
        () => (isOver = true),
        () => (isOver = true),
      )
      await eventually('it is idle, or has failed', () => isOver, 120_000)
      await check(runtime, id, lines)
    } catch (error) {
      throw new Error(lines.map(({ message }) => message).join('\n'), { cause: error })
    } finally {
      await runtime.stop()
    }
  }
  const numbers = async (topic: string): Promise<number[]> =>
    (await consume(admin, topic)).map(({ value }) => (value as { n: number }).n)

  test('`skip` passes over records too large for their topic, however their sizes fall, and over no other one', async () => {
    const isLarge = (n: number): boolean => n % 150 === 100
    const orders = Array.from({ length: 2000 }, (_, n) => ({
      key: `k${n % 50}`,
      value: { n, bytes: isLarge(n) ? 3_000_000 - 1000 * n : 10 },
    }))
    await over({ 'errors.producing': 'skip' }, orders, {}, async (runtime, id) => {
      assert.equal(runtime.view.state().current, 'RUNNING')
      assert.deepEqual(
        await numbers(`${id}-sized`),
        orders.flatMap((_, n) => (isLarge(n) ? [] : [n])),
      )
    })
  })

  const limits = { 'message.timestamp.after.max.ms': String(hourMs), 'message.timestamp.before.max.ms': '86400000' }
  const offBy = [0, 3 * hourMs, 0, -48 * hourMs]
  const dated = (): In[] => {
    const now = Date.now()
    const timeOf = (n: number): number => now + (offBy[n % 4] as number)
    return Array.from({ length: 400 }, (_, n) => ({ key: `k${n}`, value: { n, bytes: 10 }, timestamp: timeOf(n) }))
  }

  test('`dead-letter` holds for event times out of range, and the reason names the missing right', async () => {
    await over({ 'errors.producing': 'dead-letter' }, dated(), limits, async (runtime, id, lines) => {
      assert.equal(runtime.view.state().current, 'RUNNING')
      assert.deepEqual(
        await numbers(`${id}-sized`),
        Array.from({ length: 200 }, (_, n) => 2 * n),
      )
      const letters = await consume(admin, `${id}-dead-letters`)
      const reasons = letters.map(({ headers }) => headers['__streams.errors.message'] ?? '')
      assert.equal(reasons.filter((each) => /takes none beyond 20\S+Z now/.test(each)).length, 100)
      assert.equal(reasons.filter((each) => /takes none before 20\S+Z now/.test(each)).length, 100)
      assert.ok(reasons.every((each) => each.includes('may not be read (DESCRIBE_CONFIGS)')))
      // The broker tells what it would have taken: once is enough.
      assert.equal(lines.filter(({ message }) => /INVALID_TIMESTAMP/.test(message)).length, 1)
    })
  })

  test('`skip` passes over a record without the key that its topic needs', async () => {
    const orders = dated().map((order, n) => ({ ...order, key: n % 4 === 0 ? null : order.key, timestamp: Date.now() }))
    const compacted = { 'cleanup.policy': 'compact' }
    await over({ 'errors.producing': 'skip' }, orders, compacted, async (runtime, id) => {
      assert.equal(runtime.view.state().current, 'RUNNING')
      assert.deepEqual(
        await numbers(`${id}-sized`),
        orders.flatMap(({ key }, n) => (key === null ? [] : [n])),
      )
    })
  })

  test('`fail` names the record', async () => {
    await over({}, dated(), limits, async (runtime, id) => {
      const { failure } = runtime.view.state()
      assert.equal(failure?.code, 'PRODUCE_FAILED')
      assert.match(
        failure?.message ?? '',
        new RegExp(`for the topic ${id}-sized made from the record ${id}-orders/0 at offset 1 has the event time 20`),
      )
    })
  })
})
