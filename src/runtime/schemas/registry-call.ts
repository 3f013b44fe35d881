/** The way to the registry that the configuration names. */
import { EngineError } from '../../base/errors.ts'
import type { Config } from '../../config/config.ts'
import { httpTransport, type RegistryCall } from '../../serde/registry/transport.ts'

/** @throws EngineError `CONFIG_INVALID` where an address is none. */
export function registryCallOf(config: Config): RegistryCall {
  const url = config.get('schema-registry.url') as string
  const urls = url.split(',').map((each) => each.trim())
  for (const each of urls) {
    if (URL.canParse(each) && /^https?:/.test(each)) continue
    throw new EngineError(
      'CONFIG_INVALID',
      `schema-registry.url: '${config.maskText(each)}' is no address; write https://host:port, several with commas, or embedded, or embedded:<folder>`,
    )
  }
  return httpTransport({
    urls,
    username: config.get('schema-registry.username'),
    password: config.get('schema-registry.password'),
    token: config.get('schema-registry.token'),
    caFile: config.get('schema-registry.tls.ca-file'),
    certFile: config.get('schema-registry.tls.cert-file'),
    keyFile: config.get('schema-registry.tls.key-file'),
    keyPassphrase: config.get('schema-registry.tls.key-passphrase'),
    timeoutMs: config.get('schema-registry.request-timeout'),
  })
}
