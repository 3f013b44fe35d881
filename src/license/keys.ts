import { createPublicKey } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type CryptoKey, importJWK } from 'jose'
import { messageOf } from '../base/errors.ts'
import { type Fetch, fetchText } from './fetch-text.ts'

/** The closed list of algorithms. What a token says of itself only picks from it. */
export const licenseAlgorithms = ['EdDSA', 'ES256'] as const
export type LicenseAlgorithm = (typeof licenseAlgorithms)[number]

export interface VerificationKey {
  readonly algorithm: LicenseAlgorithm
  readonly keyId: string | undefined
  readonly key: CryptoKey
}

export type KeysResult =
  | { readonly ok: true; readonly keys: readonly VerificationKey[] }
  /** `refused`: they were read, and are no keys. Else they could not be read at the moment. */
  | { readonly ok: false; readonly refused: boolean; readonly reason: string }

const mostKeys = 32
const longestKeySet = 65_536

/**
 * The issuer's public keys, from a file or from a URL. They come from nowhere else: a key, or the address of one,
 * inside a token is never looked at. Read anew for every validation, so that keys can be rotated; where that fails,
 * those read last go on being used.
 */
export class KeySource {
  readonly #location: string | null
  readonly #fetch: Fetch
  #last: readonly VerificationKey[] | undefined

  constructor(location: string | null, fetch: Fetch) {
    this.#location = location
    this.#fetch = fetch
  }

  async load(signal: AbortSignal): Promise<KeysResult> {
    if (this.#location === null) {
      return { ok: false, refused: true, reason: 'license.public-keys is not set, so no license can be verified' }
    }
    try {
      const text = isAddress(this.#location)
        ? await fetchText(this.#fetch, this.#location, { signal, limit: longestKeySet })
        : await readFile(this.#location, 'utf8')
      const keys = await parseKeys(text.slice(0, longestKeySet))
      if (keys.length === 0) {
        return { ok: false, refused: true, reason: 'license.public-keys holds no Ed25519 or P-256 public key' }
      }
      this.#last = keys
      return { ok: true, keys }
    } catch (error) {
      if (this.#last !== undefined) return { ok: true, keys: this.#last }
      return { ok: false, refused: false, reason: `license.public-keys cannot be read: ${messageOf(error)}` }
    }
  }
}

function isAddress(location: string): boolean {
  return /^https?:\/\//i.test(location)
}

/** JWKS or single JWK as JSON, else PEM blocks. Keys of other kinds are left out, private parts are not read. */
export async function parseKeys(text: string): Promise<VerificationKey[]> {
  const jwks = text.trimStart().startsWith('{') ? jwksOf(JSON.parse(text)) : pemKeys(text)
  const keys: VerificationKey[] = []
  for (const jwk of jwks.slice(0, mostKeys)) {
    const key = await importPublic(jwk)
    if (key !== undefined) keys.push(key)
  }
  return keys
}

interface Jwk {
  readonly kty?: unknown
  readonly crv?: unknown
  readonly x?: unknown
  readonly y?: unknown
  readonly kid?: unknown
  readonly use?: unknown
  readonly alg?: unknown
}

function jwksOf(json: unknown): Jwk[] {
  const list = (json as { readonly keys?: unknown }).keys ?? [json]
  return Array.isArray(list) ? list.filter((item) => typeof item === 'object' && item !== null) : []
}

function pemKeys(text: string): Jwk[] {
  const blocks = text.match(/-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\s]+-----END PUBLIC KEY-----/g) ?? []
  return blocks.map((block) => createPublicKey(block).export({ format: 'jwk' }))
}

async function importPublic(jwk: Jwk): Promise<VerificationKey | undefined> {
  const { kty, crv, x, y } = jwk
  if (jwk.use !== undefined && jwk.use !== 'sig') return undefined
  const keyId = typeof jwk.kid === 'string' ? jwk.kid : undefined
  if (kty === 'OKP' && crv === 'Ed25519' && typeof x === 'string') {
    if (jwk.alg !== undefined && jwk.alg !== 'EdDSA' && jwk.alg !== 'Ed25519') return undefined
    return { algorithm: 'EdDSA', keyId, key: (await importJWK({ kty, crv, x }, 'EdDSA')) as CryptoKey }
  }
  if (kty === 'EC' && crv === 'P-256' && typeof x === 'string' && typeof y === 'string') {
    if (jwk.alg !== undefined && jwk.alg !== 'ES256') return undefined
    return { algorithm: 'ES256', keyId, key: (await importJWK({ kty, crv, x, y }, 'ES256')) as CryptoKey }
  }
  return undefined
}
