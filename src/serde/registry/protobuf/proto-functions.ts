/** Functions made for one message type each, and the library wherever these give up. */
import type { DescMessage, Message } from '@bufbuild/protobuf'
import { codeOf } from '../../json-shape-code.ts'
import {
  isFloat,
  isInt64,
  isUint64,
  mapKey,
  noRoom,
  notSimple,
  ownBytes,
  ProtoReader,
  readText,
  writeBytes,
  writeInt32,
  writeInt64,
  writeLength,
  writeSint64,
  writeText,
  writeUnknown,
  writeVarint,
} from './proto-bytes.ts'
import { isForbidden } from './proto-fields.ts'
import { isClosed, readText as readFunctionText } from './proto-read-code.ts'
import { writeText as writeFunctionText } from './proto-write-code.ts'

export type ProtobufRuntime = typeof import('@bufbuild/protobuf')
type Read = (bytes: Buffer, at: number, end: number, depth: number) => unknown
type Write = (value: unknown, bytes: Buffer, at: number, end: number, init: boolean) => number

/** What reads and writes a message inside of another one; filled in once its functions are made. */
interface Made {
  read: Read
  write: Write
}

const usualBytes = 1024

export class ProtoFunctions {
  readonly #runtime: ProtobufRuntime
  readonly #io = new ProtoReader()
  readonly #made = new Map<DescMessage, Made>()
  #scratch = Buffer.allocUnsafeSlow(usualBytes)

  constructor(runtime: ProtobufRuntime) {
    this.#runtime = runtime
  }

  /** The message between `at` and `end`. */
  read(desc: DescMessage, bytes: Buffer, at: number, end: number): unknown {
    this.#io.use(bytes)
    const message = this.#of(desc).read(bytes, at, end, 0)
    return message === undefined ? this.#runtime.fromBinary(desc, ownBytes(bytes, at, end)) : message
  }

  /** Where the message ends, or, negative, how many bytes were missing. */
  write(desc: DescMessage, value: unknown, bytes: Buffer, at: number): number {
    const { write } = this.#of(desc)
    this.#io.use(bytes)
    const end = write(value, bytes, at, bytes.length, true)
    return end >= 0
      ? end
      : this.#put(end === noRoom ? this.#apart(desc, value, write) : this.#byLibrary(desc, value), bytes, at)
  }

  #put(message: Uint8Array, bytes: Buffer, at: number): number {
    if (bytes.length - at < message.length) return bytes.length - at - message.length
    bytes.set(message, at)
    return at + message.length
  }

  /** In bytes of our own, with room enough. */
  #apart(desc: DescMessage, value: unknown, write: Write): Uint8Array {
    for (;;) {
      this.#io.use(this.#scratch)
      const end = write(value, this.#scratch, 0, this.#scratch.length, true)
      if (end >= 0) return this.#scratch.subarray(0, end)
      if (end !== noRoom) return this.#byLibrary(desc, value)
      this.#scratch = Buffer.allocUnsafeSlow(2 * this.#scratch.length)
    }
  }

  #byLibrary(desc: DescMessage, value: unknown): Uint8Array {
    const { create, toBinary } = this.#runtime
    const isMessage = (value as Partial<Message>).$typeName !== undefined
    return toBinary(desc, isMessage ? (value as Message) : create(desc, value as never))
  }

  #of(desc: DescMessage): Made {
    let made = this.#made.get(desc)
    if (made === undefined) {
      made = {
        read: (bytes, at, end) => this.#runtime.fromBinary(desc, ownBytes(bytes, at, end)),
        write: () => notSimple,
      }
      // Known before its functions are made: a message may hold others of its type.
      this.#made.set(desc, made)
      this.#make(desc, made)
    }
    return made
  }

  /** Without functions of its own, where names or the process do not allow them, it stays the library's. */
  #make(desc: DescMessage, made: Made): void {
    if (desc.members.some(({ localName }) => isForbidden(localName))) return
    const zero = this.#runtime.create(desc) as unknown as Record<string, unknown>
    const prototype = Object.getPrototypeOf(zero) as object
    const reading = readFunctionText(desc, zero, prototype !== Object.prototype)
    const closed = Object.fromEntries(
      desc.fields
        .filter(isClosed)
        .map((field) => [`f${field.number}`, new Set(field.enum?.values.map((value) => value.number))]),
    )
    const io = this.#io
    const inside = (messages: ReadonlyMap<DescMessage, string>): Record<string, Made> =>
      Object.fromEntries([...messages].map(([message, name]) => [name, this.#of(message)]))
    const read = functionOf(reading.text, { io, readText, ownBytes, prototype, closed, ...inside(reading.messages) })
    const writing = writeFunctionText(desc)
    const write = functionOf(writing.text, { ...writeParts, io, ...inside(writing.messages) })
    if (read === undefined || write === undefined) return
    made.read = read as Read
    made.write = write as Write
  }
}

const writeParts = {
  none: { case: undefined },
  noRoom,
  notSimple,
  isFloat,
  isInt64,
  isUint64,
  mapKey,
  writeBytes,
  writeInt32,
  writeInt64,
  writeLength,
  writeSint64,
  writeText,
  writeUnknown,
  writeVarint,
}

function functionOf(text: string, parts: Readonly<Record<string, unknown>>): unknown {
  return codeOf(Object.keys(parts), text)?.(...Object.values(parts))
}
