import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { serdes } from '../../../src/serde/index.ts'
import type {
  KeyValueStore,
  SessionStore,
  TimestampedKeyValueStore,
  VersionedStore,
  WindowStore,
} from '../../../src/state/contract.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { checkpointAt } from './backend-suite.ts'
import { open, specOf } from './store-suite.ts'

/** Seals and applies. */
function commit(store: { seal(epoch: number): unknown; applied(epoch: number, c: never): void }, epoch: number): void {
  if (store.seal(epoch) !== null) store.applied(epoch, checkpointAt(epoch) as never)
}

describe('retention', () => {
  test('a window store forgets windows that start a retention before its newest one', () => {
    let now = 0
    const spec = specOf({ kind: 'window', windowSizeMs: 10, retentionMs: 20 })
    const store = open<WindowStore<string, number>>(spec, new MemoryBackend(), () => now)
    for (const start of [0, 10, 20, 30]) store.put('a', start, start, start)
    now = 31
    commit(store, 1)
    assert.deepEqual(
      [...store.all()].map(([, start]) => start),
      [20, 30],
    )
    store.put('a', 99, 10, 10)
    assert.equal(store.fetch('a', 10), undefined)
    store.put('b', 1, 30, 30)
    commit(store, 2)
    store.put('b', 2, 30, 30)
    commit(store, 3)
    assert.equal(store.entries(), 3, 'the backend loses them as well')
  })

  test('no window goes before the timers of its watermark have fired, however far the data ran ahead', () => {
    let now = 15
    const spec = specOf({ kind: 'window', windowSizeMs: 10, retentionMs: 20 })
    const store = open<WindowStore<string, number>>(spec, new MemoryBackend(), () => now)
    store.put('a', 1, 0, 0)
    store.put('a', 2, 1_000_000, 0)
    commit(store, 1)
    assert.equal(store.fetch('a', 0)?.value, 1)
    now = 2_000_000
    assert.equal(store.fetch('a', 0), undefined, 'it is gone at once, not with the next commit')
    store.put('a', 3, 0, 0)
    commit(store, 2)
    assert.equal(store.entries(), 1, 'nor is it put again')
  })

  test('what an aborted epoch moved is moved back, so that its replay is not too late', () => {
    let now = 0
    const spec = specOf({ kind: 'window', windowSizeMs: 10, retentionMs: 20 })
    const store = open<WindowStore<string, number>>(spec, new MemoryBackend(), () => now)
    store.put('a', 1, 0, 0)
    commit(store, 1)
    store.put('a', 1, 1000, 0)
    now = 1000
    store.seal(2)
    assert.equal(store.fetch('a', 0), undefined)
    store.discard()
    now = 0
    assert.equal(store.fetch('a', 0)?.value, 1)
    store.put('b', 1, 0, 0)
    assert.equal(store.fetch('b', 0)?.value, 1)
    const versioned = open<VersionedStore<string, number>>(
      specOf({ kind: 'versioned', timestamped: false, retentionMs: 20 }),
      new MemoryBackend(),
    )
    versioned.put('a', 1, 0)
    commit(versioned, 1)
    versioned.put('a', 1, 1000)
    versioned.discard()
    assert.deepEqual(versioned.put('a', 2, 5), { validTo: undefined })
  })

  test('a session store forgets sessions that end a retention before its newest one', () => {
    let now = 0
    const spec = specOf({ kind: 'session', timestamped: false, retentionMs: 100 })
    const store = open<SessionStore<string, number>>(spec, new MemoryBackend(), () => now)
    store.put('a', 0, 10, 1)
    store.put('a', 200, 210, 2)
    now = 210
    commit(store, 1)
    assert.deepEqual([...store.all()], [['a', 200, 210, 2]])
    store.put('a', 211, 212, 3)
    commit(store, 2)
    store.put('a', 211, 212, 4)
    commit(store, 3)
    assert.equal(store.entries(), 2)
  })

  test('a versioned store refuses what is older than its history and forgets what was valid before it', () => {
    const spec = specOf({ kind: 'versioned', timestamped: false, retentionMs: 100 })
    let now = 0
    const store = open<VersionedStore<string, number>>(spec, new MemoryBackend(), () => now)
    store.put('a', 1, 0)
    store.put('a', 2, 50)
    store.put('b', 1, 120)
    assert.equal(store.put('a', 9, 19), null)
    assert.deepEqual(store.put('a', 3, 20), { validTo: 50 })
    assert.equal(store.get('a', 10), undefined, 'before the history')
    assert.deepEqual(store.get('a', 30), { value: 3, validFrom: 20, validTo: 50 })
    store.put('b', 2, 1000)
    assert.deepEqual(store.get('a'), { value: 2, validFrom: 50 }, 'the newest version stays')
    assert.deepEqual(store.get('a', 60), { value: 2, validFrom: 50 })
    assert.equal(store.get('a', 30), undefined)
    commit(store, 1)
    assert.equal(store.entries(), 5, 'a record that is still to come may go by an older time')
    for (let epoch = 2; epoch < 5; epoch++) {
      now = 999 + epoch
      store.put('b', epoch, now)
      commit(store, epoch)
    }
    assert.equal(store.entries(), 6, 'a: the newest; b: four, and the one valid when the history begins')
  })

  test('an entry lives for its time and no longer, and the changelog hears of its end', () => {
    let now = 0
    const spec = specOf({ ttlMs: 100 })
    const store = open<TimestampedKeyValueStore<string, number>>(spec, new MemoryBackend(), () => now)
    store.put('a', 1, 10)
    store.put('b', 2, 50)
    commit(store, 1)
    now = 109
    assert.equal(store.get('a')?.value, 1)
    now = 110
    assert.equal(store.get('a'), undefined)
    assert.deepEqual(
      [...store.all()].map(([key]) => key),
      ['b'],
    )
    store.put('a', 3, 110)
    assert.equal(store.get('a')?.value, 3, 'put again, it lives again')
    commit(store, 2)
    now = 300
    const sealed = store.seal(3)
    assert.deepEqual(sealed?.changes.map(([key, value]) => [Buffer.from(key).toString(), value]).sort(), [
      ['a', null],
      ['b', null],
    ])
    store.applied(3, checkpointAt(3))
    assert.equal(store.entries(), 0)
  })

  test('a walk shows no entry that comes in the place of one whose time is over', () => {
    let now = 0
    const store = open<TimestampedKeyValueStore<string, number>>(specOf({ ttlMs: 100 }), new MemoryBackend(), () => now)
    store.put('b', 1, 10)
    store.put('a', 2, 60)
    now = 110
    const seen: string[] = []
    for (const [key] of store.all()) {
      // Nothing has removed the former `b` yet.
      store.put('b', 3, 110)
      seen.push(key)
    }
    assert.deepEqual([seen, store.get('b')?.value], [['a'], 3])
  })

  test('a store without timestamps counts its entries’ time from when they were put', () => {
    let now = 5
    const spec = specOf({ ttlMs: 100, timestamped: false })
    const store = open<KeyValueStore<string, number>>(spec, new MemoryBackend(), () => now)
    store.put('a', 1)
    now = 104
    assert.equal(store.get('a'), 1)
    now = 105
    assert.equal(store.get('a'), undefined)
    assert.equal(store.putIfAbsent('a', 2), undefined)
    assert.equal(store.get('a'), 2)
  })

  test('a long series of keys never keeps more than a time’s worth of entries', () => {
    let now = 0
    const spec = specOf({ ttlMs: 1000, valueSerde: serdes.long as never })
    const store = open<TimestampedKeyValueStore<string, number>>(spec, new MemoryBackend(), () => now)
    for (let i = 0; i < 20_000; i++) {
      now = i
      store.put(`key-${i}`, i, i)
      if (i % 200 === 199) commit(store, i)
    }
    assert.ok(store.entries() < 2500, `${store.entries()} entries are left`)
  })
})
