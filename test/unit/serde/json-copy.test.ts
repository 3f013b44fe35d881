import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { copyJson, JsonCopier } from '../../../src/serde/json-copy.ts'

const roundTrip = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** True if the two share an object anywhere. */
function share(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null) return false
  if (a === b) return true
  return Object.keys(a).some((name) =>
    share((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name]),
  )
}

describe('copies of JSON values', () => {
  test('any JSON value is copied, and nothing of it is shared', () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ noUnicodeString: false }).filter((value) => !JSON.stringify(value).includes('-0')),
        (value) => {
          const expected = roundTrip(value)
          const copy = copyJson(value)
          // -0 is the one number of JSON text that does not come back.
          if (copy === undefined) assert.notDeepEqual(expected, value)
          else assert.deepEqual(copy, expected)
          assert.ok(!share(copy, value))
        },
      ),
    )
  })

  test('what is copied at all is what JSON would give back, whatever the value is made of', () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withObjectString: true,
      withSparseArray: true,
      withTypedArray: true,
    })
    fc.assert(
      fc.property(anything, (value) => {
        const copy = copyJson(value)
        if (copy !== undefined) assert.deepEqual(copy, roundTrip(value))
      }),
    )
  })

  test('values that JSON changes, refuses or asks are left to it', () => {
    const cyclic: Record<string, unknown> = {}
    cyclic.self = cyclic
    const refused: unknown[] = [
      undefined,
      1n,
      Number.NaN,
      -0,
      { at: new Date(0) },
      { gone: undefined },
      [undefined],
      // biome-ignore lint/suspicious/noSparseArray: a hole is what is tried.
      [1, , 2],
      { toJSON: () => 1 },
      { [Symbol('s')]: 1 },
      new (class Money {
        readonly cents = 1
      })(),
      new Map(),
      cyclic,
    ]
    for (const value of refused) assert.equal(copyJson(value), undefined)
  })

  test('a copy is copied again, whatever was copied before, and nothing of it is shared', () => {
    const member = fc.oneof(
      { weight: 6, arbitrary: fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)) },
      {
        weight: 1,
        arbitrary: fc.oneof(fc.array(fc.integer()), fc.dictionary(fc.constantFrom('a', 'b'), fc.integer())),
      },
    )
    const names = fc.constantFrom('a', 'b', 'tier', '1', '0', 'a"b', 'constructor', '__proto__')
    const value = fc.oneof(fc.dictionary(names, member), fc.array(member), member)
    fc.assert(
      fc.property(fc.dictionary(names, fc.integer(), { noNullPrototype: true }), fc.array(value), (usual, values) => {
        const copier = new JsonCopier()
        const first = copier.copy(usual)
        for (let i = 0; i < 300; i++) assert.deepEqual(copier.copyAgain(first), first)
        for (const each of [...values, usual, ...values]) {
          const copy = copier.copy(each)
          if (copy === undefined) continue
          const again = copier.copyAgain(copy)
          assert.deepEqual(again, copy)
          assert.deepEqual(JSON.stringify(again), JSON.stringify(copy))
          assert.ok(!share(again, copy))
        }
      }),
    )
  })

  test('shapes that change all the time are copied as well', () => {
    const copier = new JsonCopier()
    for (let i = 0; i < 3000; i++) {
      const copy = copier.copy({ [`m${i >> 8}`]: i, n: i })
      assert.deepEqual(copier.copyAgain(copy), copy)
    }
  })
})
