/** Why a partition is not fetched, for now or any more. */
import { EngineError, messageOf } from '../../base/errors.ts'
import { partitionKey, type TopicPartition } from '../../base/ids.ts'
import { MadeAnew, ownDeleted } from '../group/made-anew.ts'
import { BrokerError } from '../../broker/port.ts'
import { refusalCode } from '../recovery/failure.ts'

/** A broker that cannot be reached, or not now. */
export const isPassing = (error: unknown): error is BrokerError =>
  error instanceof BrokerError && ['unreachable', 'retriable'].includes(error.errorClass)

export type Place = TopicPartition & { readonly offset: number }

const keyOf = ({ topic, partition }: TopicPartition): string => partitionKey(topic, partition)

/** What lies there is damaged. */
export function cannotBeRead(at: Place, cause: unknown): EngineError {
  if (EngineError.is(cause)) return cause
  const message = `${keyOf(at)} cannot be read at offset ${at.offset}: ${messageOf(cause)}`
  return new EngineError('BROKER_REFUSED', message, { cause, ...at })
}

/** `isOwn`: the topic lies between sub-topologies. */
export function isRefused(at: Place, code: string, isOwn = false): EngineError {
  if (code === 'UNKNOWN_TOPIC_ID' || code === 'INCONSISTENT_TOPIC_ID') return new MadeAnew(at.topic, isOwn, at)
  if (isOwn && code === 'UNKNOWN_TOPIC_OR_PARTITION') return new EngineError('TOPIC_MISSING', ownDeleted(at.topic), at)
  const message = `${keyOf(at)} cannot be fetched, the broker says ${code}`
  return new EngineError(refusalCode(code), message, { ...at })
}

export function existsNoMore(at: Place): EngineError {
  const message =
    `offset ${at.offset} of ${keyOf(at)} no longer exists at the broker and source.reset is fail: ` +
    'set it to earliest or latest to go on without the records that are lost'
  return new EngineError('OFFSETS_MISSING', message, { ...at })
}

/** The rows behind are not those that the table has gone by: what it missed it can only have from its topic's beginning. */
export function globalLost(topic: string, why: string): EngineError {
  return new EngineError('GLOBAL_TABLE_LOST', `the global table of ${topic} is loaded anew: ${why}`, { topic })
}

/** What the topic of a global table is refused with. */
export function globalRefused(at: Place, code: string): EngineError {
  if (code !== 'OFFSET_OUT_OF_RANGE') return isRefused(at, code)
  return globalLost(at.topic, `offset ${at.offset} of ${keyOf(at)} no longer exists at the broker`)
}

/** Nothing is fetched any more. */
export function endedBy(error: unknown): EngineError {
  if (EngineError.is(error)) return error
  const code = error instanceof BrokerError ? refusalCode(error.code) : 'INVARIANT_BROKEN'
  return new EngineError(code, messageOf(error), { cause: error })
}
