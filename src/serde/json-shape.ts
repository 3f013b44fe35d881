/**
 * Reads JSON objects that look like those before them. Records of one topic mostly have the same members in the same
 * order: then only the values differ, and reading those takes well under half of what a general parser needs. Whatever
 * is not exactly as expected – another member, an escape, a nested value, an exponent, text beyond ASCII – is left to
 * `JSON.parse`, so the result is always what that gives.
 */

/** Shapes remembered side by side, for topics with several kinds of records. */
const mostShapes = 4
/** Objects with more members are left to the general parser. */
const mostMembers = 64
/** From this length on a slice would hold on to the whole record's text. */
const sliceLength = 13
/** Digits that a number holds exactly, and the powers of ten that divide such numbers with one correct rounding. */
const mostDigits = 15
const powersOfTen = Array.from({ length: mostDigits + 1 }, (_, i) => 10 ** i)
/** Records that fit no shape before, in spite of it all, the shapes are given up; more where many did fit. */
const patience = 64

const latin1Slice = Buffer.prototype.latin1Slice

type Members = Record<string, unknown>

export class JsonShapes {
  /** The one that fitted last stands first. */
  #shapes: Shape[] = []
  #fits = 0
  #misses = 0

  /** The value, where the text has a known shape; else undefined. `text` is that of `bytes`. */
  read(text: string, bytes: Uint8Array): unknown {
    const shapes = this.#shapes
    // A text as long as its bytes is ASCII.
    if (shapes.length === 0 || text.length !== bytes.length) return undefined
    for (let i = 0; i < shapes.length; i++) {
      const shape = shapes[i] as Shape
      const value = shape.read(text, bytes)
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

  /** Learns from a record that had to be parsed. */
  learn(text: string, bytes: Uint8Array, value: unknown): void {
    if (this.#misses > patience + this.#fits / 4) {
      this.#shapes = []
      return
    }
    this.#misses++
    if (text.length !== bytes.length) return
    const shape = shapeOf(text, bytes, value)
    if (shape === undefined) return
    this.#shapes.unshift(shape)
    if (this.#shapes.length > mostShapes) this.#shapes.pop()
  }
}

class Shape {
  readonly #names: readonly string[]
  /** What stands in front of each value. */
  readonly #before: readonly string[]
  readonly #tail: string
  readonly #template: Members
  #at = 0

  constructor(names: readonly string[], before: readonly string[], tail: string, template: Members) {
    this.#names = names
    this.#before = before
    this.#tail = tail
    this.#template = template
  }

  read(text: string, bytes: Uint8Array): Members | undefined {
    const names = this.#names
    const before = this.#before
    // Copying gives the members their places at once; the values follow.
    const value = { ...this.#template }
    let at = 0
    for (let i = 0; i < names.length; i++) {
      at = after(text, at, before[i] as string)
      if (at < 0) return undefined
      this.#at = at
      const member = this.#value(text, bytes)
      if (member === undefined) return undefined
      value[names[i] as string] = member
      at = this.#at
    }
    return after(text, at, this.#tail) === text.length ? value : undefined
  }

  /** Reads the value at `#at` and moves on behind it. */
  #value(text: string, bytes: Uint8Array): unknown {
    const first = text.charCodeAt(this.#at)
    if (first === quote) return this.#text(text, bytes)
    if (isDigit(first) || first === minus) return this.#number(text)
    if (first === 116) return this.#word(text, 'true', true)
    if (first === 102) return this.#word(text, 'false', false)
    return first === 110 ? this.#word(text, 'null', null) : undefined
  }

  #text(text: string, bytes: Uint8Array): string | undefined {
    const start = this.#at + 1
    let end = start
    for (;;) {
      const unit = text.charCodeAt(end)
      if (unit === quote) break
      // The end of the text is not a number, hence neither.
      if (!(unit >= 32) || unit === backslash) return undefined
      end++
    }
    this.#at = end + 1
    return end - start < sliceLength ? text.slice(start, end) : latin1Slice.call(bytes, start, end)
  }

  #number(text: string): number | undefined {
    let at = this.#at
    const isNegative = text.charCodeAt(at) === minus
    if (isNegative) at++
    const start = at
    let value = 0
    let unit = text.charCodeAt(at)
    while (isDigit(unit)) {
      value = value * 10 + (unit - zero)
      unit = text.charCodeAt(++at)
    }
    let digits = at - start
    if (digits === 0 || (digits > 1 && text.charCodeAt(start) === zero)) return undefined
    if (unit === point) {
      const from = ++at
      unit = text.charCodeAt(at)
      while (isDigit(unit)) {
        value = value * 10 + (unit - zero)
        unit = text.charCodeAt(++at)
      }
      const decimals = at - from
      digits += decimals
      if (decimals === 0 || digits > mostDigits) return undefined
      value /= powersOfTen[decimals] as number
    }
    if (digits > mostDigits || unit === 101 || unit === 69) return undefined
    this.#at = at
    return isNegative ? -value : value
  }

  #word<T>(text: string, word: string, value: T): T | undefined {
    const at = after(text, this.#at, word)
    if (at < 0) return undefined
    this.#at = at
    return value
  }
}

const quote = 34
const minus = 45
const point = 46
const zero = 48
const backslash = 92

function isDigit(unit: number): boolean {
  return unit >= zero && unit <= 57
}

/** Position behind `part` if it stands at `at`, else -1. */
function after(text: string, at: number, part: string): number {
  const { length } = part
  for (let i = 0; i < length; i++) if (text.charCodeAt(at + i) !== part.charCodeAt(i)) return -1
  return at + length
}

const member = /[\s{,]*("(?:[^"\\]*)")\s*:\s*/y
const scalar = /"[^"\\]*"|[^\s,}\]"{[]+/y

/** The shape of an object that has one: members with plain names and values that are no objects. */
function shapeOf(text: string, bytes: Uint8Array, value: unknown): Shape | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const names = Object.keys(value)
  if (names.length === 0 || names.length > mostMembers) return undefined
  const before: string[] = []
  let at = 0
  for (const name of names) {
    member.lastIndex = at
    const found = member.exec(text)
    if (found === null || found[1] !== JSON.stringify(name)) return undefined
    before.push(found[0])
    scalar.lastIndex = member.lastIndex
    if (name === '__proto__' || !scalar.test(text)) return undefined
    at = scalar.lastIndex
  }
  const shape = new Shape(names, before, text.slice(at), value as Members)
  // What was found is believed only where it gives back the very value it was found in.
  const read = shape.read(text, bytes)
  const isSame = read !== undefined && names.every((name) => Object.is(read[name], (value as Members)[name]))
  return isSame && Object.keys(read).length === names.length
    ? new Shape(names, before, text.slice(at), { ...(value as Members) })
    : undefined
}
