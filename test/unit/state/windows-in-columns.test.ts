/** Windows in columns: what the disk and the changelog hear of them, and the order in which they are told. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { lmdbBackends } from '../../../src/state/backends.ts'
import type { StoreBackend, StoreLifecycle, WindowsOfStart, WindowStore } from '../../../src/state/contract.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { CellTable } from '../../../src/state/table/cell-table.ts'
import { sortedCells } from '../../../src/state/windows/window-order.ts'
import { WriteBehind } from '../../../src/state/backends/write-behind.ts'
import { checkpointAt } from './backend-suite.ts'
import { open, specOf } from './store-suite.ts'

type Sums = WindowStore<string, number> &
  StoreLifecycle & { windowsOf(windowStart: number): WindowsOfStart | undefined }

const spec = specOf({ kind: 'window', windowSizeMs: 10, retentionMs: 10, tumbling: true })

interface World {
  readonly store: Sums
  readonly behind: WriteBehind
  readonly below: StoreBackend
  now: number
  epoch: number
}

function withStore(use: (world: World) => void): void {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-windows-'))
  const factory = lmdbBackends({ dir, applicationId: 'app' })
  try {
    const below = factory.open('sums', 0)
    const behind = new WriteBehind(below)
    const world: World = { store: open<Sums>(spec, behind, () => world.now), behind, below, now: 0, epoch: 0 }
    use(world)
  } finally {
    factory.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Gives the number of records that the changelog hears of. */
function commit(world: { readonly store: StoreLifecycle; epoch: number }): number {
  const sealed = world.store.seal(++world.epoch)
  const { count } = sealed ?? { count: 0 }
  assert.equal(sealed?.changes.length ?? 0, count)
  if (sealed !== null) world.store.applied(world.epoch, checkpointAt(world.epoch))
  world.store.committed(world.epoch)
  return count
}

const keysOf = (backend: StoreBackend): string[] =>
  [...backend.range(undefined, undefined)].map(([key]) => `${Buffer.from(key.subarray(8, -12))}`)

function told(store: Sums, start: number): unknown[] {
  const windows = store.windowsOf(start)
  assert.ok(windows !== undefined, 'the segment is known to be here')
  const rows: unknown[] = []
  while (windows.next()) rows.push([windows.key, windows.value, windows.timestamp])
  return rows
}

describe('windows in columns', () => {
  test('a window that came and went within one epoch is never told, though others of its segment are', () => {
    let now = 0
    const store = open<Sums>(spec, new MemoryBackend(), () => now)
    const world = { store, epoch: 0 }
    store.put('a', 1, 0, 1)
    assert.equal(commit(world), 1)
    store.put('b', 1, 0, 2)
    store.put('c', 1, 10, 12)
    store.put('d', 1, 20, 22)
    now = 20
    assert.equal(commit(world), 2, 'a is deleted, d is new; b and c leave no trace')
    assert.equal(store.entries(), 1)
    assert.deepEqual(told(store, 20), [['d', 1, 22]])
  })

  test('what came and went between two writes costs the disk nothing', () =>
    withStore((world) => {
      const { store, behind, below } = world
      for (let start = 0; start < 100; start += 10) {
        world.now = start
        for (const key of ['a', 'b']) store.put(key, start, start, start)
        commit(world)
      }
      assert.equal(behind.write(100), 2, 'the last windows, and no deletion')
      assert.equal(behind.written(true), true)
      assert.deepEqual(keysOf(below), ['a', 'b'])
      assert.equal(behind.isHolding, false)
      assert.equal(behind.entries(), 2)
    }))

  test('windows that are written are read, told and deleted from memory, as long as there is room', () =>
    withStore((world) => {
      const { store, behind, below } = world
      for (const key of ['b', 'a']) store.put(key, 1, 0, 5)
      commit(world)
      behind.write(100)
      behind.written(true)
      store.put('a', 2, 0, 6)
      assert.deepEqual(told(store, 0), [
        ['a', 2, 6],
        ['b', 1, 5],
      ])
      world.now = 15
      store.put('a', 1, 15, 15)
      assert.equal(commit(world), 3)
      assert.equal(behind.entries(), 1)
      assert.deepEqual(keysOf(below), ['a', 'b'], 'until the next write')
      behind.writeAll()
      assert.deepEqual(keysOf(below), ['a'])
    }))

  test('what had to leave the memory is read from the disk', () =>
    withStore((world) => {
      const { store, behind } = world
      for (const key of ['b', 'a']) store.put(key, 1, 0, 5)
      commit(world)
      behind.write(100)
      behind.written(true)
      behind.shrink()
      assert.equal(behind.bufferBytes, 0)
      store.put('c', 1, 0, 5)
      assert.equal(store.windowsOf(0), undefined)
      assert.deepEqual(
        [...store.fetchAll(0, 0)].map(([key]) => key),
        ['a', 'b', 'c'],
      )
      assert.equal(store.fetch('b', 0)?.value, 1)
      world.now = 15
      store.put('a', 1, 15, 15)
      commit(world)
      behind.writeAll()
      assert.equal(behind.entries(), 1)
    }))

  test('cells are put into the order of their keys', () => {
    const key = fc.oneof(fc.stringMatching(/^u\d{1,5}$/), fc.stringMatching(/^a{0,30}[ab]{0,3}$/), fc.constant(''))
    const property = fc.property(fc.uniqueArray(key, { maxLength: 200 }), (keys) => {
      const table = new CellTable(8)
      const cells = keys.map((text) => table.add(text))
      assert.deepEqual(
        sortedCells(table, cells).map((cell) => table.keyOf(cell)),
        [...keys].sort(),
      )
    })
    fc.assert(property)
  })
})
