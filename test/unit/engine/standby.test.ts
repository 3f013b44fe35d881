/** What a standby tells of how far it is behind, while its lanes take nothing more. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokerPort, FetchedPartition, FetchRequest } from '../../../src/broker/port.ts'
import { setBaseOffset } from '../../../src/broker/wire/record-batch.ts'
import type { EngineOptions } from '../../../src/engine/engine-options.ts'
import type { ResolvedTopics } from '../../../src/engine/group/topics.ts'
import type { Restorer } from '../../../src/engine/restore/restorer.ts'
import { Standby } from '../../../src/engine/restore/standby.ts'
import { chunksUnderWay, StoreReplay } from '../../../src/engine/restore/store-replay.ts'
import { Runs } from '../../../src/engine/run.ts'
import { batchOf, World } from './world.ts'

const place = { topic: 'app-rows-changelog', partition: 0 }

/** A standby of one store; its changelog has two records in each answer, and ends where the test says. */
async function following(t: { after(call: () => void): void }) {
  const world = new World()
  const seen = { end: 100, fetches: 0, listed: 0, failed: [] as unknown[] }
  const broker = {
    listOffsets: async (_: unknown, at: string) => {
      if (at === 'stable') seen.listed++
      return [{ ...place, offset: at === 'earliest' ? 0 : seen.end }]
    },
    fetch: async ({ partitions: [asked] }: FetchRequest) => {
      seen.fetches++
      const records = batchOf([1, 2])
      setBaseOffset(records, asked?.offset ?? 0)
      return [{ ...place, records, aborted: [], lastStableOffset: seen.end }] as unknown as FetchedPartition[]
    },
    committedOffsets: async () => [],
  }
  const run = new Runs().next()
  const store = new StoreReplay(
    { run, store: 'rows', partition: 0, lane: 0 },
    { topic: place.topic, topicId: 'id' },
    null,
  )
  const settings = { applicationId: 'app', bufferedMaxBytes: 1e9, lostChangelogs: 'fail', plan: { stores: [], sources: [] } }
  const options = {
    broker: broker as unknown as BrokerPort,
    clock: world.clock,
    timers: world,
    settings,
    send: () => undefined,
  }
  const restorer = { open: async () => [store] }
  const host = { failed: (error: unknown) => seen.failed.push(error), connected: () => undefined }
  const standby = new Standby(options as unknown as EngineOptions, restorer as unknown as Restorer, host)
  t.after(() => standby.close())
  const topics = { sources: new Map(), changelogs: new Map(), bySource: [] } as unknown as ResolvedTopics
  await standby.open(run, new Map(), topics)
  await world.pass(1000)
  return { world, seen, standby, store }
}

test('the lag grows with the changelog while a lane that has no room takes nothing more', async (t) => {
  const { world, seen, standby } = await following(t)
  assert.equal(seen.fetches, chunksUnderWay)
  assert.equal(standby.progress.lagRecords, 100)
  seen.end = 5300
  await world.pass(1000)
  assert.equal(seen.fetches, chunksUnderWay, 'nothing is read')
  assert.equal(standby.progress.lagRecords, 5300)
  assert.ok(standby.progress.lagMs >= 1000)
  const before = seen.listed
  await world.pass(10_000)
  assert.ok(seen.listed - before <= 21, `asked ${seen.listed - before} times in 10 s`)
  assert.deepEqual(seen.failed, [])
})

test('ends that were asked for before a promotion do not move those that it has fixed', async (t) => {
  const { world, seen, standby, store } = await following(t)
  const drained = standby.drain(Promise.resolve({ partitions: [] }))
  await world.pass(10)
  assert.equal(store.end, 100)
  seen.end = 5300
  await world.pass(2000)
  assert.equal(store.end, 100)
  void drained
})
