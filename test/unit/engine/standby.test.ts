/** What a standby tells of how far it is behind, while its lanes take nothing more. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokerPort, FetchedPartition, FetchRequest } from '../../../src/broker/port.ts'
import { sleep } from '../../../src/base/timers.ts'
import { setBaseOffset } from '../../../src/broker/wire/record-batch.ts'
import type { EngineOptions } from '../../../src/engine/engine-options.ts'
import type { ResolvedTopics } from '../../../src/engine/group/topics.ts'
import type { Restorer } from '../../../src/engine/restore/restorer.ts'
import { Standby } from '../../../src/engine/restore/standby.ts'
import { chunksUnderWay, StoreReplay } from '../../../src/engine/restore/store-replay.ts'
import { Runs } from '../../../src/engine/run.ts'
import { batchOf, World } from './world.ts'

const place = { topic: 'app-rows-changelog', partition: 0 }

/** A standby of one store that nobody takes from, and others that are at their ends; a changelog has two records in each answer, and ends where the test says. */
async function following(t: { after(call: () => void): void }, others = 0) {
  const world = new World()
  const seen = { end: 100, fetches: 0, listed: 0, failed: [] as unknown[] }
  const quiet = async (): Promise<FetchedPartition[]> => {
    await sleep(world, 10)
    return []
  }
  const broker = {
    listOffsets: async (_: unknown, at: string) => {
      if (at === 'stable') seen.listed++
      return [{ ...place, offset: at === 'earliest' ? 0 : seen.end }]
    },
    fetch: async ({ partitions: [asked] }: FetchRequest) => {
      if (asked?.partition !== 0) return quiet()
      seen.fetches++
      const records = batchOf([1, 2])
      setBaseOffset(records, asked?.offset ?? 0)
      return [{ ...place, records, aborted: [], lastStableOffset: seen.end }] as unknown as FetchedPartition[]
    },
    committedOffsets: async () => [],
  }
  const run = new Runs().next()
  const storeOf = (partition: number): StoreReplay =>
    new StoreReplay({ run, store: 'rows', partition, lane: 0 }, { topic: place.topic, topicId: 'id' }, null)
  const store = storeOf(0)
  const more = Array.from({ length: others }, (_, i) => storeOf(i + 1))
  const settings = {
    applicationId: 'app',
    bufferedMaxBytes: 1e9,
    lostChangelogs: 'fail',
    plan: { stores: [], sources: [] },
  }
  const options = {
    broker: broker as unknown as BrokerPort,
    clock: world.clock,
    timers: world,
    settings,
    send: () => undefined,
  }
  const restorer = { open: async () => [store, ...more] }
  const host = { failed: (error: unknown) => seen.failed.push(error), connected: () => undefined }
  const standby = new Standby(options as unknown as EngineOptions, restorer as unknown as Restorer, host)
  t.after(() => standby.close())
  const topics = {
    sources: new Map(),
    changelogs: new Map(),
    bySource: [],
    boundaries: [],
  } as unknown as ResolvedTopics
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

test('the ends of what is not read are asked for twice a second, however often others are read', async (t) => {
  const { world, seen } = await following(t, 1)
  const before = seen.listed
  await world.pass(10_000)
  const asked = seen.listed - before
  assert.ok(asked > 10 && asked <= 21, `asked ${asked} times in 10 s`)
})
