/** What an error means for the engine: who sees which sentence, and whether a restart in place can help. */
import { BrokerError } from '../../broker/port.ts'
import {
  EngineError,
  type EngineErrorDetails,
  type ErrorCode,
  fromWireError,
  type WireError,
} from '../../base/errors.ts'

const missing = ['UNKNOWN_TOPIC_OR_PARTITION', 'UNKNOWN_TOPIC_ID', 'INCONSISTENT_TOPIC_ID']

/** What a broker refuses with this code: rights and credentials are one matter, a topic that is not there another. */
export function refusalCode(code: string): ErrorCode {
  // Of Kafka's brokers this one passes, and is no refusal.
  if (code === 'KAFKA_STORAGE_ERROR') return 'BROKER_STOPPED'
  return missing.includes(code) ? 'TOPIC_MISSING' : 'BROKER_REFUSED'
}

/** The error as the engine's own, whatever it was. */
export function describeFailure(error: unknown): unknown {
  if (isWire(error)) return fromWireError(error)
  if (!(error instanceof BrokerError)) return error
  switch (error.errorClass) {
    case 'unreachable':
      return new EngineError('BROKER_UNREACHABLE', error.message, { cause: error })
    case 'config':
      return new EngineError(refusalCode(error.code), error.message, { cause: error })
    case 'record':
      return new EngineError('PRODUCE_FAILED', `the broker refused a record: ${error.message}`, { cause: error })
    case 'epoch-lost':
      return fenced(error)
    default:
      return new EngineError('TRANSACTION_ABORTED', error.message, { cause: error })
  }
}

function fenced(error: BrokerError): EngineError {
  if (['PRODUCER_FENCED', 'FENCED_INSTANCE_ID'].includes(error.code)) {
    return new EngineError('FENCED', `another process has taken over: ${error.message}`, { cause: error })
  }
  return new EngineError('TRANSACTION_ABORTED', error.message, { cause: error })
}

/** True where replaying from the last commit may do better. */
export function restartable(error: unknown): boolean {
  const shown = describeFailure(error)
  if (!EngineError.is(shown)) return false
  return ['restart-engine', 'retry'].includes(shown.recovery)
}

/** Another process has this one's identity, at the transaction coordinator or in the group. */
export function isFenced(error: unknown): boolean {
  const shown = describeFailure(error)
  return EngineError.is(shown) && shown.code === 'FENCED'
}

/** The record at hand, where the error knows it. */
export function placeOf(error: unknown): Pick<EngineErrorDetails, 'topic' | 'partition' | 'offset' | 'node' | 'lane'> {
  if (!EngineError.is(error)) return {}
  const { cause: _, row: __, ...place } = error.details
  return place
}

function isWire(error: unknown): error is WireError {
  return (
    typeof error === 'object' && error !== null && !(error instanceof Error) && 'code' in error && 'message' in error
  )
}
