/** Tokens for SASL/OAUTHBEARER: one for all connections, renewed before it ends. */
import { messageOf } from '../../base/errors.ts'
import { BrokerError } from '../port.ts'
import type { TokenEndpoint } from './options.ts'

/** What a token provider answers. */
export interface SaslToken {
  /** The token, as the broker is to get it. */
  readonly token: string
  /** When it ends, epoch milliseconds. */
  readonly expiresAtMs: number
}

/**
 * Gives tokens for SASL/OAUTHBEARER: the default export of the module that `broker.sasl.token-provider` names. It is called by
 * every thread that talks to the broker, first at its first connection, then at 80 % of each token's life. Where it fails,
 * the old token is used while it holds.
 *
 * @example
 * const tokens: TokenProvider = async ({ signal }) => {
 *   const answer = await fetch('http://169.254.169.254/token', { signal })
 *   const { token, seconds } = (await answer.json()) as { token: string; seconds: number }
 *   return { token, expiresAtMs: Date.now() + seconds * 1000 }
 * }
 */
export type TokenProvider = (context: {
  /** Fires when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}) => SaslToken | Promise<SaslToken>

/** Part of a token's life after which a new one is asked for. */
const renewAfter = 0.8
const timeoutMs = 10_000
/** Where a provider failed, it is asked again after this long, or after a tenth of what is left. */
const leastRetryMs = 1000
const longestTimerMs = 2 ** 31 - 1

interface Current {
  readonly token: string
  readonly expiresAtMs: number
  readonly renewAtMs: number
}

/** Who gives the tokens, and the time they are judged by: epoch milliseconds. */
export interface TokenSourceOptions {
  readonly provider: TokenProvider
  readonly now?: () => number
}

export class TokenSource {
  readonly #provider: TokenProvider
  readonly #now: () => number
  readonly #abort = new AbortController()
  #current: Current | undefined
  #asking: Promise<Current> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor({ provider, now = Date.now }: TokenSourceOptions) {
    this.#provider = provider
    this.#now = now
  }

  /** A token that holds. */
  async token(): Promise<string> {
    const now = this.#now()
    const current = this.#current
    if (current !== undefined && current.renewAtMs > now) return current.token
    try {
      return (await this.#renew()).token
    } catch (error) {
      if (current === undefined) throw error
      if (current.expiresAtMs > this.#now()) return current.token
      // It worked before: whoever gives the tokens is away, which is no reason to give up.
      throw new BrokerError('UNREACHABLE', messageOf(error), 'unreachable', error)
    }
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#abort.abort()
  }

  /** Connections that open together share one request. */
  #renew(): Promise<Current> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  async #ask(): Promise<Current> {
    const signal = AbortSignal.any([this.#abort.signal, AbortSignal.timeout(timeoutMs)])
    const { token, expiresAtMs } = checked(await this.#provider({ signal }))
    const now = this.#now()
    const current = { token, expiresAtMs, renewAtMs: now + (expiresAtMs - now) * renewAfter }
    this.#current = current
    this.#plan(current.renewAtMs - now)
    return current
  }

  /** A connection that is opened anew does not wait for a token. */
  #plan(inMs: number): void {
    clearTimeout(this.#timer)
    if (this.#abort.signal.aborted) return
    const wait = Math.min(longestTimerMs, Math.max(0, inMs))
    this.#timer = setTimeout(() => {
      this.#renew().catch(() => {
        // The next connection tells of it, if it is still so then.
        const left = (this.#current?.expiresAtMs ?? 0) - this.#now()
        if (left > 0) this.#plan(Math.max(leastRetryMs, left / 10))
      })
    }, wait).unref()
  }
}

function checked(answer: unknown): SaslToken {
  const { token, expiresAtMs } = (answer ?? {}) as Partial<SaslToken>
  if (typeof token === 'string' && token !== '' && Number.isFinite(expiresAtMs)) return answer as SaslToken
  throw new BrokerError(
    'SASL_AUTHENTICATION_FAILED',
    'The token provider must answer { token, expiresAtMs }, a text and epoch milliseconds; check `broker.sasl.token-provider`.',
  )
}

/** OAuth 2 client credentials. */
export function endpointTokens({ url, clientId, clientSecret, scope }: TokenEndpoint): TokenProvider {
  return async ({ signal }) => {
    const basic = Buffer.from(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`).toString('base64')
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Basic ${basic}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope ? { scope } : {}) }),
      signal,
    })
    const body: unknown = response.ok ? await response.json() : undefined
    const token = body && typeof body === 'object' && 'access_token' in body ? body.access_token : undefined
    if (typeof token !== 'string') {
      throw new BrokerError(
        'SASL_AUTHENTICATION_FAILED',
        `The token endpoint ${url} gave no access token (HTTP ${response.status}); check \`broker.sasl.*\`.`,
      )
    }
    const seconds = body && typeof body === 'object' && 'expires_in' in body ? Number(body.expires_in) : 300
    return { token, expiresAtMs: Date.now() + (Number.isFinite(seconds) ? seconds : 300) * 1000 }
  }
}

/** The default export of a module, loaded with the first token. Where it throws, that is said with its name. */
export function moduleTokens(url: string): TokenProvider {
  let loaded: Promise<TokenProvider> | undefined
  return async (context) => {
    loaded ??= load(url)
    const provider = await loaded
    try {
      return await provider(context)
    } catch (error) {
      throw new BrokerError(
        'SASL_AUTHENTICATION_FAILED',
        `The token provider ${url} failed: ${messageOf(error)}; it is the one that \`broker.sasl.token-provider\` names.`,
      )
    }
  }
}

async function load(url: string): Promise<TokenProvider> {
  const refused = (why: string, cause?: unknown): BrokerError =>
    new BrokerError('SASL_AUTHENTICATION_FAILED', `broker.sasl.token-provider: ${url} ${why}`, 'config', cause)
  const module = await import(url).catch((error) => {
    throw refused(`cannot be loaded: ${messageOf(error).split('\n', 1)[0]}`, error)
  })
  const { default: provider } = module as { readonly default?: unknown }
  if (typeof provider !== 'function') throw refused('must export a function as its default')
  return provider as TokenProvider
}
