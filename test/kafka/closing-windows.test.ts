/**
 * Windows close where others tell that time has come so far, in lanes that get no record behind: their results are committed
 * all the same, also by a process that has just started again. `ROLLING_SEED` and `ROLLING_ROUNDS` vary it.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LocalKafka } from '../../scripts/kafka/local-kafka.ts'
import { Random } from '../../src/base/random.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { lastByKey } from '../engine/support/engine.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually } from '../support/millrace.ts'
import { rollingTopics } from './rolling-app.ts'
import { Orders, partitions, resultsOf, rollingMembers, writeEnds } from './rolling-orders.ts'
import type { EngineProcess } from './verifier/harness.ts'

const seed = Number(process.env.ROLLING_SEED ?? 1)
const rounds = Number(process.env.ROLLING_ROUNDS ?? 6)
/** Of event time. */
const roundMs = 120_000
const feedMs = 20_000
const batchMs = 500

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false

describe(`windows that no record closes (ROLLING_SEED=${seed})`, { skip }, () => {
  const broker = ('skip' in kafka ? undefined : kafka.broker) as LocalKafka
  const port = connectKafka({ bootstrapServers: skip ? ['127.0.0.1:1'] : [broker.bootstrap], clientId: 'closing' })
  const folder = mkdtempSync(join(tmpdir(), 'millrace-closing-'))
  const members = rollingMembers(broker?.bootstrap ?? '', folder)
  after(async () => {
    for (const each of members) each.dispose()
    rmSync(folder, { recursive: true, force: true })
    await port.close()
    if (!('skip' in kafka)) await kafka.stop()
  })

  test('are told in every round in which a process starts again', async () => {
    const random = new Random(seed)
    const input = new Orders(seed)
    const logs = (): string => members.map((each) => each.log.slice(-2500)).join('\n---\n')
    for (const topic of Object.values(rollingTopics)) await port.createTopics([{ topic, partitions }])
    for (const each of members) await each.start()
    for (const each of members) await each.untilReady(180_000)
    const beganAtMs = Date.now()
    for (let round = 0; round < rounds; round++) {
      const fromMs = beganAtMs + round * roundMs
      for (let at = fromMs; at < fromMs + feedMs; at += batchMs) input.add(at)
      await input.write(port)
      await sleep(random.int(1000))
      const each = members[round % members.length] as EngineProcess
      if (random.chance(0.5)) each.kill()
      else assert.equal(await each.stop(), 0, logs())
      await each.start()
      // While it begins, or behind that.
      if (random.chance(0.5)) await each.untilReady(180_000)
      await sleep(random.int(500))
      await writeEnds(port, fromMs + roundMs - batchMs)
      const windows = Object.keys(input.windows).length
      await eventually(
        `all ${windows} windows are told in round ${round}`,
        async () => (await resultsOf(port, rollingTopics.windows)).length >= windows,
        120_000,
      ).catch((error) => assert.fail(`${error}\n${logs()}`))
    }
    assert.deepEqual(lastByKey(await resultsOf(port, rollingTopics.windows)), input.windows)
    for (const each of members) assert.equal(await each.stop(), 0, logs())
  })
})
