import { decodeJwt, decodeProtectedHeader } from 'jose'
import { EngineError, messageOf } from '../base/errors.ts'
import { licenseAlgorithms, parseKeys, type VerificationKey } from './keys.ts'
import { readLicenseClaims, verifyLicenseKey } from './token.ts'

export interface InspectOptions {
  /** Text of a JWKS or PEM file; without it the signature is not checked. */
  readonly publicKeys?: string
  readonly audience?: string
  readonly issuer?: string
  readonly nowMs: number
}

/**
 * What a license key says, as text for people, and whether it would count. For `millrace license inspect <key>`; it
 * tells customer and license id, since that is what is asked for.
 *
 * @throws EngineError USAGE where the text is no token, or the public keys are none.
 */
export async function inspectLicense(key: string, options: InspectOptions): Promise<string> {
  const token = key.trim()
  const { header, payload } = decode(token)
  const claims = readLicenseClaims(payload)
  const at = (ms: number) => new Date(ms).toISOString()
  const rows: Array<readonly [string, string]> = [
    ['algorithm', shown(header.alg)],
    ['key id', shown(header.kid)],
  ]
  if (claims === undefined) {
    for (const [name, value] of Object.entries(payload)) rows.push([name, shown(value)])
  } else {
    const days = Math.floor((claims.expiresAtMs - options.nowMs) / 86_400_000)
    rows.push(
      ['license id', claims.licenseId],
      ['customer', claims.customerName],
      ['tier', claims.tier],
      ['machines', String(claims.machinesAllowed)],
      ['issuer', shown(payload.iss)],
      ['audience', shown(payload.aud)],
      ['issued', at(claims.issuedAtMs)],
      ['counts from', at(claims.notBeforeMs)],
      ['expires', `${at(claims.expiresAtMs)} (${days >= 0 ? `in ${days} days` : 'in the past'})`],
    )
  }
  rows.push(['verdict', await verdictOf(token, header, claims !== undefined, options)])
  const width = Math.max(...rows.map(([name]) => name.length))
  return `${rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n')}\n`
}

function decode(token: string) {
  try {
    return { header: { ...decodeProtectedHeader(token) }, payload: { ...decodeJwt(token) } }
  } catch {
    throw new EngineError('USAGE', 'This is not a license key: a license key is a signed JWT, three parts with dots.')
  }
}

async function verdictOf(
  token: string,
  header: Readonly<Record<string, unknown>>,
  complete: boolean,
  options: InspectOptions,
): Promise<string> {
  if (!licenseAlgorithms.some((algorithm) => algorithm === header.alg)) {
    return `does not count: its algorithm is not one of ${licenseAlgorithms.join(', ')}`
  }
  if (!complete) return 'does not count: it lacks a claim or has one of a wrong kind'
  if (options.publicKeys === undefined) return 'not verified: no public keys were given'
  const payload = decodeJwt(token)
  const audience = options.audience ?? (Array.isArray(payload.aud) ? payload.aud[0] : payload.aud) ?? ''
  const keys = await keysOf(options.publicKeys)
  const verdict = await verifyLicenseKey(token, { keys, audience, issuer: options.issuer ?? null })
  if (!verdict.ok) return `does not count: ${verdict.reason}`
  if (verdict.claims.expiresAtMs <= options.nowMs) return 'genuine, but expired'
  return verdict.claims.notBeforeMs > options.nowMs ? 'genuine, but does not count yet' : 'genuine'
}

async function keysOf(text: string): Promise<VerificationKey[]> {
  const what = 'a JWKS, or PEM with PUBLIC KEY, of Ed25519 or P-256'
  try {
    const keys = await parseKeys(text)
    if (keys.length > 0) return keys
  } catch (cause) {
    throw new EngineError('USAGE', `The public keys cannot be read: ${messageOf(cause)}; give ${what}.`, { cause })
  }
  throw new EngineError('USAGE', `The file of the public keys holds none; give ${what}.`)
}

/** Control characters would let a key write what it likes on the terminal. */
function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'none')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '?').slice(0, 200)
}
