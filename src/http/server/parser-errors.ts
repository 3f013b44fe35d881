import type { IncomingHttpHeaders } from 'node:http'
import { METHODS } from '../../base/node-http.ts'
import { error, type Reply } from '../routes/reply.ts'

interface ParserError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer
}

export interface HeadLimits {
  readonly maxHeaderBytes: number
  readonly maxHeadersCount: number
  readonly maxUrlLength: number
}

/** The answer to what the HTTP parser could not or would not read. */
export function parserReply(cause: ParserError, limits: HeadLimits): Reply {
  switch (cause.code) {
    case 'HPE_HEADER_OVERFLOW':
      return isInTarget(cause.rawPacket, limits.maxUrlLength)
        ? error(414, `request target is longer than ${limits.maxUrlLength} characters`)
        : error(431, tooMuch(cause.rawPacket, limits))
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return error(413, 'chunk extensions are too large')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return error(408, 'the request did not arrive in time')
    default:
      return error(400, 'malformed HTTP request')
  }
}

/** The parser does not say which of its limits it was, and earlier packets of the request are gone. */
function tooMuch(packet: Buffer | undefined, { maxHeaderBytes, maxHeadersCount }: HeadLimits): string {
  const [head = ''] = (packet?.toString('latin1') ?? '').split('\r\n\r\n', 1)
  if (head.length > maxHeaderBytes) return `request headers are larger than ${maxHeaderBytes} bytes`
  const fields = head.split('\r\n').length - 1
  return fields > maxHeadersCount
    ? `more than ${maxHeadersCount} header fields`
    : `request headers are larger than ${maxHeaderBytes} bytes, or more than ${maxHeadersCount} fields`
}

/** Whether the packet begins with a request line whose target is already too long. */
function isInTarget(packet: Buffer | undefined, maxUrlLength: number): boolean {
  if (packet === undefined) return false
  const target = /^[A-Z]{1,20} ([^\s]*)/.exec(packet.toString('latin1', 0, maxUrlLength + 64))?.[1]
  return target !== undefined && target.length > maxUrlLength
}

/** What can be told of a request that the parser did not take. */
export interface UnparsedRequest {
  readonly method: string
  readonly target: string
  readonly headers: IncomingHttpHeaders
}

/** Whether all that is wrong is a method that the parser does not know: to a client that is a wrong method like others. */
export function unknownMethod({ code, rawPacket }: ParserError): UnparsedRequest | undefined {
  if (code !== 'HPE_INVALID_METHOD' || rawPacket === undefined) return undefined
  const [head = ''] = rawPacket.toString('latin1').split('\r\n\r\n', 1)
  const [line = '', ...fields] = head.split('\r\n')
  const [, method, target] = /^([!#$%&'*+\-.^_`|~\w]{1,64}) (\S+) HTTP\/1\.[01]$/.exec(line) ?? []
  // In a packet of several requests the first line is another one's.
  if (method === undefined || target === undefined || METHODS.includes(method)) return undefined
  const headers: IncomingHttpHeaders = {}
  for (const field of fields) {
    const [, name, value] = /^([^:\s]+):\s*(.*?)\s*$/.exec(field) ?? []
    if (name !== undefined) headers[name.toLowerCase()] = value
  }
  return { method, target, headers }
}
