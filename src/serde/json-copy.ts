/**
 * Copies of JSON values: what `JSON.parse(JSON.stringify(value))` gives, at a twentieth of its cost, for values of
 * which that is certain.
 */

import { type CopyShape, copyShape, type Members, worthCode } from './json-shape-code.ts'

/** Deeper values, and values that contain themselves, are left to the serialiser. */
const mostLevels = 32

/** After this many copies of other shapes a shape is given up. So many shapes are tried one after the other. */
const patience = 64
const mostShapes = 4

/**
 * The copies of one serde. Rows that are looked up are in no cache, and each of their texts lies in a place of its own.
 * To check the kind of a member means to wait for memory; spreading an object does that, and so does a search for
 * nested values. A flat row is copied by a function made for its shape, which never looks at its texts.
 */
export class JsonCopier {
  /** A value with an array or another object inside has come. From now on the members of all values are checked. */
  isNested = false
  #copied = 0
  #misses = 0
  #shapes = 0
  #code: CopyShape | undefined

  /** See `copyJson`. */
  copy(value: unknown): unknown {
    return copyJson(value, mostLevels, this)
  }

  /** A copy of a value that `copy` has made. Nothing in it needs to be checked. */
  copyAgain(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value
    if (this.isNested || Array.isArray(value)) return copyAgain(value)
    const code = this.#code
    if (code === undefined) {
      if (this.#shapes < mostShapes && ++this.#copied === worthCode) this.#learn(value as Members)
    } else {
      const copy = code(value as Members)
      if (copy !== undefined) return copy
      if (++this.#misses > patience) this.#code = undefined
    }
    return { ...value }
  }

  #learn(value: Members): void {
    this.#copied = 0
    this.#misses = 0
    this.#shapes++
    this.#code = copyShape(Object.keys(value))
  }
}

/**
 * A copy that shares nothing with `value`; undefined where JSON would change it, refuse it, or call code of its own.
 * `note` is called for nested values.
 */
export function copyJson(value: unknown, levels = mostLevels, note?: { isNested: boolean }): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      return isJsonNumber(value) ? value : undefined
    case 'object':
      if (value === null) return null
      return Array.isArray(value) ? copyArray(value, levels, note) : copyObject(value as Members, levels, note)
    default:
      return undefined
  }
}

function copyAgain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copyAgain)
  const copy: Members = { ...value }
  for (const name in copy) {
    const member = copy[name]
    if (typeof member === 'object' && member !== null) copy[name] = copyAgain(member)
  }
  return copy
}

function isJsonNumber(value: number): boolean {
  return Number.isFinite(value) && !Object.is(value, -0)
}

function copyObject(value: Members, levels: number, note: { isNested: boolean } | undefined): Members | undefined {
  if (levels === 0 || Object.getPrototypeOf(value) !== Object.prototype) return undefined
  if (Object.getOwnPropertySymbols(value).length > 0) return undefined
  // V8 copies fastest by spreading. What turns out to be no JSON is found in the copy.
  const copy = { ...value }
  for (const name in copy) {
    const member = copy[name]
    if (typeof member === 'string' || typeof member === 'boolean' || member === null) continue
    if (typeof member === 'number') {
      if (!isJsonNumber(member)) return undefined
      continue
    }
    if (note !== undefined) note.isNested = true
    const inner = copyJson(member, levels - 1, note)
    if (inner === undefined) return undefined
    copy[name] = inner
  }
  return copy
}

function copyArray(
  value: readonly unknown[],
  levels: number,
  note: { isNested: boolean } | undefined,
): unknown[] | undefined {
  if (levels === 0 || Object.getPrototypeOf(value) !== Array.prototype) return undefined
  const copy: unknown[] = []
  for (let i = 0; i < value.length; i++) {
    const inner = copyJson(value[i], levels - 1, note)
    if (inner === undefined) return undefined
    copy.push(inner)
  }
  return copy
}
