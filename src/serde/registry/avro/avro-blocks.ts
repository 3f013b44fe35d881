/**
 * Arrays and maps of Avro, read with bounds. Their length stands in the bytes: of bytes that are not what they should be
 * it can be anything, and the library would try to make a list of that length.
 */
import type { Type } from 'avsc'
import { SerdeError } from '../../serde.ts'
import { readText, type TextTap, writeText } from './avro-scalars.ts'

/** What avsc reads from. */
interface Tap extends TextTap {
  skipLong(): void
  writeLong(value: number): void
  skipString(): void
}

interface Inner {
  _read(tap: Tap): unknown
  _skip(tap: Tap): void
  _write(tap: Tap, value: unknown): void
}

interface Blocks {
  readonly itemsType?: Inner
  readonly valuesType?: Inner
}

/** Items that take no bytes, such as nulls, may be more than there are bytes; but not without end. */
const mostEmptyItems = 65_536

type BlockClass = new (schema: unknown, options: unknown) => Type

/** The library's classes of arrays and maps, with bounds. A resolver of such a type takes the same function. */
export function boundedTypes(library: { readonly ArrayType: unknown; readonly MapType: unknown }): {
  readonly array: BlockClass
  readonly map: BlockClass
} {
  const BoundedArray = class extends (library.ArrayType as new (...given: unknown[]) => object) {}
  const BoundedMap = class extends (library.MapType as new (...given: unknown[]) => object) {}
  Object.assign(BoundedArray.prototype, { _read: readArray, _skip: skipArray })
  Object.assign(BoundedMap.prototype, { _read: readMap, _skip: skipMap, _write: writeMap })
  return { array: BoundedArray as unknown as BlockClass, map: BoundedMap as unknown as BlockClass }
}

/** Items of the next block, 0 at the end. */
function blockSize(tap: Tap): number {
  let count = tap.readLong()
  if (count < 0) {
    count = -count
    tap.skipLong()
  }
  const left = tap.buf.length - tap.pos
  if (!(left >= 0 && count <= left + mostEmptyItems)) throw tooMany(count)
  return count
}

/** Nothing lies behind the end, and nothing goes back. */
function moved(tap: Tap, before: number): number {
  if (tap.pos < before || tap.pos > tap.buf.length) throw tooMany(-1)
  return tap.pos
}

function tooMany(count: number): SerdeError {
  const what = count < 0 ? 'a list that goes beyond its end' : `a list of ${count} items`
  return new SerdeError(`The record holds ${what}, more than its bytes can be: they are of another schema, or damaged.`)
}

function readArray(this: Blocks, tap: Tap): unknown[] {
  const items = this.itemsType as Inner
  const list: unknown[] = []
  for (let count = blockSize(tap); count > 0; count = blockSize(tap)) {
    let at = tap.pos
    for (; count > 0; count--) {
      list.push(items._read(tap))
      at = moved(tap, at)
    }
  }
  return list
}

function skipArray(this: Blocks, tap: Tap): void {
  const items = this.itemsType as Inner
  for (let count = blockSize(tap); count > 0; count = blockSize(tap)) {
    let at = tap.pos
    for (; count > 0; count--) {
      items._skip(tap)
      at = moved(tap, at)
    }
  }
}

function readMap(this: Blocks, tap: Tap): Record<string, unknown> {
  const values = this.valuesType as Inner
  const map: Record<string, unknown> = {}
  for (let count = blockSize(tap); count > 0; count = blockSize(tap)) {
    let at = tap.pos
    for (; count > 0; count--) {
      const key = readText(tap) as string
      at = moved(tap, at)
      const value = values._read(tap)
      at = moved(tap, at)
      if (key === '__proto__')
        Object.defineProperty(map, key, { value, enumerable: true, writable: true, configurable: true })
      else map[key] = value
    }
  }
  return map
}

function writeMap(this: Blocks, tap: Tap, map: unknown): void {
  // A Map has no members, and would be written as none.
  if (typeof map !== 'object' || map === null || Array.isArray(map) || map instanceof Map)
    throw new SerdeError('what is given for a map is no object with its names as members')
  const values = this.valuesType as Inner
  const names = Object.keys(map)
  if (names.length > 0) tap.writeLong(names.length)
  for (const name of names) {
    writeText(tap, name)
    values._write(tap, (map as Record<string, unknown>)[name])
  }
  tap.writeLong(0)
}

function skipMap(this: Blocks, tap: Tap): void {
  const values = this.valuesType as Inner
  for (let count = blockSize(tap); count > 0; count = blockSize(tap)) {
    let at = tap.pos
    for (; count > 0; count--) {
      tap.skipString()
      values._skip(tap)
      at = moved(tap, at)
    }
  }
}
