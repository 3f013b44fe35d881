import { unwatchFile, watchFile } from 'node:fs'
import { EngineError, messageOf } from '../../base/errors.ts'
import { readNamedFile } from '../../base/named-file.ts'
import type { HttpConfig, HttpLog } from '../http-config.ts'

export interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
}

const lookEveryMs = 10_000

/** @throws EngineError CONFIG_INVALID where a file is missing or cannot be read. */
export function readCertificate({ tlsCertFile, tlsKeyFile }: HttpConfig): Certificate {
  return {
    cert: readPem('runtime.http.tls.cert-file', tlsCertFile),
    key: readPem('runtime.http.tls.key-file', tlsKeyFile),
  }
}

function readPem(key: string, path: string | null): Buffer {
  if (path === null) throw new EngineError('CONFIG_INVALID', `${key} must be set where the other TLS file is`)
  return readNamedFile(key, path)
}

/**
 * Takes up a renewed certificate without a restart. What cannot be used is logged, and the old one stays in force.
 *
 * @returns a function that ends the watching.
 */
export function watchCertificate(
  config: HttpConfig,
  log: HttpLog,
  renew: (certificate: Certificate) => void,
): () => void {
  const files = [config.tlsCertFile, config.tlsKeyFile].filter((path) => path !== null)
  const look = (): void => {
    try {
      renew(readCertificate(config))
      log('info', 'the TLS certificate was renewed from its files')
    } catch (error) {
      log('warn', `the renewed TLS certificate cannot be used, the old one stays: ${messageOf(error)}`)
    }
  }
  for (const file of files) watchFile(file, { interval: lookEveryMs, persistent: false }, look)
  return () => {
    for (const file of files) unwatchFile(file, look)
  }
}
