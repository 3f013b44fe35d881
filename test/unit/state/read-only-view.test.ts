import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TimestampedKeyValueStore, WindowStore } from '../../../src/state/contract.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { type ReadOnlyWindowStore, readOnlyView } from '../../../src/state/read-only-view.ts'
import { checkpointAt } from './backend-suite.ts'
import { open, specOf } from './store-suite.ts'

describe('a read-only view', () => {
  test('shows what is committed and nothing that a failed commit would take back', () => {
    const store = open<TimestampedKeyValueStore<string, number>>(specOf({}), new MemoryBackend())
    const view = readOnlyView(store as never) as TimestampedKeyValueStore<string, number>
    store.put('a', 1, 1)
    store.put('b', 1, 1)
    assert.equal(view.get('a'), undefined)
    store.seal(1)
    store.put('a', 2, 2)
    assert.deepEqual([...view.all()], [])
    store.applied(1, checkpointAt(1))
    assert.deepEqual(view.get('a'), { value: 1, timestamp: 1 })
    store.put('b', null, 3)
    store.seal(2)
    assert.deepEqual(
      [...view.range('a', 'b')].map(([key, row]) => [key, row.value]),
      [
        ['a', 1],
        ['b', 1],
      ],
    )
    store.discard()
    assert.equal(view.get('b')?.value, 1)
  })

  test('refuses to be written', () => {
    const store = open<TimestampedKeyValueStore<string, number>>(specOf({}), new MemoryBackend())
    store.put('a', 1, 1)
    store.seal(1)
    store.applied(1, checkpointAt(1))
    const view = readOnlyView(store as never) as TimestampedKeyValueStore<string, number>
    assert.throws(() => view.put('a', 2, 2), { code: 'USAGE' })
    assert.throws(() => view.put('a', null, 2), { code: 'USAGE' })
    assert.equal(store.get('a')?.value, 1)
  })

  test('leaves out windows that the store has forgotten', () => {
    let now = 0
    const spec = specOf({ kind: 'window', windowSizeMs: 10, retentionMs: 20 })
    const store = open<WindowStore<string, number>>(spec, new MemoryBackend(), () => now)
    store.put('a', 1, 0, 0)
    store.put('a', 2, 40, 40)
    now = 40
    store.seal(1)
    store.applied(1, checkpointAt(1))
    const view = readOnlyView(store as never) as ReadOnlyWindowStore<string, number>
    assert.deepEqual(
      [...view.fetchRange('a', 0, 100)].map(([start]) => start),
      [40],
    )
  })
})

test('a store that opens over rows of one before it sees them all', () => {
  const backend = new MemoryBackend()
  const before = open<TimestampedKeyValueStore<string, number>>(specOf({}), backend)
  before.put('a', 1, 1)
  before.put('b', 2, 2)
  before.seal(1)
  before.applied(1, checkpointAt(1))
  before.put('c', 3, 3)
  before.detach()
  const after = open<TimestampedKeyValueStore<string, number>>(specOf({}), backend)
  assert.deepEqual(
    [...after.all()].map(([key]) => key),
    ['a', 'b'],
  )
  assert.throws(() => before.put('d', 4, 4), /view|reading/)
})
