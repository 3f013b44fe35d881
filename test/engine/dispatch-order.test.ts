/** Which of the inputs of a task goes next, when what lies at the broker comes piece by piece. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { FetchedPartition, FetchRequest } from '../../src/broker/port.ts'
import { keySlot } from '../../src/base/hash.ts'
import { defineApp, serdes } from '../../src/index.ts'
import { byKey, type In } from './support/engine.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const text = { key: serdes.string, value: serdes.json<string>() }
const app = defineApp({
  applicationId: 'order',
  build(topology) {
    const prices = topology.table('prices', text)
    topology
      .stream('sales', text)
      .leftJoin(prices, (sale, price) => `${sale}:${price ?? 'none'}`)
      .to('out')
  },
})

/** A key of each of the two partitions. */
const [even, odd] = [0, 1].map((to) => {
  const found = ['a', 'b', 'c', 'd', 'e', 'f'].find((key) => keySlot(Buffer.from(key)) % 2 === to)
  return found as string
}) as [string, string]

const at = (key: string, timestamp: number, value: string): In => ({ key, value, timestamp: 1_000_000 + timestamp })

/** The answers for these partitions do not come, as from a leader that cannot be reached, while others answer. */
class Rig extends VirtualEngine {
  readonly heldBack = new Set<string>()

  constructor(before: Readonly<Record<string, readonly In[]>>, maxTaskIdleMs = 0) {
    super({
      compile: () => app.compile(),
      settings: { maxTaskIdleMs },
      before,
      tamper: async (name, args, call) => {
        if (name !== 'fetch') return call(args)
        const [request] = args as [FetchRequest]
        const partitions = request.partitions.filter((each) => !this.#isHeldBack(each))
        const answer = (await call([{ ...request, partitions }])) as FetchedPartition[]
        return answer.filter((each) => !this.#isHeldBack(each))
      },
    })
  }

  async out(): Promise<Record<string, unknown[]>> {
    return byKey(await this.read('out'))
  }

  #isHeldBack({ topic, partition }: { readonly topic: string; readonly partition: number }): boolean {
    return this.heldBack.has(`${topic}:${partition}`)
  }
}

const everything = {
  prices: [at(even, 10, 'p1'), at(odd, 10, 'q1'), at(even, 30, 'p2')],
  sales: [at(even, 20, 's1'), at(odd, 20, 't1'), at(even, 40, 's2')],
}

describe('a stream joined with a table', () => {
  test('waits for the rows that are on their way, and other partitions go on', async () => {
    const rig = new Rig(everything)
    rig.heldBack.add('prices:0')
    await rig.start()
    await rig.runs()
    await rig.passes(2000)
    assert.deepEqual(await rig.out(), { [odd]: ['t1:q1'] })
    const shown = rig.snapshot?.watermarks?.partitions
    assert.ok(shown?.['sales:0']?.headHeldSinceMs !== undefined, 'it shows since when the record waits')
    assert.deepEqual(rig.warnings, [])
    rig.heldBack.clear()
    await rig.settled()
    assert.deepEqual(await rig.out(), { [even]: ['s1:p1', 's2:p2'], [odd]: ['t1:q1'] })
  })

  test('tells of a table that cannot be fetched for long, once', async () => {
    const rig = new Rig(everything)
    rig.heldBack.add('prices:0')
    await rig.start()
    await rig.runs()
    await rig.passes(60_000)
    assert.equal(rig.warnings.length, 1, rig.warnings.join('; '))
    assert.match(
      rig.warnings[0] ?? '',
      /^sales:0 has waited for 10 s: prices:0 feeds the same task, and its records could not be fetched/,
    )
    rig.heldBack.clear()
    await rig.settled()
    assert.deepEqual((await rig.out())[even], ['s1:p1', 's2:p2'])
  })

  test('with -1 it takes what is there', async () => {
    const rig = new Rig(everything, -1)
    rig.heldBack.add('prices:0')
    await rig.start()
    await rig.runs()
    await rig.passes(2000)
    assert.deepEqual((await rig.out())[even], ['s1:none', 's2:none'])
    rig.heldBack.clear()
    await rig.settled()
  })

  test('pauses, commits and stops while it waits', async () => {
    const rig = new Rig(everything)
    rig.heldBack.add('prices:0')
    await rig.start()
    await rig.runs()
    await rig.passes(500)
    rig.pause(1)
    await rig.until('it is paused', () => rig.count('drained') === 1)
    rig.unpause()
    await rig.passes(500)
    assert.deepEqual(await rig.out(), { [odd]: ['t1:q1'] })
    rig.stop()
    await rig.until('it has stopped', () => rig.count('stopped') === 1)
    await rig.start()
    await rig.runs()
    rig.heldBack.clear()
    await rig.settled()
    assert.deepEqual(await rig.out(), { [even]: ['s1:p1', 's2:p2'], [odd]: ['t1:q1'] })
  })

  test('a record that comes alone waits as long as it is told, for a row that may yet come', async () => {
    const rig = new Rig({ prices: [at(even, 10, 'p1')], sales: [at(even, 20, 's1')] }, 300)
    await rig.start()
    await rig.runs()
    await rig.settled()
    await rig.put('prices', [at(even, 25, 'p2')])
    await rig.settled()
    await rig.put('sales', [at(even, 40, 's2')])
    await rig.passes(150)
    await rig.put('prices', [at(even, 30, 'p3')])
    await rig.settled()
    assert.deepEqual((await rig.out())[even], ['s1:p1', 's2:p3'])
  })
})
