/** Encodings of what operators keep for themselves or send to one another. Nothing else reads them. */
import type { Serde } from '../../serde/serde.ts'
import { readInt64, writeInt64 } from '../../serde/primitive.ts'
import type { Headers } from '../../broker/wire/headers.ts'

/** A buffer that grows as it is written to. A length of -1 stands for null. */
class Writer {
  #bytes = new Uint8Array(64)
  #at = 0

  #room(length: number): void {
    if (this.#at + length <= this.#bytes.length) return
    const larger = new Uint8Array(Math.max(this.#bytes.length * 2, this.#at + length))
    larger.set(this.#bytes)
    this.#bytes = larger
  }

  byte(value: number): this {
    this.#room(1)
    this.#bytes[this.#at++] = value
    return this
  }

  int32(value: number): this {
    this.#room(4)
    for (let shift = 24; shift >= 0; shift -= 8) this.#bytes[this.#at++] = value >> shift
    return this
  }

  int64(value: number): this {
    this.#room(8)
    writeInt64(this.#bytes, this.#at, value)
    this.#at += 8
    return this
  }

  chunk(bytes: Uint8Array | null): this {
    if (bytes === null) return this.int32(-1)
    this.int32(bytes.length)
    this.#room(bytes.length)
    this.#bytes.set(bytes, this.#at)
    this.#at += bytes.length
    return this
  }

  value(serde: Serde<unknown>, value: unknown): this {
    return this.chunk(value === null || value === undefined ? null : serde.serialize(value))
  }

  text(value: string): this {
    return this.chunk(new TextEncoder().encode(value))
  }

  headers(headers: Headers): this {
    this.int32(headers.length)
    for (const [name, value] of headers) {
      this.text(name)
      this.byte(typeof value === 'string' ? 1 : 0)
      this.chunk(typeof value === 'string' ? new TextEncoder().encode(value) : value)
    }
    return this
  }

  done(): Uint8Array {
    return this.#bytes.slice(0, this.#at)
  }
}

class Reader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get ended(): boolean {
    return this.#at === this.#bytes.length
  }

  byte(): number {
    return this.#bytes[this.#at++] as number
  }

  int32(): number {
    let value = 0
    for (let i = 0; i < 4; i++) value = (value << 8) | this.byte()
    return value
  }

  int64(): number {
    const value = readInt64(this.#bytes, this.#at)
    this.#at += 8
    return value
  }

  chunk(): Uint8Array | null {
    const length = this.int32()
    if (length < 0) return null
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }

  value(serde: Serde<unknown>): unknown {
    const bytes = this.chunk()
    return bytes === null ? null : serde.deserialize(bytes)
  }

  headers(): Headers {
    const count = this.int32()
    if (count === 0) return none
    return Array.from({ length: count }, () => {
      const name = new TextDecoder().decode(this.chunk() ?? undefined)
      const isText = this.byte() === 1
      const bytes = this.chunk()
      return [name, bytes === null ? null : isText ? new TextDecoder().decode(bytes) : bytes.slice()] as const
    })
  }
}

const none: Headers = []

/** The update of one row on its way to another sub-topology. */
export interface ChangeOnWire {
  readonly newValue: unknown
  readonly oldValue: unknown
  readonly isLatest: boolean
}

export function changeSerde(value: Serde<unknown>): Serde<ChangeOnWire> {
  return {
    name: `change(${value.name})`,
    parts: [value],
    serialize: (change) =>
      new Writer()
        .byte(change.isLatest ? 1 : 0)
        .value(value, change.newValue)
        .value(value, change.oldValue)
        .done(),
    deserialize(bytes) {
      const reader = new Reader(bytes)
      const isLatest = reader.byte() === 1
      return { newValue: reader.value(value), oldValue: reader.value(value), isLatest }
    },
  }
}

/** A record that waits: for a partner, or for its time. */
export interface WaitingRecord {
  readonly value: unknown
  readonly headers: Headers
  /** How many of its key, side and timestamp its side remembered before it. */
  readonly place: number
}

/** The records of one key, side and timestamp that wait, or the places of those that were told to have no partner. */
export interface Waiting {
  readonly left: boolean
  readonly key: unknown
  readonly records: readonly WaitingRecord[]
  /** `all`: an earlier build told them, which kept no places. */
  readonly told: readonly number[] | 'all'
}

/**
 * Earlier builds wrote a row's headers once, those of its last record, and neither places nor what was told. Rows begin in that form still,
 * so that both read those of each other. What it does not say stands behind it.
 */
export function waitingSerde(key: Serde<unknown>, left: Serde<unknown>, right: Serde<unknown>): Serde<Waiting> {
  return {
    name: 'waiting',
    parts: [key, left, right],
    serialize(waiting) {
      const { records } = waiting
      const serde = waiting.left ? left : right
      const headers = records.at(-1)?.headers ?? none
      const writer = new Writer()
        .byte(waiting.left ? 1 : 0)
        .value(key, waiting.key)
        .headers(headers)
        .int32(records.length)
      for (const { value } of records) writer.value(serde, value)
      if (!isPlain(waiting, headers)) writePlaces(writer, waiting)
      return writer.done()
    },
    deserialize(bytes) {
      const reader = new Reader(bytes)
      const isLeft = reader.byte() === 1
      const itsKey = reader.value(key)
      const headers = reader.headers()
      const values = Array.from({ length: reader.int32() }, () => reader.value(isLeft ? left : right))
      return { left: isLeft, key: itsKey, ...(reader.ended ? plain(values, headers) : readPlaces(reader, values)) }
    },
  }
}

/** A row of which the form of earlier builds says all. */
function isPlain({ records, told }: Waiting, headers: Headers): boolean {
  if (records.length === 0) return told === 'all'
  if (told === 'all' || told.length > 0) return false
  return records.every((record, i) => record.place === i && isSame(record.headers, headers))
}

const isSame = (a: Headers, b: Headers): boolean => a === b || (a.length === 0 && b.length === 0)

function plain(values: readonly unknown[], headers: Headers): Pick<Waiting, 'records' | 'told'> {
  return { records: values.map((value, place) => ({ value, headers, place })), told: values.length === 0 ? 'all' : [] }
}

function writePlaces(writer: Writer, { records, told }: Waiting): void {
  for (const { place, headers } of records) writer.int32(place).headers(headers)
  if (told === 'all') writer.int32(-1)
  else {
    writer.int32(told.length)
    for (const place of told) writer.int32(place)
  }
}

function readPlaces(reader: Reader, values: readonly unknown[]): Pick<Waiting, 'records' | 'told'> {
  const records = values.map((value) => ({ value, place: reader.int32(), headers: reader.headers() }))
  const count = reader.int32()
  return { records, told: count < 0 ? 'all' : Array.from({ length: count }, () => reader.int32()) }
}

/** An update that `suppress` holds back. */
export interface Suppressed {
  /** The time that decides when it leaves: the end of the window, or the timestamp of the key's first update. */
  readonly time: number
  /** When any of the values that were replaced was told, at the latest, where that may be later than this update; else 0. */
  readonly oldTimestamp: number
  readonly timestamp: number
  readonly headers: Headers
  readonly newValue: unknown
  /**
   * The value that the newest update replaced. As in Kafka Streams it goes on with the update, although it may never
   * have left.
   */
  readonly oldValue: unknown
  /** The value of the key before its first update here: a look-up finds this meanwhile. */
  readonly priorValue: unknown
}

export function suppressedSerde(value: Serde<unknown>): Serde<Suppressed> {
  return {
    name: `suppressed(${value.name})`,
    parts: [value],
    serialize: (row) =>
      new Writer()
        .int64(row.time)
        .int64(row.oldTimestamp)
        .int64(row.timestamp)
        .headers(row.headers)
        .value(value, row.newValue)
        .value(value, row.oldValue)
        .value(value, row.priorValue)
        .done(),
    deserialize(bytes) {
      const reader = new Reader(bytes)
      const time = reader.int64()
      const oldTimestamp = reader.int64()
      const timestamp = reader.int64()
      const headers = reader.headers()
      const newValue = reader.value(value)
      const oldValue = reader.value(value)
      return { time, oldTimestamp, timestamp, headers, newValue, oldValue, priorValue: reader.value(value) }
    },
  }
}

/** The message of a left row of a foreign-key join to the right side. */
export interface Subscription {
  /**
   * `answer-if-found`: where there is no right row, the answer matters only where there is a result to take back, one of a
   * left row before whose deletion was answered too late. `answer-again`: that is so too, for the row names the same
   * right row as before.
   */
  readonly instruction: 'unsubscribe' | 'unsubscribe-and-answer' | 'answer-if-found' | 'answer' | 'answer-again'
  readonly primaryKey: Uint8Array
  /** The identity of the left value; null when there is none. */
  readonly hash: number | null
  /**
   * Where the left row lies, if the answer comes through a topic: a producer may have put it elsewhere than its key says.
   * Undefined where an earlier build has written it.
   */
  readonly partition: number | undefined
}

const instructions = ['unsubscribe', 'unsubscribe-and-answer', 'answer-if-found', 'answer', 'answer-again'] as const

export const subscriptionSerde: Serde<Subscription> = {
  name: 'subscription',
  serialize(subscription) {
    const writer = new Writer().byte(instructions.indexOf(subscription.instruction)).chunk(subscription.primaryKey)
    writer.byte(subscription.hash === null ? 0 : 1).int64(subscription.hash ?? 0)
    // Behind all that earlier builds read.
    if (subscription.partition !== undefined) writer.int32(subscription.partition)
    return writer.done()
  },
  deserialize(bytes) {
    const reader = new Reader(bytes)
    const instruction = instructions[reader.byte()] as Subscription['instruction']
    const primaryKey = (reader.chunk() as Uint8Array).slice()
    const present = reader.byte() === 1
    const hash = reader.int64()
    const partition = reader.ended ? undefined : reader.int32()
    return { instruction, primaryKey, hash: present ? hash : null, partition }
  },
}

/** The answer of the right side to a left row. */
export interface SubscriptionAnswer {
  readonly hash: number | null
  readonly value: unknown
  /** A missing value takes back a result, if there is one. */
  readonly quiet: boolean
  /** The partition to which it goes, which it need not tell there; undefined: that of its key. */
  readonly partition?: number | undefined
}

export function answerSerde(value: Serde<unknown>): Serde<SubscriptionAnswer> {
  return {
    name: `answer(${value.name})`,
    parts: [value],
    serialize(answer) {
      const writer = new Writer().byte((answer.hash === null ? 0 : 1) + (answer.quiet ? 2 : 0)).int64(answer.hash ?? 0)
      return writer.value(value, answer.value).done()
    },
    deserialize(bytes) {
      const reader = new Reader(bytes)
      const flags = reader.byte()
      const hash = reader.int64()
      return { hash: flags & 1 ? hash : null, value: reader.value(value), quiet: (flags & 2) !== 0 }
    },
  }
}

/** A 53-bit identity of bytes: two multiplicative hashes side by side. */
export function identityOf(bytes: Uint8Array): number {
  let a = 0xdeadbeef ^ bytes.length
  let b = 0x41c6ce57 ^ bytes.length
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number
    a = Math.imul(a ^ byte, 2654435761)
    b = Math.imul(b ^ byte, 1597334677)
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909)
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909)
  return 4294967296 * (2097151 & b) + (a >>> 0)
}

/** Bytes that sort by a time and then by what follows. Times are not negative. */
export function timedKey(timeMs: number, tail: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(8 + tail.length)
  writeInt64(bytes, 0, timeMs)
  bytes.set(tail, 8)
  return bytes
}

export function timeOfKey(bytes: Uint8Array): number {
  return readInt64(bytes, 0)
}
