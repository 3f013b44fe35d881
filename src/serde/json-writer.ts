/**
 * Writes JSON objects that look like those before them: flat ones with the same members in the same order. Their text
 * goes straight into bytes, without a string in between. Whatever JSON would write in another way than digits, plain
 * ASCII and words is left to `JSON.stringify`, so the bytes are always those of its text.
 */

/** Bytes taken at once; what is written lies one behind the other in them, as in Node's own pool. */
const poolBytes = 8192
/** Longer texts are left to the general serialiser, which copies long strings faster. */
const mostBytes = 1024
/** Objects of other shapes in a row, from which on none is learned. */
const patience = 64

type Members = Readonly<Record<string, unknown>>

export class JsonWriter {
  #names: string[] = []
  /** `{"name":` and `,"name":` in front of each value. */
  #before: Uint8Array[] = []
  #misses = 0
  #pool = new Uint8Array(0)
  #start = 0
  #at = 0

  /** The bytes of a value that fits the shape known, or of which one could be learned; else undefined. */
  write(value: unknown): Uint8Array | undefined {
    if (typeof value !== 'object' || value === null || this.#misses > patience) return undefined
    if (Object.getPrototypeOf(value) !== Object.prototype) return undefined
    let written = this.#write(value as Members)
    if (written === undefined) {
      this.#misses++
      if (this.#learn(Object.keys(value))) written = this.#write(value as Members)
    } else if (this.#misses > 0) {
      this.#misses--
    }
    return written
  }

  #write(value: Members): Uint8Array | undefined {
    if (this.#pool.length - this.#start < mostBytes) {
      this.#pool = new Uint8Array(poolBytes)
      this.#start = 0
    }
    this.#at = this.#start
    const end = this.#start + mostBytes - 1
    const names = this.#names
    let i = 0
    for (const name in value) {
      if (name !== names[i]) return undefined
      if (!this.#copy(this.#before[i] as Uint8Array, end) || !this.#value(value[name], end)) return undefined
      i++
    }
    if (i !== names.length || i === 0) return undefined
    this.#pool[this.#at++] = 125
    const bytes = this.#pool.subarray(this.#start, this.#at)
    this.#start = this.#at
    return bytes
  }

  /** False where the names were known: then it was the values that did not fit. */
  #learn(names: string[]): boolean {
    if (names.length === this.#names.length && names.every((name, i) => name === this.#names[i])) return false
    this.#names = names
    this.#before = names.map((name, i) => new Uint8Array(Buffer.from(`${i === 0 ? '{' : ','}${JSON.stringify(name)}:`)))
    return true
  }

  #value(value: unknown, end: number): boolean {
    switch (typeof value) {
      case 'string':
        return this.#text(value, end)
      case 'number':
        return this.#number(value, end)
      case 'boolean':
        return this.#ascii(value ? 'true' : 'false', end)
      default:
        return value === null && this.#ascii('null', end)
    }
  }

  #copy(source: Uint8Array, end: number): boolean {
    const { length } = source
    const at = this.#at
    if (at + length > end) return false
    const pool = this.#pool
    for (let i = 0; i < length; i++) pool[at + i] = source[i] as number
    this.#at = at + length
    return true
  }

  #text(text: string, end: number): boolean {
    const { length } = text
    let at = this.#at
    if (at + length + 2 > end) return false
    const pool = this.#pool
    pool[at++] = quote
    for (let i = 0; i < length; i++) {
      const unit = text.charCodeAt(i)
      if (unit < 32 || unit > 126 || unit === quote || unit === backslash) return false
      pool[at++] = unit
    }
    pool[at++] = quote
    this.#at = at
    return true
  }

  /** Characters that need no look. */
  #ascii(text: string, end: number): boolean {
    const { length } = text
    const at = this.#at
    if (at + length > end) return false
    const pool = this.#pool
    for (let i = 0; i < length; i++) pool[at + i] = text.charCodeAt(i)
    this.#at = at + length
    return true
  }

  #number(value: number, end: number): boolean {
    if (!(value >= 0 && value < 1e15 && Number.isInteger(value))) {
      return Number.isFinite(value) && this.#ascii(String(value), end)
    }
    if (this.#at + 16 > end) return false
    if (value < 1e8) {
      this.#digits(value, 0)
    } else {
      const high = Math.floor(value / 1e8)
      this.#digits(high, 0)
      this.#digits(value - high * 1e8, 8)
    }
    return true
  }

  /** Writes a number below 10^8 with at least `least` digits. */
  #digits(value: number, least: number): void {
    let length = 1
    for (let limit = 10; limit <= value; limit *= 10) length++
    if (length < least) length = least
    const pool = this.#pool
    let rest = value | 0
    let at = this.#at + length
    for (; at > this.#at + 1; at -= 2) {
      const next = (rest / 100) | 0
      const pair = rest - next * 100
      pool[at - 1] = ones[pair] as number
      pool[at - 2] = tens[pair] as number
      rest = next
    }
    if (at > this.#at) pool[at - 1] = 48 + rest
    this.#at += length
  }
}

/** The digits of numbers below a hundred. */
const ones = Uint8Array.from({ length: 100 }, (_, i) => 48 + (i % 10))
const tens = Uint8Array.from({ length: 100 }, (_, i) => 48 + Math.floor(i / 10))

const quote = 34
const backslash = 92
