/** One line of a feed, checked field by field so that the message names what is wrong. */
import { EngineError } from '../../base/errors.ts'
import { type Headers, noHeaders } from '../../broker/wire/headers.ts'

export interface FeedRecord {
  readonly key: string | null
  /** Whole numbers beyond 2^53 in it are bigints. */
  readonly value: unknown
  /** Undefined: the moment of sending. */
  readonly timestamp: number | undefined
  readonly headers: Headers
  readonly partition: number | undefined
}

const fields = new Set(['key', 'value', 'timestamp', 'headers', 'partition'])

export class FeedLineError extends EngineError {
  constructor(source: string, line: number, what: string, cause?: unknown) {
    const details = cause === undefined ? undefined : { cause }
    super('FEED_INVALID', `Line ${line} of ${source} ${what}; nothing was sent from this line on.`, details)
  }
}

/** Parses and checks one line; `source` and `line` (from 1) are for the message. */
export function parseFeedLine(text: string, source: string, line: number): FeedRecord {
  const wrong = (what: string): FeedLineError => new FeedLineError(source, line, what)
  let parsed: unknown
  try {
    parsed = parsedExactly(text)
  } catch (error) {
    throw wrong(`is not JSON (${(error as Error).message})`)
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw wrong('is not an object with "key", "value" and "timestamp"')
  }
  const object = parsed as Readonly<Record<string, unknown>>
  for (const name of Object.keys(object)) {
    if (!fields.has(name)) throw wrong(`has the unknown field ${JSON.stringify(name)}`)
  }
  if (!('value' in object)) throw wrong('has no "value" (null is a value)')
  const { key = null, value, timestamp, partition } = object
  if (key !== null && typeof key !== 'string') throw wrong('has a "key" that is neither a string nor null')
  if (timestamp !== undefined && !isCount(timestamp)) {
    throw wrong('has a "timestamp" that is no whole number of milliseconds since 1970')
  }
  if (partition !== undefined && !isCount(partition)) {
    throw wrong('has a "partition" that is no whole number from 0 on')
  }
  const headers = parseHeaders(object.headers)
  if (headers === undefined) {
    throw wrong('has "headers" that are neither an object of strings nor an array of [name, string] pairs')
  }
  return { key, value, timestamp, headers, partition }
}

const manyDigits = /\d{16}/

/** As JSON, but for whole numbers that a number does not hold exactly: those are bigints. */
function parsedExactly(text: string): unknown {
  return manyDigits.test(text) ? JSON.parse(text, exact as (name: string, value: unknown) => unknown) : JSON.parse(text)
}

function exact(_name: string, value: unknown, { source }: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value) || source === undefined) return value
  return /^-?\d+$/.test(source) ? BigInt(source) : value
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/** Pairs keep order and repeats, an object is easier to write; both are taken. */
function parseHeaders(headers: unknown): Headers | undefined {
  if (headers === undefined || headers === null) return noHeaders
  if (typeof headers !== 'object') return undefined
  const pairs: unknown[] = Array.isArray(headers) ? headers : Object.entries(headers)
  const checked: Array<readonly [string, string | null]> = []
  for (const pair of pairs) {
    if (!Array.isArray(pair) || pair.length !== 2) return undefined
    const [name, value] = pair as [unknown, unknown]
    if (typeof name !== 'string' || (typeof value !== 'string' && value !== null)) return undefined
    checked.push([name, value])
  }
  return checked
}
