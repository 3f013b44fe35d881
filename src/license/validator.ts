import type { Fetch } from './fetch-text.ts'
import { KeySource } from './keys.ts'
import { type LicenseAction, LicenseServerClient } from './server-client.ts'
import {
  clockSkewMs,
  type LeaseClaims,
  type LicenseClaims,
  plainFault,
  type TokenRules,
  verifyLease,
  verifyLicenseKey,
} from './token.ts'

/** What one validation found out. */
export type Validation =
  | { readonly kind: 'accepted'; readonly claims: LicenseClaims; readonly lease: SignedLease | null }
  | { readonly kind: 'revoked'; readonly claims: LicenseClaims; readonly lease: SignedLease }
  | {
      readonly kind: 'refused'
      readonly reason: string
      /** The key's own contents where the key itself was good. */
      readonly claims: LicenseClaims | null
      /** The answer, where it is genuine and says no. */
      readonly lease: SignedLease | null
      /** What came is not proved to be the server's: anybody on the way may have said it. */
      readonly unproven?: true
    }
  | {
      readonly kind: 'failed'
      readonly reason: string
      readonly claims: LicenseClaims | null
      readonly retryAfterMs: number | undefined
    }

/** A server's answer with the token it was read from. */
export interface SignedLease {
  readonly token: string
  readonly claims: LeaseClaims
}

export interface ValidatorOptions {
  readonly key: string
  readonly machineId: string
  readonly audience: string
  readonly issuer: string | null
  readonly publicKeys: string | null
  readonly serverUrl: string | null
  readonly fetch: Fetch
  readonly nonce: () => string
}

/** Makes one validation after the other; remembers nothing but the last public keys. */
export class LicenseValidator {
  readonly #options: ValidatorOptions
  readonly #keys: KeySource
  readonly #client: LicenseServerClient | null

  constructor(options: ValidatorOptions) {
    this.#options = options
    this.#keys = new KeySource(options.publicKeys, options.fetch)
    this.#client = options.serverUrl === null ? null : new LicenseServerClient(options.serverUrl, options.fetch)
  }

  get online(): boolean {
    return this.#client !== null
  }

  async validate(action: LicenseAction, nowMs: number, signal: AbortSignal): Promise<Validation> {
    const keys = await this.#keys.load(signal)
    if (!keys.ok) {
      // What is no key at all does not become one when the public keys can be read.
      const fault = plainFault(this.#options.key)
      const reason = fault === undefined ? keys.reason : `the license key does not count: ${fault}`
      return keys.refused || fault !== undefined
        ? { kind: 'refused', reason, claims: null, lease: null }
        : { kind: 'failed', reason, claims: null, retryAfterMs: undefined }
    }
    const rules = { keys: keys.keys, audience: this.#options.audience, issuer: this.#options.issuer }
    const verdict = await verifyLicenseKey(this.#options.key, rules)
    if (!verdict.ok) {
      return { kind: 'refused', reason: `the license key does not count: ${verdict.reason}`, claims: null, lease: null }
    }
    const { claims } = verdict
    if (claims.notBeforeMs > nowMs + clockSkewMs) {
      const reason = 'the license does not count yet; if it should, check the clock of this machine'
      return { kind: 'refused', reason, claims: null, lease: null }
    }
    if (this.#client === null) return { kind: 'accepted', claims, lease: null }
    return await this.#ask(this.#client, action, claims, rules, signal)
  }

  /** A cached answer, verified again; undefined where it is not what this server gave this machine for this key. */
  async openCached(token: string, signal: AbortSignal): Promise<SignedLease | undefined | 'keys unavailable'> {
    const keys = await this.#keys.load(signal)
    if (!keys.ok) return 'keys unavailable'
    const rules = { keys: keys.keys, audience: this.#options.audience, issuer: this.#options.issuer }
    const key = await verifyLicenseKey(this.#options.key, rules)
    const lease = await verifyLease(token, rules)
    const isOurs =
      key.ok &&
      lease.ok &&
      lease.claims.machineId === this.#options.machineId &&
      lease.claims.licenseId === key.claims.licenseId
    return isOurs ? { token, claims: lease.claims } : undefined
  }

  /** Gives the machine's seat back. Nobody waits for the answer's contents. */
  async deactivate(signal: AbortSignal): Promise<void> {
    await this.#client?.send('deactivate', this.#request(this.#options.nonce()), signal)
  }

  async #ask(
    client: LicenseServerClient,
    action: LicenseAction,
    claims: LicenseClaims,
    rules: TokenRules,
    signal: AbortSignal,
  ): Promise<Validation> {
    const nonce = this.#options.nonce()
    const answer = await client.send(action, this.#request(nonce), signal)
    if (answer.token === undefined) {
      return { kind: 'failed', reason: answer.reason, claims, retryAfterMs: answer.retryAfterMs }
    }
    const refused = (reason: string, lease: SignedLease | null = null): Validation => ({
      kind: 'refused',
      reason,
      claims,
      lease,
    })
    const verdict = await verifyLease(answer.token, rules)
    if (!verdict.ok) {
      const reason = `the answer of the license server does not count: ${verdict.reason}`
      return { kind: 'refused', reason, claims, lease: null, unproven: true }
    }
    const lease = verdict.claims
    if (lease.nonce !== nonce) {
      return refused('the answer of the license server does not count: it was given before')
    }
    if (lease.licenseId !== claims.licenseId || lease.machineId !== this.#options.machineId) {
      return refused('the answer of the license server does not count: it is for another license or machine')
    }
    const signed = { token: answer.token, claims: lease }
    switch (lease.status) {
      case 'ACTIVE':
        return { kind: 'accepted', claims, lease: signed }
      case 'REVOKED':
        return { kind: 'revoked', claims, lease: signed }
      case 'MACHINE_LIMIT':
        return refused('all machines that the license allows are in use; stop one, or get a larger license', signed)
      case 'UNKNOWN_LICENSE':
        return refused('the license server does not know this license', signed)
    }
  }

  #request(nonce: string) {
    const { key, machineId, audience } = this.#options
    return { key, machineId, nonce, product: audience }
  }
}
