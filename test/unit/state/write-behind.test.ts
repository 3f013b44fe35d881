import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { lmdbBackends } from '../../../src/state/backends.ts'
import type {
  SessionStore,
  StoreBackend,
  StoreLifecycle,
  StoreSpec,
  TimestampedKeyValueStore,
  WindowStore,
} from '../../../src/state/contract.ts'
import { KeyFilter } from '../../../src/state/backends/key-filter.ts'
import { sortByKey } from '../../../src/state/backends/key-order.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { hashOf } from '../../../src/state/table/cell-table.ts'
import { WriteBehind } from '../../../src/state/backends/write-behind.ts'
import { checkpointAt } from './backend-suite.ts'
import { open, specOf } from './store-suite.ts'

type Counts = TimestampedKeyValueStore<string, number> & StoreLifecycle

function withBackend(use: (backend: StoreBackend) => void): void {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-behind-'))
  const factory = lmdbBackends({ dir, applicationId: 'app' })
  try {
    use(factory.open('counts', 0))
  } finally {
    factory.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

function commit(store: Counts, epoch: number, rows: Readonly<Record<string, number | null>>): void {
  for (const [key, value] of Object.entries(rows)) store.put(key, value, epoch)
  store.seal(epoch)
  store.applied(epoch, checkpointAt(epoch * 10))
}

const keysOf = (backend: StoreBackend): string[] =>
  [...backend.range(undefined, undefined)].map(([key]) => `${Buffer.from(key)}`)

type Put = (store: StoreLifecycle, value: number | null) => void

const stores: ReadonlyArray<readonly [StoreSpec, Put]> = [
  [specOf({}), (store, value) => (store as Counts).put('k', value, 7)],
  [
    specOf({ kind: 'window', windowSizeMs: 10, retentionMs: 1000 }),
    (store, value) => (store as WindowStore<string, number> & StoreLifecycle).put('k', value, 5, 7),
  ],
  [
    specOf({ kind: 'session', timestamped: false, retentionMs: 1000 }),
    (store, value) => (store as SessionStore<string, number> & StoreLifecycle).put('k', 5, 7, value),
  ],
]

for (const [spec, put] of stores) {
  test(`about how many rows a ${spec.kind} store has is known before anything is written`, () =>
    withBackend((below) => {
      const behind = new WriteBehind(below)
      const store = open<StoreLifecycle>(spec, behind)
      put(store, 1)
      store.seal(1)
      store.applied(1, checkpointAt(1))
      assert.deepEqual([behind.entriesAbout(), behind.entries(), behind.entriesAbout()], [1, 1, 1])
    }))

  test(`what an epoch changes in a ${spec.kind} store is shown beside what it was, wherever that lies`, () =>
    withBackend((below) => {
      const behind = new WriteBehind(below)
      const store = open<StoreLifecycle>(spec, behind)
      const changed = (): unknown[] => {
        const rows = store.changedRows()
        const found: unknown[] = []
        while (rows.next()) found.push([rows.key, rows.before, rows.value])
        return found
      }
      const settle = (epoch: number): void => {
        store.seal(epoch)
        store.applied(epoch, checkpointAt(epoch))
      }
      put(store, 1)
      assert.deepEqual(changed(), [['k', null, 1]])
      put(store, null)
      assert.deepEqual(changed(), [], 'it came and went')
      put(store, 1)
      settle(1)
      assert.deepEqual(changed(), [])
      behind.writeAll()
      put(store, 2)
      assert.deepEqual(changed(), [['k', 1, 2]], 'the backend alone has what it was')
      settle(2)
      put(store, 3)
      assert.deepEqual(changed(), [['k', 2, 3]], 'it is still to be written')
      behind.writeAll()
      assert.deepEqual(changed(), [['k', 2, 3]], 'it was written behind the change')
      put(store, null)
      assert.deepEqual(changed(), [['k', 2, null]])
      settle(3)
      put(store, 4)
      behind.writeAll()
      assert.deepEqual(changed(), [['k', null, 4]], 'its deletion was written behind the change')
    }))
}

describe('a backend that is written behind', () => {
  test('has nothing before it is written, and then everything, at the newest commit', () =>
    withBackend((below) => {
      const behind = new WriteBehind(below)
      const store = open<Counts>(specOf({}), behind)
      commit(store, 1, { a: 1, b: 1 })
      commit(store, 2, { b: 2, c: 2 })
      assert.deepEqual(keysOf(below), [])
      assert.equal(below.checkpoint(), undefined)
      assert.deepEqual(behind.checkpoint(), checkpointAt(20))
      assert.deepEqual(keysOf(behind), ['a', 'b', 'c'])
      assert.equal(behind.write(100), 3, 'each row once')
      assert.equal(behind.written(), true)
      assert.deepEqual(below.checkpoint(), checkpointAt(20))
      assert.deepEqual(keysOf(below), ['a', 'b', 'c'])
      assert.equal(behind.isHolding, false)
      assert.equal(behind.heldBytes, 0)
      assert.equal(store.get('b')?.value, 2)
    }))

  test('says between two steps that there are rows of commits that are not complete', () =>
    withBackend((below) => {
      const behind = new WriteBehind(below)
      const store = open<Counts>(specOf({}), behind)
      commit(store, 1, { a: 1, b: 1, c: 1 })
      behind.writeAll()
      commit(store, 2, { a: 2, b: 2, c: 2 })
      behind.write(1)
      assert.equal(behind.written(), false)
      assert.deepEqual(below.checkpoint(), { ...checkpointAt(10), commitId: checkpointAt(20).commitId, ahead: 20 })
      // A commit that comes meanwhile is in part written with those before it.
      commit(store, 3, { b: 3, d: 3 })
      behind.write(100)
      assert.equal(behind.written(), true)
      assert.deepEqual(below.checkpoint(), { ...checkpointAt(20), commitId: checkpointAt(30).commitId, ahead: 30 })
      assert.equal(behind.isHolding, true, 'd is still to be written')
      assert.deepEqual(keysOf(below), ['a', 'b', 'c'])
      behind.writeAll()
      assert.deepEqual(below.checkpoint(), checkpointAt(30))
      assert.deepEqual(keysOf(below), ['a', 'b', 'c', 'd'])
    }))

  test('keeps what it holds through a restart in place, and nothing that was not committed', () =>
    withBackend((below) => {
      const behind = new WriteBehind(below)
      const first = open<Counts>(specOf({}), behind)
      commit(first, 1, { a: 1, b: 1 })
      behind.writeAll()
      commit(first, 2, { b: null, c: 2 })
      first.put('d', 3, 3)
      first.seal(3)
      first.put('e', 4, 4)
      first.detach()
      const second = open<Counts>(specOf({}), behind)
      assert.deepEqual(
        [...second.all()].map(([key]) => key),
        ['a', 'c'],
      )
      assert.equal(behind.entries(), 2)
      behind.writeAll()
      assert.deepEqual(keysOf(below), ['a', 'c'])
    }))

  test('drops what it holds for files that were set aside: it would be a part of a store, taken for the whole', () =>
    withBackend((below) => {
      let incarnation = 0
      const replaced = new Proxy(below, {
        get: (target, property) => {
          if (property === 'incarnation') return incarnation
          const value = Reflect.get(target, property, target) as unknown
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
      const behind = new WriteBehind(replaced)
      commit(open<Counts>(specOf({}), behind), 1, { a: 1 })
      incarnation++
      behind.writeAll()
      assert.deepEqual(keysOf(below), [])
      assert.equal(behind.checkpoint(), undefined)
    }))

  test('drops as well what came between the moment at which files were set aside and that at which they are opened anew', () =>
    withBackend((below) => {
      let [incarnation, isLost] = [0, false]
      const replaced = new Proxy(below, {
        get: (target, property) => {
          if (property === 'incarnation') return incarnation
          if (property === 'isLost') return isLost
          if (property === 'opensAnew') return () => (isLost = false)
          const value = Reflect.get(target, property, target) as unknown
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
      const behind = new WriteBehind(replaced)
      const store = open<Counts>(specOf({}), behind)
      commit(store, 1, { a: 1 })
      ;[incarnation, isLost] = [1, true]
      behind.write(Number.POSITIVE_INFINITY)
      commit(store, 2, { b: 1 })
      behind.opensAnew()
      behind.writeAll()
      assert.deepEqual(keysOf(below), [])
      assert.equal(behind.checkpoint(), undefined)
    }))

  test('counts its rows, also those of which nobody looked whether they are new', () =>
    withBackend((below) => {
      const behind = new WriteBehind(below)
      const store = open<Counts>(specOf({}), behind)
      commit(store, 1, { a: 1, b: 1 })
      behind.writeAll()
      commit(store, 2, { a: 2, c: 2 })
      store.get('d')
      commit(store, 3, { b: null, d: 3 })
      assert.equal(behind.entries(), 3)
      behind.writeAll()
      assert.equal(behind.entries(), 3)
      assert.equal(below.entries(), 3)
    }))
})

/** Rows go from memory, are written, come back: whoever says that the backend has no such row must be right. */
test('rows that left memory are found again, whatever was written, dropped, taken back and opened anew', () => {
  type Step = { readonly do: string; readonly key: string; readonly value: number }
  const step: fc.Arbitrary<Step> = fc.record({
    do: fc.constantFrom('put', 'put', 'put', 'read', 'read', 'delete', 'commit', 'commit', 'abort', 'write', 'keep'),
    key: fc.nat(60).map((n) => `key-${n}`),
    value: fc.nat(1000),
  })
  const rare = fc.constantFrom('shrink', 'reopen', 'wipe', 'look').map((what) => ({ do: what, key: '', value: 0 }))
  fc.assert(
    fc.property(
      fc.array(fc.oneof({ arbitrary: step, weight: 20 }, { arbitrary: rare, weight: 1 }), {
        maxLength: 300,
        size: 'max',
      }),
      (steps) => {
        const below = new MemoryBackend()
        let behind = new WriteBehind(below)
        let store = open<Counts>(specOf({}), behind)
        let epoch = 0
        let top = new Map<string, number>()
        let committed = new Map<string, number>()
        const commitAll = (): void => {
          store.seal(++epoch)
          store.applied(epoch, checkpointAt(epoch))
          committed = new Map(top)
        }
        for (const { do: what, key, value } of steps) {
          if (what === 'put') {
            store.put(key, value, 1)
            top.set(key, value)
          } else if (what === 'delete') {
            store.put(key, null, 1)
            top.delete(key)
          } else if (what === 'read') assert.equal(store.get(key)?.value, top.get(key), key)
          else if (what === 'commit') commitAll()
          else if (what === 'abort') {
            store.detach()
            store = open<Counts>(specOf({}), behind)
            top = new Map(committed)
          } else if (what === 'write' || what === 'keep') {
            behind.write(1 + (value % 20))
            behind.written(what === 'keep')
          } else if (what === 'shrink') behind.shrink()
          else if (what === 'wipe') {
            store.wipe()
            top = new Map()
            committed = new Map()
          } else if (what === 'reopen') {
            store.detach()
            behind.writeAll()
            behind = new WriteBehind(below)
            store = open<Counts>(specOf({}), behind)
            top = new Map(committed)
          } else if (what === 'look') {
            assert.deepEqual(new Map([...store.all()].map(([at, row]) => [at, row.value])), new Map([...top].sort()))
          }
        }
        commitAll()
        for (let n = 0; n <= 60; n++) assert.equal(store.get(`key-${n}`)?.value, top.get(`key-${n}`))
        assert.equal(behind.entries(), top.size)
      },
    ),
    { numRuns: 200 },
  )
})

test('a filter of keys knows every key that it was told of, and few others', () => {
  const filter = new KeyFilter()
  const count = 100_000
  for (let i = 0; i < count; i++) filter.add(hashOf(`user-${i}`))
  for (let i = 0; i < count; i++) assert.ok(filter.has(hashOf(`user-${i}`)), `user-${i}`)
  let taken = 0
  for (let i = count; i < 2 * count; i++) if (filter.has(hashOf(`user-${i}`))) taken++
  assert.ok(taken < count / 25, `${taken} of ${count} others are taken for one of them`)
})

test('keys are put in order, but for short runs of those that begin alike', () => {
  const someKey = fc.string({ unit: fc.constantFrom('a', 'b', '\0', 'ÿ'), maxLength: 9 })
  fc.assert(
    fc.property(fc.uniqueArray(someKey, { maxLength: 300 }), (keys) => {
      const [sorted, items] = [[...keys], [...keys]]
      sortByKey(sorted, items)
      assert.deepEqual(items, sorted, 'items go with their keys')
      const places = new Map([...keys].sort().map((key, i) => [key, i]))
      sorted.forEach((key, i) => {
        assert.ok(Math.abs((places.get(key) as number) - i) <= 16, `${JSON.stringify(key)} is at ${i}`)
      })
    }),
  )
})
