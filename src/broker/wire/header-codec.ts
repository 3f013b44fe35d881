/**
 * Headers as they lie in a record: their count, then name and value of each with their lengths. A record without
 * headers is an empty range here, so that nothing is copied for the usual record.
 */
import { EngineError } from '../../base/errors.ts'
import { CorruptBatchError } from './corrupt.ts'
import type { Headers, HeaderValue } from './headers.ts'
import { headersFault, noHeaders } from './headers.ts'
import { VarintReader, varintSize, writeVarint } from './varint.ts'

const utf8 = new TextEncoder()
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const empty = new Uint8Array(0)

/** The bytes of a record's headers, count included; no bytes at all for none. */
export function encodeHeaders(headers: Headers): Uint8Array {
  if (headers.length === 0) return empty
  const fault = headersFault(headers)
  if (fault !== undefined) throw new EngineError('PROCESSING_FAILED', `A record cannot be written: ${fault}`)
  const parts = headers.map(([name, value]): [Uint8Array, Uint8Array | null] => [
    utf8.encode(name),
    typeof value === 'string' ? utf8.encode(value) : value,
  ])
  let size = varintSize(parts.length)
  for (const [name, value] of parts) {
    size += varintSize(name.length) + name.length + varintSize(value?.length ?? -1) + (value?.length ?? 0)
  }
  const bytes = new Uint8Array(size)
  let at = writeVarint(bytes, 0, parts.length)
  for (const [name, value] of parts) {
    at = writeVarint(bytes, at, name.length)
    bytes.set(name, at)
    at = writeVarint(bytes, at + name.length, value?.length ?? -1)
    if (value === null) continue
    bytes.set(value, at)
    at += value.length
  }
  return bytes
}

/**
 * The headers in `bytes[start, end)`, a range as `encodeHeaders` and `RecordCursor` give it. A value is text where its
 * bytes are UTF-8, else a copy of the bytes.
 */
export function decodeHeaders(bytes: Uint8Array, start = 0, end = bytes.length): Headers {
  if (end <= start) return noHeaders
  const reader = new VarintReader(bytes, start, end)
  const count = reader.next()
  // Two bytes are the least that a header takes: a count beyond that is a lie, and must not size an allocation.
  if (!(count >= 0 && count * 2 <= end - start)) throw badHeaders()
  const headers: Array<readonly [string, HeaderValue]> = []
  for (let i = 0; i < count; i++) {
    const name = take(reader)
    if (name === null) throw badHeaders()
    headers.push([Buffer.from(name).toString(), headerValue(take(reader))])
  }
  return headers
}

function take(reader: VarintReader): Uint8Array | null {
  const length = reader.next()
  if (length === -1) return null
  if (!(length >= 0 && length <= reader.end - reader.at)) throw badHeaders()
  const from = reader.at
  reader.at += length
  return reader.bytes.subarray(from, from + length)
}

function headerValue(bytes: Uint8Array | null): HeaderValue {
  if (bytes === null) return null
  try {
    return strict.decode(bytes)
  } catch (error) {
    if (error instanceof TypeError) return new Uint8Array(bytes)
    throw error
  }
}

function badHeaders(): CorruptBatchError {
  return new CorruptBatchError('The headers of a record do not fit into the record: its bytes are damaged.')
}
