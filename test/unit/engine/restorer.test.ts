import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokerPort, FetchedPartition } from '../../../src/broker/port.ts'
import { Restorer, type RestorerHost } from '../../../src/engine/restore/restorer.ts'
import { Runs } from '../../../src/engine/run.ts'
import type { ToLane } from '../../../src/lanes/protocol.ts'
import { batchOf } from './world.ts'

const topic = 'prices'
const records = batchOf([1, 2])

/** A broker that answers a fetch only when the test says so. */
function slowBroker(): { broker: BrokerPort; answers: Array<() => void> } {
  const answers: Array<() => void> = []
  const ends = { earliest: 0, stable: 2 }
  const fetched = [{ topic, partition: 0, records, aborted: [] }] as unknown as FetchedPartition[]
  const broker = {
    listOffsets: async (_: unknown, at: keyof typeof ends) => [{ topic, partition: 0, offset: ends[at] }],
    fetch: () => new Promise<FetchedPartition[]>((resolve) => answers.push(() => resolve(fetched))),
  }
  return { broker: broker as unknown as BrokerPort, answers }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a global table that a run before was reading does not keep the next run from filling its own', async () => {
  const { broker, answers } = slowBroker()
  const sent: ToLane[] = []
  const host = { ended: () => false, send: (_: number, message: ToLane) => sent.push(message) }
  const restorer = new Restorer(broker, host as unknown as RestorerHost)
  const runs = new Runs()
  const before = restorer.loadGlobal(runs.next(), 0, topic, 1, 1)
  await settled()
  const now = runs.next()
  const filled = restorer.loadGlobal(now, 0, topic, 1, 1)
  await settled()
  const [answerBefore, answerNow] = answers
  answerNow?.()
  await settled()
  answerBefore?.()
  await settled()
  restorer.laneMessage({ type: 'loaded', lane: 0, run: now.number, source: 0 })
  const stuck = settled().then(() => 'stuck')
  assert.deepEqual(await Promise.race([filled, stuck]), new Map([[0, 2]]))
  assert.deepEqual(
    sent.map((message) => 'run' in message && message.run),
    [now.number],
  )
  await before
})

test('a global table is filled to its end by a broker that at first has no answer, or nothing to show', async () => {
  const partition = { topic, partition: 0, aborted: [] }
  const answers = [[], [{ ...partition, records: new Uint8Array(0) }], [{ ...partition, records }]]
  const broker = {
    listOffsets: async (_: unknown, at: string) => [{ topic, partition: 0, offset: at === 'stable' ? 2 : 0 }],
    fetch: async () => answers.shift() ?? assert.fail('it has been told everything'),
  }
  const sent: ToLane[] = []
  const host = {
    ended: () => false,
    pause: () => settled(),
    send: (_: number, message: ToLane) => {
      sent.push(message)
      setImmediate(() => restorer.laneMessage({ type: 'loaded', lane: 0, run: run.number, source: 0 }))
    },
  }
  const restorer = new Restorer(broker as unknown as BrokerPort, host as unknown as RestorerHost)
  const run = new Runs().next()
  assert.deepEqual(await restorer.loadGlobal(run, 0, topic, 1, 1), new Map([[0, 2]]))
  assert.equal(sent.length, 1)
})
