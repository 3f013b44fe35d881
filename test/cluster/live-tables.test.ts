/**
 * Three brokers, each of which answers by itself: a price is written, and then an order, which lies at another broker. Whatever
 * answer comes first, the order has the price of its time. `LIVE_BATCHES` lengthens the run.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../../src/base/random.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { consume, type In, produce } from '../engine/support/engine.ts'
import { EngineProcess } from '../kafka/verifier/harness.ts'
import { eventually } from '../support/millrace.ts'
import { liveTopics, type Order } from './live-tables-app.ts'
import { threeBrokers } from './three-brokers.ts'

const batches = Number(process.env.LIVE_BATCHES ?? 120)
const partitions = 6
const { cluster, skip, end } = await threeBrokers()

describe('a stream and its table at three brokers', { skip }, () => {
  const bootstrapServers = skip ? ['127.0.0.1:1'] : cluster.bootstrap.split(',')
  const port = connectKafka({ bootstrapServers, clientId: 'live-tables' })
  const folder = mkdtempSync(join(tmpdir(), 'millrace-live-'))
  const engine = new EngineProcess({
    prefix: 'live-tables',
    bootstrap: bootstrapServers.join(','),
    stateFolder: folder,
    application: join('..', '..', 'cluster', 'live-tables-app.ts'),
  })
  after(async () => {
    engine.dispose()
    rmSync(folder, { recursive: true, force: true })
    await port.close()
    await end()
  })

  /** Gives how many orders there are in each of the two topics. */
  async function feed(random: Random): Promise<number> {
    let orders = 0
    for (let batch = 0, at = 0; batch < batches; batch++) {
      await sleep(random.int(40))
      at = Math.max(at + 2, Date.now())
      const products = new Set(Array.from({ length: 4 }, () => `p${Math.floor(20 * random.next() ** 2)}`))
      const [prices, direct, ofCustomers]: [In[], In[], In[]] = [[], [], []]
      for (const product of products) {
        const value: Order = { i: orders++, product, at }
        prices.push({ key: product, value: { at: at - 1 }, timestamp: at - 1 })
        direct.push({ key: product, value, timestamp: at })
        ofCustomers.push({ key: `c${random.int(50)}`, value, timestamp: at })
      }
      await produce(port, liveTopics.prices, prices, partitions)
      await Promise.all([
        produce(port, liveTopics.orders, direct, partitions),
        produce(port, liveTopics.customers, ofCustomers, partitions),
      ])
    }
    return orders
  }

  test('give each order the price of its time', async (t) => {
    for (const topic of Object.values(liveTopics)) await port.createTopics([{ topic, partitions }])
    await engine.start()
    await engine.untilReady()
    const orders = await feed(new Random(1))
    for (const topic of [liveTopics.priced, liveTopics.pricedForCustomers]) {
      const results = async () => (await consume(port, topic)).map(({ value }) => value as { behindPrice: number })
      await eventually(`all of ${topic} are told`, async () => (await results()).length >= orders, 120_000)
      const told = await results()
      assert.equal(told.length, orders)
      assert.deepEqual(
        told.filter(({ behindPrice }) => behindPrice !== 1),
        [],
      )
    }
    assert.equal(await engine.stop(), 0, engine.log.slice(-4000))
    t.diagnostic(`${orders} orders in each topic`)
  })
})
