/** Whether records of one Avro schema can be read with another, by the specification's rules, in sentences that name the field. */
import { type AvroField, AvroNames, type AvroNode, type AvroObject, type Resolved } from './avro-schema.ts'

/** What widens to what. */
const promotions: Readonly<Record<string, readonly string[]>> = {
  long: ['int'],
  float: ['int', 'long'],
  double: ['int', 'long', 'float'],
  string: ['bytes'],
  bytes: ['string'],
}

/**
 * Why `reader` cannot read what was written with `writer`; empty: it can. `known`: the schemas to which the writer's refers, and
 * the reader's too where none are given for it.
 */
export function avroProblems(
  reader: AvroNode,
  writer: AvroNode,
  known: readonly AvroNode[] = [],
  knownToReader: readonly AvroNode[] = known,
): string[] {
  const check = new Check(new AvroNames(...knownToReader, reader), new AvroNames(...known, writer))
  check.compare(reader, undefined, writer, undefined, '')
  return check.problems
}

class Check {
  readonly problems: string[] = []
  readonly #readers: AvroNames
  readonly #writers: AvroNames
  /** Pairs of records that are being compared, or were. */
  readonly #seen = new Set<string>()

  constructor(readers: AvroNames, writers: AvroNames) {
    this.#readers = readers
    this.#writers = writers
  }

  compare(
    readerNode: AvroNode,
    readerSpace: string | undefined,
    writerNode: AvroNode,
    writerSpace: string | undefined,
    path: string,
  ): void {
    const reader = this.#readers.resolve(readerNode, readerSpace)
    const writer = this.#writers.resolve(writerNode, writerSpace)
    if (writer.kind === 'union') {
      // Each of them may come.
      for (const branch of writer.node as readonly AvroNode[])
        this.compare(readerNode, readerSpace, branch, writer.namespace, path)
      return
    }
    if (reader.kind === 'union') {
      this.#compareUnion(reader, writer, writerNode, writerSpace, path)
      return
    }
    if (reader.kind !== writer.kind) {
      // Digits are not what the characters of a text are.
      const isDecimal = (reader.node as AvroObject).logicalType === 'decimal'
      if (isDecimal || promotions[reader.kind]?.includes(writer.kind) !== true)
        this.#tell(
          path,
          `is ${shown(writer)} in what was written and ${shown(reader)} in what reads, and the one does not become the other`,
        )
      return
    }
    this.#compareAlike(reader, writer, path)
  }

  #compareUnion(reader: Resolved, writer: Resolved, node: AvroNode, space: string | undefined, path: string): void {
    const branches = reader.node as readonly AvroNode[]
    const fits = branches.some((branch) => {
      const inner = new Check(this.#readers, this.#writers)
      for (const pair of this.#seen) inner.#seen.add(pair)
      inner.compare(branch, reader.namespace, node, space, path)
      return inner.problems.length === 0
    })
    if (!fits)
      this.#tell(path, `may be ${shown(writer)} in what was written, and no branch of the reader's union takes that`)
  }

  #compareAlike(reader: Resolved, writer: Resolved, path: string): void {
    const r = reader.node as AvroObject
    const w = writer.node as AvroObject
    switch (reader.kind) {
      case 'record':
        if (this.#isNamed(reader, writer, path)) this.#compareRecords(reader, writer, path)
        return
      case 'enum':
        if (this.#isNamed(reader, writer, path)) this.#compareEnums(r, w, path)
        return
      case 'fixed':
        if (!this.#isNamed(reader, writer, path)) return
        if (r.size !== w.size) this.#tell(path, `has ${w.size} bytes in what was written and ${r.size} in what reads`)
        else this.#compareDecimals(r, w, path)
        return
      case 'array':
        this.compare(r.items as AvroNode, reader.namespace, w.items as AvroNode, writer.namespace, `${path}[]`)
        return
      case 'map':
        this.compare(r.values as AvroNode, reader.namespace, w.values as AvroNode, writer.namespace, `${path}{}`)
        return
      default:
        this.#compareDecimals(r, w, path)
    }
  }

  /** Names need only agree in their last part; an alias of the reader's counts too. */
  #isNamed(reader: Resolved, writer: Resolved, path: string): boolean {
    const short = (name: string | undefined): string => (name ?? '').slice((name ?? '').lastIndexOf('.') + 1)
    const aliases = (reader.node as AvroObject).aliases ?? []
    if (short(reader.name) === short(writer.name)) return true
    if (aliases.some((alias) => alias === writer.name || short(alias) === short(writer.name))) return true
    this.#tell(
      path,
      `is named ${writer.name} in what was written and ${reader.name} in what reads, which has no such alias`,
    )
    return false
  }

  #compareRecords(reader: Resolved, writer: Resolved, path: string): void {
    const pair = `${reader.name} ${writer.name}`
    if (this.#seen.has(pair)) return
    this.#seen.add(pair)
    const written = (writer.node as AvroObject).fields ?? []
    for (const field of (reader.node as AvroObject).fields ?? []) {
      const inner = path === '' ? field.name : `${path}.${field.name}`
      const match = written.find(({ name }) => name === field.name || field.aliases?.includes(name) === true)
      if (match !== undefined) this.compare(field.type, reader.namespace, match.type, writer.namespace, inner)
      else if (!hasDefault(field)) this.#tell(inner, 'is not in what was written, and what reads has no default for it')
    }
  }

  #compareEnums(r: AvroObject, w: AvroObject, path: string): void {
    if (r.default !== undefined) return
    const missing = (w.symbols ?? []).filter((symbol) => r.symbols?.includes(symbol) !== true)
    if (missing.length > 0)
      this.#tell(
        path,
        `may be ${missing.join(', ')} in what was written, which is no symbol of what reads, and there is no default`,
      )
  }

  #compareDecimals(r: AvroObject, w: AvroObject, path: string): void {
    if (r.logicalType !== 'decimal' || w.logicalType !== 'decimal') return
    if ((r.scale ?? 0) !== (w.scale ?? 0))
      this.#tell(
        path,
        `is a decimal of scale ${w.scale ?? 0} in what was written and of scale ${r.scale ?? 0} in what reads`,
      )
  }

  #tell(path: string, what: string): void {
    const sentence = path === '' ? `the schema itself ${what}` : `the field ${path} ${what}`
    if (!this.problems.includes(sentence)) this.problems.push(sentence)
  }
}

function hasDefault(field: AvroField): boolean {
  return Object.hasOwn(field, 'default')
}

function shown({ kind, name }: Resolved): string {
  const named = name === undefined ? '' : ` ${name}`
  return `${/^[aei]/.test(kind) ? 'an' : 'a'} ${kind}${named}`
}
