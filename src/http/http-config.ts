import type { Config } from '../config/config.ts'

export type HttpLog = (level: 'info' | 'warn' | 'error', message: string) => void

/** What the HTTP interface needs of the configuration, as plain values. */
export interface HttpConfig {
  readonly enabled: boolean
  readonly host: string
  readonly port: number
  readonly debugEnabled: boolean
  readonly metricsEnabled: boolean
  readonly configEndpointEnabled: boolean
  readonly storesEndpointEnabled: boolean
  readonly deadLettersEndpointEnabled: boolean
  readonly consoleEnabled: boolean
  /** The console offers no actions. */
  readonly consoleReadOnly: boolean
  /** Origins of other processes: the console may ask them, and their consoles may read from this process. */
  readonly consolePods: readonly string[]
  readonly haEnabled: boolean
  /** Bearer token that every request but the probes must carry; null: none. */
  readonly token: string | null
  readonly tlsCertFile: string | null
  readonly tlsKeyFile: string | null
  /** Host names under which the interface may be asked; empty: any. Probes are exempt. */
  readonly allowedHosts: readonly string[]
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  readonly maxHeaderBytes: number
  readonly maxHeadersCount: number
  readonly maxUrlLength: number
  readonly maxBodyBytes: number
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
  readonly maxRequestsPerSocket: number
  readonly maxPipelinedRequests: number
}

export const defaultHttpConfig: HttpConfig = {
  enabled: true,
  host: '0.0.0.0',
  port: 8080,
  debugEnabled: true,
  metricsEnabled: true,
  configEndpointEnabled: true,
  storesEndpointEnabled: false,
  deadLettersEndpointEnabled: false,
  consoleEnabled: true,
  consoleReadOnly: false,
  consolePods: [],
  haEnabled: false,
  token: null,
  tlsCertFile: null,
  tlsKeyFile: null,
  allowedHosts: [],
  headersTimeoutMs: 5000,
  requestTimeoutMs: 10_000,
  keepAliveTimeoutMs: 5000,
  maxHeaderBytes: 8192,
  maxHeadersCount: 64,
  maxUrlLength: 2048,
  maxBodyBytes: 4096,
  maxConnections: 256,
  maxConnectionsPerAddress: 64,
  maxRequestsPerSocket: 1000,
  maxPipelinedRequests: 4,
}

export function httpConfigFrom(config: Config): HttpConfig {
  return {
    enabled: config.get('runtime.http.enabled'),
    host: config.get('runtime.http.host'),
    port: config.get('runtime.http.port'),
    debugEnabled: config.get('runtime.http.debug.enabled'),
    metricsEnabled: config.get('runtime.metrics.enabled'),
    configEndpointEnabled: config.get('runtime.endpoints.config.enabled'),
    storesEndpointEnabled: config.get('runtime.endpoints.stores.enabled'),
    deadLettersEndpointEnabled: config.get('runtime.endpoints.dead-letters.enabled'),
    consoleEnabled: config.get('runtime.http.console.enabled'),
    consoleReadOnly: config.get('runtime.http.console.read-only'),
    consolePods: config.get('runtime.http.console.pods').map((pod) => new URL(pod).origin),
    haEnabled: config.get('ha.mode') !== 'off',
    token: config.get('runtime.http.auth.token'),
    tlsCertFile: config.get('runtime.http.tls.cert-file'),
    tlsKeyFile: config.get('runtime.http.tls.key-file'),
    allowedHosts: config.get('runtime.http.allowed-hosts'),
    headersTimeoutMs: config.get('runtime.http.headers-timeout'),
    requestTimeoutMs: config.get('runtime.http.request-timeout'),
    keepAliveTimeoutMs: config.get('runtime.http.keep-alive-timeout'),
    maxHeaderBytes: config.get('runtime.http.max-header-bytes'),
    maxHeadersCount: config.get('runtime.http.max-headers-count'),
    maxUrlLength: config.get('runtime.http.max-url-length'),
    maxBodyBytes: config.get('runtime.http.max-body-bytes'),
    maxConnections: config.get('runtime.http.max-connections'),
    maxConnectionsPerAddress: config.get('runtime.http.max-connections-per-address'),
    maxRequestsPerSocket: config.get('runtime.http.max-requests-per-socket'),
    maxPipelinedRequests: config.get('runtime.http.max-pipelined-requests'),
  }
}
