/**
 * A deployment that rolls through a group, and machines that are lost in it, while records flow: three processes share the work
 * through repartition topics, and every result is what was computed apart. `ROLLING_SEED` and `ROLLING_SECONDS` vary it.
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
const seconds = Number(process.env.ROLLING_SECONDS ?? 20)
/** Written before anything starts. */
const backlogMs = 150_000
const batchMs = 100
/** Further behind the last record than any window is long. */
const endsAfterMs = 600_000

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false

describe(`processes that are ended and started in turn (ROLLING_SEED=${seed})`, { skip }, () => {
  const broker = ('skip' in kafka ? undefined : kafka.broker) as LocalKafka
  const port = connectKafka({ bootstrapServers: skip ? ['127.0.0.1:1'] : [broker.bootstrap], clientId: 'rolling' })
  const folder = mkdtempSync(join(tmpdir(), 'millrace-rolling-'))
  const members = rollingMembers(broker?.bootstrap ?? '', folder)
  const input = new Orders(seed)
  after(async () => {
    for (const each of members) each.dispose()
    rmSync(folder, { recursive: true, force: true })
    await port.close()
    if (!('skip' in kafka)) await kafka.stop()
  })

  const write = (): Promise<void> => input.write(port)

  /** Gives the time of the last record. */
  async function feed(beganAtMs: number): Promise<number> {
    let at = beganAtMs
    for (const endsAtMs = beganAtMs + seconds * 1000; at < endsAtMs; ) {
      await sleep(batchMs)
      at = Math.max(at + 2, Date.now())
      input.add(at)
      await write()
    }
    return at
  }

  test('give each order the price of its time, and each window all of its orders once', async (context) => {
    const random = new Random(seed)
    const logs = (): string => members.map((each) => each.log.slice(-2500)).join('\n---\n')
    for (const topic of Object.values(rollingTopics)) await port.createTopics([{ topic, partitions }])
    const beganAtMs = Date.now()
    for (let at = beganAtMs - backlogMs; at < beganAtMs; at += batchMs) input.add(at)
    await write()
    for (const each of members) await each.start()
    for (const each of members) await each.untilReady(180_000)

    let isFed = false
    const fed = feed(Date.now()).finally(() => {
      isFed = true
    })
    fed.catch(() => undefined)
    let turns = 0
    for (; !isFed || turns < members.length; turns++) {
      const each = members[turns % members.length] as EngineProcess
      await sleep(1000 + random.int(2000))
      if (random.chance(0.6)) each.kill()
      else assert.equal(await each.stop(), 0, logs())
      // Now and then so long that the others take over what it had.
      if (random.chance(0.3)) await sleep(7000)
      await each.start()
      await each.untilReady(180_000)
    }

    const ends = (await fed) + endsAfterMs
    await writeEnds(port, ends)
    const results = (topic: string) => resultsOf(port, topic)
    const windows = Object.keys(input.windows).length
    await eventually(
      'all windows are told',
      async () => (await results(rollingTopics.windows)).length >= windows,
      240_000,
    ).catch((error) => assert.fail(`${error}\n${logs()}`))
    for (const each of members) assert.equal(await each.stop(), 0, logs())
    for (const each of members) assert.deepEqual(each.crashes, [], logs())

    const priced = (await results(rollingTopics.priced)).map(({ value }) => value as { i: number; behindPrice: number })
    assert.deepEqual(
      priced.map(({ i }) => i).sort((a, b) => a - b),
      Array.from({ length: input.count }, (_, i) => i),
    )
    assert.deepEqual(
      priced.filter(({ behindPrice }) => behindPrice !== 1),
      [],
    )
    const told = await results(rollingTopics.windows)
    assert.equal(told.length, windows)
    assert.deepEqual(lastByKey(told), input.windows)
    assert.deepEqual(lastByKey(await results(rollingTopics.totals)), input.totals)
    context.diagnostic(`${input.count} orders, ${windows} windows, ${turns} ends of a process`)
  })
})
