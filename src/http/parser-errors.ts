import { error, type Reply } from './reply.ts'

interface ParserError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer
}

/** The answer to what the HTTP parser could not or would not read. */
export function parserReply(
  cause: ParserError,
  limits: { readonly maxHeaderBytes: number; readonly maxUrlLength: number },
): Reply {
  switch (cause.code) {
    case 'HPE_HEADER_OVERFLOW':
      return isInTarget(cause.rawPacket, limits.maxUrlLength)
        ? error(414, `request target is longer than ${limits.maxUrlLength} characters`)
        : error(431, `request headers are larger than ${limits.maxHeaderBytes} bytes`)
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return error(413, 'chunk extensions are too large')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return error(408, 'the request did not arrive in time')
    default:
      return error(400, 'malformed HTTP request')
  }
}

/** Whether the packet begins with a request line whose target is already too long. */
function isInTarget(packet: Buffer | undefined, maxUrlLength: number): boolean {
  if (packet === undefined) return false
  const target = /^[A-Z]{1,20} ([^\s]*)/.exec(packet.toString('latin1', 0, maxUrlLength + 64))?.[1]
  return target !== undefined && target.length > maxUrlLength
}
