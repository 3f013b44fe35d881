/**
 * Whether messages of one Protobuf file can be read with another, by the rules of the language's guide for changing a
 * message type, in sentences that name the field.
 */
import type { ProtoField, ProtoMessage, ProtoSchema } from './proto-schema.ts'

/** Types that are read in place of each other: their bytes are made in the same way. */
const kinds: Readonly<Record<string, string>> = {
  int32: 'varint',
  uint32: 'varint',
  int64: 'varint',
  uint64: 'varint',
  bool: 'varint',
  enum: 'varint',
  sint32: 'zigzag',
  sint64: 'zigzag',
  fixed32: 'fixed32',
  sfixed32: 'fixed32',
  fixed64: 'fixed64',
  sfixed64: 'fixed64',
  float: 'float',
  double: 'double',
  string: 'bytes',
  bytes: 'bytes',
}

/** Why `reader` cannot read what was written with `writer`; empty: it can. */
export function protobufProblems(reader: ProtoSchema, writer: ProtoSchema): string[] {
  const check = new Check(reader, writer)
  const common = reader.outermost.filter((name) => writer.messages.has(name))
  if (common.length === 0)
    return [`what was written declares no ${reader.outermost.join(', ')}: a message keeps its name and its package`]
  for (const name of common) check.message(name, name)
  return check.problems
}

interface Resolved {
  /** A scalar, `enum`, `message`, or `unknown` where its file was not given. */
  readonly kind: string
  readonly name: string
}

class Check {
  readonly problems: string[] = []
  readonly #reader: ProtoSchema
  readonly #writer: ProtoSchema
  readonly #seen = new Set<string>()

  constructor(reader: ProtoSchema, writer: ProtoSchema) {
    this.#reader = reader
    this.#writer = writer
  }

  message(readerName: string, writerName: string): void {
    const pair = `${readerName} ${writerName}`
    if (this.#seen.has(pair)) return
    this.#seen.add(pair)
    const reader = this.#reader.messages.get(readerName)
    const writer = this.#writer.messages.get(writerName)
    if (reader === undefined || writer === undefined) return
    for (const field of reader.fields) this.#field(reader, field, writer)
    this.#oneofs(reader, writer)
  }

  #field(message: ProtoMessage, field: ProtoField, writer: ProtoMessage): void {
    const { name, number } = field
    const tell = (what: string): void => this.#tell(`${message.name}.${name}`, what)
    const range = writer.reservedNumbers.find(([from, to]) => number >= from && number <= to)
    if (range !== undefined)
      tell(`has the number ${number}, which what was written reserves for a field that was removed`)
    if (writer.reservedNames.includes(name))
      tell('has a name that what was written reserves for a field that was removed')
    const written = writer.fields.find((each) => each.number === number)
    if (written === undefined) {
      const renumbered = writer.fields.find((each) => each.name === name)
      if (renumbered !== undefined)
        tell(
          `has the number ${renumbered.number} in what was written and ${number} in what reads: a number never changes`,
        )
      else if (field.label === 'required') tell('is required in what reads and not in what was written')
      return
    }
    if (field.label === 'required' && written.label !== 'required')
      tell('is required in what reads and may be missing in what was written')
    this.#compare(message, field, writer, written, tell)
  }

  #compare(
    message: ProtoMessage,
    field: ProtoField,
    writer: ProtoMessage,
    written: ProtoField,
    tell: (what: string) => void,
  ): void {
    const fits =
      field.entry === undefined && written.entry === undefined
        ? this.#isRead(field.type, message.name, written.type, writer.name)
        : this.#isMapRead(field, message.name, written, writer.name)
    if (!fits) {
      tell(
        `is ${shown(written)} in what was written and ${shown(field)} in what reads, and the one is not read as the other`,
      )
      return
    }
    const { kind } = this.#resolve(this.#writer, written.type, writer.name)
    const isPacked = written.label === 'repeated' && (written.packed ?? !this.#writer.isProto2)
    const isNumber = kinds[kind] !== undefined && kinds[kind] !== 'bytes'
    if (isNumber && isPacked && field.label !== 'repeated')
      tell('is a packed list of numbers in what was written and a single one in what reads')
  }

  /** A map is a list of messages, each with a key and a value. */
  #isMapRead(field: ProtoField, around: string, written: ProtoField, writtenAround: string): boolean {
    const [own, theirs] = [field.entry, written.entry]
    if (own !== undefined && theirs !== undefined)
      return own.every((type, i) => this.#isRead(type, around, theirs[i] as string, writtenAround))
    const list = own === undefined ? field : written
    const { kind } =
      own === undefined
        ? this.#resolve(this.#reader, list.type, around)
        : this.#resolve(this.#writer, list.type, writtenAround)
    return list.label === 'repeated' && (kind === 'message' || kind === 'unknown')
  }

  /** Compares messages inside as well. */
  #isRead(type: string, around: string, writtenType: string, writtenAround: string): boolean {
    const [isGroup, wasGroup] = [type.startsWith('group '), writtenType.startsWith('group ')]
    if (isGroup !== wasGroup) return false
    const reader = this.#resolve(this.#reader, type.replace('group ', '.'), around)
    const writer = this.#resolve(this.#writer, writtenType.replace('group ', '.'), writtenAround)
    // What a file that was not given declares cannot be judged.
    if (reader.kind === 'unknown' || writer.kind === 'unknown') return true
    if (reader.kind === 'message' && writer.kind === 'message') {
      this.message(reader.name, writer.name)
      return true
    }
    // The bytes of a message are bytes.
    if (reader.kind === 'message' || writer.kind === 'message')
      return reader.kind === 'bytes' || writer.kind === 'bytes'
    return kinds[reader.kind] === kinds[writer.kind]
  }

  /** A name is looked for in the message around it, then in what is around that. */
  #resolve({ messages, enums }: ProtoSchema, type: string, around: string): Resolved {
    if (kinds[type] !== undefined && type !== 'enum') return { kind: type, name: type }
    const scopes = around.split('.')
    for (let depth = type.startsWith('.') ? 0 : scopes.length; depth >= 0; depth--) {
      const name = [...scopes.slice(0, depth), type.replace(/^\./, '')].join('.')
      if (messages.has(name)) return { kind: 'message', name }
      if (enums.has(name)) return { kind: 'enum', name }
    }
    return { kind: 'unknown', name: type }
  }

  /** Of fields that are in one oneof only one is kept. */
  #oneofs(reader: ProtoMessage, writer: ProtoMessage): void {
    const names = new Set(reader.fields.flatMap(({ oneof }) => oneof ?? []))
    for (const oneof of names) {
      const inside = reader.fields.filter((field) => field.oneof === oneof)
      const written = inside.flatMap(({ number }) => writer.fields.find((field) => field.number === number) ?? [])
      const apart = new Set(written.map((field) => field.oneof ?? `field ${field.number}`))
      if (apart.size > 1)
        this.#tell(
          `${reader.name}.${oneof}`,
          `is a oneof of ${written.map(({ name }) => name).join(' and ')}, which may both be set in what was written`,
        )
    }
  }

  #tell(field: string, what: string): void {
    const sentence = `the field ${field} ${what}`
    if (!this.problems.includes(sentence)) this.problems.push(sentence)
  }
}

function shown({ label, type, entry }: ProtoField): string {
  if (entry !== undefined) return `a map<${entry.join(', ')}>`
  const name = type.startsWith('group ') ? 'group' : type
  return label === 'repeated' ? `a list of ${name}` : `${/^[aeio]/.test(name) ? 'an' : 'a'} ${name}`
}
