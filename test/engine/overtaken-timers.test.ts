/** A function that takes its time holds event time back in its task; what the other operators there do must not depend on it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type In, TestEngine } from './support/engine.ts'

const orders = 600
const minute = 60_000
const began = 1_700_000_000_000
const partitions = 2

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
  for (let partition = 0; partition < partitions; partition++) {
    for (const hours of [1000, 1001])
      records.push({
        ...{ key: `end-${partition}`, partition, value: { what: 'paid', slowMs: 0 } },
        timestamp: began + hours * 60 * minute,
      })
  }
  return records
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
      const byKey = async (topic: string): Promise<Record<string, unknown[]>> => {
        const told: Record<string, unknown[]> = {}
        for (const { key, value } of await engine.read(topic)) {
          told[key as string] ??= []
          told[key as string]?.push(value)
        }
        return Object.fromEntries(Object.entries(told).filter(([key]) => key.startsWith('order-')))
      }
      const expected = (paidInTime: string[], paidLate: string[]): Record<string, unknown[]> =>
        Object.fromEntries(
          Array.from({ length: orders }, (_, n) => [`order-${n}`, n % 2 === 0 ? paidInTime : paidLate]),
        )
      assert.deepEqual(await byKey('looked-up'), expected(['ordered', 'paid'], ['ordered', 'paid']))
      assert.deepEqual(await byKey('told'), expected(['paid'], ['given up', 'paid']))
      assert.deepEqual(await byKey('settled'), expected(['paid'], ['ordered', 'paid']))
    })
  }
})
