/** Protobuf as bare bytes: whatever the type, the same bytes and the same messages as the library's own. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { create, type DescMessage, fromBinary, type Message, toBinary } from '@bufbuild/protobuf'
import { type StringValue, StringValueSchema } from '@bufbuild/protobuf/wkt'
import fc from '../../../support/properties.ts'
import { type Serde, serdes } from '../../../../src/index.ts'
import { contents, types } from './proto-arbitrary.ts'

const serdeOf = (desc: DescMessage): Serde<Message> => serdes.protobuf<Message>(desc)

/** A type, one of which fields are missing, and values. */
const cases = types.chain(({ desc, older }) =>
  fc.record({
    desc: fc.constant(desc),
    older: fc.constant(older),
    values: fc.array(contents(desc), { minLength: 1, maxLength: 5 }),
  }),
)

/** A message may be what required fields do not allow: both sides are to say so. */
function attempt<T>(act: () => T): { readonly result?: T; readonly failed: boolean } {
  try {
    return { result: act(), failed: false }
  } catch {
    return { failed: true }
  }
}

const numRuns = Number(process.env.PROTOBUF_RUNS ?? 60)

describe('Protobuf without a registry', () => {
  test('any type: the bytes of the library, of messages and of what they are made of', () => {
    fc.assert(
      fc.property(cases, ({ desc, values }) => {
        const serde = serdeOf(desc)
        for (const value of values) {
          const message = create(desc, value as never)
          const expected = attempt(() => Buffer.from(toBinary(desc, message)))
          for (const given of [message, value as unknown as Message]) {
            const actual = attempt(() => Buffer.from(serde.serialize(given)))
            assert.deepEqual(actual, expected)
            assert.deepEqual(
              attempt(() => Buffer.from(serde.serializeTransient?.(given) as Uint8Array)),
              expected,
            )
          }
        }
      }),
      { numRuns },
    )
  })

  test('any type: the messages of the library, with fields that are not known, wherever they lie', () => {
    const around = Buffer.from('other records')
    fc.assert(
      fc.property(cases, ({ desc, older, values }) => {
        for (const each of [desc, older]) {
          const serde = serdeOf(each)
          for (const value of values) {
            const written = attempt(() => toBinary(desc, create(desc, value as never))).result
            if (written === undefined) continue
            const expected = attempt(() => fromBinary(each, written))
            const lies = Buffer.concat([around, written, around])
            const actual = attempt(() => serde.deserializeFrom?.(lies, around.length, around.length + written.length))
            assert.deepEqual(actual, expected)
            // What is not known is written again.
            const again = (message: Message | undefined): unknown =>
              attempt(() => Buffer.from(message === undefined ? '' : toBinary(each, message)))
            const rewritten = attempt(() => Buffer.from(serde.serialize(actual.result as Message)))
            if (!actual.failed) assert.deepEqual(rewritten, again(expected.result))
          }
        }
      }),
      { numRuns },
    )
  })

  test('two records behind each other are one merged message, as for the library', () => {
    fc.assert(
      fc.property(cases, ({ desc, values }) => {
        const written = values.map((value) => attempt(() => toBinary(desc, create(desc, value as never))).result)
        const bytes = Uint8Array.from(Buffer.concat(written.map((each) => each ?? new Uint8Array(0))))
        assert.deepEqual(
          attempt(() => serdeOf(desc).deserialize(bytes)),
          attempt(() => fromBinary(desc, bytes)),
        )
      }),
      { numRuns },
    )
  })

  test('packed and unpacked are read alike', () => {
    fc.assert(
      fc.property(cases, ({ desc, values }) => {
        const serde = serdeOf(desc)
        for (const field of desc.fields) {
          if (field.fieldKind !== 'list' || field.message !== undefined) continue
          const other = { ...field, packed: !field.packed }
          const turned = { ...desc, fields: desc.fields.map((each) => (each === field ? other : each)) } as DescMessage
          for (const value of values) {
            const bytes = attempt(() => toBinary(turned, create(desc, value as never))).result
            if (bytes === undefined || field.scalar === 9 || field.scalar === 12) continue
            assert.deepEqual(serde.deserialize(bytes), fromBinary(desc, bytes))
          }
        }
      }),
      { numRuns: numRuns / 4 },
    )
  })

  test('damaged bytes give what the library gives, or its error', () => {
    const damage = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 3 })
    fc.assert(
      fc.property(cases, damage, fc.nat(), ({ desc, values }, changes, cut) => {
        const written = attempt(() => toBinary(desc, create(desc, values[0] as never))).result
        if (written === undefined || written.length === 0) return
        const bytes = Buffer.from(written)
        for (const [at, byte] of changes) bytes[at % bytes.length] = byte
        for (const each of [bytes, Buffer.from(written.subarray(0, cut % written.length))])
          assert.deepEqual(
            attempt(() => serdeOf(desc).deserialize(each)),
            attempt(() => fromBinary(desc, Uint8Array.from(each))),
          )
      }),
      { numRuns: 2 * numRuns },
    )
  })

  test('a text with half of a surrogate pair is refused, which would come back as another', () => {
    const serde = serdes.protobuf<StringValue>(StringValueSchema)
    for (const value of ['\ud800', `${'x'.repeat(50)}\udfff`]) {
      assert.throws(() => serde.serialize(create(StringValueSchema, { value })), {
        name: 'SerdeError',
        message: /half of a surrogate pair/,
      })
    }
    const whole = create(StringValueSchema, { value: 'a\ud83d\ude00\ufffd' })
    assert.deepEqual(serde.deserialize(serde.serialize(whole)), whole)
  })

  test('values that are not of their type are converted or refused as the library does', () => {
    const odd = fc.constantFrom<unknown>(null, '12', 1.5, 2 ** 40, -1, 'text', true, 5n, [1, 2], {}, Number.NaN)
    fc.assert(
      fc.property(cases, odd, fc.nat(), ({ desc, values }, wrong, at) => {
        const member = desc.members[at % desc.members.length]
        const value = { ...values[0], [member?.localName ?? '']: wrong }
        const message = { ...create(desc, values[0] as never), [member?.localName ?? '']: wrong } as unknown as Message
        const serde = serdeOf(desc)
        assert.deepEqual(
          attempt(() => Buffer.from(serde.serialize(value as unknown as Message))),
          attempt(() => Buffer.from(toBinary(desc, create(desc, value as never)))),
        )
        assert.deepEqual(
          attempt(() => Buffer.from(serde.serialize(message))),
          attempt(() => Buffer.from(toBinary(desc, message))),
        )
      }),
      { numRuns: 2 * numRuns },
    )
  })
})
