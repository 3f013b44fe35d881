/** TypeScript for Avro schemas: the types of what `avro()` reads and writes. */
import {
  type AvroNode,
  type AvroObject,
  fullName,
  isPrimitive,
  isUnion,
  namedTypes,
  namespaceOf,
} from './avro-schema.ts'

export interface TypeScriptOptions {
  /** As in the serde. */
  readonly longs?: 'number' | 'bigint'
}

const simple: Readonly<Record<string, string>> = {
  null: 'null',
  boolean: 'boolean',
  int: 'number',
  float: 'number',
  double: 'number',
  bytes: 'Uint8Array',
  string: 'string',
}

const bySchema: Readonly<Record<string, string>> = {
  decimal: 'string',
  date: 'string',
  duration: '{ readonly months: number; readonly days: number; readonly milliseconds: number }',
}

const inMillis = new Set(['timestamp-millis', 'local-timestamp-millis'])

/** Which of a value's kinds JavaScript cannot tell apart: such unions name their branch. */
const kinds: Readonly<Record<string, string>> = {
  int: 'number',
  long: 'number',
  float: 'number',
  double: 'number',
  string: 'string',
  enum: 'string',
  bytes: 'buffer',
  fixed: 'buffer',
  map: 'object',
  record: 'object',
  error: 'object',
}

/** One exported type for each named type of the schemas; what comes twice is written once. */
export function avroTypeScript(schemas: readonly AvroNode[], options: TypeScriptOptions = {}): string {
  const writer = new TypeWriter(options)
  for (const schema of schemas) writer.type(schema, undefined)
  return writer.text()
}

class TypeWriter {
  readonly #long: string
  /** Declarations by the full name of the type. */
  readonly #declared = new Map<string, string>()
  /** Full names by the names that the types have in TypeScript. */
  readonly #names = new Map<string, string>()

  constructor({ longs }: TypeScriptOptions) {
    this.#long = longs === 'bigint' ? 'bigint' : 'number'
  }

  text(): string {
    return [...this.#declared.values()].join('\n')
  }

  type(node: AvroNode, namespace: string | undefined): string {
    if (typeof node === 'string') {
      if (isPrimitive(node)) return node === 'long' ? this.#long : (simple[node] as string)
      return this.#named(fullName(node, namespace))
    }
    if (isUnion(node)) return this.#union(node, namespace)
    if (node.logicalType !== undefined && inMillis.has(node.logicalType)) return 'number'
    const logical = node.logicalType === undefined ? undefined : bySchema[node.logicalType]
    if (namedTypes.has(node.type)) return this.#declare(node, namespace, logical)
    if (logical !== undefined) return logical
    if (node.type === 'array') return `ReadonlyArray<${this.type(node.items as AvroNode, namespace)}>`
    if (node.type === 'map') return `Readonly<Record<string, ${this.type(node.values as AvroNode, namespace)}>>`
    return this.type(node.type, namespace)
  }

  #declare(node: AvroObject, namespace: string | undefined, logical: string | undefined): string {
    const full = fullName(node.name as string, node.namespace ?? namespace)
    if (node.type === 'fixed') {
      this.#declared.set(full, '')
      const name = this.#named(full)
      this.#declared.set(full, `/** ${node.size} bytes. */\nexport type ${name} = ${logical ?? 'Uint8Array'}\n`)
      return name
    }
    const name = this.#named(full)
    // A record may name itself inside; it keeps the place at which it began.
    if (!this.#declared.has(full)) this.#declared.set(full, '')
    if (node.type === 'enum') {
      const symbols = (node.symbols ?? []).map((symbol) => quoted(symbol)).join(' | ')
      this.#declared.set(full, `${doc(node)}export type ${name} = ${symbols}\n`)
      return name
    }
    const fields = (node.fields ?? []).map((field) => {
      const type = this.type(field.type, namespaceOf(full))
      return `${indented(doc(field))}  readonly ${field.name}: ${type}\n`
    })
    this.#declared.set(full, `${doc(node)}export interface ${name} {\n${fields.join('')}}\n`)
    return name
  }

  /** The last part of the name; the whole of it where another type has that already. */
  #named(full: string): string {
    const short = full.slice(full.lastIndexOf('.') + 1)
    const taken = this.#names.get(short)
    const name = taken === undefined || taken === full ? short : full.replaceAll('.', '_')
    this.#names.set(name, full)
    return name
  }

  #union(branches: readonly AvroNode[], namespace: string | undefined): string {
    const kindsOfBranches = branches.map((branch) => kinds[kindOf(branch)] ?? kindOf(branch))
    const isWrapped = new Set(kindsOfBranches).size < kindsOfBranches.length
    const types = branches.map((branch) => {
      const type = this.type(branch, namespace)
      if (!isWrapped || type === 'null') return type
      return `{ readonly ${quoted(branchName(branch, namespace))}: ${type} }`
    })
    return types.join(' | ')
  }
}

/** A name of a record or an enum that is defined elsewhere counts as a record: of two such nobody can tell. */
function kindOf(node: AvroNode): string {
  if (typeof node === 'string') return isPrimitive(node) ? node : 'record'
  return isUnion(node) ? 'union' : typeof node.type === 'string' ? node.type : kindOf(node.type)
}

function branchName(node: AvroNode, namespace: string | undefined): string {
  if (typeof node === 'string') return isPrimitive(node) ? node : fullName(node, namespace)
  const { name, namespace: own, type } = node as AvroObject
  return name === undefined ? String(type) : fullName(name, own ?? namespace)
}

function quoted(text: string): string {
  return `'${text}'`
}

function doc(node: object): string {
  const { doc: text } = node as { doc?: unknown }
  return typeof text === 'string' && text !== '' ? `/** ${text.replaceAll('*/', '* /')} */\n` : ''
}

function indented(text: string): string {
  return text === '' ? '' : `  ${text}`
}
