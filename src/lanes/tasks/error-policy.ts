/** What becomes of a record that cannot be decoded, processed or encoded. */
import { EngineError, messageOf } from '../../base/errors.ts'
import type { DropReason, Origin } from '../../operators/contract.ts'
import type { Headers } from '../../broker/wire/headers.ts'
import type { Refusal } from '../outputs.ts'

export type ErrorPolicy = 'fail' | 'skip' | 'dead-letter'

export interface ErrorPolicies {
  readonly decoding: ErrorPolicy
  readonly processing: ErrorPolicy
  readonly producing: ErrorPolicy
  /** Of records that go no further although nothing failed. */
  readonly dropped: 'count' | 'dead-letter'
  readonly deadLetterTopic: string
}

export function policyFor(error: unknown, policies: ErrorPolicies): ErrorPolicy {
  if (!EngineError.is(error)) return policies.processing
  switch (error.code) {
    case 'DECODE_FAILED':
      return policies.decoding
    case 'PRODUCE_FAILED':
      return policies.producing
    case 'PROCESSING_FAILED':
      return policies.processing
    default:
      return 'fail'
  }
}

const dropSentences: Readonly<Record<DropReason, string>> = {
  late: 'it came after the time for which it was waited',
  late_window: 'for some of its windows it came after the time for which it was waited',
  null_key: 'it has no key where one is needed',
  null_value: 'it has no value where one is needed',
  deserialize: 'it could not be decoded',
  handler: 'a function of the application refused it',
  negative_timestamp: 'its timestamp is negative',
  expired: 'it is older than what its store keeps',
  out_of_order: 'it is older than the newest version of its row',
}

export function dropSentence(reason: DropReason, node: string): string {
  return `${node} dropped the record: ${dropSentences[reason]}`
}

/** Header names as Kafka Streams gives them, so that existing tools read them. */
export function deadLetterHeaders(
  error: unknown,
  origin: Origin,
  headers: Headers,
  topicId: string | undefined,
  reason?: string,
): Headers {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const name = cause instanceof Error ? cause.name : reason ? 'RecordDropped' : 'Error'
  return [
    ...headers,
    ['__streams.errors.exception', name],
    ['__streams.errors.message', reason ?? messageOf(cause)],
    ...(cause instanceof Error && cause.stack ? ([['__streams.errors.stacktrace', cause.stack]] as const) : []),
    ['__streams.errors.topic', origin.topic],
    ['__streams.errors.partition', String(origin.partition)],
    ['__streams.errors.offset', String(origin.offset)],
    // The topic may be deleted and made anew: the place is another record's then.
    ...(topicId ? ([['__streams.errors.topic-id', topicId]] as const) : []),
  ]
}

/** A record that its topic would refuse. */
export function refusedRecord(refusal: Refusal, origin: Origin): EngineError {
  const { topic: to, why, has, most, isUnread } = refusal
  const { topic, partition, offset } = origin
  const whys = {
    size: `takes ${has} bytes, and \`max.message.bytes\` of ${to} allows ${most}: make the record smaller, or raise it.`,
    key: `has no key, and ${to} is compacted, which asks for one: give it a key, or change \`cleanup.policy\` of ${to}.`,
    time: `has the event time ${instant(has)}, and \`message.timestamp.after.max.ms\` of ${to} allows none beyond ${instant(most)} now: correct the time, or raise it.`,
    old: `has the event time ${instant(has)}, and \`message.timestamp.before.max.ms\` of ${to} allows none before ${instant(most)} now: correct the time, or raise it.`,
  }
  return new EngineError(
    'PRODUCE_FAILED',
    `The record for the topic ${to} made from the record ${topic}/${partition} at offset ${offset} ${isUnread ? foundOut(refusal) : whys[why]}`,
    { topic, partition, offset },
  )
}

/** A dead letter that is refused down to its reason. No policy holds for that: under `dead-letter` it would be one more letter, and so on. */
export function refusedLetter(refusal: Refusal, origin: Origin): EngineError {
  const { message, details } = refusedRecord(refusal, origin)
  const sentence = `The dead-letter topic ${refusal.topic} does not even take the reason alone. ${message}`
  return new EngineError('CONFIG_INVALID', sentence, details)
}

/** Of a limit that was found out, because it may not be read: what is known of it, and the right that would tell all of it. */
function foundOut({ topic, why, has, most }: Refusal): string {
  const unread = `The settings of ${topic} may not be read (DESCRIBE_CONFIGS), so ${why === 'key' ? 'what it asks for' : 'the limit'} is not known.`
  const whys = {
    size: `takes ${has} bytes, and ${topic} has refused ${most + 1}: make the record smaller, or raise \`max.message.bytes\` of ${topic}.`,
    key: `has no key, and ${topic} has refused one without: give it a key, or change \`cleanup.policy\` of ${topic}.`,
    time: `has the event time ${instant(has)}, and by what ${topic} has refused it takes none beyond ${instant(most)} now: correct the time, or raise \`message.timestamp.after.max.ms\` of ${topic}.`,
    old: `has the event time ${instant(has)}, and by what ${topic} has refused it takes none before ${instant(most)} now: correct the time, or raise \`message.timestamp.before.max.ms\` of ${topic}.`,
  }
  return `${whys[why]} ${unread}`
}

/** Headers of a dead letter without key and value, which its topic would refuse: what came with them is left out too. */
export function withoutRecord(headers: Headers, { why, has, most }: Refusal): Headers {
  const kept = headers.filter(([name]) => name.startsWith('__streams.errors.') && !name.endsWith('.stacktrace'))
  const reasons = {
    size: `${has} bytes, where ${most} are allowed`,
    key: 'there is no key, and one is needed',
    time: `the time is ${instant(has)}, where none beyond ${instant(most)} was allowed`,
    old: `the time is ${instant(has)}, where none before ${instant(most)} was allowed`,
  }
  const reason = reasons[why]
  return [...kept, ['__streams.errors.left-out', `key and value: ${reason}`]]
}

/** As a date, where it is one. */
function instant(epochMs: number): string {
  const date = new Date(epochMs)
  return Number.isNaN(date.getTime()) ? `${epochMs} ms` : date.toISOString()
}
