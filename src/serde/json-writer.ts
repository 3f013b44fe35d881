/**
 * Writes JSON objects that look like those before them: flat ones with the same members in the same order. Their text
 * goes straight into bytes, without a string in between. Whatever JSON would not write as digits, plain ASCII or words
 * is left to `JSON.stringify`. So the bytes are always those of its text.
 */
import { type Members, type Text, worthCode, type WriteShape, writeShape } from './json-shape-code.ts'

/** How many bytes are allocated at once. Texts are written one behind the other in them, as in Node's own pool. */
const poolBytes = 8192
/** Longer texts are left to the general serialiser, which copies long strings faster. */
const mostBytes = 1024
/** After this many objects of other shapes in a row, no shape is learned any more. */
const patience = 64

export class JsonWriter {
  #names: string[] = []
  /** `{"name":` and `,"name":` in front of each value. */
  #before: Text[] = []
  #misses = 0
  #written = 0
  #code: WriteShape | undefined
  #pool = new Pool(0)
  #start = 0
  #brief: Pool | undefined
  /** Views of the beginning of the transient pool by their length, made once so that transient bytes cost no object. */
  readonly #beginnings: Uint8Array[] = []

  /** The bytes of a value that fits the known shape, or a shape that could be learned from it; else undefined. */
  write(value: unknown): Uint8Array | undefined {
    if (this.#pool.bytes.length - this.#start < mostBytes) {
      this.#pool = new Pool(poolBytes)
      this.#start = 0
    }
    const start = this.#start
    const end = this.#fit(value, this.#pool, start)
    if (end < 0) return undefined
    this.#start = end
    return this.#pool.bytes.subarray(start, end)
  }

  /** As `write`; the bytes are valid until the next such call. */
  writeTransient(value: unknown): Uint8Array | undefined {
    this.#brief ??= new Pool(mostBytes)
    const end = this.#fit(value, this.#brief, 0)
    if (end < 0) return undefined
    const known = this.#beginnings[end]
    if (known !== undefined) return known
    while (this.#beginnings.length <= end) {
      this.#beginnings.push(this.#brief.bytes.subarray(0, this.#beginnings.length))
    }
    return this.#beginnings[end]
  }

  /** Writes a value that fits. Returns where it ends, or -1. */
  #fit(value: unknown, pool: Pool, start: number): number {
    if (typeof value !== 'object' || value === null || this.#misses > patience) return -1
    // The constructor check lets V8 know the prototype without asking for it.
    if (value.constructor !== Object || Object.getPrototypeOf(value) !== Object.prototype) return -1
    let end = this.#write(value as Members, pool, start)
    if (end < 0) {
      this.#misses++
      if (this.#learn(Object.keys(value))) end = this.#write(value as Members, pool, start)
    } else if (this.#misses > 0) {
      this.#misses--
    }
    return end
  }

  #write(value: Members, { bytes, view }: Pool, start: number): number {
    const end = start + mostBytes - 1
    const code = this.#code
    if (code !== undefined) return code(value, bytes, view, start, end)
    const at = this.#walk(value, bytes, view, start, end)
    if (at >= 0 && ++this.#written === worthCode) this.#code = writeShape(this.#names, this.#before, writeValue)
    return at
  }

  #walk(value: Members, bytes: Uint8Array, view: DataView, start: number, end: number): number {
    const names = this.#names
    const before = this.#before
    let at = start
    let i = 0
    for (const name in value) {
      if (name !== names[i]) return -1
      const { words, length } = before[i] as Text
      // The padding of the last group is overwritten by what follows.
      if (at + length + 4 > end) return -1
      for (let w = 0; w < words.length; w++) view.setInt32(at + 4 * w, words[w] as number, true)
      at = writeValue(bytes, at + length, end, value[name])
      if (at < 0) return -1
      i++
    }
    if (i !== names.length || i === 0) return -1
    bytes[at] = 125
    return at + 1
  }

  /** Whether other names were learned. False where the names were known: then it was the values that did not fit. */
  #learn(names: string[]): boolean {
    if (names.length === this.#names.length && names.every((name, i) => name === this.#names[i])) return false
    this.#code = undefined
    this.#written = 0
    this.#names = names
    this.#before = names.map((name, i) => textOf(`${i === 0 ? '{' : ','}${JSON.stringify(name)}:`))
    return true
  }
}

class Pool {
  readonly bytes: Uint8Array
  /** The same memory, in groups of four bytes. */
  readonly view: DataView

  constructor(length: number) {
    const bytes = new Uint8Array(length)
    this.bytes = bytes
    this.view = new DataView(bytes.buffer)
  }
}

function textOf(text: string): Text {
  const bytes = Buffer.from(text)
  const filled = Buffer.alloc((bytes.length + 3) & ~3)
  filled.set(bytes)
  const words = Int32Array.from({ length: filled.length / 4 }, (_, i) => filled.readInt32LE(4 * i))
  return { words, length: bytes.length }
}

// Functions that write return the position behind, or -1 where the value is not simple or there is no room up to `end`.

function writeValue(pool: Uint8Array, at: number, end: number, value: unknown): number {
  switch (typeof value) {
    case 'string':
      return writeText(pool, at, end, value)
    case 'number':
      return writeNumber(pool, at, end, value)
    case 'boolean':
      return writeAscii(pool, at, end, value ? 'true' : 'false')
    default:
      return value === null ? writeAscii(pool, at, end, 'null') : -1
  }
}

function writeText(pool: Uint8Array, from: number, end: number, text: string): number {
  const { length } = text
  let at = from
  if (at + length + 2 > end) return -1
  pool[at++] = quote
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 32 || unit > 126 || unit === quote || unit === backslash) return -1
    pool[at++] = unit
  }
  pool[at++] = quote
  return at
}

/** Characters that are written as they are. */
function writeAscii(pool: Uint8Array, at: number, end: number, text: string): number {
  const { length } = text
  if (at + length > end) return -1
  for (let i = 0; i < length; i++) pool[at + i] = text.charCodeAt(i)
  return at + length
}

function writeNumber(pool: Uint8Array, at: number, end: number, value: number): number {
  if (!(value >= 0 && value < 1e15 && Number.isInteger(value))) {
    return Number.isFinite(value) ? writeAscii(pool, at, end, String(value)) : -1
  }
  if (at + 16 > end) return -1
  if (value < 1e8) return writeDigits(pool, at, value, 0)
  const high = Math.floor(value / 1e8)
  return writeDigits(pool, writeDigits(pool, at, high, 0), value - high * 1e8, 8)
}

/** Writes a number below 10^8 with at least `least` digits. */
function writeDigits(pool: Uint8Array, from: number, value: number, least: number): number {
  let length = 1
  for (let limit = 10; limit <= value; limit *= 10) length++
  if (length < least) length = least
  let rest = value | 0
  let at = from + length
  for (; at > from + 1; at -= 2) {
    const next = (rest / 100) | 0
    const pair = rest - next * 100
    pool[at - 1] = ones[pair] as number
    pool[at - 2] = tens[pair] as number
    rest = next
  }
  if (at > from) pool[at - 1] = 48 + rest
  return from + length
}

/** The digits of numbers below a hundred. */
const ones = Uint8Array.from({ length: 100 }, (_, i) => 48 + (i % 10))
const tens = Uint8Array.from({ length: 100 }, (_, i) => 48 + Math.floor(i / 10))

const quote = 34
const backslash = 92
