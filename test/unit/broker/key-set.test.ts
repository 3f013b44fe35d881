import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { hashOf, KeySet } from '../../../src/broker/embedded/core/key-set.ts'

const text = (key: string): Uint8Array => Buffer.from(key, 'latin1')

describe('the set of keys that compaction keeps', () => {
  test('holds what was added and nothing else, whatever the hashes', () => {
    const key = fc.oneof(
      fc.string({ maxLength: 3 }),
      fc.nat(40).map((n) => `user-${n}`),
      // Around the length from which on it takes more than a byte.
      fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: 250, max: 260 })).map(([letter, n]) => letter.repeat(n)),
      fc.integer({ min: 60_000, max: 70_000 }).map((n) => 'x'.repeat(n)),
    )
    fc.assert(
      fc.property(
        fc.array(key, { maxLength: 200 }),
        fc.array(key, { maxLength: 50 }),
        fc.nat(3),
        (added, asked, bits) => {
          const keys = new KeySet(1)
          const model = new Set<string>()
          // With few bits of the hash left most keys are told apart by their bytes alone.
          const hash = (bytes: Uint8Array): number =>
            bits === 3 ? hashOf(bytes, 0, bytes.length) : hashOf(bytes, 0, bytes.length) & ((1 << bits) - 1)
          for (const one of added) {
            const bytes = text(one)
            assert.equal(keys.add(hash(bytes), bytes, 0, bytes.length), !model.has(one))
            model.add(one)
          }
          assert.equal(keys.size, model.size)
          for (const one of [...asked, ...added]) {
            const bytes = text(`--${one}-`)
            const plain = text(one)
            assert.equal(keys.has(hash(plain), bytes, 2, 2 + plain.length), model.has(one))
          }
        },
      ),
    )
  })

  test('grows far beyond what was expected, and touching changes nothing', () => {
    const keys = new KeySet(10)
    const count = 50_000
    const all = Array.from({ length: count }, (_, i) => text(`k${i}`))
    const hashes = Int32Array.from(all, (bytes) => hashOf(bytes, 0, bytes.length))
    for (let from = 0; from < count; from += 1000) {
      keys.touch(hashes, from, from + 1000)
      for (let i = from; i < from + 1000; i++) {
        const bytes = all[i] as Uint8Array
        assert.ok(keys.add(hashes[i] as number, bytes, 0, bytes.length))
      }
    }
    keys.touch(hashes, 0, count)
    assert.equal(keys.size, count)
    all.forEach((bytes, i) => {
      assert.ok(!keys.add(hashes[i] as number, bytes, 0, bytes.length))
    })
    const other = text('k-1')
    assert.ok(!keys.has(hashOf(other, 0, other.length), other, 0, other.length))
  })

  test('takes over the memory of the set before, and none of its keys', () => {
    const all = Array.from({ length: 5000 }, (_, i) => text(`k${i}`))
    const add = (keys: KeySet, bytes: Uint8Array): boolean =>
      keys.add(hashOf(bytes, 0, bytes.length), bytes, 0, bytes.length)
    for (const expected of [5000, 5000, 3000, 10, 20_000, 5000]) {
      const keys = new KeySet(expected)
      for (const bytes of all) assert.ok(add(keys, bytes), `a set for ${expected} keys has one before it came`)
      for (const bytes of all) assert.ok(!add(keys, bytes))
      assert.equal(keys.size, all.length)
      keys.release()
    }
  })
})
