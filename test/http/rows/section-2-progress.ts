import assert from 'node:assert/strict'
import type { StateTransition } from '../../../src/view/view.ts'
import { epochMs, quietPartition, sampleConsumer, sampleWatermarks } from '../support/fake-engine.ts'
import { expectError, expectIso, expectJson, expectKeys } from '../support/expect.ts'
import type { Json } from '../support/client.ts'
import type { Instance, Row } from '../support/subject.ts'

const get = async (instance: Instance, path: string): Promise<Json> => {
  const answer = await instance.ask({ path })
  expectJson(answer)
  return answer.json
}

export const section25: readonly Row[] = [
  {
    rules: ['2.5.fields', '4.state', '3.1.start', 'R46', '2.iso', 'R8'],
    name: '/state tells the current state and the way to it, newest first',
    check: async (instance) => {
      const { current, since, history } = await get(instance, '/state')
      const entries = history as unknown as Array<{ state: string; from: string; at: string }>
      assert.equal(current, 'RUNNING')
      assert.equal(entries[0]?.state, 'RUNNING')
      assert.equal(since, entries[0]?.at)
      const oldest = entries.at(-1)
      assert.equal(oldest?.state, 'STARTING')
      assert.equal(oldest.from, 'CREATED')
      for (const [i, entry] of entries.entries()) {
        assert.match(entry.at, /^\d{4}-\d\d-\d\dT.*Z$/)
        const older = entries[i + 1]
        if (older === undefined) continue
        assert.equal(entry.from, older.state)
        assert.ok(Date.parse(entry.at) >= Date.parse(older.at))
      }
    },
  },
  {
    rules: ['R46'],
    name: 'in CREATED the history is empty',
    when: { state: 'CREATED' },
    check: async (instance) => {
      const { current, history } = await get(instance, '/state')
      assert.equal(current, 'CREATED')
      assert.deepEqual(history, [])
    },
  },
  {
    rules: ['2.5.bounded'],
    name: 'a bounded history is shown as it is',
    given: (engine) => {
      const entry = (i: number): StateTransition => ({
        state: i % 2 === 0 ? 'RUNNING' : 'RESTARTING',
        from: i % 2 === 0 ? 'RESTARTING' : 'RUNNING',
        atMs: epochMs - i * 1000,
      })
      engine.now = { ...engine.now, history: Array.from({ length: 20 }, (_, i) => entry(i)) }
    },
    check: async (instance) => {
      const { history } = await get(instance, '/state')
      assert.equal((history as unknown as unknown[]).length, 20)
    },
  },
]

const partitionFields = [
  'watermarkMs',
  'watermarkIso',
  'idle',
  'lastEventTimeMs',
  'lastEventTimeIso',
  'idlenessTimeoutMs',
  'alignmentGroup',
  'alignmentHeld',
  'driftFromGroupMinMs',
]
const previewFields = ['previewWatermarkMs', 'previewWatermarkIso', 'headHeldSinceMs']

export const section27: readonly Row[] = [
  {
    rules: ['2.7.global', '2.7.groups', '2.7.binding', '2.7.partition', '4.watermarks', '2.iso', 'R41'],
    name: '/watermarks holds every field',
    check: async (instance) => {
      const json = await get(instance, '/watermarks')
      expectKeys(json, ['globalMs', 'globalIso', 'alignmentGroupMins', 'alignmentBinding', 'partitions'])
      expectIso(json, 'global')
      const partitions = Object.entries(json.partitions ?? {})
      assert.ok(partitions.length > 0)
      for (const [key, partition] of partitions) {
        assert.match(key, /^.+:\d+$/)
        expectKeys(partition, partitionFields)
        expectIso(partition, 'watermark')
        expectIso(partition, 'lastEventTime')
        for (const name of previewFields) {
          if (name in partition) assert.notEqual((partition as Json)[name], null, name)
        }
      }
    },
  },
  {
    rules: ['4.watermarks', '7.503'],
    name: '/watermarks is 503 while no partition is registered',
    when: { state: 'STARTING' },
    check: async (instance) => expectError(await instance.ask({ path: '/watermarks' }), 503, /no partitions|not init/),
  },
  {
    rules: ['2.7.groups', '2.7.binding'],
    name: 'without alignment there are no groups and no binding',
    check: async (instance) => {
      const json = await get(instance, '/watermarks')
      assert.deepEqual(json.alignmentGroupMins, {})
      assert.equal(json.alignmentBinding, null)
    },
  },
  {
    rules: ['2.7.binding', 'R40'],
    name: 'a hold that binds is named with its group, partition, laggards and beginning',
    given: (engine) => {
      const held = { ...quietPartition, alignmentGroup: 'feeds', alignmentHeld: true, driftFromGroupMinMs: 90_000 }
      engine.watermarkSnapshot = {
        globalMs: epochMs - 690_000,
        alignmentGroupMins: { feeds: epochMs - 690_000 },
        alignmentBinding: { group: 'feeds', partition: 'fast:0', emptyLaggards: ['slow:0'], sinceMs: epochMs - 5000 },
        partitions: { 'fast:0': held, 'slow:0': { ...held, alignmentHeld: false, driftFromGroupMinMs: 0 } },
      }
    },
    check: async (instance) => {
      const { alignmentBinding, alignmentGroupMins, partitions } = await get(instance, '/watermarks')
      assert.deepEqual(alignmentBinding, {
        group: 'feeds',
        partition: 'fast:0',
        emptyLaggards: ['slow:0'],
        sinceMs: epochMs - 5000,
      })
      assert.deepEqual(alignmentGroupMins, { feeds: epochMs - 690_000 })
      assert.equal(partitions?.['fast:0']?.alignmentHeld, true)
      assert.equal(partitions['fast:0']?.driftFromGroupMinMs, 90_000)
    },
  },
  {
    rules: ['2.7.preview', 'R41', '2.iso'],
    name: 'preview fields are there while the head is held, and gone without a trace otherwise',
    given: (engine) => {
      engine.watermarkSnapshot = {
        ...sampleWatermarks(),
        partitions: {
          'a:0': { ...quietPartition, previewWatermarkMs: epochMs, headHeldSinceMs: epochMs - 10 },
          'b:0': { ...quietPartition, headHeldSinceMs: epochMs - 10 },
          'c:0': quietPartition,
        },
      }
    },
    check: async (instance) => {
      const { partitions } = await get(instance, '/watermarks')
      const a = partitions?.['a:0']
      assert.equal(a?.previewWatermarkMs, epochMs)
      expectIso(a, 'previewWatermark')
      assert.equal(a?.headHeldSinceMs, epochMs - 10)
      assert.ok(!('previewWatermarkMs' in (partitions?.['b:0'] ?? {})))
      assert.deepEqual(Object.keys(partitions?.['c:0'] ?? {}), partitionFields)
    },
  },
  {
    rules: ['R17', 'R24', 'R39', 'R42', 'R40'],
    name: 'what is unknown is null: watermark, last event time, drift, global watermark',
    given: (engine) => {
      const unknown = { ...quietPartition, watermarkMs: null, lastEventTimeMs: null }
      engine.watermarkSnapshot = { ...sampleWatermarks(), globalMs: null, partitions: { 'words:0': unknown } }
    },
    check: async (instance) => {
      const json = await get(instance, '/watermarks')
      assert.equal(json.globalMs, null)
      assert.equal(json.globalIso, null)
      const partition = json.partitions?.['words:0']
      for (const name of [
        'watermarkMs',
        'watermarkIso',
        'lastEventTimeMs',
        'lastEventTimeIso',
        'driftFromGroupMinMs',
      ]) {
        assert.equal(partition?.[name], null, name)
      }
    },
  },
  {
    rules: ['2.7.global'],
    name: 'an instant that no calendar holds does not break the answer',
    given: (engine) => {
      engine.watermarkSnapshot = { ...sampleWatermarks(), globalMs: 9e15 }
    },
    check: async (instance) => {
      const json = await get(instance, '/watermarks')
      assert.equal(json.globalMs, 9e15)
      assert.equal(json.globalIso, null)
    },
  },
]

export const section28: readonly Row[] = [
  {
    rules: ['2.8.lag', '4.offsets', 'R43', '2.8.changelogs'],
    name: '/offsets adds up: lag is end minus committed, totals are sums',
    check: async (instance) => {
      const json = await get(instance, '/offsets')
      let total = 0
      for (const source of json.sources as unknown as Json[]) {
        expectKeys(source, ['topic', 'totalLag', 'partitions'])
        let sum = 0
        for (const at of source.partitions as unknown as Json[]) {
          assert.equal(at.lag, Number(at.logEndOffset) - Number(at.committedOffset))
          assert.ok(Number.isInteger(at.partition))
          sum += Number(at.lag)
        }
        assert.equal(source.totalLag, sum)
        total += sum
      }
      assert.equal(json.totalLag, total)
      for (const changelog of json.changelogs as unknown as Json[]) {
        expectKeys(changelog, ['topic', 'store', 'partitions'])
        for (const at of changelog.partitions as unknown as Json[]) expectKeys(at, ['partition', 'committedOffset'])
      }
    },
  },
  {
    rules: ['2.8.cached'],
    name: '/offsets answers while the broker is out of reach',
    given: (engine) => {
      engine.link = { ...engine.link, connected: false, sinceMs: epochMs - 60_000 }
    },
    check: async (instance) => assert.equal((await get(instance, '/offsets')).totalLag, 60),
  },
  {
    rules: ['2.8.cached'],
    name: '/offsets answers when engine and broker have ended: nothing is asked of them',
    when: { state: 'STOPPED' },
    check: async (instance) => assert.equal((await get(instance, '/offsets')).totalLag, instance.fake ? 60 : 0),
  },
  {
    rules: ['R49'],
    name: 'the virtual topic of a boundary is in the topology views alone',
    check: async (instance) => {
      for (const path of ['/offsets', '/consumer', '/watermarks']) {
        assert.doesNotMatch((await instance.ask({ path })).body, /-repartition"/)
      }
    },
  },
]

export const section29: readonly Row[] = [
  {
    rules: ['2.9.group', '2.9.assignment', '4.consumer', '2.iso', 'R18'],
    name: '/consumer holds every field',
    check: async (instance) => {
      const json = await get(instance, '/consumer')
      expectKeys(json, ['group', 'subscription', 'lastCommitMs', 'lastCommitIso', 'assignment'])
      expectKeys(json.group, ['groupId', 'memberId', 'generationId', 'groupInstanceId'])
      expectIso(json, 'lastCommit')
      const assigned = Object.entries(json.assignment ?? {})
      assert.ok(assigned.length > 0)
      for (const [key, buffer] of assigned) {
        assert.match(key, /^.+:\d+$/)
        assert.deepEqual(Object.keys(buffer as object), ['buffered', 'bufferCapacity', 'paused'])
        assert.equal(typeof (buffer as Json).paused, 'boolean')
      }
    },
  },
  {
    rules: ['4.consumer', '7.503'],
    name: '/consumer is 503 while no partition is assigned',
    when: { state: 'STARTING' },
    check: async (instance) => expectError(await instance.ask({ path: '/consumer' }), 503, /assigned|not init/),
  },
  {
    rules: ['2.9.threshold', '2.9.paused'],
    name: 'a buffer over its threshold is shown as it is, paused',
    given: (engine) => {
      const full = { buffered: 1999, bufferCapacity: 1000, paused: true }
      engine.consumerSnapshot = { ...sampleConsumer(), assignment: { 'words:0': full } }
    },
    check: async (instance) => {
      const { assignment } = await get(instance, '/consumer')
      assert.deepEqual(assignment?.['words:0'], { buffered: 1999, bufferCapacity: 1000, paused: true })
    },
  },
  {
    rules: ['R24', 'R43'],
    name: 'before the first commit its time is null',
    given: (engine) => {
      engine.consumerSnapshot = { ...sampleConsumer(), lastCommitMs: null }
    },
    check: async (instance) => {
      const json = await get(instance, '/consumer')
      assert.equal(json.lastCommitMs, null)
      assert.equal(json.lastCommitIso, null)
    },
  },
]

const restoring: Row[] = [
  {
    rules: ['2.9.paused', '2.9.assignment', '3.1.health'],
    name: 'while stores are restored the partitions are assigned and paused, with nothing buffered',
    when: { state: 'RESTORING' },
    check: async (instance) => {
      const buffers = Object.values((await get(instance, '/consumer')).assignment ?? {}) as Json[]
      assert.ok(buffers.length > 0)
      for (const buffer of buffers) {
        assert.deepEqual(buffer, { buffered: 0, bufferCapacity: 1000, paused: true })
      }
    },
  },
  {
    rules: ['2.9.paused', '2.8.cached', '4.offsets', '4.consumer', '4.watermarks'],
    name: 'during a restart in place what was reached is shown, and the partitions are assigned and paused',
    when: { state: 'RESTARTING' },
    check: async (instance) => {
      const { partitions, alignmentBinding } = await get(instance, '/watermarks')
      assert.ok(Object.keys(partitions ?? {}).length > 0)
      assert.equal(alignmentBinding, null)
      const { assignment } = await get(instance, '/consumer')
      assert.deepEqual(Object.keys(assignment ?? {}).sort(), Object.keys(partitions ?? {}).sort())
      for (const buffer of Object.values(assignment ?? {}) as Json[]) assert.equal(buffer.paused, true)
      const { sources } = await get(instance, '/offsets')
      for (const source of sources as unknown as Json[]) {
        for (const at of source.partitions as unknown as Json[]) {
          assert.equal(at.lag, Number(at.logEndOffset) - Number(at.committedOffset))
        }
      }
    },
  },
  {
    rules: ['2.7.partition', '2.8.lag', 'R43'],
    name: 'while stores are restored watermarks and offsets are those of the last commit',
    when: { state: 'RESTORING' },
    check: async (instance) => {
      const { partitions } = await get(instance, '/watermarks')
      for (const partition of Object.values(partitions ?? {})) expectKeys(partition, partitionFields)
      const { sources } = await get(instance, '/offsets')
      const [source] = sources as unknown as [Json]
      for (const at of source.partitions as unknown as Json[]) {
        assert.equal(at.lag, Number(at.logEndOffset) - Number(at.committedOffset))
        assert.ok(Number(at.committedOffset) > 0)
      }
    },
  },
  {
    rules: ['2.5.fields'],
    name: '/state tells what is left to restore',
    when: { state: 'RESTORING' },
    check: async (instance) => {
      const { restore } = await get(instance, '/state')
      for (const store of restore as unknown as Json[]) {
        expectKeys(store, ['store', 'partition', 'restoredRecords', 'remainingRecords'])
      }
    },
  },
]

const pauses: ReadonlyArray<readonly [path: '/pause' | '/unpause', states: readonly string[]]> = [
  ['/pause', ['CREATED', 'STARTING', 'RESTORING', 'DRAINING', 'PAUSED', 'RESTARTING', 'STOPPING', 'STOPPED', 'FAILED']],
  ['/unpause', ['CREATED', 'STARTING', 'RESTORING', 'RUNNING', 'RESTARTING', 'STOPPING', 'STOPPED', 'FAILED']],
]

export const section210: readonly Row[] = [
  ...restoring,
  {
    rules: ['2.10.result', '4.pause', '4.unpause', '3.1.pause', '3.1.unpause', 'R9', 'R44'],
    name: 'pause drains, unpause resumes',
    check: async (instance) => {
      const paused = await instance.ask({ method: 'POST', path: '/pause' })
      expectJson(paused)
      assert.deepEqual(paused.json, { status: 'pausing', state: 'DRAINING' })
      assert.match(String((await get(instance, '/state')).current), /^(DRAINING|PAUSED)$/)
      const resumed = await instance.ask({ method: 'POST', path: '/unpause' })
      expectJson(resumed)
      assert.deepEqual(resumed.json, { status: 'resumed', state: 'RUNNING' })
      assert.equal((await get(instance, '/state')).current, 'RUNNING')
    },
  },
  ...pauses.flatMap(([path, states]) =>
    states.map(
      (state): Row => ({
        rules: ['R9', '7.400', '4.pause', '4.unpause'],
        name: `${path} in ${state} is 400 and says which states allow it`,
        when: { state: state as 'CREATED' },
        check: async (instance) => {
          const answer = await instance.ask({ method: 'POST', path })
          expectError(answer, 400, new RegExp(`\\b${state}\\b`))
          assert.match(String(answer.json.error), path === '/pause' ? /RUNNING/ : /DRAINING.*PAUSED/)
        },
      }),
    ),
  ),
]
