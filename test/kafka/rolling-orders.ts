/** Orders for `rolling-app.ts`, what has to come out for them, and the processes that share the work. */
import { join } from 'node:path'
import { Random } from '../../src/base/random.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { consume, type In, type Out, produce } from '../engine/support/engine.ts'
import { type Order, rollingTopics, windowMs } from './rolling-app.ts'
import { EngineProcess } from './verifier/harness.ts'

export const partitions = 6
const perBatch = 10

/** What goes in, and what has to come out. */
export class Orders {
  readonly #random: Random
  readonly #prices: In[] = []
  readonly #orders: In[] = []
  count = 0
  readonly windows: Record<string, number> = {}
  readonly totals: Record<string, number> = {}

  constructor(seed: number) {
    this.#random = new Random(seed)
  }

  /** Orders of one time, each with a price of its product one millisecond before. */
  add(at: number): void {
    const random = this.#random
    const products = new Set(Array.from({ length: perBatch }, () => `p${Math.floor(20 * random.next() ** 2)}`))
    for (const product of products) {
      const order: Order = { i: this.count++, product, at }
      this.#prices.push({ key: product, value: { at: at - 1 }, timestamp: at - 1 })
      this.#orders.push({ key: `c${random.int(50)}`, value: order, timestamp: at })
      const window = `${product}@${Math.floor(at / windowMs) * windowMs}`
      this.windows[window] = (this.windows[window] ?? 0) + 1
      this.totals[product] = (this.totals[product] ?? 0) + 1
    }
  }

  /** Prices are there before the orders of their time. */
  async write(port: BrokerPort): Promise<void> {
    await produce(port, rollingTopics.prices, this.#prices.splice(0), partitions)
    await produce(port, rollingTopics.orders, this.#orders.splice(0), partitions)
  }
}

/** A record in each partition, so far ahead that it closes what is open. */
export async function writeEnds(port: BrokerPort, timestamp: number): Promise<void> {
  const value = { i: -1, product: 'end', at: timestamp }
  const ends = Array.from({ length: partitions }, (_, partition) => ({ key: 'end', value, timestamp, partition }))
  await produce(port, rollingTopics.prices, ends, partitions)
  await produce(port, rollingTopics.orders, ends, partitions)
}

/** What came out, but for what closed it. */
export async function resultsOf(port: BrokerPort, topic: string): Promise<Out[]> {
  return (await consume(port, topic)).filter(({ key }) => !key?.startsWith('end'))
}

export function rollingMembers(bootstrap: string, folder: string): EngineProcess[] {
  return ['one', 'two', 'three'].map(
    (name) =>
      new EngineProcess({
        prefix: 'rolling',
        bootstrap,
        stateFolder: join(folder, name),
        application: join('..', 'rolling-app.ts'),
        settings: {
          'engine.instance-id': name,
          'topology.sub-topology-split': 'repartition-topics',
          'consumer.session.timeout.ms': '6000',
          'consumer.heartbeat.interval.ms': '1000',
        },
      }),
  )
}
