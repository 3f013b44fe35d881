/** Values of JSON Schemas. */
import fc from '../../support/properties.ts'
import {
  address,
  arrays,
  choice,
  choices,
  constants,
  modern,
  money,
  numbers,
  objects,
  order,
  references,
  texts,
  tree,
} from './interchange-json-schemas.ts'

export interface JsonSample {
  readonly name: string
  readonly schema: object
  readonly references?: Readonly<Record<string, object>>
  readonly values: fc.Arbitrary<unknown>
  /** Written in front of those at random. */
  readonly edges?: readonly unknown[]
}

/** Of the members all those are left out at random that are not required. */
const members = (model: Record<string, fc.Arbitrary<unknown>>, ...requiredKeys: string[]): fc.Arbitrary<object> =>
  fc.record(model, { requiredKeys, noNullPrototype: true })

const text = fc.oneof(
  fc.string({ unit: 'grapheme' }).filter((value) => value.isWellFormed()),
  fc.constantFrom(
    '',
    '\0\u0001\u001f\u007f',
    '"\\/\b\f\n\r\t',
    '\u2028\u2029\ufeff',
    '\u{10ffff}\ufffd',
    'ẞß',
    '</script>',
  ),
)
const shortText = fc
  .array(fc.constantFrom('a', 'é', '\u{1f600}', '汉', '\u0301'), { maxLength: 5 })
  .map((letters) => letters.join(''))
const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((x) => (Object.is(x, -0) ? 0 : x))
const integer = fc.oneof(fc.maxSafeInteger(), fc.integer())
const name = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
  .filter((each) => each !== '__proto__' && each.isWellFormed())

const numberEdges = [
  Number.MAX_SAFE_INTEGER,
  Number.MIN_SAFE_INTEGER,
  2 ** 31,
  -(2 ** 31),
  2 ** 53,
  2 ** 63,
  -(2 ** 63),
  1e20,
  1e21,
  1e-6,
  1e-7,
  0.1,
  1 / 3,
  Number.MAX_VALUE,
  -Number.MAX_VALUE,
  Number.MIN_VALUE,
  2 ** -1022,
]

const addressOf = members({ city: text, zip: fc.option(text) }, 'city')
const leaf = members({ label: text, children: fc.constant([]) }, 'label')
const point = fc.tuple(number, number)

export const jsonSamples: readonly JsonSample[] = [
  {
    name: 'Json',
    schema: order,
    values: members(
      { id: text, amount: number, tags: fc.array(text, { maxLength: 3 }), address: fc.option(members({ city: text })) },
      'id',
    ),
  },
  {
    name: 'JsonNumbers',
    schema: numbers,
    values: members({
      integer,
      bounded: fc.integer({ min: -10, max: 9 }),
      number,
      halves: fc.integer().map((x) => x / 2),
      either: fc.oneof(integer, text, fc.constant(null)),
    }),
    edges: numberEdges.map((each) => ({
      number: each,
      ...(Number.isSafeInteger(each) && { integer: each, either: each }),
    })),
  },
  {
    name: 'JsonTexts',
    schema: texts,
    values: members(
      {
        any: text,
        short: shortText,
        code: fc.tuple(fc.constantFrom('AB', 'ZZ'), fc.nat()).map((each) => each.join('-')),
        'größe "1"/ø': text,
        '': text,
      },
      'any',
    ),
    edges: [{ any: 'x'.repeat(20_000) }, { any: '', short: '\u{1f600}'.repeat(5) }],
  },
  {
    name: 'JsonConstants',
    schema: constants,
    values: members(
      {
        bool: fc.boolean(),
        nothing: fc.constant(null),
        choice: fc.constantFrom(...choice),
        kind: fc.constant('k'),
        whole: fc.constant({ a: [1, null] }),
        nullable: fc.option(fc.boolean()),
        anything: fc.oneof(text, number, fc.constant(null), fc.constant([]), fc.constant({}), fc.array(fc.boolean())),
      },
      'bool',
      'nothing',
    ),
  },
  {
    name: 'JsonArrays',
    schema: arrays,
    values: members({
      texts: fc.array(text, { maxLength: 4 }),
      unique: fc.uniqueArray(integer, { maxLength: 5 }),
      pair: fc.tuple(text, number),
      matrix: fc.array(fc.array(fc.option(number), { maxLength: 3 }), { maxLength: 3 }),
      objects: fc.array(members({ n: integer }, 'n'), { maxLength: 3 }),
      mixed: fc.array(fc.oneof(text, fc.boolean())).map((list) => [...list, 7]),
    }),
    edges: [{ texts: [], unique: [], matrix: [[], [null]], objects: [] }],
  },
  {
    name: 'JsonObjects',
    schema: objects,
    values: fc
      .tuple(
        members(
          {
            id: text,
            optional: number,
            counts: fc.dictionary(name, integer, { maxKeys: 4, noNullPrototype: true }),
            inner: members({ deep: members({ deeper: fc.boolean() }, 'deeper') }, 'deep'),
          },
          'id',
        ),
        fc.option(fc.record({ card: text, holder: text }), { nil: {} }),
        fc.dictionary(
          name.map((each) => `x-${each}`),
          text,
          { maxKeys: 2 },
        ),
      )
      .map((parts) => Object.assign({}, ...parts) as object),
  },
  {
    name: 'JsonChoices',
    schema: choices,
    values: members({
      shape: fc.oneof(
        members({ kind: fc.constant('circle'), radius: number }, 'kind', 'radius'),
        members({ kind: fc.constant('square'), side: integer }, 'kind', 'side'),
      ),
      key: fc.oneof(integer, shortText, fc.constant(null)),
      both: members({ a: text, b: number, c: fc.boolean() }, 'a', 'b'),
      other: fc.oneof(integer, fc.boolean(), fc.constant(null)),
      paid: fc.oneof(
        members({ by: fc.constant('card'), number: text }, 'by', 'number'),
        members({ by: fc.constant('purse'), cash: integer }, 'cash'),
      ),
    }),
  },
  {
    name: 'JsonReferences',
    schema: references,
    references: { 'interchange-address.json': address, 'interchange-money.json': money },
    values: members(
      {
        from: addressOf,
        to: fc.array(addressOf, { maxLength: 3 }),
        price: members({ units: integer, currency: fc.constantFrom('EUR', 'CHF') }, 'units'),
        positive: fc.integer({ min: 1 }),
      },
      'from',
    ),
  },
  {
    name: 'JsonTree',
    schema: tree,
    values: members(
      {
        label: text,
        children: fc.array(members({ label: text, children: fc.array(leaf, { maxLength: 2 }) }, 'label'), {
          maxLength: 3,
        }),
      },
      'label',
    ),
  },
  {
    name: 'JsonModern',
    schema: modern,
    values: fc
      .tuple(
        members({ line: fc.array(point, { maxLength: 3 }) }),
        fc.option(fc.record({ a: text, b: fc.constant(null) }), { nil: {} }),
      )
      .map((parts) => Object.assign({}, ...parts) as object),
  },
]
