import { compactVerify, decodeJwt, decodeProtectedHeader } from 'jose'
import { licenseAlgorithms, type VerificationKey } from './keys.ts'

/** Type (`typ`) of a license key and of a server's answer, so that one is never taken for the other. */
export const licenseType = 'license+jwt'
export const leaseType = 'lease+jwt'

const longestToken = 16_384
const shape = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/
/** All that a header may say. Whatever points to keys (`jku`, `jwk`, `x5u`, `x5c`) or changes the rules is refused. */
const headerNames = new Set(['alg', 'kid', 'typ'])

/** Skew between clocks that is forgiven where a token begins to count. */
export const clockSkewMs = 60_000
const lastInstantSeconds = 253_402_300_799

export type Verdict<T> = { readonly ok: true; readonly claims: T } | { readonly ok: false; readonly reason: string }

export interface LicenseClaims {
  readonly licenseId: string
  readonly tier: string
  readonly customerName: string
  readonly machinesAllowed: number
  readonly issuedAtMs: number
  readonly notBeforeMs: number
  readonly expiresAtMs: number
}

export const leaseStatuses = ['ACTIVE', 'REVOKED', 'MACHINE_LIMIT', 'UNKNOWN_LICENSE'] as const
export type LeaseStatus = (typeof leaseStatuses)[number]

export interface LeaseClaims {
  readonly status: LeaseStatus
  readonly licenseId: string
  readonly machineId: string
  readonly nonce: string
  readonly machinesUsed: number
  readonly machinesAllowed: number
  readonly licenseExpiresAtMs: number
  readonly issuedAtMs: number
  readonly expiresAtMs: number
}

export interface TokenRules {
  readonly keys: readonly VerificationKey[]
  readonly audience: string
  readonly issuer: string | null
}

const refuse = (reason: string): { readonly ok: false; readonly reason: string } => ({ ok: false, reason })

/** Verifies a license key: signature, issuer, audience, contents. Its time is left to the caller. */
export async function verifyLicenseKey(token: string, rules: TokenRules): Promise<Verdict<LicenseClaims>> {
  const payload = await verifyToken(token, rules, (typ) => typ === undefined || typ === 'JWT' || typ === licenseType)
  if (!payload.ok) return payload
  const claims = readLicenseClaims(payload.claims)
  return claims === undefined ? refuse('it lacks a claim or has one of a wrong kind') : { ok: true, claims }
}

/** Verifies a server's answer likewise. Whether it answers what was asked is left to the caller. */
export async function verifyLease(token: string, rules: TokenRules): Promise<Verdict<LeaseClaims>> {
  const payload = await verifyToken(token, rules, (typ) => typ === leaseType)
  if (!payload.ok) return payload
  const claims = readLeaseClaims(payload.claims)
  return claims === undefined ? refuse('it lacks a claim or has one of a wrong kind') : { ok: true, claims }
}

/** What shows without any public key that a text is no license key; undefined where it may be one. */
export function plainFault(token: string): string | undefined {
  if (token.length > longestToken) return `it is longer than ${longestToken} characters`
  if (!shape.test(token)) return 'it is not a signed JWT'
  if (readHeader(token) === undefined) return 'its header cannot be read'
  try {
    return readLicenseClaims(decodeJwt(token)) === undefined ? 'it lacks a claim or has one of a wrong kind' : undefined
  } catch {
    return 'its contents cannot be read'
  }
}

type Payload = Readonly<Record<string, unknown>>

async function verifyToken(
  token: string,
  rules: TokenRules,
  isType: (typ: string | undefined) => boolean,
): Promise<Verdict<Payload>> {
  if (token.length > longestToken) return refuse(`it is longer than ${longestToken} characters`)
  if (!shape.test(token)) return refuse('it is not a signed JWT')
  const header = readHeader(token)
  if (header === undefined) return refuse('its header cannot be read')
  const strange = Object.keys(header).find((name) => !headerNames.has(name))
  if (strange !== undefined) return refuse('its header holds more than algorithm, key id and type')
  const algorithm = licenseAlgorithms.find((one) => one === header.alg)
  if (algorithm === undefined) return refuse(`its algorithm is not one of ${licenseAlgorithms.join(', ')}`)
  if (header.typ !== undefined && typeof header.typ !== 'string') return refuse('its header cannot be read')
  if (!isType(header.typ)) return refuse('it is a token of another type')
  const candidates = rules.keys.filter(
    (key) => key.algorithm === algorithm && (header.kid === undefined || key.keyId === header.kid),
  )
  if (candidates.length === 0) return refuse('it is signed with a key that is not among license.public-keys')
  for (const candidate of candidates) {
    const payload = await openWith(token, candidate)
    if (payload !== undefined) return checkAddress(payload, rules)
  }
  return refuse('its signature is wrong')
}

function readHeader(token: string): Record<string, unknown> | undefined {
  try {
    return { ...decodeProtectedHeader(token) }
  } catch {
    // Any way in which a header cannot be decoded is the same to the caller.
    return undefined
  }
}

async function openWith(token: string, candidate: VerificationKey): Promise<Payload | undefined> {
  try {
    const { payload } = await compactVerify(token, candidate.key, { algorithms: [candidate.algorithm] })
    const json: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload))
    return typeof json === 'object' && json !== null && !Array.isArray(json) ? (json as Payload) : undefined
  } catch {
    // A wrong signature, or a payload that is no JSON: not a token of this key.
    return undefined
  }
}

function checkAddress(payload: Payload, rules: TokenRules): Verdict<Payload> {
  if (rules.issuer !== null && payload.iss !== rules.issuer) return refuse('it is from another issuer')
  const audiences = Array.isArray(payload.aud) ? payload.aud : [payload.aud]
  return audiences.includes(rules.audience) ? { ok: true, claims: payload } : refuse('it is for another audience')
}

export function readLicenseClaims(payload: Payload): LicenseClaims | undefined {
  const licenseId = text(payload.jti, 128)
  const tier = payload.tier === undefined ? 'standard' : text(payload.tier, 64)
  const customerName = text(payload.customer, 256)
  const machinesAllowed = payload.machines === undefined ? 1 : count(payload.machines)
  const issuedAtMs = instant(payload.iat)
  const notBeforeMs = payload.nbf === undefined ? issuedAtMs : instant(payload.nbf)
  const expiresAtMs = instant(payload.exp)
  if (licenseId === undefined || tier === undefined || customerName === undefined) return undefined
  if (machinesAllowed === undefined || issuedAtMs === undefined || notBeforeMs === undefined) return undefined
  if (expiresAtMs === undefined) return undefined
  return { licenseId, tier, customerName, machinesAllowed, issuedAtMs, notBeforeMs, expiresAtMs }
}

function readLeaseClaims(payload: Payload): LeaseClaims | undefined {
  const status = leaseStatuses.find((one) => one === payload.status)
  const licenseId = text(payload.sub, 128)
  const machineId = text(payload.machine, 128)
  const nonce = text(payload.nonce, 128)
  const machinesUsed = count(payload.machines_used)
  const machinesAllowed = count(payload.machines_allowed)
  const licenseExpiresAtMs = instant(payload.license_exp)
  const issuedAtMs = instant(payload.iat)
  const expiresAtMs = instant(payload.exp)
  if (status === undefined || licenseId === undefined || machineId === undefined || nonce === undefined)
    return undefined
  if (machinesUsed === undefined || machinesAllowed === undefined || licenseExpiresAtMs === undefined) return undefined
  if (issuedAtMs === undefined || expiresAtMs === undefined || expiresAtMs <= issuedAtMs) return undefined
  return {
    status,
    licenseId,
    machineId,
    nonce,
    machinesUsed,
    machinesAllowed,
    licenseExpiresAtMs,
    issuedAtMs,
    expiresAtMs,
  }
}

function text(value: unknown, most: number): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  const fine = typeof value === 'string' && value.length >= 1 && value.length <= most && !/[\u0000-\u001f]/.test(value)
  return fine ? value : undefined
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= 1e9 ? value : undefined
}

/** Epoch seconds, as JWTs have them, in milliseconds. */
function instant(value: unknown): number | undefined {
  const fine = typeof value === 'number' && value >= 0 && value <= lastInstantSeconds
  return fine ? Math.floor(value) * 1000 : undefined
}
