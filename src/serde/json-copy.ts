/**
 * Copies of JSON values: what `JSON.parse(JSON.stringify(value))` gives, at a twentieth of its cost, for values of which
 * that is certain.
 */

import { type CopyShape, copyShape, type Members, worthCode } from './json-shape-code.ts'

/** Deeper values, and those that contain themselves, are left to the serialiser. */
const mostLevels = 32

/** Copies of other shapes, from which on a shape is given up; and shapes that are tried one after the other. */
const patience = 64
const mostShapes = 4

/**
 * The copies of one serde. Rows that are looked up lie far away, each of their texts in a place of its own, and to ask of
 * what kind a member is means to wait for it: spreading does, and so does a search for what is inside of an object. A row
 * without anything inside is copied by a function made for its shape, which never looks at its texts.
 */
export class JsonCopier {
  /** A value with an array or another object inside has come: the members of all have to be looked at. */
  isNested = false
  #copied = 0
  #misses = 0
  #shapes = 0
  #code: CopyShape | undefined

  /** See `copyJson`. */
  copy(value: unknown): unknown {
    return copyJson(value, mostLevels, this)
  }

  /** A copy of what `copy` has made: nothing in it needs a look. */
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
 * A copy that shares nothing with `value`; undefined where JSON would change it, refuse it, or call code of its own. `note`
 * hears of what is inside of objects.
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
  // Spreading is what V8 copies fastest; what is not JSON after all is found in the copy.
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
