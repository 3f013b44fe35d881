import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VirtualClock } from '../../../src/base/clock.ts'
import type { BrokerPort, FetchedPartition } from '../../../src/broker/port.ts'
import { setBaseOffset } from '../../../src/broker/wire/record-batch.ts'
import { encodeTag } from '../../../src/engine/commit/tag.ts'
import type { GroupPosition } from '../../../src/engine/group/assignment.ts'
import type { ResolvedTopics } from '../../../src/engine/group/topics.ts'
import { Restorer, type RestorerHost } from '../../../src/engine/restore/restorer.ts'
import { Runs } from '../../../src/engine/run.ts'
import type { ToLane } from '../../../src/lanes/protocol.ts'
import type { RestoreProgress } from '../../../src/view/view.ts'
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

describe('changelogs that are replayed', () => {
  const changelog = { topic: 'app-rows-changelog', topicId: 'id', partitions: 1 }
  const at = (seq: number, changelogOffset: number): object => ({
    changelogOffset,
    commitId: `1.${seq}`,
    topicId: 'id',
  })

  /** One store that its lane found like this; its changelog has four records, two in each answer of the broker. */
  function restored(checkpoint: object | null, { split = 'repartition-topics', newest = 5, maxBytes = 1e6 } = {}) {
    const seen = { fetches: 0, asked: 0, restoring: 0, told: [] as string[], apply: (_ms: number): void => undefined }
    const clock = new VirtualClock(0)
    const ends = { earliest: 0, stable: 4, latest: 4 }
    const broker = {
      listOffsets: async (_: unknown, which: keyof typeof ends) => [{ ...place, offset: ends[which] }],
      fetch: async () => {
        const batch = batchOf([1, 2])
        setBaseOffset(batch, seen.fetches++ * 2)
        return [{ ...place, records: batch, aborted: [] }]
      },
      committedOffsets: async () => {
        seen.asked++
        const metadata = encodeTag({ tokenEpoch: 1, seq: 7, maxTimestamp: 0, watermark: 0 })
        return [{ topic: 'in', partition: 1, offset: 1, metadata }]
      },
    }
    const place = { topic: changelog.topic, partition: 0 }
    const run = new Runs().next()
    const of = { lane: 0, run: run.number }
    const host = {
      maxBytes,
      settings: { split, applicationId: 'app', lostChangelogs: 'fail', plan: { stores: [] } },
      clock,
      ended: () => false,
      isLost: () => false,
      hasLostOffsets: () => false,
      pause: () => settled(),
      progress: ([store]: readonly RestoreProgress[]) =>
        seen.told.push(`${store?.restoredRecords} done, ${store?.remainingRecords} left`),
      send: (_: number, message: ToLane) => {
        const stores = [{ store: 'rows', partition: 0, checkpoint, writtenAt: undefined }]
        const opened = { type: 'opened', ...of, stores } as unknown as Parameters<Restorer['laneMessage']>[0]
        if (message.type === 'open') setImmediate(() => restorer.laneMessage(opened))
      },
    }
    const restorer = new Restorer(broker as unknown as BrokerPort, host as unknown as RestorerHost)
    seen.apply = (ms) => {
      clock.advance(ms)
      restorer.laneMessage({ type: 'restored', ...of, store: 'rows', partition: 0, records: 2 })
    }
    const topics = { changelogs: new Map([['rows', changelog]]), bySource: [] } as unknown as ResolvedTopics
    const group = { partitions: [], newestTag: { tokenEpoch: 1, seq: newest }, watermark: 0, ends: new Map() }
    const tasks = new Map([[0, [{ subtopology: 0, partition: 0 }]]])
    const done = restorer.restore(run, tasks, topics, group as unknown as GroupPosition, () => seen.restoring++)
    return { seen, done }
  }

  async function turns(): Promise<void> {
    for (let n = 0; n < 10; n++) await settled()
  }

  test('are read on once lanes have applied what may be under way', async () => {
    const { seen, done } = restored(null, { maxBytes: records.length })
    await turns()
    assert.deepEqual([seen.fetches, seen.restoring], [1, 1])
    seen.apply(0)
    await turns()
    assert.equal(seen.fetches, 2)
    seen.apply(0)
    assert.deepEqual(await done, new Map([['rows/0', 4]]))
  })

  test('count what is under way to a lane as left, and tell each time that a lane has applied some', async () => {
    const { seen, done } = restored(null)
    await turns()
    assert.equal(seen.fetches, 2, 'all of it is read')
    assert.deepEqual(seen.told, ['0 done, 4 left'])
    seen.apply(1000)
    assert.deepEqual(seen.told, ['0 done, 4 left', '2 done, 2 left'])
    seen.apply(1000)
    await done
    assert.deepEqual(seen.told.slice(2), ['4 done, 0 left', '4 done, 0 left'])
  })

  test('are not told of more than some ten times a second', async () => {
    const { seen, done } = restored(null)
    await turns()
    seen.apply(50)
    seen.apply(10)
    await done
    assert.deepEqual(seen.told, ['0 done, 4 left', '2 done, 2 left', '4 done, 0 left'])
  })

  test('say nothing where the stores on disk have all of it', async () => {
    const { seen, done } = restored(at(5, 4))
    await done
    assert.deepEqual([seen.fetches, seen.restoring], [0, 0])
  })

  test('a store ahead of these partitions is compared with all that processes share, where they do', async () => {
    const behind = restored(at(5, 4))
    await behind.done
    assert.equal(behind.seen.asked, 0)
    const ahead = restored(at(6, 4))
    await ahead.done
    assert.equal(ahead.seen.asked, 1)
    await assert.rejects(restored(at(6, 4), { split: 'in-process' }).done, { code: 'STORE_AHEAD' })
  })
})
