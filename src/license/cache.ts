import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf } from '../base/errors.ts'

/** What is remembered across restarts. */
export interface CachedLicense {
  readonly machineId: string
  /** The server's last good answer, as it came: signed, so it is verified again when it is read. */
  readonly lease: string | null
  readonly failingSinceMs: number | null
  /** An instant that has certainly passed. */
  readonly seenAtMs: number
}

export type CacheRead =
  | { readonly kind: 'none' }
  /** Of another license key: nothing of it counts but the machine's identity. */
  | { readonly kind: 'other key'; readonly machineId: string }
  | { readonly kind: 'tampered' }
  | { readonly kind: 'ok'; readonly content: CachedLicense }

/**
 * The file beside the state. It is sealed with a key made from the license key, so that an edit is noticed; what
 * really counts in it is the server's answer with the server's own signature.
 */
export class LicenseCache {
  readonly path: string
  readonly #fingerprint: string
  readonly #sealKey: Buffer

  constructor(path: string, licenseKey: string) {
    this.path = path
    this.#fingerprint = createHash('sha256').update(`fingerprint:${licenseKey}`).digest('hex').slice(0, 16)
    this.#sealKey = createHash('sha256').update(`seal:${licenseKey}`).digest()
  }

  read(): CacheRead {
    let text: string
    try {
      text = readFileSync(this.path, 'utf8')
    } catch {
      // No file, or none that may be read: as at the very first start.
      return { kind: 'none' }
    }
    const file = parse(text)
    if (file === undefined) return { kind: 'tampered' }
    if (file.fingerprint !== this.#fingerprint) return { kind: 'other key', machineId: file.content.machineId }
    return this.#isSealed(file) ? { kind: 'ok', content: file.content } : { kind: 'tampered' }
  }

  /** Replaces the file in one step. The sentence of what went wrong, if something did. */
  write(content: CachedLicense): string | undefined {
    const file: CacheFile = { version: 1, fingerprint: this.#fingerprint, content, seal: this.#seal(content) }
    try {
      mkdirSync(dirname(this.path), { recursive: true })
      const draft = `${this.path}.${process.pid}.new`
      writeFileSync(draft, `${JSON.stringify(file)}\n`, { mode: 0o600 })
      renameSync(draft, this.path)
      return undefined
    } catch (error) {
      return messageOf(error)
    }
  }

  #seal(content: CachedLicense): string {
    const { machineId, lease, failingSinceMs, seenAtMs } = content
    const canonical = JSON.stringify([this.#fingerprint, machineId, lease, failingSinceMs, seenAtMs])
    return createHmac('sha256', this.#sealKey).update(canonical).digest('hex')
  }

  #isSealed(file: CacheFile): boolean {
    const expected = Buffer.from(this.#seal(file.content))
    const found = Buffer.from(file.seal)
    return expected.length === found.length && timingSafeEqual(expected, found)
  }
}

interface CacheFile {
  readonly version: 1
  readonly fingerprint: string
  readonly content: CachedLicense
  readonly seal: string
}

function parse(text: string): CacheFile | undefined {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    // Written in one step, so it was not this program that left half a file.
    return undefined
  }
  const file = json as { readonly [K in keyof CacheFile]?: unknown } | null
  const content = file?.content as { readonly [K in keyof CachedLicense]?: unknown } | null | undefined
  if (typeof file?.fingerprint !== 'string' || typeof file.seal !== 'string' || !content) return undefined
  const { machineId, lease, failingSinceMs, seenAtMs } = content
  if (typeof machineId !== 'string' || !/^[A-Za-z0-9._-]{1,128}$/.test(machineId)) return undefined
  if (lease !== null && typeof lease !== 'string') return undefined
  if (failingSinceMs !== null && typeof failingSinceMs !== 'number') return undefined
  if (typeof seenAtMs !== 'number' || !Number.isFinite(seenAtMs)) return undefined
  return {
    version: 1,
    fingerprint: file.fingerprint,
    content: { machineId, lease, failingSinceMs, seenAtMs },
    seal: file.seal,
  }
}
