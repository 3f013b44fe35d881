/** What `millrace ha` asks over the HTTP interface, and what its refusals mean to a caller. */
import type { Config } from '../../config/config.ts'
import { EngineError, messageOf } from '../../base/errors.ts'
import { isBlockedPort } from '../../http/blocked-ports.ts'
import type { HaAcknowledgement, HaHistory, HaStatus } from '../../http/ha-seam.ts'

/** An answer that is no success, or no answer at all (`status` 0). */
export interface HaRefusal {
  readonly ok: false
  readonly status: number
  readonly reason: string
}

export type HaAnswer<T> = { readonly ok: true; readonly value: T } | HaRefusal

export type HaVerb = 'switch' | 'promote' | 'demote' | 'pause' | 'resume' | 'priority'

export interface HaOptions {
  readonly force?: boolean
  /** Of `priority`. */
  readonly value?: string
}

export interface HaClientOptions {
  readonly url: URL
  readonly token: string | null
}

/** Longer than the server gives a request, so that what it says about a slow broker arrives here. */
const answerTimeoutMs = 15_000

/** Where the interface is: `--url`, else what the configuration says of it, on this machine. */
export function interfaceUrl(config: Config, given: string | undefined): URL {
  if (given === undefined) {
    const host = config.get('runtime.http.host')
    const local = { '0.0.0.0': '127.0.0.1', '::': '[::1]', '': '127.0.0.1' }[host] ?? host
    const scheme = config.get('runtime.http.tls.cert-file') === null ? 'http' : 'https'
    return new URL(`${scheme}://${local}:${config.get('runtime.http.port')}`)
  }
  const url = URL.parse(/^\w+:\/\//.test(given) ? given : `http://${given}`)
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new EngineError('USAGE', `--url is '${given}'; it is the address of a pod, as in http://localhost:8080.`)
  }
  return url
}

/** Why a port is never asked; undefined: it is. */
export function blockedSentence({ origin, port }: URL): string | undefined {
  if (!isBlockedPort(Number(port))) return undefined
  return `${origin} was not asked: browsers, and fetch of Node.js, refuse port ${port}; set runtime.http.port of the process to another, such as 8080.`
}

/** Of an interface that answered 401. `token`: what it was asked with. */
export function tokenSentence(origin: string, token: string | null, how: string): string {
  return token === null
    ? `${origin} asks for a token; give it with ${how}.`
    : `${origin} does not accept the token that it was given; give the one that is set there, with ${how}.`
}

export class HaClient {
  readonly #url: URL
  readonly token: string | null
  readonly #headers: Readonly<Record<string, string>>

  constructor({ url, token }: HaClientOptions) {
    this.#url = url
    this.token = token
    this.#headers = token === null ? {} : { authorization: `Bearer ${token}` }
  }

  /** For messages: scheme, host and port. */
  get origin(): string {
    return this.#url.origin
  }

  status(): Promise<HaAnswer<HaStatus>> {
    return this.#ask<HaStatus>('GET', '/ha/status', {})
  }

  history(): Promise<HaAnswer<HaHistory>> {
    return this.#ask<HaHistory>('GET', '/ha/history', {})
  }

  command(verb: HaVerb, pod: string | undefined, more: HaOptions): Promise<HaAnswer<HaAcknowledgement>> {
    const { force, value } = more
    const query = {
      ...(pod !== undefined && { pod }),
      ...(force === true && { force: 'true' }),
      ...(value !== undefined && { value }),
    }
    return this.#ask<HaAcknowledgement>('POST', `/ha/${verb}`, query)
  }

  async #ask<T>(method: string, path: string, query: Readonly<Record<string, string>>): Promise<HaAnswer<T>> {
    // An interface behind a proxy may lie below a path of its own.
    const url = new URL(this.#url.pathname.replace(/\/$/, '') + path, this.#url)
    url.search = new URLSearchParams(query).toString()
    let response: Response
    let text: string
    try {
      response = await fetch(url, { method, headers: this.#headers, signal: AbortSignal.timeout(answerTimeoutMs) })
      text = await response.text()
    } catch (error) {
      const reason = blockedSentence(this.#url) ?? `${this.origin} does not answer (${causeOf(error)})`
      return { ok: false, status: 0, reason }
    }
    const body = parsed(text)
    if (response.ok && body !== undefined) return { ok: true, value: body as T }
    const told = (body as { error?: unknown } | undefined)?.error
    const reason =
      typeof told === 'string' ? told : `${path} answers ${response.status} and says nothing that can be read`
    return { ok: false, status: response.ok ? 502 : response.status, reason }
  }
}

function parsed(text: string): unknown {
  try {
    const body: unknown = JSON.parse(text)
    return typeof body === 'object' && body !== null ? body : undefined
  } catch {
    return undefined
  }
}

/** `fetch` says "fetch failed" and keeps what happened in the cause. */
function causeOf(error: unknown): string {
  const cause = (error as { cause?: { code?: unknown; message?: string } }).cause
  if (typeof cause?.code === 'string') return cause.code
  return cause?.message ?? messageOf(error)
}

/** A refusal as the error that ends the command: one sentence, and an exit code by who has to act. */
export function refusalError(client: HaClient, { status, reason }: HaRefusal): EngineError {
  const sentence = /[.!?]$/.test(reason) ? reason : `${reason}.`
  switch (status) {
    case 0:
      return new EngineError('POD_UNREACHABLE', `${sentence} Name a pod that runs with --url.`)
    case 400:
      return new EngineError('USAGE', `${client.origin} does not take the command: ${sentence}`)
    case 401:
      return new EngineError(
        'USAGE',
        tokenSentence(
          client.origin,
          client.token,
          'RUNTIME_HTTP_AUTH_TOKEN or --set runtime.http.auth.token-file=<file>',
        ),
      )
    case 404:
      return new EngineError(
        'USAGE',
        `${client.origin} has no /ha endpoints: high availability is off there (ha.mode), or it is no Millrace.`,
      )
    case 409:
      return new EngineError('COMMAND_REFUSED', `The command is refused: ${sentence}`)
    default:
      return new EngineError('COMMAND_REFUSED', `${client.origin} cannot answer now (${status}): ${sentence}`)
  }
}
