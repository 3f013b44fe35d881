import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { copyJson } from '../../../src/serde/json-copy.ts'

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
})
