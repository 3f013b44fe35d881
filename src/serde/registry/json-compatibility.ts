/**
 * Whether values of one JSON Schema satisfy another, in sentences that name the field. Told is what surely breaks: a value that
 * the one allows and the other refuses. Properties that the writer does not declare count as not written, and what is
 * beyond comparing (`not`, `if`, patterns that differ in their text alone) is taken for fitting: each record is checked all
 * the same.
 */

type Node = boolean | SchemaObject
type SchemaObject = Readonly<Record<string, unknown>>

const kinds = ['null', 'boolean', 'object', 'array', 'number', 'string'] as const
const deepest = 40

/** Why `reader` refuses values of `writer`; empty: it takes them. References are looked up in the texts by their names. */
export function jsonSchemaProblems(
  reader: unknown,
  writer: unknown,
  references: Readonly<Record<string, unknown>> = {},
): string[] {
  const check = new Check(reader as Node, writer as Node, references)
  check.compare(reader as Node, writer as Node, '', 0)
  return check.problems
}

class Check {
  readonly problems: string[] = []
  readonly #reader: Node
  readonly #writer: Node
  readonly #references: Readonly<Record<string, unknown>>

  constructor(reader: Node, writer: Node, references: Readonly<Record<string, unknown>>) {
    this.#reader = reader
    this.#writer = writer
    this.#references = references
  }

  compare(readerNode: Node, writerNode: Node, path: string, depth: number): void {
    if (depth > deepest) return
    const reader = this.#resolved(readerNode, this.#reader)
    const writer = this.#resolved(writerNode, this.#writer)
    if (writer === false || reader === true) return
    if (reader === false) {
      this.#tell(path, 'is allowed in what was written and never in what reads')
      return
    }
    const branches = branchesOf(writer)
    if (branches !== undefined) {
      for (const branch of branches) this.compare(reader, branch, path, depth + 1)
      return
    }
    const own = branchesOf(reader)
    if (own !== undefined) {
      this.#oneOf(own, writer, path, depth)
      return
    }
    for (const part of listOf(reader.allOf)) this.compare(part, writer, path, depth + 1)
    if (writer === true || listOf(writer.allOf).length > 0) return
    this.#types(reader, writer, path)
    this.#enums(reader, writer, path)
    this.#limits(reader, writer, path)
    this.#properties(reader, writer, path, depth)
    this.#items(reader, writer, path, depth)
  }

  #oneOf(branches: readonly Node[], writer: Node, path: string, depth: number): void {
    const fits = branches.some((branch) => {
      const inner = new Check(this.#reader, this.#writer, this.#references)
      inner.compare(branch, writer, path, depth + 1)
      return inner.problems.length === 0
    })
    if (!fits) this.#tell(path, 'has a form in what was written that no branch of what reads takes')
  }

  #resolved(node: Node, root: Node): Node {
    let at = node
    for (let i = 0; i < deepest; i++) {
      if (typeof at === 'boolean' || typeof at.$ref !== 'string') return at
      at = this.#target(at.$ref, root) ?? true
    }
    return true
  }

  #target(ref: string, root: Node): Node | undefined {
    const [file = '', pointer = ''] = ref.split('#', 2)
    let at: unknown = file === '' ? root : this.#references[file]
    for (const part of pointer.split('/').slice(1)) {
      const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
      at = typeof at === 'object' && at !== null ? (at as SchemaObject)[name] : undefined
    }
    return at as Node | undefined
  }

  #types(reader: SchemaObject, writer: SchemaObject, path: string): void {
    const own = typesOf(reader)
    const missing = typesOf(writer).filter(
      (type) => !own.includes(type) && !(type === 'integer' && own.includes('number')),
    )
    if (missing.length > 0 && reader.type !== undefined)
      this.#tell(path, `may be ${missing.join(', ')} in what was written and is ${own.join(', ')} in what reads`)
  }

  #enums(reader: SchemaObject, writer: SchemaObject, path: string): void {
    const own = valuesOf(reader)
    if (own === undefined) return
    const texts = new Set(own.map((value) => JSON.stringify(value)))
    const written = valuesOf(writer)?.map((value) => JSON.stringify(value))
    const missing = written?.filter((value) => !texts.has(value))
    if (missing === undefined)
      this.#tell(path, `has values of its own in what reads (${[...texts].join(', ')}) and any in what was written`)
    else if (missing.length > 0)
      this.#tell(path, `may be ${missing.join(', ')} in what was written, which what reads does not list`)
  }

  #limits(reader: SchemaObject, writer: SchemaObject, path: string): void {
    for (const name of ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'])
      this.#limit(reader[name], writer[name], (own, theirs) => own > theirs, name, path)
    for (const name of ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'])
      this.#limit(reader[name], writer[name], (own, theirs) => own < theirs, name, path)
    if (reader.uniqueItems === true && writer.uniqueItems !== true)
      this.#tell(path, 'may have an item twice in what was written and not in what reads')
    if (typeof reader.pattern === 'string' && writer.pattern === undefined && valuesOf(writer) === undefined)
      this.#tell(path, `has the pattern ${reader.pattern} in what reads and none in what was written`)
  }

  #limit(
    own: unknown,
    theirs: unknown,
    isTighter: (a: number, b: number) => boolean,
    name: string,
    path: string,
  ): void {
    if (typeof own !== 'number' || (typeof theirs === 'number' && !isTighter(own, theirs))) return
    const written = typeof theirs === 'number' ? `of ${theirs}` : 'no such limit'
    this.#tell(path, `has a ${name} of ${own} in what reads and ${written} in what was written`)
  }

  #properties(reader: SchemaObject, writer: SchemaObject, path: string, depth: number): void {
    if (!typesOf(writer).includes('object')) return
    const own = objectOf(reader.properties)
    const written = objectOf(writer.properties)
    const always = new Set(namesOf(writer.required))
    for (const name of namesOf(reader.required))
      if (!always.has(name))
        this.#tell(inside(path, name), 'is required in what reads and may be missing in what was written')
    for (const [name, node] of Object.entries(written)) {
      if (own[name] !== undefined) this.compare(own[name], node, inside(path, name), depth + 1)
      else if (reader.patternProperties !== undefined || node === false) continue
      else if (reader.additionalProperties === false)
        this.#tell(
          inside(path, name),
          'is in what was written, and what reads allows no property that it does not declare',
        )
      else if (reader.additionalProperties !== undefined)
        this.compare(reader.additionalProperties as Node, node, inside(path, name), depth + 1)
    }
    if (typeof reader.additionalProperties === 'object' && typeof writer.additionalProperties === 'object')
      this.compare(
        reader.additionalProperties as Node,
        writer.additionalProperties as Node,
        inside(path, '*'),
        depth + 1,
      )
  }

  #items(reader: SchemaObject, writer: SchemaObject, path: string, depth: number): void {
    if (!typesOf(writer).includes('array')) return
    const [own, written] = [reader.items, writer.items]
    if (own === undefined || Array.isArray(own) || Array.isArray(written)) return
    this.compare(own as Node, (written ?? true) as Node, `${path}[]`, depth + 1)
  }

  #tell(path: string, what: string): void {
    const sentence = path === '' ? `the value itself ${what}` : `the field ${path} ${what}`
    if (!this.problems.includes(sentence)) this.problems.push(sentence)
  }
}

function branchesOf(node: Node): readonly Node[] | undefined {
  if (typeof node === 'boolean') return undefined
  const list = node.oneOf ?? node.anyOf
  return Array.isArray(list) ? (list as Node[]) : undefined
}

function listOf(value: unknown): readonly Node[] {
  return Array.isArray(value) ? (value as Node[]) : []
}

function objectOf(value: unknown): Readonly<Record<string, Node>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, Node>) : {}
}

function namesOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : []
}

function typesOf({ type }: SchemaObject): readonly string[] {
  if (type === undefined) return kinds
  return Array.isArray(type) ? type.map(String) : [String(type)]
}

/** The values that a schema lists; undefined: it lists none. */
function valuesOf(node: SchemaObject): readonly unknown[] | undefined {
  if (Array.isArray(node.enum)) return node.enum
  return Object.hasOwn(node, 'const') ? [node.const] : undefined
}

function inside(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
