import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { serdes } from '../../../src/serde/index.ts'
import { lmdbBackends } from '../../../src/state/backends.ts'
import { changelogConfig, changelogTopic, restoreEntry } from '../../../src/state/rows/changelog.ts'
import type { KeyValueStore, StoreSpec, TimestampedKeyValueStore, WindowStore } from '../../../src/state/contract.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { SortedKeys } from '../../../src/state/rows/sorted-keys.ts'
import { checkpointAt } from './backend-suite.ts'
import { open, specOf } from './store-suite.ts'

type Cart = { items: string[] }

describe('a row', () => {
  test('is not changed by changing the object that was put, or one that was read', () => {
    const store = open<KeyValueStore<string, Cart>>(specOf({ timestamped: false }), new MemoryBackend())
    const cart = { items: ['a'] }
    store.put('k', cart)
    cart.items.push('b')
    assert.deepEqual(store.get('k'), { items: ['a'] })
    store.get('k')?.items.push('c')
    assert.deepEqual(store.get('k'), { items: ['a'] })
    store.seal(1)
    store.applied(1, checkpointAt(1))
    store.get('k')?.items.push('d')
    assert.deepEqual(store.get('k'), { items: ['a'] })
  })

  test('keeps bytes of its own under a serde that gives away its buffer', () => {
    const scratch = new Uint8Array(1)
    const valueSerde = {
      name: 'scratch',
      serialize(value: number) {
        scratch[0] = value
        return scratch
      },
      deserialize: (bytes: Uint8Array) => bytes[0],
    }
    const spec = specOf({ timestamped: false, valueSerde: valueSerde as never })
    const store = open<KeyValueStore<string, number>>(spec, new MemoryBackend())
    store.put('a', 1)
    store.put('b', 2)
    store.put('a', 3)
    assert.deepEqual(
      [...store.all()],
      [
        ['a', 3],
        ['b', 2],
      ],
    )
  })

  test('that its serde refuses leaves the store as it was', () => {
    const spec = specOf({ valueSerde: serdes.int32 as never })
    const store = open<TimestampedKeyValueStore<string, number>>(spec, new MemoryBackend())
    store.put('a', 1, 1)
    assert.throws(() => store.put('a', 1.5, 2))
    assert.throws(() => store.put('b', 1.5, 2))
    assert.deepEqual(store.get('a'), { value: 1, timestamp: 1 })
    assert.equal(store.get('b'), undefined)
    assert.equal(store.seal(1)?.count, 1)
  })

  test('with a key that the backend cannot take is refused when it is put', () => {
    const dir = mkdtempSync(join(tmpdir(), 'millrace-rows-'))
    const factory = lmdbBackends({ dir, applicationId: 'app' })
    const store = open<KeyValueStore<string, number>>(specOf({ timestamped: false }), factory.open('s', 0))
    store.put('k'.repeat(1977), 1)
    assert.throws(() => store.put('k'.repeat(1978), 1), { code: 'PROCESSING_FAILED', message: /1978 bytes/ })
    store.seal(1)
    store.applied(1, checkpointAt(1))
    assert.equal(store.get('k'.repeat(1977)), 1)
    assert.equal(store.get('k'.repeat(5000)), undefined)
    factory.close()
    rmSync(dir, { recursive: true, force: true })
  })

  test('may be deleted, and others added, while the rows are walked', () => {
    const store = open<KeyValueStore<string, number>>(specOf({ timestamped: false }), new MemoryBackend())
    for (let i = 0; i < 500; i++) store.put(`k${i}`, i)
    store.seal(1)
    store.applied(1, checkpointAt(1))
    let seen = 0
    for (const [key, value] of store.all()) {
      seen++
      store.delete(key)
      store.put(`${key}x`, value)
    }
    assert.equal(seen, 500)
    assert.equal([...store.all()].length, 500)
  })
})

test('a store without a changelog takes its sealed changes for committed when the next epoch is sealed', () => {
  const backend = new MemoryBackend()
  const store = open<KeyValueStore<string, number>>(specOf({ timestamped: false, changelog: false }), backend)
  for (let epoch = 1; epoch <= 3; epoch++) {
    store.put('k', epoch)
    store.seal(epoch)
  }
  assert.equal(Buffer.from(backend.get(Buffer.from('k')) as Uint8Array).toString(), '2')
  store.discard()
  assert.equal(store.get('k'), 2)
})

describe('the changelog', () => {
  test('of a window store has Kafka Streams’ keys: key, start, sequence number', () => {
    const spec = specOf({ kind: 'window', windowSizeMs: 10, retentionMs: 100, valueSerde: serdes.count as never })
    const store = open<WindowStore<string, number>>(spec, new MemoryBackend())
    store.put('k', 7, 258, 999)
    const sealed = store.seal(1)
    const [[key, value] = []] = sealed?.changes ?? []
    assert.equal(Buffer.from(key as Uint8Array).toString('hex'), '6b000000000000010200000000')
    assert.equal(Buffer.from(value as Uint8Array).toString('hex'), '0000000000000007')
    assert.deepEqual(sealed?.timestamps, [999])
  })

  test('is named after the application and the store, unless a topic of the source serves', () => {
    assert.equal(changelogTopic('app', specOf({ name: 'counts' })), 'app-counts-changelog')
    assert.equal(changelogTopic('app', specOf({ changelogTopic: 'users' })), 'users')
  })

  test('is compacted and never cut off by time: its records may be of years ago', () => {
    const config = (over: Partial<StoreSpec>) => changelogConfig(specOf(over))
    assert.equal(config({})['cleanup.policy'], 'compact')
    for (const kind of ['window', 'session'] as const) {
      assert.equal(config({ kind, retentionMs: 1000 })['cleanup.policy'], 'compact')
      assert.equal(config({ kind, retentionMs: 1000 })['retention.ms'], undefined)
    }
    assert.equal(config({ kind: 'versioned', retentionMs: 1000 })['min.compaction.lag.ms'], String(1000 + 86_400_000))
  })

  test('with a record that no such store wrote is refused by name', () => {
    const record = { key: Uint8Array.of(1), value: null, timestamp: 0 }
    assert.throws(() => restoreEntry(specOf({ kind: 'window' }), record), { code: 'STORE_CORRUPT', message: /'store'/ })
  })
})

describe('sorted keys', () => {
  test('agree with a sorted array under many additions and removals', () => {
    const property = fc.property(
      fc.array(fc.tuple(fc.nat(3000), fc.boolean()), { minLength: 1500, maxLength: 3000 }),
      (steps) => {
        const sorted = new SortedKeys()
        const model = new Set<string>()
        for (const [n, add] of steps) {
          const key = String(n)
          if (add && !model.has(key)) sorted.add(key)
          if (add) model.add(key)
          else if (model.delete(key)) sorted.delete(key)
        }
        const expected = [...model].sort()
        assert.deepEqual([...sorted.range(undefined, undefined)], expected)
        const within = expected.filter((key) => key >= '15' && key < '27')
        assert.deepEqual([...sorted.range('15', '27')], within)
        assert.deepEqual([...sorted.range('15', '27', true)], within.reverse())
      },
    )
    fc.assert(property, { numRuns: 20 })
  })
})
