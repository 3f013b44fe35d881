/**
 * What pages of other processes may ask: consoles at the configured origins read, and do nothing else. Tokens are sent as to
 * any other client; cookies there are none.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Reply } from '../routes/reply.ts'

/** How long a browser need not ask again whether it may ask. */
const permissionSeconds = 600

export interface CrossOrigin {
  /** Whether such a page may ask; undefined where it may not, or was not what the browser wanted to know. */
  permission(method: string, headers: IncomingHttpHeaders): Reply | undefined
  /** The answer, with the origin that may read it. */
  marked(reply: Reply, method: string, headers: IncomingHttpHeaders): Reply
}

export function crossOriginOf(origins: readonly string[]): CrossOrigin {
  const known = new Set(origins)
  const allowed = ({ origin }: IncomingHttpHeaders): string | undefined =>
    origin !== undefined && known.has(origin) ? origin : undefined
  return {
    permission: (method, headers) => {
      const origin = allowed(headers)
      const wanted = headers['access-control-request-method']
      if (method !== 'OPTIONS' || origin === undefined || wanted !== 'GET') return undefined
      const permitted = {
        'Access-Control-Allow-Origin': origin,
        'Access-Control-Allow-Methods': 'GET',
        'Access-Control-Allow-Headers': 'authorization',
        'Access-Control-Max-Age': String(permissionSeconds),
        Vary: 'Origin',
      }
      return { status: 200, contentType: 'text/plain; charset=utf-8', body: '', headers: permitted }
    },
    marked: (reply, method, headers) => {
      const origin = allowed(headers)
      if (method !== 'GET' || origin === undefined) return reply
      const vary = [reply.headers?.Vary, 'Origin'].filter((name) => name !== undefined).join(', ')
      return { ...reply, headers: { ...reply.headers, 'Access-Control-Allow-Origin': origin, Vary: vary } }
    },
  }
}
