/**
 * Reads JSON objects that look like those before them. Records of one topic mostly have the same members in the same
 * order. Then only the values differ, and reading those takes well under half of what a general parser needs. Whatever
 * is not exactly as expected is left to `JSON.parse`: another member, an escape, a nested value, an exponent, text
 * beyond ASCII. So the result is always that of `JSON.parse`.
 */
import { after, type Members, type ReadShape, readShape, type ValueReader, worthCode } from './json-shape-code.ts'
import { latin1Text, shortText } from './short-text.ts'

/** How many shapes are remembered side by side, for topics with several kinds of records. */
const mostShapes = 4
/** Objects with more members than this are left to the general parser. */
const mostMembers = 64
/** How many digits a number holds exactly, and the powers of ten that divide such numbers with one correct rounding. */
const mostDigits = 15
const powersOfTen = Array.from({ length: mostDigits + 1 }, (_, i) => 10 ** i)
/** After this many records that fit no shape, the shapes are given up; after more, where many did fit. */
const patience = 64

/** How many short texts are remembered for a member. */
const rememberedTexts = 4096
/** After this many look-ups it is decided whether remembering a member's texts is worth it. */
const trial = 4096

const latin1Slice = Buffer.prototype.latin1Slice

export class JsonShapes {
  /** The shape that fitted last stands first. */
  #shapes: Shape[] = []
  #fits = 0
  #misses = 0

  /** The value, where the bytes between `start` and `end` are text of a known shape and plain ASCII; else undefined. */
  read(bytes: Uint8Array, start: number, end: number): unknown {
    const shapes = this.#shapes
    for (let i = 0; i < shapes.length; i++) {
      const shape = shapes[i] as Shape
      const value = shape.read(bytes, start, end)
      if (value === undefined) continue
      this.#fits++
      if (i > 0) {
        shapes.splice(i, 1)
        shapes.unshift(shape)
      }
      return value
    }
    return undefined
  }

  /** Learns from a record that had to be parsed. `text` is that of `bytes`. */
  learn(text: string, bytes: Uint8Array, value: unknown): void {
    if (this.#misses > patience + this.#fits / 4) {
      this.#shapes = []
      return
    }
    this.#misses++
    // A text as long as its bytes is ASCII.
    if (text.length !== bytes.length) return
    const shape = shapeOf(text, bytes, value)
    if (shape === undefined) return
    this.#shapes.unshift(shape)
    if (this.#shapes.length > mostShapes) this.#shapes.pop()
  }
}

/**
 * The short texts of one member, each as one string. Where few texts come again and again, the values that are kept of
 * a thousand records share them. It is given up for members whose texts differ.
 */
class Texts {
  readonly #known: string[] = new Array(rememberedTexts).fill('')
  #lookups = 0
  #hits = 0
  isWorthIt = true

  /** The text in [start, end), if it is known; `place` is made of its units. */
  get(bytes: Uint8Array, start: number, end: number, place: number): string | undefined {
    if (++this.#lookups === trial) {
      this.isWorthIt = this.#hits > trial / 2
      this.#lookups = 0
      this.#hits = 0
    }
    const known = this.#known[place] as string
    if (known.length !== end - start) return undefined
    for (let i = start; i < end; i++) if (bytes[i] !== known.charCodeAt(i - start)) return undefined
    this.#hits++
    return known
  }

  set(place: number, text: string): string {
    this.#known[place] = text
    return text
  }
}

class Shape implements ValueReader {
  readonly #names: readonly string[]
  /** What stands in front of each value. */
  readonly #before: readonly Uint8Array[]
  readonly #tail: Uint8Array
  readonly #template: Members
  readonly #texts: readonly Texts[]
  at = 0
  #fitted = 0
  #code: ReadShape | undefined

  constructor(names: readonly string[], before: readonly Uint8Array[], tail: Uint8Array, template: Members) {
    this.#names = names
    this.#before = before
    this.#tail = tail
    this.#template = template
    this.#texts = names.map(() => new Texts())
  }

  /** Bytes read beyond `end` never count: the position would be behind it, and it only grows. */
  read(bytes: Uint8Array, start: number, end: number): Members | undefined {
    const code = this.#code
    if (code !== undefined) return code(bytes, start, end, this)
    const value = this.#walk(bytes, start, end)
    if (value !== undefined && ++this.#fitted === worthCode) {
      this.#code = readShape(this.#names, this.#before, this.#tail)
    }
    return value
  }

  #walk(bytes: Uint8Array, start: number, end: number): Members | undefined {
    const names = this.#names
    const before = this.#before
    // The copy gives the members their places at once. The values follow.
    const value = { ...this.#template }
    let at = start
    for (let i = 0; i < names.length; i++) {
      at = after(bytes, at, before[i] as Uint8Array)
      if (at < 0) return undefined
      this.at = at
      const member = this.value(bytes, i)
      if (member === undefined) return undefined
      value[names[i] as string] = member
      at = this.at
    }
    return after(bytes, at, this.#tail) === end ? value : undefined
  }

  /** Reads the value at `at` and moves on behind it. */
  value(bytes: Uint8Array, member: number): unknown {
    const first = bytes[this.at] as number
    if (first === quote) return this.#text(bytes, member)
    if (isDigit(first) || first === minus) return this.#number(bytes)
    if (first === 116) return this.#word(bytes, wordTrue, true)
    if (first === 102) return this.#word(bytes, wordFalse, false)
    return first === 110 ? this.#word(bytes, wordNull, null) : undefined
  }

  #text(bytes: Uint8Array, member: number): string | undefined {
    const start = this.at + 1
    let end = start
    let hash = 0
    for (;;) {
      const unit = bytes[end] as number
      if (unit === quote) break
      // The end of the bytes is not a number, hence neither; and what is not ASCII has to be checked as a whole.
      if (!(unit >= 32 && unit < 127) || unit === backslash) return undefined
      hash = (Math.imul(hash, 31) + unit) | 0
      end++
    }
    this.at = end + 1
    if (end - start > shortText) return latin1Slice.call(bytes, start, end)
    const texts = this.#texts[member] as Texts
    if (!texts.isWorthIt) return latin1Text(bytes, start, end)
    const place = (hash ^ (hash >>> 12)) & (rememberedTexts - 1)
    return texts.get(bytes, start, end, place) ?? texts.set(place, latin1Text(bytes, start, end))
  }

  #number(bytes: Uint8Array): number | undefined {
    let at = this.at
    const isNegative = bytes[at] === minus
    if (isNegative) at++
    const start = at
    let value = 0
    let unit = bytes[at] as number
    while (isDigit(unit)) {
      value = value * 10 + (unit - zero)
      unit = bytes[++at] as number
    }
    let digits = at - start
    if (digits === 0 || (digits > 1 && bytes[start] === zero)) return undefined
    if (unit === point) {
      const from = ++at
      unit = bytes[at] as number
      while (isDigit(unit)) {
        value = value * 10 + (unit - zero)
        unit = bytes[++at] as number
      }
      const decimals = at - from
      digits += decimals
      if (decimals === 0 || digits > mostDigits) return undefined
      value /= powersOfTen[decimals] as number
    }
    if (digits > mostDigits || unit === 101 || unit === 69) return undefined
    this.at = at
    return isNegative ? -value : value
  }

  #word<T>(bytes: Uint8Array, word: Uint8Array, value: T): T | undefined {
    const at = after(bytes, this.at, word)
    if (at < 0) return undefined
    this.at = at
    return value
  }
}

const ascii = (text: string): Uint8Array => Uint8Array.from(text, (unit) => unit.charCodeAt(0))
const wordTrue = ascii('true')
const wordFalse = ascii('false')
const wordNull = ascii('null')

const quote = 34
const minus = 45
const point = 46
const zero = 48
const backslash = 92

function isDigit(unit: number): boolean {
  return unit >= zero && unit <= 57
}

const member = /[\s{,]*("(?:[^"\\]*)")\s*:\s*/y
const scalar = /"[^"\\]*"|[^\s,}\]"{[]+/y

/** The shape of an object that has one: its members have plain names, and values that are no objects. */
function shapeOf(text: string, bytes: Uint8Array, value: unknown): Shape | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const names = Object.keys(value)
  if (names.length === 0 || names.length > mostMembers) return undefined
  const before: Uint8Array[] = []
  let at = 0
  for (const name of names) {
    member.lastIndex = at
    const found = member.exec(text)
    if (found === null || found[1] !== JSON.stringify(name)) return undefined
    before.push(ascii(found[0]))
    scalar.lastIndex = member.lastIndex
    if (name === '__proto__' || !scalar.test(text)) return undefined
    at = scalar.lastIndex
  }
  // A member that comes twice is one in the value. The second would stand in the tail, where nobody reads it.
  if (!/^\s*\}\s*$/.test(text.slice(at))) return undefined
  const tail = ascii(text.slice(at))
  const shape = new Shape(names, before, tail, value as Members)
  // A shape is used only if it gives back the very value in which it was found.
  const read = shape.read(bytes, 0, bytes.length)
  const isSame = read !== undefined && names.every((name) => Object.is(read[name], (value as Members)[name]))
  return isSame && Object.keys(read).length === names.length
    ? new Shape(names, before, tail, { ...(value as Members) })
    : undefined
}
