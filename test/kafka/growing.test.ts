/** Topics that get more partitions, and topics that a pattern matches only later, while the application runs. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { LocalKafka } from '../../scripts/kafka/local-kafka.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { type Runtime, startRuntime } from '../../src/runtime/index.ts'
import { byKey, consume, type In, lastByKey, produce } from '../engine/support/engine.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually } from '../support/millrace.ts'

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false
const app = new URL('verifier/growing-app.ts', import.meta.url)
let runs = 0

describe('an application whose input grows', { skip }, () => {
  const broker = ('skip' in kafka ? undefined : kafka.broker) as LocalKafka
  const port = connectKafka({ bootstrapServers: skip ? ['127.0.0.1:1'] : [broker.bootstrap], clientId: 'growing' })
  after(async () => {
    await port.close()
    if (!('skip' in kafka)) await kafka.stop()
  })

  async function start(prefix: string, settings: Readonly<Record<string, unknown>>, keys = false): Promise<Runtime> {
    return startRuntime({
      application: new URL(`${app}?prefix=${prefix}${keys ? '&keys' : ''}`),
      config: {
        'broker.bootstrap-servers': broker.bootstrap,
        'consumer.metadata.max.age.ms': 200,
        'commit-barrier.interval-ms': 20,
        'engine.lanes.count': 2,
        'engine.state.store': 'memory',
        'runtime.http.enabled': false,
        ...settings,
      },
      log: () => undefined,
    })
  }

  async function topics(): Promise<string> {
    const prefix = `growing-${process.pid}-${++runs}`
    const outputs = ['echo', 'groups', 'keys'].map((name) => ({ topic: `${prefix}-${name}`, partitions: 3 }))
    await port.createTopics([{ topic: `${prefix}-in-a`, partitions: 2 }, ...outputs])
    return prefix
  }

  const grow = (topic: string, partitions: number): Promise<string> =>
    broker.tool('org.apache.kafka.tools.TopicCommand', [
      ...['--bootstrap-server', broker.bootstrap, '--alter'],
      ...['--topic', topic, '--partitions', String(partitions)],
    ])

  /** Values from `from` on, in turn over these partitions. */
  const numbers = (from: number, count: number, partitions: readonly number[]): In[] =>
    Array.from({ length: count }, (_, i) => ({
      key: `k${(from + i) % 5}`,
      value: from + i,
      partition: partitions[i % partitions.length] as number,
    }))

  const echoed = async (prefix: string): Promise<number[]> =>
    (await consume(port, `${prefix}-echo`))
      .map(({ value }) => (value as { readonly value: number }).value)
      .sort((a, b) => a - b)

  async function passes(prefix: string, count: number): Promise<void> {
    await eventually(
      `${count} values come out`,
      async () => (await consume(port, `${prefix}-echo`)).length >= count,
      120_000,
    )
    assert.deepEqual(
      await echoed(prefix),
      Array.from({ length: count }, (_, i) => i),
    )
    const groups = (): Promise<Readonly<Record<string, number>>> =>
      consume(port, `${prefix}-groups`).then((out) => lastByKey<number>(out))
    const sum = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((a, b) => a + b, 0)
    await eventually(`all ${count} are counted`, async () => sum(await groups()) >= count, 120_000)
    assert.equal(sum(await groups()), count)
  }

  for (const split of ['in-process', 'repartition-topics'] as const) {
    const settings = { 'topology.sub-topology-split': split, 'engine.instance-id': 'one' }

    test(`reads new partitions from their beginning, and after a restart too: ${split}`, async () => {
      const prefix = await topics()
      let runtime = await start(prefix, settings)
      try {
        await produce(port, `${prefix}-in-a`, numbers(0, 40, [0, 1]))
        await passes(prefix, 40)
        await grow(`${prefix}-in-a`, 5)
        await produce(port, `${prefix}-in-a`, numbers(40, 60, [0, 1, 2, 3, 4]))
        await passes(prefix, 100)
        await runtime.stop()
        await produce(port, `${prefix}-in-a`, numbers(100, 20, [4, 3, 2, 1, 0]))
        runtime = await start(prefix, settings)
        await passes(prefix, 120)
      } finally {
        assert.equal(await runtime.stop(), 0)
      }
    })

    test(`takes in a topic that comes later and fits its pattern: ${split}`, async () => {
      const prefix = await topics()
      const runtime = await start(prefix, settings)
      try {
        await produce(port, `${prefix}-in-a`, numbers(0, 40, [0, 1]))
        await passes(prefix, 40)
        await port.createTopics([{ topic: `${prefix}-in-b`, partitions: 3 }])
        await produce(port, `${prefix}-in-b`, numbers(40, 60, [0, 1, 2]))
        await passes(prefix, 100)
        for (const { value } of await consume(port, `${prefix}-echo`)) {
          const { topic, value: number } = value as { readonly topic: string; readonly value: number }
          assert.equal(topic, `${prefix}-in-${number < 40 ? 'a' : 'b'}`)
        }
      } finally {
        assert.equal(await runtime.stop(), 0)
      }
    })
  }

  test('reads from now on where it says so, but new partitions from their beginning', async () => {
    const prefix = await topics()
    await produce(port, `${prefix}-in-a`, numbers(1000, 10, [0, 1]))
    const settings = { 'offsets.reset': 'latest' }
    let runtime = await start(prefix, settings)
    try {
      await eventually('it says where it begins', async () => {
        const offsets = await port.committedOffsets(prefix, null, true)
        return offsets.filter(({ offset }) => offset === 5).length === 2
      })
      // Nothing has come yet; what comes while it is away is still new to it.
      await runtime.stop()
      await produce(port, `${prefix}-in-a`, numbers(0, 20, [0, 1]))
      runtime = await start(prefix, settings)
      await passes(prefix, 20)
      await grow(`${prefix}-in-a`, 3)
      await produce(port, `${prefix}-in-a`, numbers(20, 5, [2]))
      await passes(prefix, 25)
    } finally {
      assert.equal(await runtime.stop(), 0)
    }
  })

  test('finds the state of its keys where the input has more partitions: in-process', async () => {
    const prefix = await topics()
    let runtime = await start(prefix, {}, true)
    const counts = async (): Promise<Record<string, number[]>> => byKey<number>(await consume(port, `${prefix}-keys`))
    const counted = (count: number): Promise<void> =>
      eventually(`every key counts to ${count}`, async () => {
        const lists = Object.values(await counts())
        return lists.length === 5 && lists.every((list) => list.length >= count)
      })
    try {
      await produce(port, `${prefix}-in-a`, numbers(0, 50, [0, 1]))
      await counted(10)
      await grow(`${prefix}-in-a`, 4)
      await produce(port, `${prefix}-in-a`, numbers(50, 50, [0, 1, 2, 3]))
      await counted(20)
      await runtime.stop()
      runtime = await start(prefix, {}, true)
      await produce(port, `${prefix}-in-a`, numbers(100, 50, [3, 2]))
      await counted(30)
      for (const list of Object.values(await counts()))
        assert.deepEqual(
          list,
          Array.from({ length: 30 }, (_, i) => i + 1),
        )
    } finally {
      assert.equal(await runtime.stop(), 0)
    }
  })

  test('is refused where its changelog was altered while it was down: in-process', async () => {
    const prefix = await topics()
    let runtime = await start(prefix, {}, true)
    try {
      await produce(port, `${prefix}-in-a`, numbers(0, 20, [0, 1]))
      await passes(prefix, 20)
      await runtime.stop()
      await grow(`${prefix}-keys-changelog`, 6)
      runtime = await start(prefix, {}, true)
      await eventually('it has failed', () => runtime.view.state().current === 'FAILED', 120_000)
      const { failure } = runtime.view.state()
      assert.equal(failure?.code, 'PARTITIONS_CHANGED')
      assert.match(failure?.message ?? '', /-keys-changelog has 6 and had 2\): the rows of the store keys are shared/)
    } finally {
      await runtime.stop()
    }
  })

  test('is FAILED with the reason where the state of keys is split by the old number: repartition-topics', async () => {
    const prefix = await topics()
    const settings = { 'topology.sub-topology-split': 'repartition-topics', 'engine.instance-id': 'one' }
    const runtime = await start(prefix, settings, true)
    try {
      await produce(port, `${prefix}-in-a`, numbers(0, 20, [0, 1]))
      await passes(prefix, 20)
      await grow(`${prefix}-in-a`, 3)
      await eventually('it has failed', () => runtime.view.state().current === 'FAILED', 120_000)
      const { failure } = runtime.view.state()
      assert.equal(failure?.code, 'PARTITIONS_CHANGED')
      assert.match(
        failure?.message ?? '',
        new RegExp(`\\(${prefix}-in-a has 3 and had 2\\): the state in .*-changelog`),
      )
    } finally {
      await runtime.stop()
    }
  })
})
