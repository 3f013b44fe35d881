/** What JSON Schema says of values that satisfy another schema. */
export interface JsonCase {
  readonly name: string
  readonly writer: object
  readonly reader: object
  readonly value: unknown
  /** Whether it is read; where it is not, why the start is refused. */
  readonly refused?: RegExp
}

const object = (properties: Record<string, unknown>, more: object = {}) => ({
  type: 'object',
  title: 'R',
  properties,
  ...more,
})
const a = { a: { type: 'integer' } }
const of = (schema: unknown) => object({ v: schema })

const fits = (name: string, writer: object, reader: object, value: unknown): JsonCase => ({
  name,
  writer,
  reader,
  value,
})
const wider = (name: string, from: unknown, to: unknown, v: unknown): JsonCase => fits(name, of(from), of(to), { v })
const breaks = (name: string, writer: object, reader: object, value: unknown, refused: RegExp): JsonCase => ({
  name,
  writer,
  reader,
  value,
  refused,
})
const narrower = (name: string, from: unknown, to: unknown, v: unknown, refused: RegExp): JsonCase =>
  breaks(name, of(from), of(to), { v }, refused)

const text = { type: 'string' }
const number = { type: 'number' }

export const jsonCases: readonly JsonCase[] = [
  fits('an optional property is added', object(a), object({ ...a, b: text }), { a: 1 }),
  fits('a property is removed', object({ ...a, b: text }), object(a), { a: 1, b: 'x' }),
  fits('a property is no longer required', object(a, { required: ['a'] }), object(a), { a: 1 }),
  fits('what is undeclared is no longer allowed', object(a), object(a, { additionalProperties: false }), { a: 1 }),
  wider('integer becomes number', { type: 'integer' }, number, 1),
  wider('null is allowed', text, { type: ['string', 'null'] }, 'x'),
  wider('a value is listed', { enum: ['A'] }, { enum: ['A', 'B'] }, 'A'),
  wider('a limit is raised', { ...number, maximum: 5 }, { ...number, maximum: 9 }, 5),
  wider('a limit is dropped', { ...text, maxLength: 3, pattern: '^x' }, text, 'xy'),
  wider('a branch is added', { oneOf: [text] }, { oneOf: [text, number] }, 'x'),
  fits(
    'a reference takes the place of a type',
    of(text),
    { ...of({ $ref: '#/definitions/t' }), definitions: { t: text } },
    { v: 'x' },
  ),
  wider('items become wider', { type: 'array', items: { type: 'integer' } }, { type: 'array', items: number }, [1]),
  breaks(
    'a required property is added',
    object(a),
    object({ ...a, b: text }, { required: ['b'] }),
    { a: 1 },
    /the field b is required in what reads/,
  ),
  breaks(
    'a property is forbidden',
    object({ ...a, b: text }),
    object(a, { additionalProperties: false }),
    { a: 1, b: 'x' },
    /the field b is in what was written, and what reads allows no property/,
  ),
  narrower('number becomes integer', number, { type: 'integer' }, 1.5, /the field v may be number .* is integer/),
  narrower('null is forbidden', { type: ['string', 'null'] }, text, null, /the field v may be null .* is string/),
  narrower('a text becomes a number', text, number, 'x', /the field v may be string .* is number/),
  narrower('a value is no longer listed', { enum: ['A', 'B'] }, { enum: ['A'] }, 'B', /the field v may be "B"/),
  narrower(
    'a limit is lowered',
    { ...number, maximum: 9 },
    { ...number, maximum: 5 },
    9,
    /the field v has a maximum of 5 .* of 9/,
  ),
  narrower('a limit is set', text, { ...text, minLength: 2 }, 'x', /the field v has a minLength of 2 .* no such limit/),
  narrower('a pattern is set', text, { ...text, pattern: '^a' }, 'b', /the field v has the pattern \^a/),
  narrower(
    'a branch is removed',
    { oneOf: [text, number] },
    { oneOf: [text] },
    5,
    /the field v has a form .* no branch/,
  ),
  narrower(
    'items become narrower',
    { type: 'array', items: text },
    { type: 'array', items: number },
    ['x'],
    /the field v\[\] may be string/,
  ),
  narrower(
    'a property inside becomes required',
    object({ city: text }),
    object({ city: text }, { required: ['city'] }),
    {},
    /the field v\.city is required/,
  ),
]
