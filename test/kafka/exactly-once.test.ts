/**
 * Exactly-once, proved from outside: the application runs as a process of its own against a real Kafka while processes
 * die, brokers stop and answers are lost, and an independent Java client recomputes every result from the input.
 * `EXACTLY_ONCE_KILLS`, `EXACTLY_ONCE_ROUNDS` and `EXACTLY_ONCE_CUT_SECONDS` lengthen the runs.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { commitSteps } from '../../src/base/failpoint.ts'
import { Random } from '../../src/base/random.ts'
import type { LocalKafka } from '../../scripts/kafka/local-kafka.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { TestProducer } from '../support/broker-io.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { type ApiName, KafkaProxy } from '../support/proxy.ts'
import { EngineProcess, VerifierTool } from './verifier/harness.ts'

const kills = Number(process.env.EXACTLY_ONCE_KILLS ?? 6)
const rounds = Number(process.env.EXACTLY_ONCE_ROUNDS ?? 1)
const cutSeconds = Number(process.env.EXACTLY_ONCE_CUT_SECONDS ?? 4)
const seed = Number(process.env.EXACTLY_ONCE_SEED ?? Date.now() % 1_000_000)
/** Below what the runner gives a test: a run that stands still is to say where it stood. */
const longestRunMs = 540_000

const proxy = await KafkaProxy.listen()
const kafka = await kafkaForTests({
  own: true,
  proxyPort: proxy.port,
  // Whatever a topic may lose by its age it loses at once.
  settings: {
    'log.initial.task.delay.ms': '500',
    'log.retention.check.interval.ms': '500',
    'log.cleaner.backoff.ms': '500',
  },
})
const skip = 'skip' in kafka ? kafka.skip : false
if ('skip' in kafka) await proxy.close()

interface Options {
  readonly settings?: Readonly<Record<string, string>>
  readonly base?: number
  /** The input goes on until the faults are through, however slow the machine is; `seconds` is its bound. */
  readonly toTheEnd?: boolean
}

/** A run under way: the input comes in while `faults` does its work. */
interface Scene {
  readonly engine: EngineProcess
  readonly random: Random
  readonly stateFolder: string
  readonly prefix: string
  /** False once all of the input is written. */
  readonly fed: () => boolean
  /** Settled when all of the input is written. */
  readonly inputEnds: Promise<unknown>
}

describe(`exactly-once (EXACTLY_ONCE_SEED=${seed})`, { skip }, () => {
  const random = new Random(seed)
  const broker = ('skip' in kafka ? undefined : kafka.broker) as LocalKafka
  let tool: VerifierTool
  let runs = 0

  before(async () => {
    proxy.target = broker.proxiedPort
    tool = await VerifierTool.compile(broker)
  })
  after(async () => {
    tool.dispose()
    await proxy.close()
    if (!('skip' in kafka)) await kafka.stop()
  })

  async function withFaults(
    seconds: number,
    faults: (scene: Scene) => Promise<void>,
    { settings, base, toTheEnd }: Options = {},
  ): Promise<void> {
    const prefix = `verifier${++runs}`
    const stateFolder = mkdtempSync(join(tmpdir(), 'millrace-state-'))
    await tool.create(prefix)
    const engine = new EngineProcess({ prefix, bootstrap: proxy.bootstrap, stateFolder, ...(settings && { settings }) })
    let stage = 'the start'
    const run = async (): Promise<void> => {
      await engine.start()
      await engine.untilReady()
      let feeding = true
      const through = join(stateFolder, 'faults-are-through')
      // What comes for as long as the faults take must not be more than a slow machine works off in between.
      const rate = toTheEnd ? 100 : 1000
      const load = {
        records: seconds * rate,
        keys: 200,
        rate,
        seed: random.int(1_000_000),
        ...(base && { base }),
        ...(toTheEnd && { until: through }),
      }
      const fed = tool.produce(prefix, load).finally(() => {
        feeding = false
      })
      // Told where it is awaited; a fault that fails first must not leave it unhandled.
      fed.catch(() => undefined)
      stage = 'the faults'
      await faults({ engine, random, stateFolder, prefix, fed: () => feeding, inputEnds: fed })
      if (toTheEnd) writeFileSync(through, '')
      stage = 'the end of the input'
      const written = await fed
      assert.deepEqual(engine.crashes, [], `the process ended by itself; its log:\n${engine.log.slice(-4000)}`)
      stage = 'the verdict'
      const verdict = await tool.verify(prefix, 180_000)
      assert.ok(verdict.ok, `${JSON.stringify(verdict, null, 1)}\n${engine.log.slice(-4000)}`)
      assert.equal(verdict.inputs, written)
      if (!toTheEnd) assert.equal(written, load.records)
      stage = 'the end of the process'
      assert.equal(await engine.stop(), 0)
    }
    try {
      const late = sleep(longestRunMs, 'late' as const, { ref: false })
      const outcome = await Promise.race([run(), late])
      const logs = (): string => `the engine's log:\n${engine.log.slice(-4000)}\nKafka's:\n${broker.log.slice(-8000)}`
      if (outcome === 'late') assert.fail(`${stage} did not come within ${longestRunMs / 1000} s; ${logs()}`)
    } finally {
      engine.dispose()
      rmSync(stateFolder, { recursive: true, force: true })
    }
  }

  test('without a fault', () => withFaults(3, async () => undefined))

  test(`a process killed ${kills} times at random moments`, () =>
    withFaults(kills * 2, async ({ engine, random }) => {
      for (let i = 0; i < kills; i++) {
        await sleep(random.int(1500))
        engine.kill()
        await engine.start()
        if (random.chance(0.7)) await engine.untilReady()
      }
      await engine.untilReady()
    }))

  test('a process killed at every step of a commit that the broker can see', () => {
    const steps: ReadonlyArray<readonly ['request' | 'response', ApiName, boolean]> = [
      ['request', 'produce', false],
      ['request', 'produce', true],
      ['response', 'produce', true],
      ['request', 'txnOffsetCommit', false],
      ['request', 'txnOffsetCommit', true],
      ['response', 'txnOffsetCommit', true],
      ['request', 'endTxn', false],
      ['request', 'endTxn', true],
      ['response', 'endTxn', false],
      ['response', 'endTxn', true],
    ]
    const faults = async ({ engine, fed, inputEnds }: Scene): Promise<void> => {
      for (const [side, api, pass] of steps) {
        const killed = new Promise<void>((resolve) => {
          proxy.watch(side, api, pass, () => {
            engine.kill()
            resolve()
          })
        })
        await Promise.race([killed, inputEnds])
        assert.ok(fed(), `no ${side} of ${api} came by; the engine's log:\n${engine.log.slice(-4000)}`)
        await engine.start()
        await engine.untilReady()
      }
    }
    return withFaults(300, faults, { toTheEnd: true })
  })

  for (const store of ['memory', 'lmdb']) {
    test(`a process that dies after every step of a commit, within itself, with ${store} stores`, () => {
      const faults = async ({ engine, random }: Scene): Promise<void> => {
        engine.kill()
        for (const step of Array.from({ length: rounds }, () => commitSteps).flat()) {
          await engine.start(`${step}:${1 + random.int(4)}`)
          await engine.untilKilled()
        }
        await engine.start()
        await engine.untilReady()
      }
      return withFaults(600, faults, { toTheEnd: true, settings: { 'engine.state.store': store } })
    })
  }

  test('a process whose state is lost together with it', () =>
    withFaults(6, async ({ engine, stateFolder }) => {
      await sleep(2500)
      engine.kill()
      await sleep(100)
      rmSync(stateFolder, { recursive: true, force: true })
      await engine.start()
      await engine.untilReady()
    }))

  test('windows of records from years ago outlive the process, whatever the broker does to old data', () =>
    withFaults(
      8,
      async ({ engine }) => {
        for (let i = 0; i < 2; i++) {
          await sleep(2500)
          engine.kill()
          await engine.start()
          await engine.untilReady()
        }
      },
      { base: 1_000_000_000_000 },
    ))

  test('aborted transactions in the input, and one that stays open for a while', () =>
    withFaults(6, async ({ prefix, engine, fed }) => {
      const port = connectKafka({ bootstrapServers: [broker.bootstrap], clientId: 'aborter' })
      try {
        const aborter = await TestProducer.open(port, `${prefix}-aborter`)
        const hanging = await TestProducer.open(port, `${prefix}-hanging`)
        const poison = [{ key: 'k1', value: '77|7|g7' }]
        for (let i = 0; fed(); i++) {
          const write = (producer: TestProducer): Promise<number> => producer.write(`${prefix}-in`, i % 4, poison)
          await write(aborter)
          if (i % 20 === 3) await write(hanging)
          if (i % 20 === 13) await hanging.end(false)
          if (i === 30) {
            engine.kill()
            await engine.start()
          }
          await sleep(50)
          await aborter.end(false)
        }
        await hanging.end(false)
      } finally {
        await port.close()
      }
    }))

  test('durable stores', () =>
    withFaults(
      8,
      async ({ engine }) => {
        for (let i = 0; i < 4; i++) {
          await sleep(random.int(1500))
          engine.kill()
          await engine.start()
          await engine.untilReady()
        }
      },
      { settings: { 'engine.state.store': 'lmdb' } },
    ))

  test('a process that wakes up after its successor has taken over does no harm', () =>
    withFaults(
      10,
      async ({ engine, prefix }) => {
        const successorFolder = mkdtempSync(join(tmpdir(), 'millrace-state-'))
        await sleep(1500)
        engine.suspend()
        const settings = { 'engine.instance-id': 'the-one' }
        const successor = new EngineProcess({
          prefix,
          bootstrap: proxy.bootstrap,
          stateFolder: successorFolder,
          settings,
        })
        try {
          await successor.start()
          await successor.untilReady()
          await sleep(1000)
          engine.wake()
          assert.equal(await engine.untilExit(120_000), 3, engine.log.slice(-3000))
          await sleep(1000)
          assert.deepEqual(successor.crashes, [], successor.log.slice(-3000))
          successor.kill()
          await engine.start()
          await engine.untilReady()
        } finally {
          successor.dispose()
          rmSync(successorFolder, { recursive: true, force: true })
        }
      },
      { settings: { 'engine.instance-id': 'the-one' } },
    ))

  for (const [name, stop] of [
    ['cleanly', () => broker.stop()],
    ['hard', () => broker.kill()],
  ] as const) {
    test(`a broker that is stopped ${name} and started again`, () =>
      withFaults(8 * rounds, async () => {
        for (let i = 0; i < rounds; i++) {
          await sleep(1500)
          await stop()
          await sleep(500)
          await broker.start()
        }
      }))
  }

  test('answers to the end of a transaction that are lost', () =>
    withFaults(6 * rounds, async ({ fed }) => {
      while (fed()) {
        await sleep(300)
        proxy.lose('response', 'endTxn')
      }
    }))

  test('requests and answers of every kind that are lost', () =>
    withFaults(6 * rounds, async ({ fed, random }) => {
      while (fed()) {
        await sleep(100 + random.int(300))
        const api = random.pick(['produce', 'txnOffsetCommit', 'endTxn', 'fetch', 'heartbeat'] as const)
        proxy.lose(random.pick(['request', 'response']), api)
      }
    }))

  test('a network that is cut for a while', () =>
    withFaults((cutSeconds + 4) * rounds, async () => {
      for (let i = 0; i < rounds; i++) {
        await sleep(1500)
        proxy.cut()
        await sleep(cutSeconds * 1000)
        proxy.heal()
      }
    }))
})
