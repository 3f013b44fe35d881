import { messageOf } from '../base/errors.ts'
import { type Fetch, fetchText, RequestFailure } from './fetch-text.ts'

export type LicenseAction = 'activate' | 'heartbeat' | 'deactivate'

export interface LicenseRequest {
  readonly key: string
  readonly machineId: string
  readonly nonce: string
  readonly product: string
}

/** What came back: a token still to be verified, or nothing that could be one. */
export type LicenseAnswer =
  | { readonly token: string }
  | { readonly token: undefined; readonly reason: string; readonly retryAfterMs: number | undefined }

const longestAnswer = 65_536

/** The license server, one request at a time; never throws. `docs/license.md` describes the protocol. */
export class LicenseServerClient {
  readonly #base: string
  readonly #fetch: Fetch

  constructor(serverUrl: string, fetch: Fetch) {
    this.#base = serverUrl.replace(/\/+$/, '')
    this.#fetch = fetch
  }

  async send(action: LicenseAction, request: LicenseRequest, signal: AbortSignal): Promise<LicenseAnswer> {
    try {
      const text = await fetchText(this.#fetch, `${this.#base}/v1/${action}`, {
        signal,
        method: 'POST',
        body: JSON.stringify(request),
        limit: longestAnswer,
        // A refusal is signed like any other answer, whatever its status; one without a token decides nothing.
        alsoAccept: (status) => status >= 400 && status < 500 && status !== 408 && status !== 429,
      })
      const token = tokenOf(text)
      return token === undefined
        ? { token: undefined, reason: 'the license server answered without a token', retryAfterMs: undefined }
        : { token }
    } catch (error) {
      const retryAfterMs = error instanceof RequestFailure ? error.retryAfterMs : undefined
      return { token: undefined, reason: `the license server: ${messageOf(error)}`, retryAfterMs }
    }
  }
}

function tokenOf(text: string): string | undefined {
  try {
    const json: unknown = JSON.parse(text)
    const token = typeof json === 'object' && json !== null && 'token' in json ? json.token : undefined
    return typeof token === 'string' ? token : undefined
  } catch {
    // A proxy's error page, most likely: no answer of the license server at all.
    return undefined
  }
}
