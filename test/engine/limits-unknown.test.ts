/** Topics whose `max.message.bytes` may not be read, or is another one by now: found out when a batch is refused. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, serdes } from 'millrace'
import { BrokerError } from '../../src/broker/port.ts'
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
): Promise<VirtualEngine> {
  const engine = new VirtualEngine({
    compile: () => app.compile(),
    settings: { sinkTopics: app === application ? ['out'] : [], maxRestarts: 3, restartWindowMs: 60_000 },
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
