/**
 * Texts, bytes and floating numbers of Avro as they are in other serdes: what would not come back is refused. The library
 * writes half a surrogate pair as bytes that are no UTF-8, reads such bytes as other text, and knows no `Uint8Array`.
 */
import type { Type } from 'avsc'
import { decodeUtf8 } from '../../primitive.ts'
import { SerdeError } from '../../serde.ts'
import { readApproximateLong } from './avro-long.ts'

/** What avsc reads texts from and writes them to. */
export interface TextTap {
  readonly buf: Buffer
  pos: number
  readLong(): number
  readString(): string | undefined
  writeString(text: string): void
}

interface Tap extends TextTap {
  readInt(): number
  writeBytes(bytes: Buffer): void
  writeFixed(bytes: Buffer, length: number): void
  writeFloat(value: number): void
}

interface Resolver {
  _read: ((tap: Tap) => unknown) | null
}

interface Sized {
  readonly size: number
}

type Hook = ((value: unknown, type: unknown) => void) | undefined
type LibraryClass = new (...given: unknown[]) => object

/** What takes the place of the library's types. */
export interface Scalars {
  readonly string: Type
  readonly bytes: Type
  readonly float: Type
  readonly double: Type
  readonly fixed: new (schema: unknown, options: unknown) => Type
}

export function strictScalars(library: Readonly<Record<string, unknown>>): Scalars {
  const subclass = (name: string, members: object): LibraryClass => {
    const Strict = class extends (library[name] as LibraryClass) {}
    Object.assign(Strict.prototype, members)
    return Strict
  }
  const one = (name: string, members: object): Type => new (subclass(name, members))() as Type
  return {
    string: one('StringType', { _read: readText, _write: writeText }),
    bytes: one('BytesType', { _check: checkBytes, _write: writeBytes }),
    float: one('FloatType', { _write: writeFloat, _update: resolveFloat }),
    double: one('DoubleType', { _update: resolveDouble }),
    fixed: subclass('FixedType', { _check: checkFixed, _write: writeFixed }) as unknown as Scalars['fixed'],
  }
}

export function readText(tap: TextTap): string | undefined {
  const start = tap.pos
  const text = tap.readString()
  if (text === undefined || !text.includes('\ufffd')) return text
  // The replacement is in the bytes themselves, or it stands for what is no UTF-8.
  const end = tap.pos
  tap.pos = start
  const length = tap.readLong()
  tap.pos = end
  return decodeUtf8(tap.buf, 'avro', end - length, end)
}

export function writeText(tap: TextTap, text: unknown): void {
  if (typeof text !== 'string') throw new SerdeError(`a ${typeof text} is no string`)
  if (!text.isWellFormed()) throw new SerdeError('a text has half of a surrogate pair, which UTF-8 cannot hold')
  tap.writeString(text)
}

function checkBytes(this: Type, value: unknown, _flags: unknown, hook: Hook): boolean {
  if (value instanceof Uint8Array) return true
  hook?.(value, this)
  return false
}

function writeBytes(tap: Tap, value: unknown): void {
  if (!(value instanceof Uint8Array)) throw new SerdeError(`a ${typeof value} is no bytes`)
  tap.writeBytes(bufferOf(value))
}

function checkFixed(this: Sized, value: unknown, _flags: unknown, hook: Hook): boolean {
  if (value instanceof Uint8Array && value.length === this.size) return true
  hook?.(value, this)
  return false
}

function writeFixed(this: Sized, tap: Tap, value: unknown): void {
  if (!(value instanceof Uint8Array) || value.length !== this.size)
    throw new SerdeError(`what is given is no ${this.size} bytes`)
  tap.writeFixed(bufferOf(value), this.size)
}

export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

function writeFloat(tap: Tap, value: unknown): void {
  if (typeof value !== 'number') throw new SerdeError(`a ${typeof value} is no float`)
  if (Number.isFinite(value) && !Number.isFinite(Math.fround(value)))
    throw new SerdeError(`${value} is more than a float holds; take a double`)
  tap.writeFloat(value)
}

/** The library takes the nearest double for a float, and large longs for others. */
function resolveFloat(resolver: Resolver, writer: Type): void {
  const { typeName, _read } = writer as unknown as { readonly typeName: string; readonly _read: Resolver['_read'] }
  if (typeName === 'float') resolver._read = _read
  else if (typeName === 'int') resolver._read = (tap) => Math.fround(tap.readInt())
  else if (typeName === 'long') resolver._read = (tap) => Math.fround(readApproximateLong(tap))
}

function resolveDouble(resolver: Resolver, writer: Type): void {
  const { typeName, _read } = writer as unknown as { readonly typeName: string; readonly _read: Resolver['_read'] }
  if (typeName === 'double' || typeName === 'float' || typeName === 'int') resolver._read = _read
  else if (typeName === 'long') resolver._read = readApproximateLong
}
