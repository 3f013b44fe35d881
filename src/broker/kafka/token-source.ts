/** OAuth 2 client credentials for SASL/OAUTHBEARER: one token for all connections, renewed before it ends. */
import { BrokerError } from '../port.ts'
import type { TokenEndpoint } from './options.ts'

/** Part of a token's life after which a new connection asks for a new one. */
const renewAfter = 0.8

export class TokenSource {
  readonly #endpoint: TokenEndpoint
  readonly #abort = new AbortController()
  #current: { readonly token: string; readonly renewAtMs: number } | undefined
  #asking: Promise<{ readonly token: string; readonly renewAtMs: number }> | undefined

  constructor(endpoint: TokenEndpoint) {
    this.#endpoint = endpoint
  }

  async token(): Promise<string> {
    if (this.#current && this.#current.renewAtMs > performance.now()) return this.#current.token
    // Connections that open together share one request.
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
    })
    this.#current = await this.#asking
    return this.#current.token
  }

  close(): void {
    this.#abort.abort()
  }

  async #ask(): Promise<{ token: string; renewAtMs: number }> {
    const { url, clientId, clientSecret, scope } = this.#endpoint
    const basic = Buffer.from(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`).toString('base64')
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Basic ${basic}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope ? { scope } : {}) }),
      signal: AbortSignal.any([this.#abort.signal, AbortSignal.timeout(10_000)]),
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
    return { token, renewAtMs: performance.now() + (Number.isFinite(seconds) ? seconds : 300) * 1000 * renewAfter }
  }
}
