import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { EngineError } from '../../base/errors.ts'
import { createServer } from '../../base/node-http.ts'
import { Connections } from './connections.ts'
import type { HttpConfig, HttpLog } from '../http-config.ts'
import { parserReply, type UnparsedRequest, unknownMethod } from './parser-errors.ts'
import { commonHeaders, error, type Reply, rawReply } from '../routes/reply.ts'
import { isProbe } from '../routes/openapi.ts'
import { readCertificate, watchCertificate } from './tls.ts'
import { Turns } from './turns.ts'

const closeGraceMs = 1000
const drainLimitBytes = 262_144

/** Never rejects. */
type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>
/** Judges a request that no response object exists for. Never rejects. */
type Judge = (request: UnparsedRequest) => Promise<Reply>

/** The listening socket with its limits on what a client may send, hold and ask. */
export class HttpListener {
  readonly #config: HttpConfig
  readonly #handler: Handler
  readonly #judge: Judge
  readonly #connections: Connections
  readonly #log: HttpLog
  readonly #turns = new Turns()
  #server: Server | undefined

  constructor(config: HttpConfig, handler: Handler, judge: Judge, log: HttpLog) {
    this.#config = config
    this.#handler = handler
    this.#judge = judge
    this.#connections = new Connections(config)
    this.#log = log
  }

  async listen(): Promise<{ url: string; host: string; port: number }> {
    const { host, port } = this.#config
    const server = this.#create()
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause) => reject(listenError(cause, host, port)))
      server.listen(port, host, resolve)
    })
    const bound = (server.address() as AddressInfo).port
    return { url: `${this.#scheme}://${reachable(host)}:${bound}`, host, port: bound }
  }

  async close(): Promise<void> {
    const server = this.#server
    if (server === undefined || !server.listening) return
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.closeIdleConnections()
    // The server forgets connections that its parser gave up on; the list kept here does not.
    const force = setTimeout(() => this.#connections.destroyAll(), closeGraceMs)
    await closed
    clearTimeout(force)
  }

  get #scheme(): 'http' | 'https' {
    return this.#config.tlsCertFile === null ? 'http' : 'https'
  }

  #create(): Server {
    const config = this.#config
    const limits = {
      headersTimeout: Math.min(config.headersTimeoutMs, config.requestTimeoutMs),
      requestTimeout: config.requestTimeoutMs,
      keepAliveTimeout: config.keepAliveTimeoutMs,
      connectionsCheckingInterval: 1000,
      maxHeaderSize: config.maxHeaderBytes,
      // Asked for below, with a body that says so.
      requireHostHeader: false,
      insecureHTTPParser: false,
    }
    const server = config.tlsCertFile === null ? createServer(limits) : this.#createTls(limits)
    // For clients that ask and then take nothing of the answer; those that do not finish asking are told 408 before.
    // Answers that are still being made are another matter: `#patient`.
    server.timeout = 2 * config.requestTimeoutMs + 2000
    // One more than is allowed, so that an excess is seen rather than cut off.
    server.maxHeadersCount = config.maxHeadersCount + 1
    server.on('connection', (socket: Socket) => {
      this.#turns.arrived()
      this.#connections.admit(socket)
    })
    // The server's own listeners come first: by now its parser listens to the connection.
    server.on(config.tlsCertFile === null ? 'connection' : 'secureConnection', (socket: Socket) =>
      this.#connections.attached(socket),
    )
    server.on('clientError', (cause: NodeJS.ErrnoException, socket: Socket) => this.#refuse(cause, socket))
    server.on('request', (request, response) => this.#serve(request, response, false))
    server.on('checkContinue', (request, response) => this.#serve(request, response, true))
    server.on('checkExpectation', ({ socket }, response) => {
      this.#began(response, socket)
      this.#turns.take(socket, response, false, () => send(response, error(417, 'only Expect: 100-continue is met')))
    })
    server.on('connect', ({ url, headers }, socket: Socket) => {
      // The server has let go of it, and answers before this one may still be under way: nobody else hears of a reset.
      socket.on('error', () => socket.destroy())
      this.#connections.deafen(socket)
      this.#answerRaw(socket, { method: 'CONNECT', target: url ?? '/', headers })
    })
    return server
  }

  #createTls(limits: ServerOptions): Server {
    const config = this.#config
    const server = createTlsServer({
      ...limits,
      ...readCertificate(config),
      minVersion: 'TLSv1.2',
      handshakeTimeout: config.headersTimeoutMs,
    })
    const unwatch = watchCertificate(config, this.#log, (certificate) => server.setSecureContext(certificate))
    server.once('close', unwatch)
    return server
  }

  #refuse(cause: NodeJS.ErrnoException, socket: Socket): void {
    if (cause.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    const unknown = unknownMethod(cause)
    if (unknown !== undefined) this.#answerRaw(socket, unknown)
    else this.#connections.refuse(socket, rawReply(parserReply(cause, this.#config)))
  }

  /** For methods that the parser does not know or hands over as a bare socket: the same answer as for any other one. */
  #answerRaw(socket: Socket, request: UnparsedRequest): void {
    void this.#judge(request).then((reply) => this.#connections.refuse(socket, rawReply(reply)))
  }

  #serve(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    const { socket } = request
    if (!this.#connections.received(socket, request)) response.shouldKeepAlive = false
    const refusal = this.#refuseUnread(request)
    if (refusal !== undefined) {
      this.#began(response, socket)
      this.#turns.take(socket, response, false, () => refuseBody(request, response, refusal))
      return
    }
    if (expectsContinue) response.writeContinue()
    if (request.headers['transfer-encoding'] === undefined) {
      request.resume()
      this.#answer(request, response)
      return
    }
    this.#awaitBody(request, response)
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.#began(response, request.socket)
    this.#patient(response)
    const isUrgent = isProbe((request.url ?? '').split('?', 1)[0] as string)
    this.#turns.take(request.socket, response, isUrgent, () => void this.#handler(request, response))
  }

  /** Nothing passes while an answer is made, and the client is not to blame: its time begins with the answer. */
  #patient(response: ServerResponse): void {
    response.on('timeout', (socket: Socket) => {
      if (response.headersSent) socket.destroy()
      else socket.setTimeout(this.#server?.timeout ?? 0)
    })
  }

  #began(response: ServerResponse, socket: Socket): void {
    this.#connections.began(socket)
    response.once('close', () => this.#connections.ended(socket))
  }

  /** Faults of the request as such, known from its headers alone. */
  #refuseUnread(request: IncomingMessage): Reply | undefined {
    const { maxHeadersCount, maxBodyBytes } = this.#config
    // The parser takes a bare request line for HTTP/0.9.
    if (request.httpVersionMajor !== 1) return error(400, 'only HTTP/1.1 and HTTP/1.0 are spoken here')
    if (request.headers.host === undefined && request.httpVersion === '1.1') {
      return error(400, 'the Host header is missing')
    }
    if (countOf(request.rawHeaders, 'host') > 1) return error(400, 'the Host header is given more than once')
    if (request.rawHeaders.length / 2 > maxHeadersCount) {
      return error(431, `more than ${maxHeadersCount} header fields`)
    }
    if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return bodyTooLarge(maxBodyBytes)
    return undefined
  }

  /** A body of unknown length is read to its end first: only then is it certain that it is no larger than allowed. */
  #awaitBody(request: IncomingMessage, response: ServerResponse): void {
    const { maxBodyBytes } = this.#config
    let received = 0
    const count = (chunk: Buffer): void => {
      received += chunk.length
      if (received <= maxBodyBytes) return
      request.off('data', count)
      request.off('end', proceed)
      this.#began(response, request.socket)
      const refusal = bodyTooLarge(maxBodyBytes)
      this.#turns.take(request.socket, response, false, () => refuseBody(request, response, refusal))
    }
    const proceed = (): void => this.#answer(request, response)
    request.on('data', count)
    request.on('end', proceed)
  }
}

/** Names and values take turns in the list. */
function countOf(rawHeaders: readonly string[], name: string): number {
  return rawHeaders.filter((text, i) => i % 2 === 0 && text.toLowerCase() === name).length
}

const bodyTooLarge = (limit: number): Reply => error(413, `request body is larger than ${limit} bytes`)

/** Answers at once, and closes once the client has stopped sending or has sent more than is worth reading. */
function refuseBody(request: IncomingMessage, response: ServerResponse, reply: Reply): void {
  response.writeHead(reply.status, {
    ...commonHeaders,
    'Content-Type': reply.contentType,
    'Content-Length': Buffer.byteLength(reply.body),
    Connection: 'close',
  })
  response.write(reply.body)
  let drained = 0
  const end = (): void => {
    clearTimeout(overdue)
    response.end()
  }
  const overdue = setTimeout(end, 500)
  overdue.unref()
  request.on('data', (chunk: Buffer) => {
    drained += chunk.length
    if (drained > drainLimitBytes) end()
  })
  request.once('end', end)
  request.resume()
}

function listenError(cause: NodeJS.ErrnoException, host: string, port: number): EngineError {
  if (cause.code === 'EADDRINUSE') {
    return new EngineError('PORT_TAKEN', `port ${port} of ${host} is in use by another process`, { cause })
  }
  const message = `the HTTP interface cannot listen on ${host}:${port} (${cause.code ?? cause.message}); correct runtime.http.host or runtime.http.port`
  return new EngineError('CONFIG_INVALID', message, { cause })
}

/** An address that a person on this machine can open. */
function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

export function send(response: ServerResponse, reply: Reply): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(reply.status, {
    ...commonHeaders,
    ...reply.headers,
    'Content-Type': reply.contentType,
    'Content-Length': Buffer.byteLength(reply.body),
  })
  response.end(reply.body)
}
