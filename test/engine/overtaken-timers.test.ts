/** A function that takes its time holds event time back in its task; what the other operators there do must not depend on it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { byKey, type In, TestEngine } from './support/engine.ts'

const orders = 600
const minute = 60_000
const began = 1_700_000_000_000
const partitions = 2

/** Event time goes on far behind all that is waited for, in each partition. */
const ends = (what: string): In[] =>
  Array.from({ length: partitions }, (_, partition) =>
    [1000, 1001].map((hours) => ({
      ...{ key: `end-${partition}`, partition, value: { what, slowMs: 0 } },
      timestamp: began + hours * 60 * minute,
    })),
  ).flat()

/** An order a minute. One in two is paid ten minutes later, the others after forty, when they have been given up. */
function backlog(): In[] {
  const records: In[] = []
  for (let n = 0; n < orders; n++) {
    const key = `order-${n}`
    const at = began + n * minute
    const paidAt = at + (n % 2 === 0 ? 10 : 40) * minute
    const partition = n % partitions
    records.push({ key, partition, timestamp: at, value: { what: 'ordered', slowMs: n % 7 === 0 ? 20 : 0 } })
    records.push({ key, partition, timestamp: paidAt + 1, value: { what: 'paid', slowMs: n % 11 === 0 ? 15 : 1 } })
  }
  records.sort((a, b) => a.timestamp! - b.timestamp!)
  return [...records, ...ends('paid')]
}

describe('a timer that is due while an older record waits for a function', () => {
  const settings = [
    ...[1, 2, 4].map((lanes) => ({ lanes, split: 'in-process' })),
    { lanes: 2, split: 'repartition-topics' },
  ]
  for (const { lanes, split } of settings) {
    test(`is not overtaken by the records behind it, with ${lanes} lanes, ${split}`, async (t) => {
      const engine = await TestEngine.start(t, 'overtaken-timers', {
        'broker.embedded.partitions': partitions,
        'engine.lanes.count': lanes,
        'topology.sub-topology-split': split,
      })
      await engine.reaches('RUNNING')
      engine.runtime.commands.pause()
      await engine.reaches('PAUSED')
      await engine.put('steps', backlog())
      engine.runtime.commands.unpause()
      await engine.idle()
      const told = async (topic: string): Promise<Record<string, unknown[]>> => {
        return Object.fromEntries(
          Object.entries(byKey(await engine.read(topic))).filter(([key]) => key.startsWith('order-')),
        )
      }
      const expected = (paidInTime: string[], paidLate: string[]): Record<string, unknown[]> =>
        Object.fromEntries(
          Array.from({ length: orders }, (_, n) => [`order-${n}`, n % 2 === 0 ? paidInTime : paidLate]),
        )
      assert.deepEqual(await told('looked-up'), expected(['ordered', 'paid'], ['ordered', 'paid']))
      assert.deepEqual(await told('told'), expected(['paid'], ['given up', 'paid']))
      assert.deepEqual(await told('settled'), expected(['paid'], ['ordered', 'paid']))
    })
  }
})

/** An order a minute. What was paid for it four minutes later comes when it was told to have none, and is in time itself. */
function joinable(): In[] {
  const records: In[] = []
  for (let n = 0; n < orders + 7; n++) {
    const partition = n % partitions
    const slowMs = n % 7 === 0 ? 20 : 0
    const step = (of: number, what: string, timestamp: number): In => ({
      ...{ key: `order-${of}`, partition, timestamp, value: { what, slowMs } },
    })
    if (n < orders) records.push(step(n, 'ordered', began + n * minute))
    else records.push({ ...step(n, 'other', began + n * minute), key: `end-${n}` })
    if (n >= 7 && n % 2 === 1) records.push({ ...step(n - 7, 'paid', began + (n - 3) * minute), partition })
  }
  return [...records, ...ends('other')]
}

describe('a join that waits while an older record waits for a function', () => {
  for (const lanes of [1, 2, 4]) {
    test(`tells what it would tell if the function answered at once, with ${lanes} lanes`, async (t) => {
      const engine = await TestEngine.start(t, 'overtaken-joins', {
        'broker.embedded.partitions': partitions,
        'engine.lanes.count': lanes,
      })
      await engine.reaches('RUNNING')
      engine.runtime.commands.pause()
      await engine.reaches('PAUSED')
      const end = began + 1001 * 60 * minute
      const prices = Array.from({ length: partitions }, (_, partition) => ({
        ...{ key: 'end', value: 'none', partition, timestamp: end },
      }))
      await engine.put('prices', prices)
      await engine.put('steps', joinable())
      engine.runtime.commands.unpause()
      await engine.idle()
      const told = async (topic: string): Promise<Record<string, unknown[]>> =>
        Object.fromEntries(Object.entries(byKey(await engine.read(topic))).filter(([key]) => key.startsWith('order-')))
      const expected = (paid: string[], unpaid: string[]): Record<string, string[]> =>
        Object.fromEntries(Array.from({ length: orders }, (_, n) => [`order-${n}`, n % 2 === 0 ? paid : unpaid]))
      assert.deepEqual(await told('left'), expected(['ordered, null'], ['ordered, null']))
      assert.deepEqual(await told('outer'), expected(['ordered, null', 'null, paid'], ['ordered, null']))
      assert.deepEqual(await told('priced'), expected(['ordered, null', 'paid, null'], ['ordered, null']))
    })
  }
})
