/**
 * One row of a store. A value is kept decoded where it is a primitive, or where its serde makes copies: an object handed
 * out or taken in could be changed behind the store's back, which would corrupt committed state and the old values of a
 * table's changes. So what is kept is never what anybody else holds.
 */
import { readInt64, writeInt64 } from '../../serde/primitive.ts'
import type { Serde } from '../../serde/serde.ts'
import { owned } from './bytes.ts'
import type { StoreSpec } from '../contract.ts'
import { unreadableRow } from './unreadable.ts'
import { OneScratch, Scratch } from './scratch.ts'

const undecoded: unique symbol = Symbol('undecoded')
const deleted: unique symbol = Symbol('deleted')

/** Generation of what is committed. Uncommitted epochs count up from 1. */
export const committedGeneration = 0

/** A committed row whose value takes more bytes is decoded anew for each reader, or its objects would take several times that. */
const mostDecodedBytes = 2048

export class Row {
  /** The decoded primitive, or the store's own copy; null for the tombstone of a versioned store. */
  value: unknown
  /** The serialised value; undefined while only the decoded primitive is kept. */
  bytes: Uint8Array | undefined
  timestamp: number
  generation = committedGeneration
  /** What the key held before this generation, where that is known here. */
  below: Row | undefined = undefined

  constructor(value: unknown, bytes: Uint8Array | undefined, timestamp: number) {
    this.value = value
    this.bytes = bytes
    this.timestamp = timestamp
  }

  /** The row says that the key has none. */
  get isDeleted(): boolean {
    return this.value === deleted
  }

  delete(): void {
    this.value = deleted
    this.bytes = undefined
  }

  /** The same value and time, as a committed row. */
  copy(): Row {
    return new Row(this.value, this.bytes, this.timestamp)
  }

  static deletion(): Row {
    return new Row(deleted, undefined, 0)
  }
}

/**
 * What lies in the backend: `plain` the value's bytes; `stamped` the 8-byte timestamp, then the value's bytes;
 * `versioned` one byte, 1 before a value's bytes, 0 alone for a deletion (the timestamp is in the key).
 */
export type RowForm = 'plain' | 'stamped' | 'versioned'

export function rowForm(spec: StoreSpec): RowForm {
  if (spec.kind === 'versioned') return 'versioned'
  return spec.timestamped || spec.ttlMs !== undefined ? 'stamped' : 'plain'
}

const tombstone = Uint8Array.of(0)
/** Longer ranges are copied by the platform. */
const shortCopy = 64

/** Puts bytes of the changelog into the form of the backend. */
export function backendValue(form: RowForm, value: Uint8Array, timestamp: number): Uint8Array {
  if (form === 'plain') return value
  const head = form === 'stamped' ? 8 : 1
  const bytes = new Uint8Array(head + value.length)
  if (form === 'stamped') writeInt64(bytes, 0, timestamp)
  else bytes[0] = 1
  bytes.set(value, head)
  return bytes
}

const scratch = new Scratch()
/** One piece of memory for all: whoever has to know where bytes lie asks once. */
const brief = new OneScratch()

export class RowCodec {
  readonly form: RowForm
  /** The rows go to a backend of bytes when they are committed. */
  keepsBytes = false
  readonly #serde: Serde<unknown>
  /** Whose rows they are, for messages. */
  readonly #store: string
  readonly #partition: number

  constructor(form: RowForm, serde: Serde<unknown>, store = '', partition = 0) {
    this.form = form
    this.#serde = serde
    this.#store = store
    this.#partition = partition
  }

  static of(spec: StoreSpec, partition: number): RowCodec {
    return new RowCodec(rowForm(spec), spec.valueSerde, spec.name, partition)
  }

  /** Gives a row of the open epoch another value without making another row. */
  replace(row: Row, value: unknown, timestamp: number): void {
    const serde = this.#serde
    const plain = serde.isPlain?.(value) ? value : serde.copy?.(value)
    if (plain !== undefined) {
      row.value = plain
      row.bytes = undefined
    } else {
      // First the part that may throw.
      const bytes = serde.serialize(value)
      row.bytes = serde.isPlain === undefined ? bytes.slice() : owned(bytes)
      row.value = undecoded
    }
    row.timestamp = timestamp
  }

  /** Makes the row one that was not decoded yet. */
  fill(row: Row, bytes: Uint8Array, timestamp: number): void {
    row.value = undecoded
    row.bytes = bytes
    row.timestamp = timestamp
  }

  /** A deletion that is itself a row: what a versioned store keeps. */
  tombstone(timestamp: number): Row {
    return new Row(null, undefined, timestamp)
  }

  value(row: Row): unknown {
    const serde = this.#serde
    const { value } = row
    if (value !== undecoded) return typeof value === 'object' && value !== null ? serde.copy?.(value, true) : value
    const bytes = row.bytes as Uint8Array
    const decoded = this.#decoded(bytes)
    if (serde.isPlain?.(decoded)) this.#keepDecoded(row, decoded)
    else if (serde.copy !== undefined && bytes.length <= mostDecodedBytes) {
      const copy = serde.copy(decoded)
      if (copy !== undefined) this.#keepDecoded(row, copy)
    }
    return decoded
  }

  /** What a store holds came from its changelog, or went there: input has nothing to do with it, nor have its policies. */
  #decoded(bytes: Uint8Array): unknown {
    try {
      return this.#serde.deserialize(bytes)
    } catch (cause) {
      throw unreadableRow(
        { store: this.#store, partition: this.#partition, bytes, what: 'value' },
        this.#serde.name,
        cause,
      )
    }
  }

  /** The value as its serde writes it; null for a deletion. `isBrief`: the bytes are valid until the next such call. */
  bytes(row: Row, isBrief = false): Uint8Array | null {
    if (row.bytes !== undefined) return row.bytes
    const { value } = row
    if (value === null || value === deleted) return null
    const { fixed } = this.#serde
    if (isBrief && fixed !== undefined) {
      const bytes = scratch.of(fixed.size)
      fixed.write(value, bytes, 0)
      return bytes
    }
    const bytes = this.#serde.serialize(value)
    // A backend of bytes wants them too once the changelog has had them.
    if (this.keepsBytes && typeof value === 'object') row.bytes = owned(bytes)
    return bytes
  }

  #keepDecoded(row: Row, value: unknown): void {
    row.value = value
    row.bytes = undefined
  }

  /** Null where the backend is to have no row. */
  toBackend(row: Row): Uint8Array | null {
    const bytes = this.bytes(row)
    if (bytes !== null) return backendValue(this.form, bytes, row.timestamp)
    return row.value === deleted ? null : tombstone
  }

  /** As `toBackend`; what it gives is valid until the next such call. */
  toBackendTransient(row: Row): Uint8Array | null {
    const bytes = this.bytes(row, true)
    if (bytes === null) return row.value === deleted ? null : tombstone
    const head = this.form === 'plain' ? 0 : this.form === 'stamped' ? 8 : 1
    const out = brief.of(head + bytes.length)
    if (this.form === 'stamped') writeInt64(out, 0, row.timestamp)
    else if (head > 0) out[0] = 1
    if (bytes.length > shortCopy) out.set(bytes, head)
    else for (let i = 0; i < bytes.length; i++) out[head + i] = bytes[i] as number
    return out
  }

  /** As `bytes`, of a number; undefined where its serde writes numbers as anything else. What it gives is valid until the next such call. */
  numberBytes(value: number): Uint8Array | undefined {
    const { fixed } = this.#serde
    if (fixed === undefined) return undefined
    const bytes = scratch.of(fixed.size)
    fixed.write(value, bytes, 0)
    return bytes
  }

  /** As `toBackendTransient`, in the same way. */
  numberToBackend(value: number, timestamp: number): Uint8Array | undefined {
    const { fixed } = this.#serde
    if (fixed === undefined) return undefined
    const head = this.form === 'stamped' ? 8 : 0
    const out = brief.of(head + fixed.size)
    if (head > 0) writeInt64(out, 0, timestamp)
    fixed.write(value, out, head)
    return out
  }

  /** `bytes` may be volatile; the row has its own. */
  fromBackend(bytes: Uint8Array): Row {
    const head = this.form === 'plain' ? 0 : this.form === 'stamped' ? 8 : 1
    if (this.#serde.fixed?.size === bytes.length - head) {
      // A number takes a fraction of the memory that an array of its bytes would.
      const plain = this.#plain(bytes.subarray(head))
      if (plain !== undefined) return new Row(plain, undefined, this.form === 'stamped' ? readInt64(bytes, 0) : 0)
    }
    if (this.form === 'plain') return new Row(undecoded, bytes.slice(), 0)
    if (this.form === 'stamped') return new Row(undecoded, bytes.slice(8), readInt64(bytes, 0))
    return bytes[0] === 0 ? new Row(null, undefined, 0) : new Row(undecoded, bytes.slice(1), 0)
  }

  /** Undefined for what is not what the serde wrote: whoever reads the row is told. */
  #plain(bytes: Uint8Array): unknown {
    try {
      const value = this.#serde.deserialize(bytes)
      return this.#serde.isPlain?.(value) ? value : undefined
    } catch {
      // A serde of the application's own may throw anything.
      return undefined
    }
  }

  /** Bytes that the row's value weighs, about. */
  weight(row: Row): number {
    return row.bytes !== undefined ? row.bytes.length : weightOf(row.value)
  }
}

/** Takes values as the bytes that they are. */
export const bytesCodec = new RowCodec('plain', {
  name: 'bytes',
  serialize: (value) => value as Uint8Array,
  deserialize: (bytes) => bytes,
})

/** Bytes of a decoded value, about. */
export function weightOf(value: unknown): number {
  if (typeof value === 'string') return value.length + 8
  if (typeof value !== 'object' || value === null) return 8
  let sum = 16
  for (const name in value) sum += 8 + weightOf((value as Record<string, unknown>)[name])
  return sum
}
