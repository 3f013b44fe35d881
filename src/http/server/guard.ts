/** What is refused before an endpoint is asked: wrong tokens, foreign hosts, requests that another site made a browser send. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { error, type Reply } from '../routes/reply.ts'

const digest = (value: string): Buffer => createHash('sha256').update(value).digest()

/** Compares digests in constant time, so that neither length nor content can be guessed from the answer's timing. */
export function tokenGuard(token: string | null): (headers: IncomingHttpHeaders) => Reply | undefined {
  if (token === null || token === '') return () => undefined
  const expected = digest(token)
  const refusal = error(401, 'bearer token missing or wrong; send it as `Authorization: Bearer <token>`', {
    'WWW-Authenticate': 'Bearer',
  })
  return (headers) => {
    const given = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
    return given !== undefined && timingSafeEqual(digest(given), expected) ? undefined : refusal
  }
}

/** Refuses names that a foreign page rebound to this address. */
export function hostGuard(allowed: readonly string[]): (headers: IncomingHttpHeaders) => Reply | undefined {
  if (allowed.length === 0) return () => undefined
  const names = new Set(allowed.map((name) => name.toLowerCase()))
  const refusal = error(421, 'this host name is not among runtime.http.allowed-hosts')
  return (headers) => {
    const host = (headers.host ?? '').toLowerCase()
    const name = host.replace(/:\d+$/, '')
    return names.has(host) || names.has(name) ? undefined : refusal
  }
}

/** A browser that follows another site's wish says so in these headers; programs send neither. */
export function isCrossSite(headers: IncomingHttpHeaders): boolean {
  if (headers['sec-fetch-site'] === 'cross-site') return true
  const { origin } = headers
  if (origin === undefined) return false
  const host = /^https?:\/\/([^/?#@\s]+)$/i.exec(origin)?.[1]
  return host === undefined || withoutDefaultPort(host, origin) !== withoutDefaultPort(headers.host ?? '', origin)
}

function withoutDefaultPort(host: string, origin: string): string {
  return host.toLowerCase().replace(/^https:/i.test(origin) ? /:443$/ : /:80$/, '')
}
