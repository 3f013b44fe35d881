import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { lmdbBackends } from '../../../src/state/backends.ts'
import type { StoreBackend, StoreLifecycle, TimestampedKeyValueStore } from '../../../src/state/contract.ts'
import { sortByKey } from '../../../src/state/key-order.ts'
import { WriteBehind } from '../../../src/state/write-behind.ts'
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
