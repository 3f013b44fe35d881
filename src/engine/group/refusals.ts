/** What it means that a group does not take a member in. */
import { EngineError } from '../../base/errors.ts'
import type { BrokerError } from '../../broker/port.ts'

interface Place {
  readonly groupId: string
  readonly groupInstanceId: string | null
}

export function refusalOf(error: BrokerError, { groupId, groupInstanceId }: Place): EngineError {
  if (error.code === 'FENCED_INSTANCE_ID') {
    const message = `another process has joined group ${groupId} as ${groupInstanceId}: this one steps back`
    return new EngineError('FENCED', message, { cause: error })
  }
  if (error.code === 'INCONSISTENT_GROUP_PROTOCOL') {
    const message = `group ${groupId} has members of another kind, with which partitions cannot be shared`
    return new EngineError('FOREIGN_GROUP_MEMBER', message, { cause: error })
  }
  const message = `the broker refused the membership in group ${groupId}: ${error.message}`
  return new EngineError('BROKER_REFUSED', message, { cause: error })
}
