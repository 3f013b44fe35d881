/** What Avro's specification says of a record that was written with another schema. */
export interface EvolutionCase {
  readonly name: string
  readonly writer: unknown
  readonly reader: unknown
  readonly value: unknown
  readonly gives?: unknown
  readonly refused?: RegExp
}

type Field = { readonly name: string; readonly type: unknown; readonly default?: unknown; readonly aliases?: string[] }

const record = (...fields: Field[]) => ({ type: 'record', name: 'R', namespace: 'com.acme', fields })
const field = (name: string, type: unknown, more: object = {}): Field => ({ name, type, ...more })
const a = field('a', 'int')
const of = (type: unknown) => record(field('v', type))

const change = (name: string, from: unknown, to: unknown, value: unknown, gives: unknown): EvolutionCase => ({
  name,
  writer: of(from),
  reader: of(to),
  value: { v: value },
  gives: { v: gives },
})
const forbidden = (name: string, from: unknown, to: unknown, value: unknown, refused: RegExp): EvolutionCase => ({
  name,
  writer: of(from),
  reader: of(to),
  value: { v: value },
  refused,
})

const symbols = (list: string[], more: object = {}) => ({ type: 'enum', name: 'E', symbols: list, ...more })
const fixed = (size: number) => ({ type: 'fixed', name: 'F', size })
const decimal = (scale: number) => ({ type: 'bytes', logicalType: 'decimal', precision: 10, scale })
const inner = (name: string, ...fields: Field[]) => ({ type: 'record', name, fields })

export const cases: readonly EvolutionCase[] = [
  {
    name: 'a field with a default is added',
    writer: record(a),
    reader: record(a, field('b', 'string', { default: 'x' })),
    value: { a: 1 },
    gives: { a: 1, b: 'x' },
  },
  {
    name: 'a nullable field with a default is added',
    writer: record(a),
    reader: record(a, field('b', ['null', 'long'], { default: null })),
    value: { a: 1 },
    gives: { a: 1, b: null },
  },
  {
    name: 'a list with a default is added',
    writer: record(a),
    reader: record(a, field('b', { type: 'array', items: 'int' }, { default: [] })),
    value: { a: 1 },
    gives: { a: 1, b: [] },
  },
  {
    name: 'a record with a default is added',
    writer: record(a),
    reader: record(a, field('b', inner('I', field('x', 'int')), { default: { x: 4 } })),
    value: { a: 1 },
    gives: { a: 1, b: { x: 4 } },
  },
  {
    name: 'a field without a default is added',
    writer: record(a),
    reader: record(a, field('b', 'string')),
    value: { a: 1 },
    refused: /the field b is not in what was written/,
  },
  {
    name: 'a field is removed',
    writer: record(a, field('b', 'string')),
    reader: record(a),
    value: { a: 1, b: 'x' },
    gives: { a: 1 },
  },
  {
    name: 'a field in the middle is removed',
    writer: record(field('z', 'bytes'), a, field('b', 'string')),
    reader: record(a, field('b', 'string')),
    value: { z: Buffer.from('zz'), a: 1, b: 'x' },
    gives: { a: 1, b: 'x' },
  },
  {
    name: 'fields change places',
    writer: record(a, field('b', 'string')),
    reader: record(field('b', 'string'), a),
    value: { a: 1, b: 'x' },
    gives: { b: 'x', a: 1 },
  },
  {
    name: 'a field is renamed with an alias',
    writer: record(a),
    reader: record(field('count', 'int', { aliases: ['a'] })),
    value: { a: 7 },
    gives: { count: 7 },
  },
  {
    name: 'a field is renamed without an alias',
    writer: record(a),
    reader: record(field('count', 'int')),
    value: { a: 7 },
    refused: /the field count is not/,
  },
  {
    name: 'a record is renamed with an alias',
    writer: record(a),
    reader: { ...record(a), name: 'S', aliases: ['R'] },
    value: { a: 7 },
    gives: { a: 7 },
  },
  {
    name: 'a record is renamed without an alias',
    writer: record(a),
    reader: { ...record(a), name: 'S' },
    value: { a: 7 },
    refused: /named com\.acme\.R .* com\.acme\.S/,
  },
  change('int becomes long', 'int', 'long', -5, -5),
  change('int becomes float', 'int', 'float', 5, 5),
  change('int becomes double', 'int', 'double', 5, 5),
  change('long becomes double', 'long', 'double', 2 ** 40, 2 ** 40),
  change('float becomes double', 'float', 'double', 0.5, 0.5),
  change('bytes become a string', 'bytes', 'string', Buffer.from('héllo'), 'héllo'),
  change('a string becomes bytes', 'string', 'bytes', 'héllo', Buffer.from('héllo')),
  change('int becomes the nearest float', 'int', 'float', 2 ** 24 + 1, 2 ** 24),
  forbidden('a string becomes a decimal', 'string', decimal(2), '12', /the field v is a string/),
  {
    name: 'a record moves to another namespace',
    writer: record(a, field('i', { type: 'record', name: 'I', fields: [a] })),
    reader: { ...record(a, field('i', { type: 'record', name: 'I', fields: [a] })), namespace: 'com.later' },
    value: { a: 7, i: { a: 8 } },
    gives: { a: 7, i: { a: 8 } },
  },
  {
    name: 'a branch stays what it is where another one could hold it',
    writer: record(field('v', ['bytes', 'string']), field('w', ['double', 'long']), a),
    reader: record(field('v', ['bytes', 'string']), field('w', ['double', 'long'])),
    value: { v: 'text', w: { long: 7 }, a: 1 },
    gives: { v: 'text', w: { long: 7 } },
  },
  change('a nullable string may be a decimal too', ['null', 'string'], ['null', decimal(2), 'string'], '12', '12'),
  {
    name: 'a branch is found by its whole name first',
    writer: of([null, 'com.b'].map((namespace) => (namespace ? { ...inner('I', a), namespace } : 'null'))),
    reader: of(
      [
        { ...inner('I', a), namespace: 'com.a' },
        { ...inner('I', a), namespace: 'com.b' },
      ].concat('null' as never),
    ),
    value: { v: { a: 1 } },
    gives: { v: { 'com.b.I': { a: 1 } } },
  },
  forbidden('long becomes int', 'long', 'int', 5, /the field v is a long .* an int/),
  forbidden('a string becomes int', 'string', 'int', '5', /the field v is a string/),
  forbidden('double becomes float', 'double', 'float', 0.5, /the field v is a double/),
  change('a symbol is added', symbols(['X']), symbols(['X', 'Y']), 'X', 'X'),
  change('a symbol is removed, with a default', symbols(['X', 'Y']), symbols(['X', 'U'], { default: 'U' }), 'Y', 'U'),
  forbidden('a symbol is removed, without a default', symbols(['X', 'Y']), symbols(['X']), 'Y', /the field v may be Y/),
  change('a type becomes nullable', 'string', ['null', 'string'], 'x', 'x'),
  change('a union is widened', ['null', 'int'], ['null', 'int', 'string'], 3, 3),
  change('a union is widened by promotion', ['null', 'int'], ['null', 'long'], 3, 3),
  forbidden('a union is narrowed', ['null', 'string'], 'string', 'x', /the field v is a null/),
  forbidden('a branch is gone', ['null', 'string', 'int'], ['null', 'int'], 'x', /the field v may be a string/),
  change('items are promoted', { type: 'array', items: 'int' }, { type: 'array', items: 'long' }, [1, 2], [1, 2]),
  change(
    'values of a map are promoted',
    { type: 'map', values: 'int' },
    { type: 'map', values: 'double' },
    { k: 1 },
    { k: 1 },
  ),
  forbidden(
    'items change their type',
    { type: 'array', items: 'string' },
    { type: 'array', items: 'int' },
    ['x'],
    /the field v\[\] is a string/,
  ),
  forbidden('a fixed changes its size', fixed(4), fixed(8), Buffer.alloc(4), /the field v has 4 bytes/),
  change('a date was a plain int', 'int', { type: 'int', logicalType: 'date' }, 1, '1970-01-02'),
  change('a plain int was a date', { type: 'int', logicalType: 'date' }, 'int', '1970-01-02', 1),
  forbidden('a decimal changes its scale', decimal(2), decimal(3), '1.25', /a decimal of scale 2 .* scale 3/),
  change(
    'a field is added to a nested record',
    inner('I', field('x', 'int')),
    inner('I', field('x', 'long'), field('y', 'int', { default: 9 })),
    { x: 1 },
    { x: 1, y: 9 },
  ),
  forbidden(
    'a nested field loses its default',
    inner('I', field('x', 'int')),
    inner('I', field('x', 'int'), field('y', 'int')),
    { x: 1 },
    /the field v\.y is not/,
  ),
]
