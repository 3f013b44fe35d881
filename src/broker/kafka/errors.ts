/** From the client library's errors and from Kafka's error codes to the port's one class of error. */
import { protocolErrors, protocolErrorsCodesById, ResponseError } from '@platformatic/kafka'
import { BrokerError, type BrokerErrorClass, classifyBrokerError } from '../port.ts'
import { type Address, addressText } from './options.ts'

const names = protocolErrorsCodesById as Readonly<Record<number, string>>
const texts = protocolErrors as Readonly<Record<string, { readonly message: string } | undefined>>

export function errorName(code: number): string {
  return names[code] ?? `ERROR_${code}`
}

/** What an operator does about it; the sentence of the broker says only what happened. */
const advice: Readonly<Record<string, string>> = {
  TOPIC_AUTHORIZATION_FAILED:
    'Grant this principal READ, WRITE and DESCRIBE on the topic, and CREATE where the engine is to make it.',
  GROUP_AUTHORIZATION_FAILED: 'Grant this principal READ on the consumer group (its name is the application id).',
  CLUSTER_AUTHORIZATION_FAILED: 'Grant this principal CREATE on the cluster, or create the topics beforehand.',
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 'Grant this principal WRITE and DESCRIBE on the transactional id.',
  INVALID_TRANSACTION_TIMEOUT:
    'Lower `producer.transaction.timeout.ms` of the engine, or raise `transaction.max.timeout.ms` of the broker.',
  UNKNOWN_TOPIC_OR_PARTITION:
    'Create the topic, or correct its name. One that was there before was deleted while the application ran: find out by whom ' +
    'before it is made again, for what it held is gone, and a changelog that is made empty is refused with CHANGELOG_LOST.',
  MESSAGE_TOO_LARGE: 'Make the record smaller, or raise `max.message.bytes` of the topic.',
  POLICY_VIOLATION: "Ask who runs the cluster which of the topic's settings its policy refuses.",
  INVALID_REPLICATION_FACTOR: 'Set a replication factor that the number of brokers allows.',
  UNSUPPORTED_SASL_MECHANISM: 'Choose a SASL mechanism that the listener offers.',
}

/** An error that a broker answered to `what` (a phrase such as "producing to orders:3"). */
export function refused(code: number, what: string, said?: string | null): BrokerError {
  const name = errorName(code)
  const told = (said || texts[name]?.message || 'The broker gave no reason.').trim()
  const sentence = /[.!?]$/.test(told) ? told : `${told}.`
  const hint = advice[name]
  return new BrokerError(name, `Kafka refused ${what} with ${name}: ${sentence}${hint ? ` ${hint}` : ''}`)
}

/** A lost connection or a request without an answer: whether it took effect is not known. */
export function lost(what: string, at: Address, cause: unknown): BrokerError {
  return new BrokerError(
    'NETWORK_EXCEPTION',
    `The connection to Kafka at ${addressText(at)} was lost while ${what}; the outcome is not known.`,
    'retriable',
    cause,
  )
}

/** No connection could be made: nothing was sent. */
export function notConnected(at: Address, cause: unknown, tls: boolean): BrokerError {
  const chain = causes(cause)
  const where = addressText(at)
  // Whoever gives the tokens has said already what is wrong.
  const told = chain.find((error) => error instanceof BrokerError)
  if (told) return told as BrokerError
  const refusal = chain.find((error) => codeOf(error) === 'PLT_KFK_AUTHENTICATION')
  if (refusal) {
    return new BrokerError(
      'SASL_AUTHENTICATION_FAILED',
      `Kafka at ${where} refused the credentials; check \`broker.sasl.*\` (mechanism, user name, password or token).`,
      'config',
      cause,
    )
  }
  const reason = [...chain].reverse().find((error) => error.message)?.message ?? 'no reason known'
  if (tls && chain.some((error) => isTlsFault(error))) {
    return new BrokerError(
      'UNREACHABLE',
      `No TLS connection to Kafka at ${where} (${reason}); check \`broker.tls.*\` and that the listener speaks TLS.`,
      'unreachable',
      cause,
    )
  }
  return new BrokerError(
    'UNREACHABLE',
    `Kafka at ${where} is not reachable (${reason}); check \`broker.bootstrap-servers\`, the network and the broker.`,
    'unreachable',
    cause,
  )
}

/** Connections are taken, but every request ends them: so do listeners that want credentials or TLS first. */
export function neverAnswered(bootstrap: readonly Address[], cause: BrokerError): BrokerError {
  const where = bootstrap.map(addressText).join(', ')
  return new BrokerError(
    'UNREACHABLE',
    `Kafka at ${where} takes the connection but ends it without an answer; ` +
      'check that `broker.sasl.*` and `broker.tls.*` fit this listener.',
    'unreachable',
    cause,
  )
}

function isTlsFault(error: Error): boolean {
  const code = codeOf(error) ?? ''
  return /TLS|SSL|CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code) || /TLS|certificate/i.test(error.message)
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** The error and what caused it, outermost first. */
function causes(error: unknown): Error[] {
  const chain: Error[] = []
  let next: unknown = error
  while (next instanceof Error && chain.length < 10) {
    chain.push(next)
    next = next.cause ?? (next instanceof AggregateError ? next.errors[0] : undefined)
  }
  return chain
}

/** Codes that go away by themselves or with newer knowledge of the cluster. */
const transient: ReadonlySet<string> = new Set([
  'BROKER_NOT_AVAILABLE',
  'REPLICA_NOT_AVAILABLE',
  'OFFSET_NOT_AVAILABLE',
  'UNKNOWN_LEADER_EPOCH',
  'FENCED_LEADER_EPOCH',
  'PREFERRED_LEADER_NOT_AVAILABLE',
  'ELIGIBLE_LEADERS_NOT_AVAILABLE',
  'THROTTLING_QUOTA_EXCEEDED',
  'NOT_CONTROLLER',
  'STALE_BROKER_EPOCH',
  'LISTENER_NOT_FOUND',
])

export function isTransient(code: string): boolean {
  return transient.has(code) || classifyBrokerError(code) === 'retriable'
}

export function closedError(what: string): BrokerError {
  const errorClass: BrokerErrorClass = 'unreachable'
  return new BrokerError('CLOSED', `The Kafka client was closed while ${what}; open a new one.`, errorClass)
}

/**
 * The answer of one of the library's calls, errors inside it left to the caller: the library throws away which
 * partition failed when it rejects.
 */
export async function answered<T>(call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    if (error instanceof ResponseError && error.response !== undefined) return error.response as T
    throw error
  }
}
