/** JSON, plain or checked by a schema. */
import { JsonCopier } from './json-copy.ts'
import { JsonShapes } from './json-shape.ts'
import { JsonWriter } from './json-writer.ts'
import { decodeUtf8, encodeUtf8, shown } from './primitive.ts'
import { type Serde, SerdeError } from './serde.ts'

/**
 * The part of the Standard Schema interface (version 1) that validation needs. Zod, Valibot, ArkType and others
 * carry it, so none of them is a dependency.
 */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
  }
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<StandardIssue> }

export interface StandardIssue {
  readonly message: string
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined
}

const nullBytes = new TextEncoder().encode('null')

function encode(value: unknown, written: Uint8Array | undefined): Uint8Array {
  if (written !== undefined) return written
  // As `null` it would delete the row that it is meant for.
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new SerdeError(`The serde 'json' cannot encode ${value}; it has no JSON form.`)
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (cause) {
    throw new SerdeError(`The serde 'json' cannot encode ${shown(value)}: ${(cause as Error).message}.`, { cause })
  }
  if (text === undefined) throw new SerdeError(`The serde 'json' cannot encode ${shown(value)}; it has no JSON form.`)
  return encodeUtf8(text)
}

function decode(bytes: Uint8Array, start: number, end: number, shapes: JsonShapes): unknown {
  const known = shapes.read(bytes, start, end)
  if (known !== undefined) return known
  const text = decodeUtf8(bytes, 'json', start, end)
  try {
    const value: unknown = JSON.parse(text)
    shapes.learn(text, bytes.subarray(start, end), value)
    return value
  } catch (cause) {
    throw new SerdeError(`The serde 'json' found text that is not JSON: ${(cause as Error).message}.`, { cause })
  }
}

function isPlainJson(value: unknown): boolean {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0)
    case 'string':
      return value.isWellFormed()
    case 'boolean':
      return true
    default:
      return false
  }
}

function issueText(issue: StandardIssue): string {
  const path = issue.path?.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
  return path ? `${path}: ${issue.message}` : issue.message
}

function validated<T>(schema: StandardSchema<T>, value: unknown): T {
  const result = schema['~standard'].validate(value)
  if (result instanceof Promise) {
    // The result would come too late. Its rejection must not end the process either.
    result.catch(() => undefined)
    throw new SerdeError(
      `The schema of '${schema['~standard'].vendor}' validates asynchronously; a serde needs a synchronous one.`,
    )
  }
  if (result.issues) {
    const issues = result.issues.map(issueText)
    const more = issues.length > 3 ? ` and ${issues.length - 3} more` : ''
    throw new SerdeError(`The JSON does not satisfy its schema: ${issues.slice(0, 3).join('; ')}${more}.`)
  }
  return result.value
}

/**
 * JSON of type `T`. Without a schema the type is a promise that nothing checks; with one (any object that has the
 * Standard Schema interface) everything read is validated, and what the schema transforms is what the application sees.
 * Written values are not validated: their type already holds. NaN and the infinities are refused, for as `null` they would
 * delete a row; within an object they become null, as `JSON.stringify` has it.
 *
 * @example
 * const order = serdes.json<Order>()
 * const checked = serdes.json(z.object({ id: z.string(), amount: z.number() }))
 */
export function json<T>(schema?: StandardSchema<T>): Serde<T> {
  const shapes = new JsonShapes()
  const writer = new JsonWriter()
  if (schema === undefined) {
    const copier = new JsonCopier()
    return {
      name: 'json',
      serialize: (value) => encode(value, writer.write(value)),
      serializeTransient: (value) => encode(value, writer.writeTransient(value)),
      deserialize: (bytes) => decode(bytes, 0, bytes.length, shapes) as T,
      deserializeFrom: (bytes, start, end) => decode(bytes, start, end, shapes) as T,
      isPlain: isPlainJson,
      nullBytes,
      copy: (value, isCopy = false) => (isCopy ? copier.copyAgain(value) : copier.copy(value)) as T | undefined,
    }
  }
  return {
    name: `json(${schema['~standard'].vendor})`,
    serialize: (value) => encode(value, writer.write(value)),
    serializeTransient: (value) => encode(value, writer.writeTransient(value)),
    deserialize: (bytes) => validated(schema, decode(bytes, 0, bytes.length, shapes)),
    deserializeFrom: (bytes, start, end) => validated(schema, decode(bytes, start, end, shapes)),
  }
}
