/**
 * Functions made for objects of one shape, for shapes that come again and again. A loop over the members does something
 * else with each of them in the same line, so it looks up everything anew. In a function that is written for the shape,
 * every line does one thing, and an object that is read is made at once with all of its members. An event is read in
 * 150 ns instead of 210, and written in 150 instead of 200.
 *
 * Names become literals in the text of such a function, quoted as JSON. Nothing else of a record gets into it.
 */

export type Members = Record<string, unknown>

/**
 * How many objects a shape must have fitted before it gets a function: making one takes as long as hundreds of them.
 */
export const worthCode = 256

/** Reads the value of a member at `at` and moves on behind it. Undefined: the value is not as expected. */
export interface ValueReader {
  at: number
  value(bytes: Uint8Array, member: number): unknown
}

/** Undefined where the bytes between `start` and `end` have another shape. */
export type ReadShape = (bytes: Uint8Array, start: number, end: number, reader: ValueReader) => Members | undefined

/**
 * The function that reads members of these names. `before` is what stands in front of each value, `tail` what ends the
 * object. `__proto__`, which would be no member of a literal, must not be among the names. Undefined where the process
 * forbids making code from text.
 */
export function readShape(
  names: readonly string[],
  before: readonly Uint8Array[],
  tail: Uint8Array,
): ReadShape | undefined {
  const steps = names.map((_, i) => {
    const from = i === 0 ? 'start' : 'reader.at'
    return `at = after(bytes, ${from}, b${i}); if (at < 0) return undefined; reader.at = at
      const v${i} = reader.value(bytes, ${i}); if (v${i} === undefined) return undefined`
  })
  const members = names.map((name, i) => `${JSON.stringify(name)}: v${i}`)
  const text = `return (bytes, start, end, reader) => {
    let at
    ${steps.join('\n')}
    return after(bytes, reader.at, tail) === end ? { ${members.join(', ')} } : undefined
  }`
  const make = codeOf(['after', 'tail', ...before.map((_, i) => `b${i}`)], text)
  return make && (make(after, tail, ...before) as ReadShape)
}

/** What stands in front of a value that is written: its bytes in groups of four, the last group padded. */
export interface Text {
  readonly words: Int32Array
  readonly length: number
}

/** The position behind the value, or -1 where the value is not simple or there is no room up to `end`. */
export type WriteValue = (bytes: Uint8Array, at: number, end: number, value: unknown) => number

/** Where the object ends, or -1 where it has another shape, or a value that is not simple. */
export type WriteShape = (value: Members, bytes: Uint8Array, view: DataView, start: number, end: number) => number

/** The function that writes members of these names, `before` in front of each value; undefined as above. */
export function writeShape(
  names: readonly string[],
  before: readonly Text[],
  writeValue: WriteValue,
): WriteShape | undefined {
  const steps = before.map(({ words, length }, i) => {
    const puts = Array.from(words, (word, w) => `view.setInt32(at + ${4 * w}, ${word}, true)`)
    return `if (at + ${length + 4} > end) return -1
      ${puts.join('\n')}
      at = writeValue(bytes, at + ${length}, end, value[${JSON.stringify(names[i])}]); if (at < 0) return -1`
  })
  const text = `return (value, bytes, view, start, end) => {
    let i = 0
    for (const name in value) if (name !== names[i++]) return -1
    if (i !== names.length) return -1
    let at = start
    ${steps.join('\n')}
    bytes[at] = 125
    return at + 1
  }`
  return codeOf(['names', 'writeValue'], text)?.(names, writeValue) as WriteShape | undefined
}

/** A copy of a flat object; undefined where it has another shape. */
export type CopyShape = (value: Members) => Members | undefined

/** Objects with more members than this are copied like any other. */
const mostCopied = 64

/** The function that copies members of these names; undefined as above. */
export function copyShape(names: readonly string[]): CopyShape | undefined {
  if (names.length > mostCopied || names.includes('__proto__')) return undefined
  const quoted = names.map((name) => JSON.stringify(name))
  const text = `return (value) => {
    let i = 0
    for (const name in value) if (name !== names[i++]) return undefined
    return i === names.length ? { ${quoted.map((name) => `${name}: value[${name}]`).join(', ')} } : undefined
  }`
  return codeOf(['names'], text)?.(names) as CopyShape | undefined
}

/** Undefined where the process forbids making code from text. */
export function codeOf(
  parameters: readonly string[],
  text: string,
): ((...given: readonly unknown[]) => unknown) | undefined {
  try {
    return new Function(...parameters, text) as (...given: readonly unknown[]) => unknown
  } catch (error) {
    if (error instanceof EvalError) return undefined
    throw error
  }
}

/** The position behind `part` if it stands at `at`, else -1. */
export function after(bytes: Uint8Array, at: number, part: Uint8Array): number {
  const { length } = part
  for (let i = 0; i < length; i++) if (bytes[at + i] !== part[i]) return -1
  return at + length
}
