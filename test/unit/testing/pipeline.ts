/** A pipeline of two applications, and what tests of several applications ask. */
import { type Application, defineApp, type KeyValueStore, serdes, type Topology } from '../../../src/index.ts'
import type { OutputRecord, TopologyTestDriver } from '../../../src/testing/index.ts'

export interface Order {
  readonly customer: string
  readonly amount: number
}

export const number = { value: serdes.json<number>() }

export const appOf = (applicationId: string, build: (topology: Topology) => void, config = {}): Application =>
  defineApp({ applicationId, build, config })

/** Orders by customer; what is not paid with money is refused. */
export const checking = appOf('checking', (topology) => {
  topology
    .stream<string, Order>('orders')
    .filter(({ amount }) => amount > 0)
    .map(({ customer, amount }) => [customer, amount])
    .to('amounts', number)
})

export const totalling = appOf('totalling', (topology) => {
  topology
    .stream<string, number>('amounts', number)
    .groupByKey()
    .reduce((a, b) => a + b, { store: 'totals' })
    .toStream()
    .to('totals')
})

/** Unlucky numbers end it. */
export const strict = (id: string, from: string, to: string): Application =>
  appOf(id, (topology) => {
    topology
      .stream<string, number>(from, number)
      .mapValues((value) => {
        if (value === 13) throw new RangeError('unlucky')
        return value
      })
      .to(to)
  })

export const told = (records: readonly OutputRecord[]): unknown[] =>
  records.map(({ topic, key, value }) => [topic, key, value])
export const values = (driver: TopologyTestDriver, topic: string): unknown[] =>
  driver
    .output(topic)
    .readAll()
    .map(({ value }) => value)

export const totals = (driver: TopologyTestDriver): KeyValueStore<string, { value: number }> => driver.store('totals')

export const usage = (pattern: RegExp) => ({ code: 'USAGE', message: pattern })
