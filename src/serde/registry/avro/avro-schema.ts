/** Avro schemas as text and as data: names, namespaces and what one refers to. */
export type AvroNode = string | readonly AvroNode[] | AvroObject

export interface AvroObject {
  readonly type: AvroNode
  readonly name?: string
  readonly namespace?: string
  readonly aliases?: readonly string[]
  readonly fields?: readonly AvroField[]
  readonly symbols?: readonly string[]
  readonly default?: unknown
  readonly items?: AvroNode
  readonly values?: AvroNode
  readonly size?: number
  readonly logicalType?: string
  readonly precision?: number
  readonly scale?: number
}

export interface AvroField {
  readonly name: string
  readonly type: AvroNode
  readonly default?: unknown
  readonly aliases?: readonly string[]
}

export const namedTypes: ReadonlySet<unknown> = new Set(['record', 'error', 'enum', 'fixed'])

const primitives = new Set(['null', 'boolean', 'int', 'long', 'float', 'double', 'bytes', 'string'])

export function isPrimitive(name: string): boolean {
  return primitives.has(name)
}

/** The name with its namespace. */
export function fullName(name: string, namespace: string | undefined): string {
  return name.includes('.') || namespace === undefined || namespace === '' ? name : `${namespace}.${name}`
}

export function namespaceOf(full: string): string | undefined {
  const at = full.lastIndexOf('.')
  return at < 0 ? undefined : full.slice(0, at)
}

/** Full name of the type that a schema is of; for types without a name the type itself. */
export function nameOf(schema: AvroNode): string {
  if (typeof schema === 'string') return schema
  if (isUnion(schema)) return 'union'
  if (schema.name !== undefined) return fullName(schema.name, schema.namespace)
  return typeof schema.type === 'string' ? schema.type : nameOf(schema.type)
}

export function isUnion(schema: AvroNode): schema is readonly AvroNode[] {
  return Array.isArray(schema)
}

/** A schema text: JSON, or the bare name of a type. */
export function parseAvro(text: string): AvroNode {
  const trimmed = text.trim()
  return /^[A-Za-z_][\w.]*$/.test(trimmed) ? trimmed : (JSON.parse(trimmed) as AvroNode)
}

/**
 * The schema as those need it who read what was written with it. Defaults are the reader's, and libraries have registered
 * schemas with defaults that are not of their field's type.
 */
export function withoutDefaults(node: AvroNode): AvroNode {
  if (typeof node === 'string') return node
  if (isUnion(node)) return node.map(withoutDefaults)
  const { type, fields, items, values } = node
  return {
    ...node,
    ...(typeof type === 'object' && { type: withoutDefaults(type) }),
    ...(fields !== undefined && {
      fields: fields.map(({ default: _, ...field }) => ({ ...field, type: withoutDefaults(field.type) })),
    }),
    ...(items !== undefined && { items: withoutDefaults(items) }),
    ...(values !== undefined && { values: withoutDefaults(values) }),
  }
}

/** What bytes depend on, as the specification's parsing canonical form has it: whole names, and no more of a field than its type. */
export function canonicalAvro(node: AvroNode, namespace?: string): unknown {
  if (typeof node === 'string') return isPrimitive(node) ? node : fullName(node, namespace)
  if (isUnion(node)) return node.map((branch) => canonicalAvro(branch, namespace))
  const { type, name, fields, symbols, size, items, values } = node
  if (typeof type !== 'string') return canonicalAvro(type, namespace)
  if (items !== undefined) return { type, items: canonicalAvro(items, namespace) }
  if (values !== undefined) return { type, values: canonicalAvro(values, namespace) }
  if (name === undefined || !namedTypes.has(type)) return canonicalAvro(type, namespace)
  const full = fullName(name, node.namespace ?? namespace)
  const parts = fields?.map((field) => ({ name: field.name, type: canonicalAvro(field.type, namespaceOf(full)) }))
  return { name: full, type, fields: parts, symbols, size }
}

/** A node with the types that it names, by full name, and the namespace in force inside of it. */
export interface Resolved {
  readonly kind: string
  readonly node: AvroNode
  readonly name: string | undefined
  readonly namespace: string | undefined
}

/** The named types of schemas, so that a name leads to what it stands for. */
export class AvroNames {
  readonly #types = new Map<string, { readonly node: AvroObject; readonly namespace: string | undefined }>()

  constructor(...schemas: readonly AvroNode[]) {
    for (const schema of schemas) this.#collect(schema, undefined)
  }

  #collect(node: AvroNode, namespace: string | undefined): void {
    if (typeof node === 'string') return
    if (isUnion(node)) {
      for (const branch of node) this.#collect(branch, namespace)
      return
    }
    let inner = namespace
    if (namedTypes.has(node.type) && node.name !== undefined) {
      const full = fullName(node.name, node.namespace ?? namespace)
      inner = namespaceOf(full)
      this.#types.set(full, { node, namespace: inner })
    }
    for (const field of node.fields ?? []) this.#collect(field.type, inner)
    for (const part of [node.items, node.values]) if (part !== undefined) this.#collect(part, inner)
    if (typeof node.type === 'object') this.#collect(node.type, inner)
  }

  get all(): string[] {
    return [...this.#types.keys()]
  }

  resolve(node: AvroNode, namespace: string | undefined): Resolved {
    if (isUnion(node)) return { kind: 'union', node, name: undefined, namespace }
    if (typeof node === 'string') {
      if (isPrimitive(node)) return { kind: node, node, name: undefined, namespace }
      const full = fullName(node, namespace)
      const known = this.#types.get(full) ?? this.#types.get(node)
      if (known === undefined) return { kind: 'unknown', node, name: full, namespace }
      return { kind: kindOf(known.node), node: known.node, name: full, namespace: known.namespace }
    }
    if (namedTypes.has(node.type) && node.name !== undefined) {
      const full = fullName(node.name, node.namespace ?? namespace)
      return { kind: kindOf(node), node, name: full, namespace: namespaceOf(full) }
    }
    if (typeof node.type !== 'string') return this.resolve(node.type, namespace)
    if (node.type === 'array' || node.type === 'map' || isPrimitive(node.type))
      return { kind: node.type, node, name: undefined, namespace }
    return this.resolve(node.type, namespace)
  }
}

/** Full names of the types that a schema declares. */
export function namesIn(schema: AvroNode): string[] {
  return new AvroNames(schema).all
}

function kindOf(node: AvroObject): string {
  return node.type === 'error' ? 'record' : (node.type as string)
}
