/** Answers as plain values, and the headers that every one of them carries. */
import type { Answer } from './schemas.ts'

export const contentTypes = {
  json: 'application/json; charset=utf-8',
  text: 'text/plain; charset=utf-8',
  yaml: 'text/yaml; charset=utf-8',
  metrics: 'text/plain; version=0.0.4; charset=utf-8',
} as const

export interface Reply {
  readonly status: number
  readonly contentType: string
  /** Bytes where many answers share one document. */
  readonly body: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
}

/** Nothing here is for caches, other sites or content sniffers. */
export const commonHeaders: Readonly<Record<string, string>> = {
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
}

/** `T`: where it is the answer of an endpoint, `Answer` of its schema. */
export function json<T = unknown>(status: number, value: T, headers?: Readonly<Record<string, string>>): Reply {
  const reply = { status, contentType: contentTypes.json, body: JSON.stringify(value) }
  return headers === undefined ? reply : { ...reply, headers }
}

/** A document that is JSON already. */
export function jsonDocument(body: Buffer): Reply {
  return { status: 200, contentType: contentTypes.json, body }
}

export function text(body: string | Buffer, contentType: string = contentTypes.text): Reply {
  return { status: 200, contentType, body }
}

/** The body of everything that is not a success, save the health report, which carries the same key beside its own. */
export function error(status: number, message: string, headers?: Readonly<Record<string, string>>): Reply {
  return json<Answer<'Error'>>(status, { error: message }, headers)
}

/** Whatever depends on the engine, before there is one. */
export function notInitialized(view: { state(): { readonly current: string } }): Reply {
  return error(503, `engine is not initialized yet (state is ${view.state().current}); retry later`)
}

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Payload Too Large',
  414: 'URI Too Long',
  421: 'Misdirected Request',
  431: 'Request Header Fields Too Large',
  503: 'Service Unavailable',
}

/** A whole answer as bytes, for connections on which the parser gave up and no response object exists. */
export function rawReply(reply: Reply): string {
  const headers = {
    ...commonHeaders,
    ...reply.headers,
    'Content-Type': reply.contentType,
    'Content-Length': String(Buffer.byteLength(reply.body)),
    Connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${reply.status} ${reasons[reply.status] ?? 'Error'}\r\n${lines.join('')}\r\n${reply.body.toString()}`
}
