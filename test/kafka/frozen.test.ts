/** A real Kafka that stands still for longer than sessions and transactions last, and wakes with all that was asked of it. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { type In, lastByKey, produce, TestEngine } from '../engine/support/engine.ts'
import { kafkaForTests } from '../support/kafka.ts'

/** As it was seen in operation: `FROZEN_SECONDS=48 FROZEN_TIMES=5`, with `FROZEN_SESSION_MS=10000`. */
const seconds = Number(process.env.FROZEN_SECONDS ?? 9)
const times = Number(process.env.FROZEN_TIMES ?? 3)
const sessionMs = Number(process.env.FROZEN_SESSION_MS ?? 3000)

const kafka = await kafkaForTests({ own: true, settings: { 'group.min.session.timeout.ms': '1000' } })
const skip = 'skip' in kafka ? kafka.skip : false
const servers = 'skip' in kafka ? '' : kafka.bootstrap
const keys = 40

const connect = () => connectKafka({ bootstrapServers: [servers], clientId: 'test', requestTimeoutMs: 20_000 })
const round = (number: number): In[] =>
  Array.from({ length: keys }, (_, i) => ({ key: `key-${i}`, value: number * keys + i }))

/** What it warned of, for people who are to find out what went wrong. */
const said = (engine: TestEngine): string =>
  engine.log.flatMap(({ level, message }) => (level === 'info' ? [] : [message])).join('\n')

describe('a Kafka that stands still and wakes', { skip }, () => {
  before(async () => {
    const broker = await connect()
    await broker.createTopics(['numbers', 'seen', 'sums'].map((topic) => ({ topic, partitions: 4 })))
    await broker.close()
  })
  after(async () => {
    if (!('skip' in kafka)) await kafka.stop()
  })

  test('does not make a process that is alone fence itself, and nothing is lost or doubled', async (t) => {
    const broker = 'skip' in kafka ? undefined : kafka.broker
    const engine = await TestEngine.start(t, 'running-sum', {
      'broker.bootstrap-servers': servers,
      'broker.request-timeout': sessionMs / 2,
      'consumer.session.timeout.ms': sessionMs,
      'producer.transaction.timeout.ms': sessionMs,
      'engine.state.store': 'memory',
      // How often a slow machine has it start over is not what this is about.
      'commit-barrier.max-engine-restarts': 1000,
    })
    await engine.reaches('RUNNING')
    for (let i = 0; i < times; i++) {
      const other = await connect()
      await produce(other, 'numbers', round(2 * i))
      // A transaction is open now, or a commit under way, now the one and now the other.
      await sleep(i * 15)
      broker?.pause()
      await sleep(seconds * 1000)
      broker?.resume()
      await produce(other, 'numbers', round(2 * i + 1))
      await other.close()
      await engine.idle()
      assert.equal(engine.state, 'RUNNING')
      const given = (await engine.read('numbers')).map(({ value }) => value as number)
      assert.equal(new Set(given).size, given.length, 'what was written is in the topic once')
      const seen = lastByKey<number[]>(await engine.read('seen'))
      for (let key = 0; key < keys; key++) {
        const all = Array.from({ length: 2 * i + 2 }, (_, number) => number * keys + key)
        assert.deepEqual(
          seen[`key-${key}`],
          all,
          `key-${key} has ${seen[`key-${key}`]}; the engine warned of:\n${said(engine)}`,
        )
      }
    }
    const restarts = engine.log.filter(({ level }) => level === 'warn').map(({ message }) => message)
    t.diagnostic(restarts.join('\n'))
    assert.ok(restarts.length > 0, 'the stillness was felt')
    assert.deepEqual(
      restarts.filter((message) => /FENCED/.test(message)),
      [],
    )
  })
})
