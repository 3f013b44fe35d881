import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { SerdeError, serdes } from '../../../src/serde/index.ts'

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text))

/** Names that objects of JSON may have, the awkward ones included. */
const someName = fc.constantFrom('a', 'b', 'ms', 'user', '__proto__', '1', '0', 'ä', 'a"b', '', 'constructor')
const someScalar = fc.oneof(
  fc.string(),
  fc.string({ minLength: 12, maxLength: 40 }),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.double({ min: -1000, max: 1000, noNaN: true }).map((n) => Number(n.toFixed(2))),
  fc.maxSafeInteger(),
  fc.constantFrom(true, false, null, '', 'ü', '\\', '"', '\n', 0, 1e21, 1e-7, 0.1, 123456789012345, 1234567890123456),
)
const someValue = fc.oneof({ weight: 8, arbitrary: someScalar }, { weight: 1, arbitrary: fc.array(someScalar) })

const someText = (names: readonly string[]) =>
  fc.tuple(fc.tuple(...names.map(() => someValue)), fc.constantFrom('', ' ', '\n')).map(([values, gap]) => {
    const members = names.map((name, i) => `${gap}${JSON.stringify(name)}:${gap}${JSON.stringify(values[i])}`)
    return `{${members.join(',')}${gap}}`
  })

describe('JSON of known shapes', () => {
  test('is read as JSON.parse reads it, whatever came before', () => {
    const texts = fc
      .array(someName, { minLength: 1, maxLength: 5 })
      .chain((names) => fc.array(someText(names), { minLength: 1, maxLength: 12 }))
    fc.assert(
      fc.property(fc.array(texts, { minLength: 1, maxLength: 4 }), (lists) => {
        const serde = serdes.json()
        for (const text of [...lists.flat(), ...lists.flat()]) {
          const expected: unknown = JSON.parse(text)
          const read = serde.deserialize(bytes(text))
          assert.deepEqual(read, expected)
          assert.deepEqual(Object.keys(read as object), Object.keys(expected as object))
        }
      }),
    )
  })

  test('is read no differently once a shape has come often enough for a function of its own', () => {
    const texts = fc
      .uniqueArray(someName, { minLength: 1, maxLength: 5 })
      .chain((names) => fc.array(someText(names), { minLength: 1, maxLength: 12 }))
    fc.assert(
      fc.property(texts, (list) => {
        const serde = serdes.json()
        for (let i = 0; i < 300; i++) serde.deserialize(bytes(list[0] as string))
        for (const text of list) {
          const expected: unknown = JSON.parse(text)
          const read = serde.deserialize(bytes(text))
          assert.deepEqual(read, expected)
          assert.deepEqual(Object.keys(read as object), Object.keys(expected as object))
          assert.equal(Object.getPrototypeOf(read), Object.prototype)
        }
      }),
    )
  })

  test('is read where a process forbids to make code from text', () => {
    const program = `
      const { serdes } = await import(process.argv[1])
      const serde = serdes.json()
      for (let i = 0; i < 600; i++) {
        if (serde.deserialize(serde.serialize({ i })).i !== i) process.exit(1)
      }`
    const words = ['--disallow-code-generation-from-strings', '--input-type=module', '-e', program]
    const serdeModule = new URL('../../../src/serde/index.ts', import.meta.url).href
    const { status, stderr } = spawnSync(process.execPath, [...words, serdeModule], { encoding: 'utf8' })
    assert.equal(status, 0, stderr)
  })

  test('is read by its last member of a name', () => {
    const serde = serdes.json()
    for (const text of ['{"a":0,"a":0}', '{"a":1,"a":0}', '{"a":2,"a":0}']) {
      assert.deepEqual(serde.deserialize(bytes(text)), JSON.parse(text))
    }
  })

  test('that is no JSON after all is refused as ever', () => {
    const whole = '{"user":"u1","ms":12.5,"ok":true}'
    const mutated = fc.tuple(
      fc.nat(whole.length - 1),
      fc.constantFrom('', '"', ',', '0', '-', '.', 'e', '\\', '\u0001', '}'),
    )
    fc.assert(
      fc.property(mutated, ([at, put]) => {
        const serde = serdes.json()
        for (let i = 0; i < 300; i++) serde.deserialize(bytes(whole))
        const text = whole.slice(0, at) + put + whole.slice(at + 1)
        let expected: unknown
        try {
          expected = JSON.parse(text)
        } catch {
          assert.throws(() => serde.deserialize(bytes(text)), SerdeError)
          return
        }
        assert.deepEqual(serde.deserialize(bytes(text)), expected)
      }),
      { numRuns: 400 },
    )
  })

  test('is read from between other records as if it stood alone', () => {
    const whole = '{"user":"u1","ms":12.5,"ok":true}'
    const around = bytes(`${whole}${whole} ${whole}`)
    const range = fc
      .tuple(fc.nat(around.length), fc.nat(around.length))
      .map(([a, b]) => [Math.min(a, b), Math.max(a, b)])
    fc.assert(
      fc.property(range, fc.constantFrom(1, 300), ([start = 0, end = 0], before) => {
        const serde = serdes.json()
        for (let i = 0; i < before; i++) serde.deserialize(bytes(whole))
        const text = Buffer.from(around.subarray(start, end)).toString()
        let expected: unknown
        try {
          expected = JSON.parse(text)
        } catch {
          assert.throws(() => serde.deserializeFrom?.(around, start, end), SerdeError)
          return
        }
        assert.deepEqual(serde.deserializeFrom?.(around, start, end), expected)
      }),
      { numRuns: 400 },
    )
  })

  test('each record gives an object of its own', () => {
    const serde = serdes.json<{ n: number }>()
    const text = bytes('{"n":1}')
    const first = serde.deserialize(text)
    const second = serde.deserialize(text)
    second.n = 5
    assert.deepEqual([first, serde.deserialize(text)], [{ n: 1 }, { n: 1 }])
  })
})
