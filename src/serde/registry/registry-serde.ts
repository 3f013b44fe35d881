/** A serde whose records carry the id of a schema: what all formats have in common. */
import { EngineError } from '../../base/errors.ts'
import type { KnownSchema, RegisterPolicy, SchemaLink, SchemaNeed, SchemaUser } from '../schemas.ts'
import { RecordRoom } from '../record-room.ts'
import { type Serde, SerdeError, SerdeWaits } from '../serde.ts'
import type { Codec, ReadValue, ValueWriter } from './codec.ts'
import { frameBytes, schemaIdOf, writeFrame } from './wire-format.ts'

/** Under which subject a schema stands, and whether the application puts it there. */
export interface RegistryOptions {
  /**
   * How the subject is named under which a schema stands: `topic` (`orders-value`), `record` (`com.acme.Order`) or
   * `topic-record` (`orders-com.acme.Order`). Default: `topic`; `record` where there is no topic, as in stores of an aggregate.
   */
  readonly strategy?: 'topic' | 'record' | 'topic-record'
  /** The subject itself, whatever the strategy. */
  readonly subject?: string
  /**
   * When the application's schema goes into the registry: `never` (default: it has to be there), `on-start` where it is not
   * there yet, `always` at each start, whatever the cache in the state folder says. The embedded registry takes all of them.
   */
  readonly register?: RegisterPolicy
}

/** What is surely enough for a record of the usual size. */
const usualBytes = 512

interface Place {
  readonly topic: string
  readonly part: 'key' | 'value'
}

export class RegistrySerde<T> implements Serde<T> {
  readonly name: string
  readonly #codec: Codec
  readonly #options: RegistryOptions
  readonly #place: Place | undefined
  #link: SchemaLink | undefined
  #needs: readonly SchemaNeed[] = []
  #newest: KnownSchema | undefined
  #writer: ValueWriter | undefined
  readonly #readers = new Map<number, ReadValue>()
  #lastId = -1
  #lastReader: ReadValue | undefined
  /** The bytes read last, as a `Buffer`: many records lie in the same ones. */
  #lastBytes: Uint8Array | undefined
  #lastBuffer: Buffer = Buffer.alloc(0)
  readonly #room = new RecordRoom<T>((value, bytes, at) => this.#write(value, bytes, at))
  readonly schemas: SchemaUser = {
    needs: (writes, where) => this.#needsFor(writes, where),
    connect: (link) => this.#connect(link),
  }
  readonly json = {
    read: (value: unknown): T => this.#codec.fromJson(value, this.#newest) as T,
    write: (value: T): unknown => this.#codec.toJson(value),
  }

  constructor(codec: Codec, options: RegistryOptions, place?: Place) {
    this.name = codec.name
    this.#codec = codec
    this.#options = options
    this.#place = place
  }

  forTopic(topic: string, part: 'key' | 'value'): Serde<T> {
    return new RegistrySerde<T>(this.#codec, this.#options, { topic, part })
  }

  deserialize(bytes: Uint8Array): T {
    return this.deserializeFrom(bytes, 0, bytes.length)
  }

  deserializeFrom(bytes: Uint8Array, start: number, end: number): T {
    const id = schemaIdOf(bytes, start, end, this.name)
    const reader = id === this.#lastId ? (this.#lastReader as ReadValue) : this.#readerOf(id)
    if (bytes !== this.#lastBytes) {
      this.#lastBytes = bytes
      this.#lastBuffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    }
    try {
      return reader(this.#lastBuffer, start + frameBytes, end) as T
    } catch (cause) {
      if (cause instanceof SerdeError) throw cause
      throw new SerdeError(`The record's schema is ${id}, and its bytes are not of it: ${(cause as Error).message}.`, {
        cause,
      })
    }
  }

  serialize(value: T): Uint8Array {
    return this.#room.kept(value)
  }

  serializeTransient(value: T): Uint8Array {
    return this.#room.brief(value)
  }

  /** Where the record ends, or, negative, how many bytes were missing. */
  #write(value: T, bytes: Buffer, at: number): number {
    const writer = this.#writer ?? this.#makeWriter()
    try {
      const id = writer.idOf(value)
      if (bytes.length - at < frameBytes) return bytes.length - at - usualBytes
      writeFrame(bytes, at, id)
      return writer.write(value, bytes, at + frameBytes)
    } catch (cause) {
      if (cause instanceof SerdeError) throw cause
      throw new SerdeError(`The serde '${this.name}' cannot write the value: ${(cause as Error).message}.`, { cause })
    }
  }

  #readerOf(id: number): ReadValue {
    let reader = this.#readers.get(id)
    if (reader === undefined) {
      const writer = this.#linked().schema(id)
      if (writer.type !== this.#codec.type) {
        throw new SerdeError(
          `The record's schema ${id} is of the format ${writer.type}, and the serde '${this.name}' reads ${this.#codec.type}.`,
        )
      }
      reader = this.#codec.reader(writer, this.#newest)
      this.#readers.set(id, reader)
    }
    this.#lastId = id
    this.#lastReader = reader
    return reader
  }

  #makeWriter(): ValueWriter {
    const link = this.#linked()
    const needs = this.#needs.length > 0 ? this.#needs : this.#needsFor(true, 'a serde of the application')
    this.#writer = this.#codec.writer(needs.map((need) => link.own(need)))
    return this.#writer
  }

  #linked(): SchemaLink {
    if (this.#link !== undefined) return this.#link
    throw new SerdeError(
      `The serde '${this.name}' is not connected to a schema registry: it works inside of a running application or a TopologyTestDriver.`,
    )
  }

  #needsFor(writes: boolean, where: string): SchemaNeed[] {
    const { type, own, readsAnything = false } = this.#codec
    const register = this.#options.register ?? 'never'
    if (own.length === 0)
      return [{ subject: this.#subject(undefined, where), type, text: null, writes, register, where }]
    return own.map(({ name, text, imports }) => {
      const need = { subject: this.#subject(name, where), type, text, writes, register, where }
      return { ...need, ...(imports !== undefined && { imports }), ...(readsAnything && { readsAnything }) }
    })
  }

  #subject(record: string | undefined, where: string): string {
    const { subject, strategy } = this.#options
    if (subject !== undefined) return subject
    const place = this.#place
    const { own } = this.#codec
    if (place !== undefined && (strategy ?? 'topic') === 'topic' && own.every(({ text }) => text === own[0]?.text))
      return `${place.topic}-${place.part}`
    if (record === undefined) {
      throw new EngineError(
        'TOPOLOGY_INVALID',
        `The serde '${this.name}' of ${where} has no schema and belongs to no single topic, so nobody can say under which subject its schema stands; give it a schema or a subject.`,
      )
    }
    return place !== undefined && strategy !== 'record' ? `${place.topic}-${record}` : record
  }

  #connect(link: SchemaLink): void {
    this.#link = link
    this.#needs = this.#needsFor(true, 'a serde of the application')
    this.#newest = undefined
    this.#writer = undefined
    this.#readers.clear()
    this.#lastId = -1
    const [first] = this.#needs
    if (first !== undefined && this.#codec.own.length === 0) this.#newest = link.own(first)
  }
}

/** True for what says that a record has to wait, also where it was wrapped. */
export function waitsFor(error: unknown): SerdeWaits | undefined {
  if (error instanceof SerdeWaits) return error
  const { cause } = error as { cause?: unknown }
  return cause instanceof SerdeWaits ? cause : undefined
}
