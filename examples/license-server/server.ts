/**
 * A small license server, to read and to start from: it issues license keys, counts machines, revokes. The protocol is
 * that of `docs/license.md`. A real one would keep its data in a database and its private key in a vault.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK, jwtVerify, SignJWT } from 'jose'

export interface LicenseSpec {
  readonly customer: string
  readonly tier?: string
  /** How many machines may use it at once. */
  readonly machines?: number
  readonly expiresAtMs: number
  readonly notBeforeMs?: number
}

export interface LicenseRecord extends LicenseSpec {
  readonly id: string
  readonly revoked: boolean
}

/** Where licenses are kept; `main.ts` keeps them in a file. */
export interface LicenseStore {
  get(id: string): LicenseRecord | undefined
  put(record: LicenseRecord): void
}

export class MemoryStore implements LicenseStore {
  readonly #records = new Map<string, LicenseRecord>()

  get(id: string): LicenseRecord | undefined {
    return this.#records.get(id)
  }

  put(record: LicenseRecord): void {
    this.#records.set(record.id, record)
  }
}

export interface LicenseServerOptions {
  /** Private Ed25519 key as JWK; `newSigningKey` makes one. */
  readonly signingKey: JWK
  readonly store?: LicenseStore
  readonly now?: () => number
  readonly issuer?: string
  /** The product the licenses are for: `license.audience` of the engine. */
  readonly product?: string
  /** How long an answer covers the machine that got it. */
  readonly leaseMs?: number
  /** A machine that is silent for this long gives its seat up. */
  readonly seatMs?: number
}

export async function newSigningKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('EdDSA', { extractable: true })
  return { ...(await exportJWK(privateKey)), kid: randomUUID(), alg: 'EdDSA', use: 'sig' }
}

interface Ask {
  readonly key: string
  readonly machineId: string
  readonly nonce: string
  readonly product: string
}

const actions = ['activate', 'heartbeat', 'deactivate'] as const
type Action = (typeof actions)[number]

export class LicenseServer {
  readonly #options: Required<LicenseServerOptions>
  /** Last sign of life of each machine, by license. */
  readonly #seats = new Map<string, Map<string, number>>()
  #server: Server | undefined

  constructor(options: LicenseServerOptions) {
    this.#options = {
      store: new MemoryStore(),
      now: Date.now,
      issuer: 'license-server-example',
      product: 'millrace',
      leaseMs: 86_400_000,
      seatMs: 2 * 86_400_000,
      ...options,
    }
  }

  /** A license key for a customer. */
  async issue(spec: LicenseSpec): Promise<string> {
    const { issuer, product, store } = this.#options
    const id = randomUUID()
    const nowMs = this.#options.now()
    store.put({ ...spec, id, revoked: false })
    return await new SignJWT({ tier: spec.tier ?? 'standard', customer: spec.customer, machines: spec.machines ?? 1 })
      .setProtectedHeader({ alg: 'EdDSA', kid: this.#keyId(), typ: 'license+jwt' })
      .setIssuer(issuer)
      .setAudience(product)
      .setJti(id)
      .setIssuedAt(seconds(nowMs))
      .setNotBefore(seconds(spec.notBeforeMs ?? nowMs))
      .setExpirationTime(seconds(spec.expiresAtMs))
      .sign(await this.#privateKey())
  }

  /** Changes a license: `{ revoked: true }`, another end, more machines. True where it exists. */
  change(id: string, change: Partial<LicenseRecord>): boolean {
    const record = this.#options.store.get(id)
    if (record !== undefined) this.#options.store.put({ ...record, ...change, id })
    return record !== undefined
  }

  /** Machines that count at the moment. */
  seats(id: string): string[] {
    const seats = this.#seats.get(id) ?? new Map<string, number>()
    const since = this.#options.now() - this.#options.seatMs
    for (const [machineId, seenMs] of seats) if (seenMs <= since) seats.delete(machineId)
    this.#seats.set(id, seats)
    return [...seats.keys()]
  }

  /** Public keys, for `license.public-keys`. */
  jwks(): { readonly keys: readonly JWK[] } {
    const { kty, crv, x, kid } = this.#options.signingKey
    return { keys: [{ kty, crv, x, kid, alg: 'EdDSA', use: 'sig' } as JWK] }
  }

  async listen(port = 0, host = '127.0.0.1'): Promise<string> {
    const server = createServer((request, response) => void this.#serve(request, response))
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, host, resolve)
    })
    const address = server.address()
    return `http://${host}:${typeof address === 'object' && address !== null ? address.port : port}`
  }

  async close(): Promise<void> {
    this.#server?.closeAllConnections()
    await new Promise<void>((resolve) => (this.#server ? this.#server.close(() => resolve()) : resolve()))
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const reply = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    try {
      if (request.method === 'GET' && request.url === '/v1/keys') return reply(200, this.jwks())
      const action = actions.find((one) => request.url === `/v1/${one}`)
      if (action === undefined) return reply(404, { error: 'not found' })
      if (request.method !== 'POST') return reply(405, { error: 'POST only' })
      const ask = readAsk(await readBody(request))
      if (ask === undefined) return reply(400, { error: 'key, machineId, nonce and product are needed' })
      reply(200, { token: await this.answer(action, ask) })
    } catch (error) {
      reply(500, { error: error instanceof Error ? error.message : String(error) })
    }
  }

  /** The signed answer to a request. */
  async answer(action: Action, ask: Ask): Promise<string> {
    const nowMs = this.#options.now()
    const id = await this.#licenseOf(ask.key)
    const record = id === undefined ? undefined : this.#options.store.get(id)
    const machines = record === undefined ? [] : this.seats(record.id)
    const allowed = record?.machines ?? 1
    let status = 'ACTIVE'
    if (record === undefined) status = 'UNKNOWN_LICENSE'
    else if (record.revoked) status = 'REVOKED'
    else if (!machines.includes(ask.machineId) && machines.length >= allowed) status = 'MACHINE_LIMIT'
    if (record !== undefined && (action === 'deactivate' || status !== 'ACTIVE')) {
      this.#seats.get(record.id)?.delete(ask.machineId)
    } else if (record !== undefined) this.#seats.get(record.id)?.set(ask.machineId, nowMs)
    return await new SignJWT({
      status,
      machine: ask.machineId,
      nonce: ask.nonce,
      machines_used: record === undefined ? 0 : this.seats(record.id).length,
      machines_allowed: allowed,
      license_exp: seconds(record?.expiresAtMs ?? nowMs),
    })
      .setProtectedHeader({ alg: 'EdDSA', kid: this.#keyId(), typ: 'lease+jwt' })
      .setIssuer(this.#options.issuer)
      .setAudience(this.#options.product)
      .setSubject(id ?? 'unknown')
      .setIssuedAt(seconds(nowMs))
      .setExpirationTime(Math.ceil((nowMs + this.#options.leaseMs) / 1000))
      .sign(await this.#privateKey())
  }

  /** The id of a key that this server made, expired or not. */
  async #licenseOf(key: string): Promise<string | undefined> {
    try {
      const { payload } = await jwtVerify(key, await importJWK(this.jwks().keys[0] as JWK, 'EdDSA'), {
        algorithms: ['EdDSA'],
        typ: 'license+jwt',
        issuer: this.#options.issuer,
        audience: this.#options.product,
        // The record says when it ends, which may be later than its key was made for.
        currentDate: new Date(0),
        clockTolerance: Number.MAX_SAFE_INTEGER,
      })
      return payload.jti
    } catch {
      // Not a key of ours: that is all the client is to know.
      return undefined
    }
  }

  #keyId(): string {
    return this.#options.signingKey.kid ?? 'key'
  }

  async #privateKey(): Promise<CryptoKey> {
    return (await importJWK(this.#options.signingKey, 'EdDSA')) as CryptoKey
  }
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  let text = ''
  request.setEncoding('utf8')
  for await (const chunk of request) {
    text += chunk
    if (text.length > 65_536) return undefined
  }
  try {
    return JSON.parse(text)
  } catch {
    // No JSON is no request.
    return undefined
  }
}

function readAsk(body: unknown): Ask | undefined {
  if (typeof body !== 'object' || body === null) return undefined
  const { key, machineId, nonce, product } = body as Record<string, unknown>
  if (typeof key !== 'string' || typeof machineId !== 'string') return undefined
  return typeof nonce === 'string' && typeof product === 'string' ? { key, machineId, nonce, product } : undefined
}
