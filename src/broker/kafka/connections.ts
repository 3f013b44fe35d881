/**
 * Connections to the nodes of a cluster. A broker answers the requests of one connection strictly one after the
 * other, hence a request that may wait at the broker (fetch, join, sync, administration) gets a connection to itself,
 * and the quick ones share one per role so that large writes never hold up a heartbeat.
 */
import { isIP } from 'node:net'
import { apiVersionsV3, Connection } from '@platformatic/kafka'
import type { ConnectionOptions } from '@platformatic/kafka'
import { BrokerError } from '../port.ts'
import { closedError, notConnected } from './errors.ts'
import { type Address, addressText, type SaslOptions, type Settings } from './options.ts'
import { endpointTokens, moduleTokens, type TokenProvider, TokenSource } from './token-source.ts'

/** What ends a commit waits at the broker for its replicas, and on Kafka 4 for others to write along: nobody else waits behind it. */
export type Role = 'produce' | 'commit' | 'coordinate'

const idleConnectionsKept = 4

/** What one node speaks. */
export interface NodeVersions {
  readonly max: ReadonlyMap<number, number>
  /** Level of the cluster's `transaction.version` feature; 2 means Transactions V2. */
  readonly transactionVersion: number
}

/**
 * A connection whose broker may end its session (`connections.max.reauth.ms`). The library would authenticate anew in the
 * midst of other requests, which a broker refuses meanwhile; instead another connection takes its place before the session is over.
 */
class SessionConnection extends Connection {
  endsSoon = false

  override reauthenticate(): void {
    this.endsSoon = true
  }
}

export interface Link {
  readonly connection: SessionConnection
  readonly versions: NodeVersions
  readonly address: Address
}

/** Api keys and the lowest of their versions that this client speaks; together Kafka 3.2. */
const needed: ReadonlyArray<readonly [api: string, key: number, version: number]> = [
  ['Produce', 0, 9],
  ['Fetch', 1, 13],
  ['ListOffsets', 2, 7],
  ['Metadata', 3, 12],
  ['OffsetCommit', 8, 8],
  ['OffsetFetch', 9, 8],
  ['FindCoordinator', 10, 4],
  ['JoinGroup', 11, 9],
  ['InitProducerId', 22, 4],
  ['EndTxn', 26, 3],
]

export class Connections {
  readonly #settings: Settings
  readonly #shared = new Map<string, Promise<Link>>()
  readonly #idle = new Map<string, Link[]>()
  readonly #open = new Set<Connection>()
  readonly #token: TokenSource | undefined
  #closed = false

  constructor(settings: Settings) {
    this.#settings = settings
    const provider = settings.sasl && tokenProviderOf(settings.sasl)
    this.#token = provider && new TokenSource({ provider })
  }

  get closed(): boolean {
    return this.#closed
  }

  /** The connection that all calls of this role to this node share. */
  async shared(address: Address, role: Role): Promise<Link> {
    const key = `${role} ${addressText(address)}`
    const known = this.#shared.get(key)
    if (known) {
      const link = await known
      if (isUsable(link)) return link
      if (this.#shared.get(key) === known) {
        this.#shared.delete(key)
        this.#retire(link)
      }
      return this.shared(address, role)
    }
    const opening = this.#connect(address, this.#settings.requestTimeoutMs)
    this.#shared.set(key, opening)
    try {
      return await opening
    } catch (error) {
      if (this.#shared.get(key) === opening) this.#shared.delete(key)
      throw error
    }
  }

  /** Runs one call on a connection that nobody else uses meanwhile. */
  async exclusive<T>(address: Address, timeoutMs: number, call: (link: Link) => Promise<T>): Promise<T> {
    const key = `${timeoutMs} ${addressText(address)}`
    const link = this.#takeIdle(key) ?? (await this.#connect(address, timeoutMs))
    try {
      return await call(link)
    } finally {
      this.#giveBack(key, link)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#token?.close()
    for (const connection of this.#open) drop(connection)
    this.#open.clear()
    this.#shared.clear()
    this.#idle.clear()
  }

  #takeIdle(key: string): Link | undefined {
    const links = this.#idle.get(key)
    while (links?.length) {
      const link = links.pop() as Link
      if (isUsable(link)) return link
      drop(link.connection)
    }
    return undefined
  }

  #giveBack(key: string, link: Link): void {
    const links = this.#idle.get(key)
    if (this.#closed || !isUsable(link) || (links?.length ?? 0) >= idleConnectionsKept) drop(link.connection)
    else if (links) links.push(link)
    else this.#idle.set(key, [link])
  }

  /** Nothing more is asked over it; it ends once what was asked has its answer, or is given up. */
  #retire({ connection }: Link): void {
    if (connection.isConnected()) setTimeout(() => drop(connection), this.#settings.requestTimeoutMs).unref()
  }

  async #connect(address: Address, requestTimeoutMs: number): Promise<Link> {
    if (this.#closed) throw closedError('connecting')
    const connection = new SessionConnection(
      this.#settings.clientId,
      this.#connectionOptions(address, requestTimeoutMs),
    )
    // The library emits every fault also as an event, which would end the process if nobody listened; the calls in
    // flight are told of it as well, and that is where it is handled.
    connection.on('error', () => undefined)
    try {
      await connection.connect(address.host, address.port)
    } catch (error) {
      drop(connection)
      throw notConnected(address, error, this.#settings.tls !== undefined)
    }
    this.#open.add(connection)
    connection.on('close', () => {
      this.#open.delete(connection)
      endTimers(connection)
    })
    connection.socket.setKeepAlive(true, 10_000)
    if (this.#closed) {
      drop(connection)
      throw closedError('connecting')
    }
    try {
      return { connection, address, versions: await readVersions(connection, address) }
    } catch (error) {
      drop(connection)
      if (error instanceof BrokerError) throw error
      throw notConnected(address, error, this.#settings.tls !== undefined)
    }
  }

  #connectionOptions(address: Address, requestTimeout: number): ConnectionOptions {
    const { tls, sasl, connectTimeoutMs } = this.#settings
    return {
      connectTimeout: connectTimeoutMs,
      requestTimeout,
      maxInflights: 64,
      ...(tls ? { tls: { ...tls } } : {}),
      // A listener behind a name may choose its certificate by it; an address is no server name.
      ...(tls && isIP(address.host) === 0 ? { tlsServerName: tls.servername ?? true } : {}),
      ...(sasl
        ? {
            sasl: {
              mechanism: sasl.mechanism,
              ...(sasl.username === undefined ? {} : { username: sasl.username }),
              ...(sasl.password === undefined ? {} : { password: sasl.password }),
              ...(this.#token ? { token: () => (this.#token as TokenSource).token() } : {}),
              ...(sasl.token === undefined ? {} : { token: sasl.token }),
              ...(sasl.extensions ? { oauthBearerExtensions: { ...sasl.extensions } } : {}),
            },
          }
        : {}),
    }
  }
}

function isUsable({ connection }: Link): boolean {
  return connection.isConnected() && !connection.endsSoon
}

function tokenProviderOf({ tokenEndpoint, tokenProvider }: SaslOptions): TokenProvider | undefined {
  if (tokenProvider !== undefined) return moduleTokens(tokenProvider)
  return tokenEndpoint && endpointTokens(tokenEndpoint)
}

/** Ends a connection at once, its requests with it. */
export function drop(connection: Connection): void {
  endTimers(connection)
  connection.socket?.destroy()
}

/** The library keeps the timer of the session's end until it is told to close. */
function endTimers(connection: Connection): void {
  connection.close(() => undefined)
}

async function readVersions(connection: Connection, address: Address): Promise<NodeVersions> {
  const answer = await apiVersionsV3.api.async(connection, 'millrace', '0.1.0')
  const max = new Map(answer.apiKeys.map((api) => [api.apiKey, api.maxVersion]))
  for (const [api, key, version] of needed) {
    if ((max.get(key) ?? -1) < version) {
      throw new BrokerError(
        'UNSUPPORTED_VERSION',
        `Kafka at ${addressText(address)} is too old: its ${api} has no version ${version}; use Kafka 3.2 or newer.`,
      )
    }
  }
  const feature = answer.finalizedFeatures?.find((candidate) => candidate.name === 'transaction.version')
  return { max, transactionVersion: feature?.maxVersionLevel ?? 0 }
}
