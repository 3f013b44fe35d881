/** Whether a transaction took effect whose end nobody saw: the tag in the committed offsets says so. It is never guessed. */
import { confirmMember, type OwnPlace } from '../group/own-place.ts'
import { assert } from '../../base/assert.ts'
import type { Clock } from '../../base/clock.ts'
import { partitionKey, type TopicPartition } from '../../base/ids.ts'
import { EngineError } from '../../base/errors.ts'
import { BrokerError, type BrokerPort, type CommittedOffset } from '../../broker/port.ts'
import type { EngineSettings } from '../settings.ts'
import type { Producer } from './producer.ts'
import { compareTags, decodeTag } from './tag.ts'

interface Tag {
  readonly tokenEpoch: number
  readonly seq: number
}

export interface OutcomeParts {
  readonly broker: BrokerPort
  readonly producer: Producer
  readonly clock: Clock
  readonly settings: EngineSettings
  readonly groupId: string
  readonly place: OwnPlace
  /** Before a broker that did not answer is asked again. */
  readonly pause: () => Promise<void>
}

/** `offsets`: those of the commit, which take effect together; `mine`: its tag; `last`: the one known to be committed before it. */
export async function outcomeOf(
  parts: OutcomeParts,
  offsets: ReadonlyArray<TopicPartition & { readonly offset: number }>,
  mine: () => Tag,
  last: () => Tag,
): Promise<'committed' | 'aborted'> {
  const { broker, groupId } = parts
  await retake(parts)
  const partitions = offsets.map(({ topic, partition }) => ({ topic, partition }))
  const committed = await broker.committedOffsets(groupId, partitions, true)
  assert(compareTags(mine(), last()) > 0, 'the tag of a commit lies behind all that were committed before it')
  let newest: Tag | undefined
  for (const { metadata } of committed) {
    const tag = decodeTag(metadata)
    if (tag && (!newest || compareTags(tag, newest) > 0)) newest = tag
  }
  if (newest && compareTags(newest, mine()) === 0) {
    // Two processes count by themselves. One that has some of these partitions by now may have come to the same number.
    const asSent = new Map(offsets.map((each) => [partitionKey(each.topic, each.partition), each.offset]))
    const isMine = ({ topic, partition, offset, metadata }: CommittedOffset): boolean => {
      const tag = decodeTag(metadata)
      return (
        tag !== undefined && compareTags(tag, newest) === 0 && asSent.get(partitionKey(topic, partition)) === offset
      )
    }
    if (committed.every(isMine)) return 'committed'
  }
  if (!newest || compareTags(newest, last()) <= 0) return 'aborted'
  // Nobody else has the identity. Where processes share the partitions, others have these by now: what follows is read anew.
  if (parts.settings.split === 'repartition-topics' && !parts.settings.ha) {
    const sentence = 'the group went on without this member while the outcome of a commit was unknown'
    throw new EngineError('TRANSACTION_ABORTED', sentence, { late: true })
  }
  throw new EngineError(
    'FENCED',
    'another process committed for this application while the outcome of a commit was unknown',
  )
}

/** Takes the identity again: from here on the transaction in question is decided. */
async function retake({ broker, producer, clock, settings, place, pause }: OutcomeParts): Promise<void> {
  // The coordinator may have cleaned up by itself: whoever is a member is still the one whose identity this is.
  const isAsked = settings.ha === undefined && place.isInGroup
  const confirm = isAsked ? (): Promise<void> => confirmMember(broker, place) : undefined
  const startedAt = clock.monotonic()
  for (;;) {
    try {
      await producer.retake(confirm)
      return
    } catch (error) {
      const unreachable = error instanceof BrokerError && error.errorClass === 'unreachable'
      if (!unreachable && clock.monotonic() - startedAt > settings.resolveTimeoutMs) throw error
      if (!(error instanceof BrokerError) || !['unreachable', 'retriable'].includes(error.errorClass)) throw error
      // A connection that is closed refuses at once: without a pause nothing else in this thread would have its turn.
      await pause()
    }
  }
}
