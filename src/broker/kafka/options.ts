/** How to reach and to use a Kafka cluster. Plain data, so that it can be handed to a worker thread. */
import type { ConnectionOptions as TlsConnectionOptions } from 'node:tls'
import { BrokerError } from '../port.ts'

export type SaslMechanism = 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512' | 'OAUTHBEARER'

export interface SaslOptions {
  readonly mechanism: SaslMechanism
  readonly username?: string
  readonly password?: string
  /** OAUTHBEARER with a fixed token. */
  readonly token?: string
  /** OAUTHBEARER with the client-credentials flow: a token is fetched here and renewed before it ends. */
  readonly tokenEndpoint?: TokenEndpoint
  /** OAUTHBEARER with a module of the application's own: its URL. Its default export is a `TokenProvider`. */
  readonly tokenProvider?: string
  /** SASL extensions of OAUTHBEARER. */
  readonly extensions?: Readonly<Record<string, string>>
}

export interface TokenEndpoint {
  readonly url: string
  readonly clientId: string
  readonly clientSecret: string
  readonly scope?: string
}

/** PEM texts, not file names. */
export type TlsOptions = Pick<
  TlsConnectionOptions,
  'ca' | 'cert' | 'key' | 'passphrase' | 'servername' | 'rejectUnauthorized' | 'minVersion' | 'ciphers'
>

export interface KafkaOptions {
  /** `host:port` of at least one broker; the others are learnt from it. */
  readonly bootstrapServers: readonly string[]
  readonly clientId: string
  readonly tls?: TlsOptions
  readonly sasl?: SaslOptions
  /** How long one request may take (30000). */
  readonly requestTimeoutMs?: number
  /** How long to keep trying to open one connection (5000). */
  readonly connectTimeoutMs?: number
  /** How long a call is retried before its last error is reported (60000). */
  readonly deliveryTimeoutMs?: number
  /** How long the very first contact is tried before the cluster counts as unreachable (5000). */
  readonly firstContactMs?: number
  /** Age at which what is known of the cluster is asked for anew (300000). */
  readonly metadataMaxAgeMs?: number
  /** Replicas of topics that this client creates; -1 leaves it to the broker (-1). */
  readonly replicationFactor?: number
}

export interface Address {
  readonly host: string
  readonly port: number
}

export type Settings = Required<Omit<KafkaOptions, 'tls' | 'sasl' | 'bootstrapServers'>> &
  Pick<KafkaOptions, 'tls' | 'sasl'> & { readonly bootstrap: readonly Address[] }

export function settingsOf(options: KafkaOptions): Settings {
  return {
    requestTimeoutMs: 30_000,
    connectTimeoutMs: 5000,
    deliveryTimeoutMs: 60_000,
    firstContactMs: 5000,
    metadataMaxAgeMs: 300_000,
    replicationFactor: -1,
    ...withoutUndefined(options),
    bootstrap: options.bootstrapServers.map(parseAddress),
  }
}

function withoutUndefined(options: KafkaOptions): KafkaOptions {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as unknown as KafkaOptions
}

/** `host:port` or `[v6]:port`; the port defaults to Kafka's 9092. */
export function parseAddress(text: string): Address {
  const parts = /^(?:\[([^\]]+)\]|([^:\s]+))(?::(\d{1,5}))?$/.exec(text.trim())
  const port = Number(parts?.[3] ?? 9092)
  if (!parts || port < 1 || port > 65_535) {
    throw new BrokerError(
      'INVALID_ADDRESS',
      `"${text}" is no broker address; write it as host:port in \`broker.bootstrap-servers\`.`,
      'config',
    )
  }
  return { host: (parts[1] ?? parts[2]) as string, port }
}

export function addressText(address: Address): string {
  return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`
}
