import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { type Serde, SerdeError, serdes } from '../../../src/serde/index.ts'

const written = (serde: { serialize(value: unknown): Uint8Array }, value: unknown): string =>
  Buffer.from(serde.serialize(value)).toString()

const someName = fc.constantFrom('a', 'b', 'ms', 'user', '1', '0', 'ä', 'a"b', '', 'toJSON')
const someMember = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double(),
  fc.constantFrom(-0, 0, 1e8, 1e8 - 1, 1e15, 1e15 - 1, 1e21, 0.1, true, false, null, undefined, 'x'.repeat(2000)),
  fc.anything(),
)

/** Writes what `JSON.stringify` does, or refuses what it refuses; also in bytes that are used again. */
function assertAsText(serde: Serde<unknown>, value: unknown): void {
  let expected: string
  try {
    expected = JSON.stringify(value)
  } catch {
    assert.throws(() => serde.serialize(value), SerdeError)
    return
  }
  expected = Buffer.from(expected).toString()
  assert.equal(written(serde, value), expected)
  const brief = serde.serializeTransient?.(value)
  assert.equal(brief && Buffer.from(brief).toString(), expected)
}

describe('JSON that is written', () => {
  test('is that of JSON.stringify, whatever was written before', () => {
    const objects = fc
      .uniqueArray(someName, { maxLength: 6 })
      .chain((names) => fc.array(fc.tuple(...names.map(() => someMember)).map((values) => [names, values] as const)))
    fc.assert(
      fc.property(fc.array(objects, { maxLength: 4 }), (lists) => {
        const serde = serdes.json<unknown>()
        for (const [names, values] of [...lists.flat(), ...lists.flat()]) {
          const value = Object.fromEntries(names.map((name, i) => [name, values[i]]))
          assertAsText(serde, value)
        }
      }),
    )
  })

  test('is no different once a shape has come often enough for a function of its own', () => {
    const lists = fc
      .uniqueArray(someName, { minLength: 1, maxLength: 6 })
      .chain((names) => fc.array(fc.tuple(...names.map(() => someMember))).map((all) => [names, all] as const))
    fc.assert(
      fc.property(lists, fc.uniqueArray(someName, { maxLength: 6 }), ([names, all], others) => {
        const serde = serdes.json<unknown>()
        const simple = Object.fromEntries(names.map((name, i) => [name, i]))
        for (let n = 0; n < 300; n++) assert.equal(written(serde, simple), JSON.stringify(simple))
        const values = all.map((members) => Object.fromEntries(names.map((name, i) => [name, members[i]])))
        for (const value of [...values, Object.fromEntries(others.map((name) => [name, name])), simple]) {
          assertAsText(serde, value)
        }
      }),
    )
  })

  test('stays as it is when more is written', () => {
    const serde = serdes.json<unknown>()
    const kept = Array.from({ length: 500 }, (_, n) => serde.serialize({ n, text: 'x'.repeat(n % 90) }))
    kept.forEach((bytes, n) => {
      assert.deepEqual(JSON.parse(Buffer.from(bytes).toString()), { n, text: 'x'.repeat(n % 90) })
    })
  })

  test('stays as it is when others are written for the length of a call, which last until the next of them', () => {
    const serde = serdes.json<unknown>()
    const first = serde.serializeTransient?.({ n: 1, text: 'x'.repeat(40) })
    const kept = serde.serialize({ n: 2, text: 'kept' })
    assert.equal(first && Buffer.from(first).toString(), JSON.stringify({ n: 1, text: 'x'.repeat(40) }))
    const second = serde.serializeTransient?.({ n: 3, text: '' })
    assert.equal(second && Buffer.from(second).toString(), '{"n":3,"text":""}')
    assert.equal(Buffer.from(kept).toString(), '{"n":2,"text":"kept"}')
  })

  test('of objects of many shapes, and of nested ones, goes on as ever', () => {
    const serde = serdes.json<unknown>()
    for (let n = 0; n < 500; n++) {
      const value = n % 3 === 0 ? { [`m${n}`]: n } : n % 3 === 1 ? { a: { n } } : { a: n, b: [n] }
      assert.equal(written(serde, value), JSON.stringify(value))
    }
  })
})
