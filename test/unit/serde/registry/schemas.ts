/** Avro schemas of every type and logical type, with records that are made at random. */
import fc from '../../../support/properties.ts'

export interface Sample {
  readonly name: string
  readonly schema: unknown
  readonly values: fc.Arbitrary<unknown>
}

/** Objects like those that are read. */
const objects = <T>(members: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(members, { noNullPrototype: true })

const float = fc.float({ noNaN: true, noDefaultInfinity: true }).map((x) => (Object.is(x, -0) ? 0 : x))
const double = fc.double({ noNaN: true, noDefaultInfinity: true }).map((x) => (Object.is(x, -0) ? 0 : x))
const int = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
const long = fc.maxSafeInteger()
const text = fc.string({ unit: 'grapheme' }).filter((each) => each.isWellFormed())
const bytes = fc.uint8Array({ maxLength: 40 }).map((each) => Buffer.from(each))
const bytesOf = (length: number) =>
  fc.uint8Array({ minLength: length, maxLength: length }).map((each) => Buffer.from(each))
const day = fc
  .integer({ min: -100_000, max: 100_000 })
  .map((days) => new Date(days * 86_400_000).toISOString().slice(0, 10))
  .filter((each) => each.length === 10)
const decimal = (digits: number, scale: number) =>
  fc.bigInt({ min: -(10n ** BigInt(digits)) + 1n, max: 10n ** BigInt(digits) - 1n }).map((unscaled) => {
    const all = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0')
    return `${unscaled < 0n ? '-' : ''}${all.slice(0, -scale)}.${all.slice(-scale)}`
  })

const record = (name: string, fields: Record<string, unknown>): unknown => ({
  type: 'record',
  name,
  namespace: 'com.acme',
  fields: Object.entries(fields).map(([field, type]) => ({ name: field, type })),
})

const one = (name: string, type: unknown, values: fc.Arbitrary<unknown>): Sample => ({
  name,
  schema: record(name, { value: type }),
  values: objects({ value: values }),
})

const colours = ['RED', 'GREEN', 'BLUE'] as const
const leaf = { label: text, children: fc.constant([]) }
const tree = objects({
  label: text,
  children: fc.array(objects({ label: text, children: fc.array(objects(leaf), { maxLength: 2 }) }), {
    maxLength: 3,
  }),
})

export const samples: readonly Sample[] = [
  one('Booleans', 'boolean', fc.boolean()),
  one('Ints', 'int', int),
  one('Longs', 'long', long),
  one('Floats', 'float', float),
  one('Doubles', 'double', double),
  one('Strings', 'string', text),
  one('Bytes', 'bytes', bytes),
  one('Nulls', 'null', fc.constant(null)),
  one('Fixed', { type: 'fixed', name: 'Eight', size: 8 }, bytesOf(8)),
  one('Enums', { type: 'enum', name: 'Colour', symbols: colours }, fc.constantFrom(...colours)),
  one('Arrays', { type: 'array', items: 'long' }, fc.array(long)),
  one(
    'Maps',
    { type: 'map', values: 'double' },
    fc.dictionary(
      fc.string({ unit: 'grapheme-ascii' }).filter((key) => key !== '__proto__'),
      double,
      { noNullPrototype: true },
    ),
  ),
  one('Nullable', ['null', 'string'], fc.option(text)),
  one('NullableLast', ['long', 'null'], fc.option(long)),
  one('Numbers', ['null', 'int', 'string', 'boolean'], fc.oneof(fc.constant(null), int, text, fc.boolean())),
  one('Decimals', { type: 'bytes', logicalType: 'decimal', precision: 20, scale: 4 }, decimal(20, 4)),
  one(
    'FixedDecimals',
    { type: 'fixed', name: 'Money', size: 12, logicalType: 'decimal', precision: 18, scale: 2 },
    decimal(18, 2),
  ),
  one('Dates', { type: 'int', logicalType: 'date' }, day),
  one('Millis', { type: 'long', logicalType: 'timestamp-millis' }, fc.integer({ min: -8e12, max: 8e12 })),
  one('Micros', { type: 'long', logicalType: 'timestamp-micros' }, long),
  one('Times', { type: 'int', logicalType: 'time-millis' }, fc.integer({ min: 0, max: 86_399_999 })),
  one('Uuids', { type: 'string', logicalType: 'uuid' }, fc.uuid()),
  {
    name: 'Tree',
    schema: record('Tree', { label: 'string', children: { type: 'array', items: 'com.acme.Tree' } }),
    values: tree,
  },
  {
    name: 'Nested',
    schema: record('Nested', {
      id: 'long',
      inner: record('Inner', {
        amounts: { type: 'array', items: { type: 'map', values: ['null', 'double'] } },
        at: { type: 'long', logicalType: 'timestamp-millis' },
      }),
      again: ['null', 'com.acme.Inner'],
    }),
    values: (() => {
      const inner = objects({
        amounts: fc.array(fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.option(double), { noNullPrototype: true }), {
          maxLength: 3,
        }),
        at: fc.integer({ min: 0, max: 8e12 }),
      })
      return objects({ id: long, inner, again: fc.option(inner) })
    })(),
  },
]
