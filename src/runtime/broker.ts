/** The broker that the configuration names: started in this process, or connected to. */
import { pathToFileURL } from 'node:url'
import type { BrokerAddress } from '../broker/connect.ts'
import { type EmbeddedBroker, startEmbeddedBroker } from '../broker/embedded/start.ts'
import { KafkaClientsApart } from '../broker/kafka/apart/clients.ts'
import { EngineError } from '../base/errors.ts'
import { readNamedFile } from '../base/named-file.ts'
import {
  type KafkaOptions,
  parseAddress,
  type SaslOptions,
  type TlsOptions,
  type TokenEndpoint,
} from '../broker/kafka/options.ts'
import type { BrokerPort, BrokerTrouble } from '../broker/port.ts'
import type { Config } from '../config/config.ts'

export interface BrokerHandle {
  /** For the control thread: feeding, printing, tests. */
  readonly client: BrokerPort
  /** For another thread. Every call makes a new one. */
  address(): BrokerAddress
  /** A further client, for a caller that must not wait behind others. The caller closes it. */
  connect(): Promise<BrokerPort>
  /** Why nothing is stored at present. */
  trouble(): BrokerTrouble | null
  close(): Promise<void>
}

const prefix = 'embedded:'

/** What `broker.bootstrap-servers` says, or would say of a broker that the program gave. */
export function serversOf(config: Config, shared: EmbeddedBroker | undefined): string {
  return shared === undefined ? config.get('broker.bootstrap-servers') : `${prefix}${shared.folder ?? ''}`
}

/** `shared`: an embedded broker that somebody else started and closes. */
export async function openBroker(
  config: Config,
  applicationId: string,
  shared: EmbeddedBroker | undefined,
): Promise<BrokerHandle> {
  if (shared) return embeddedHandle(shared, false)
  const servers = config.get('broker.bootstrap-servers')
  if (servers.startsWith(prefix)) return openEmbedded(config, servers.slice(prefix.length))
  const options = kafkaOptions(config, applicationId, servers)
  const clients = new KafkaClientsApart(options)
  return {
    client: clients.client(),
    address: () => ({ kind: 'kafka', options }),
    connect: async () => clients.client(),
    trouble: () => null,
    close: () => clients.close(),
  }
}

async function openEmbedded(config: Config, folder: string): Promise<BrokerHandle> {
  const broker = await startEmbeddedBroker({
    partitions: config.get('broker.embedded.partitions'),
    fsync: config.get('broker.embedded.fsync'),
    ...(folder && { folder }),
  })
  return embeddedHandle(broker, true)
}

function embeddedHandle(broker: EmbeddedBroker, own: boolean): BrokerHandle {
  const client = broker.client()
  return {
    client,
    address: () => ({ kind: 'embedded', port: broker.connect() }),
    connect: async () => broker.client(),
    trouble: () => broker.trouble ?? null,
    close: async () => {
      await client.close()
      if (own) await broker.close()
    },
  }
}

function kafkaOptions(config: Config, applicationId: string, servers: string): KafkaOptions {
  const tls = tlsOptions(config)
  const sasl = saslOptions(config)
  return {
    bootstrapServers: addressesOf(servers),
    clientId: config.get('broker.client-id') ?? applicationId,
    requestTimeoutMs: config.get('broker.request-timeout'),
    connectTimeoutMs: config.get('broker.connect-timeout'),
    deliveryTimeoutMs: config.get('broker.delivery-timeout'),
    replicationFactor: config.get('broker.replication-factor'),
    ...(tls && { tls }),
    ...(sasl && { sasl }),
  }
}

/** Refused here, in the start: the threads that use them have nobody to tell. */
function addressesOf(servers: string): string[] {
  const addresses = servers.split(',').map((server) => server.trim())
  for (const address of addresses) {
    if (address === prefix.slice(0, -1)) {
      const message = `broker.bootstrap-servers: "${address}" is no broker address; the embedded broker is "${prefix}", or "${prefix}<folder>"`
      throw new EngineError('CONFIG_INVALID', message)
    }
    try {
      parseAddress(address)
    } catch (cause) {
      const message = `broker.bootstrap-servers: "${address}" is no broker address; write it as host:port`
      throw new EngineError('CONFIG_INVALID', message, { cause })
    }
  }
  return addresses
}

function tlsOptions(config: Config): TlsOptions | undefined {
  const file = (key: 'broker.tls.ca-file' | 'broker.tls.cert-file' | 'broker.tls.key-file'): string | undefined => {
    const name = config.get(key)
    return name === null ? undefined : readNamedFile(key, name).toString()
  }
  const [ca, cert, key] = [file('broker.tls.ca-file'), file('broker.tls.cert-file'), file('broker.tls.key-file')]
  const servername = config.get('broker.tls.server-name')
  const passphrase = config.get('broker.tls.key-passphrase')
  const asked = config.get('broker.tls.enabled') ?? Boolean(ca || cert || key || servername)
  if (!asked) return undefined
  return {
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(servername && { servername }),
    ...(passphrase && { passphrase }),
  }
}

function saslOptions(config: Config): SaslOptions | undefined {
  const mechanism = config.get('broker.sasl.mechanism')
  if (mechanism === null) return undefined
  const username = config.get('broker.sasl.username')
  const password = config.get('broker.sasl.password')
  const token = config.get('broker.sasl.token')
  const tokenEndpoint = tokenEndpointOf(config)
  const provider = config.get('broker.sasl.token-provider')
  return {
    mechanism,
    ...(username !== null && { username }),
    ...(password !== null && { password }),
    ...(token !== null && { token }),
    ...(tokenEndpoint && { tokenEndpoint }),
    ...(provider !== null && { tokenProvider: moduleUrl(provider) }),
  }
}

/** Every thread that talks to the broker loads it by itself. */
function moduleUrl(module: string): string {
  return module.startsWith('file:') ? module : pathToFileURL(module).href
}

function tokenEndpointOf(config: Config): TokenEndpoint | undefined {
  const url = config.get('broker.sasl.token-endpoint.url')
  const clientId = config.get('broker.sasl.token-endpoint.client-id')
  const clientSecret = config.get('broker.sasl.token-endpoint.client-secret')
  const scope = config.get('broker.sasl.token-endpoint.scope')
  if (url === null || clientId === null || clientSecret === null) return undefined
  return { url, clientId, clientSecret, ...(scope !== null && { scope }) }
}
