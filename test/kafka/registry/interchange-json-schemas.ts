/** JSON Schemas with every kind of value and the keywords that matter. */
const draft7 = 'http://json-schema.org/draft-07/schema#'
const draft2020 = 'https://json-schema.org/draft/2020-12/schema'

const object = (title: string, properties: object, more: object = {}): object => ({
  $schema: draft7,
  title,
  type: 'object',
  properties,
  ...more,
})

export const order = object(
  'Order',
  {
    id: { type: 'string' },
    amount: { type: 'number' },
    tags: { type: 'array', items: { type: 'string' } },
    address: { type: ['object', 'null'], properties: { city: { type: 'string' } } },
  },
  { required: ['id'] },
)

export const numbers = object('Numbers', {
  integer: { type: 'integer' },
  bounded: { type: 'integer', minimum: -10, exclusiveMaximum: 10 },
  number: { type: 'number' },
  halves: { type: 'number', multipleOf: 0.5 },
  either: { type: ['integer', 'string', 'null'] },
})
export const texts = object(
  'Texts',
  {
    any: { type: 'string' },
    short: { type: 'string', minLength: 0, maxLength: 5 },
    code: { type: 'string', pattern: '^[A-Z]{2}-[0-9]+$' },
    'größe "1"/ø': { type: 'string' },
    '': { type: 'string' },
  },
  { required: ['any'] },
)

export const choice = ['a', '', 'ä', 1, 0, 1.5, true, null]
export const constants = object(
  'Constants',
  {
    bool: { type: 'boolean' },
    nothing: { type: 'null' },
    choice: { enum: choice },
    kind: { const: 'k' },
    whole: { const: { a: [1, null] } },
    nullable: { type: ['boolean', 'null'] },
    anything: true,
  },
  { required: ['bool', 'nothing'] },
)

export const arrays = object('Arrays', {
  texts: { type: 'array', items: { type: 'string' }, maxItems: 4 },
  unique: { type: 'array', items: { type: 'integer' }, uniqueItems: true },
  pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }], additionalItems: false, minItems: 2 },
  matrix: { type: 'array', items: { type: 'array', items: { type: ['number', 'null'] } } },
  objects: { type: 'array', items: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } } },
  mixed: { type: 'array', contains: { const: 7 } },
})

export const objects = object(
  'Objects',
  {
    id: { type: 'string' },
    optional: { type: 'number' },
    counts: { type: 'object', additionalProperties: { type: 'integer' } },
    inner: {
      type: 'object',
      required: ['deep'],
      properties: { deep: { type: 'object', required: ['deeper'], properties: { deeper: { type: 'boolean' } } } },
      additionalProperties: false,
    },
    card: { type: 'string' },
    holder: { type: 'string' },
  },
  {
    required: ['id'],
    patternProperties: { '^x-': { type: 'string' } },
    additionalProperties: false,
    dependencies: { card: ['holder'] },
  },
)

const circle = {
  type: 'object',
  required: ['kind', 'radius'],
  properties: { kind: { const: 'circle' }, radius: { type: 'number' } },
}
const square = {
  type: 'object',
  required: ['kind', 'side'],
  properties: { kind: { const: 'square' }, side: { type: 'integer' } },
}
export const choices = object('Choices', {
  shape: { oneOf: [circle, square] },
  key: { anyOf: [{ type: 'integer' }, { type: 'string', maxLength: 5 }, { type: 'null' }] },
  both: {
    allOf: [
      { type: 'object', required: ['a'] },
      { type: 'object', required: ['b'] },
    ],
  },
  other: { not: { type: 'string' } },
  paid: {
    type: 'object',
    if: { required: ['by'], properties: { by: { const: 'card' } } },
    then: { required: ['number'] },
    else: { required: ['cash'] },
  },
})

/** Java finds references by what they are called in full; nobody is asked for what stands there. */
const place = 'https://schemas.invalid'
export const address = {
  $schema: draft7,
  $id: `${place}/interchange-address.json`,
  title: 'Address',
  type: 'object',
  required: ['city'],
  properties: { city: { type: 'string' }, zip: { type: ['string', 'null'] } },
}
export const money = {
  $schema: draft7,
  $id: `${place}/interchange-money.json`,
  title: 'Money',
  type: 'object',
  required: ['units'],
  properties: { units: { type: 'integer' }, currency: { enum: ['EUR', 'CHF'] } },
}
export const references = object(
  'References',
  {
    from: { $ref: 'interchange-address.json' },
    to: { type: 'array', items: { $ref: 'interchange-address.json' } },
    price: { $ref: 'interchange-money.json' },
    positive: { $ref: '#/definitions/positive' },
  },
  { $id: `${place}/interchange.json`, required: ['from'], definitions: { positive: { type: 'integer', minimum: 1 } } },
)

export const tree = object(
  'Tree',
  { label: { type: 'string' }, children: { type: 'array', items: { $ref: '#' } } },
  { required: ['label'] },
)

export const modern = {
  $schema: draft2020,
  title: 'Modern',
  type: 'object',
  $defs: { point: { type: 'array', prefixItems: [{ type: 'number' }, { type: 'number' }], items: false } },
  properties: { line: { type: 'array', items: { $ref: '#/$defs/point' } }, a: { type: 'string' }, b: { type: 'null' } },
  dependentRequired: { a: ['b'] },
  unevaluatedProperties: false,
}
