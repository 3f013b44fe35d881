import type { ConfigTable } from './table-types.ts'

/**
 * The client-option sections. Keys under these prefixes that have no row here are accepted and shown, save under
 * `broker.`; the rows are what the engine acts on.
 */
export const clientSections = ['broker.', 'consumer.', 'producer.', 'admin.', 'schema-registry.'] as const
export type ClientSection = (typeof clientSections)[number]

export const clientRows = {
  'broker.bootstrap-servers': {
    type: 'string',
    default: 'embedded:',
    doc: '`embedded:` (a broker in this process, in memory), `embedded:<folder>` (the same on disk), or `host:port,…` of an Apache Kafka.',
  },
  'broker.embedded.partitions': {
    type: 'int',
    default: 4,
    min: 1,
    max: 10_000,
    doc: 'Partitions of a topic that the embedded broker creates at first use.',
  },
  'broker.embedded.fsync': {
    type: 'boolean',
    default: false,
    doc: 'Whether the embedded broker on disk waits for the disk at each commit. Off survives the death of the process, on survives a power cut too.',
  },
  'broker.client-id': {
    type: 'string',
    default: null,
    nullable: true,
    doc: 'Name under which the broker sees this process. Unset: the application id.',
  },
  'broker.request-timeout': {
    type: 'duration',
    default: 30_000,
    min: 100,
    doc: 'How long one request to the broker may take, retries included.',
  },
  'broker.connect-timeout': {
    type: 'duration',
    default: 5000,
    min: 100,
    doc: 'How long the opening of one connection to the broker may take.',
  },
  'broker.delivery-timeout': {
    type: 'duration',
    default: 60_000,
    min: 1000,
    doc: 'How long a call that the broker cannot serve at the moment is tried again before its error counts.',
  },
  'broker.replication-factor': {
    type: 'int',
    default: -1,
    min: -1,
    max: 32_767,
    doc: "Replicas of the topics that the engine makes for itself: changelogs, repartition topics, dead letters. -1: the broker's default.",
  },
  'broker.tls.enabled': {
    type: 'boolean',
    default: null,
    nullable: true,
    doc: 'Whether connections to the broker are encrypted. Unset: when any other `broker.tls.` key is set.',
  },
  'broker.tls.ca-file': {
    type: 'string',
    default: null,
    nullable: true,
    doc: 'PEM file of the authorities that the broker is checked against. Unset: those of Node.js.',
  },
  'broker.tls.cert-file': {
    type: 'string',
    default: null,
    nullable: true,
    doc: 'PEM file of the certificate that this process shows to the broker.',
  },
  'broker.tls.key-file': {
    type: 'string',
    default: null,
    nullable: true,
    doc: 'PEM file of the private key of `broker.tls.cert-file`.',
  },
  'broker.tls.key-passphrase': {
    type: 'string',
    default: null,
    nullable: true,
    secret: true,
    doc: 'Passphrase of `broker.tls.key-file`.',
  },
  'broker.tls.server-name': {
    type: 'string',
    default: null,
    nullable: true,
    doc: "Name expected in the broker's certificate. Unset: the host connected to.",
  },
  'broker.sasl.mechanism': {
    type: 'enum',
    values: ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER'],
    default: null,
    nullable: true,
    doc: 'How this process authenticates itself to the broker. Unset: not at all.',
  },
  'broker.sasl.username': {
    type: 'string',
    default: null,
    nullable: true,
    doc: 'User name for PLAIN and SCRAM.',
  },
  'broker.sasl.password': {
    type: 'string',
    default: null,
    nullable: true,
    secret: true,
    fromFile: 'broker.sasl.password-file',
    doc: 'Password for PLAIN and SCRAM.',
  },
  'broker.sasl.password-file': {
    type: 'string',
    default: null,
    nullable: true,
    doc: 'File that holds `broker.sasl.password`.',
  },
  'broker.sasl.token': {
    type: 'string',
    default: null,
    nullable: true,
    secret: true,
    fromFile: 'broker.sasl.token-file',
    doc: 'Bearer token for OAUTHBEARER.',
  },
  'broker.sasl.token-file': {
    type: 'string',
    default: null,
    nullable: true,
    doc: 'File that holds `broker.sasl.token`.',
  },
  'broker.sasl.token-endpoint.url': {
    type: 'string',
    default: null,
    nullable: true,
    doc: 'Address at which OAUTHBEARER gets its tokens (OAuth 2 client credentials), and renews them before they end.',
  },
  'broker.sasl.token-endpoint.client-id': {
    type: 'string',
    default: null,
    nullable: true,
    doc: 'Client id for `broker.sasl.token-endpoint.url`.',
  },
  'broker.sasl.token-endpoint.client-secret': {
    type: 'string',
    default: null,
    nullable: true,
    secret: true,
    fromFile: 'broker.sasl.token-endpoint.client-secret-file',
    doc: 'Client secret for `broker.sasl.token-endpoint.url`.',
  },
  'broker.sasl.token-endpoint.client-secret-file': {
    type: 'string',
    default: null,
    nullable: true,
    doc: 'File that holds `broker.sasl.token-endpoint.client-secret`.',
  },
  'broker.sasl.token-endpoint.scope': {
    type: 'string',
    default: null,
    nullable: true,
    doc: 'Scope asked for at `broker.sasl.token-endpoint.url`.',
  },
  'consumer.max.poll.records': {
    type: 'int',
    default: 1000,
    min: 1,
    max: 10_000_000,
    doc: 'Most records one poll brings for one partition.',
  },
  'consumer.fetch.max.wait.ms': {
    type: 'duration',
    default: 500,
    min: 0,
    max: 60_000,
    doc: 'How long the broker may hold back a fetch for which it has nothing.',
  },
  'consumer.fetch.max.bytes': {
    type: 'bytes',
    default: 16_777_216,
    min: 1024,
    doc: 'Most bytes one fetch brings from all brokers together, and a batch of each.',
  },
  'consumer.max.partition.fetch.bytes': {
    type: 'bytes',
    default: 1_048_576,
    min: 1024,
    doc: 'Most bytes one fetch brings for one partition.',
  },
  'consumer.session.timeout.ms': {
    type: 'duration',
    default: 10_000,
    min: 1000,
    doc: 'Silence after which the group gives the partitions of this process to others.',
  },
  'consumer.heartbeat.interval.ms': {
    type: 'duration',
    default: 500,
    min: 50,
    doc: 'Time between heartbeats to the group; also how late this process may hear that another one is gone.',
  },
  'consumer.rebalance.timeout.ms': {
    type: 'duration',
    default: 60_000,
    min: 1000,
    doc: 'How long the group waits for its members to commit and come back in a rebalance.',
  },
  'consumer.metadata.max.age.ms': {
    type: 'duration',
    default: 30_000,
    min: 100,
    doc: 'How often new partitions, and new topics that match a pattern, are looked for.',
  },
  'producer.transaction.timeout.ms': {
    type: 'duration',
    default: 10_000,
    min: 1000,
    doc: "The broker aborts a transaction that is open for longer. Must not exceed the broker's `transaction.max.timeout.ms`.",
  },
  'schema-registry.url': {
    type: 'string',
    default: null,
    nullable: true,
    doc: 'Address of a schema registry. Set, its health counts for readiness.',
  },
} as const satisfies ConfigTable
