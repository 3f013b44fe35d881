/** Whether a group whose processes share partitions has come to the end of its input, whoever has the partitions. */
import { partitionKey, type TopicPartition } from '../../../base/ids.ts'
import type { BrokerPort } from '../../../broker/port.ts'
import type { ResolvedTopics } from '../../group/topics.ts'
import type { EngineSettings } from '../../settings.ts'

/**
 * First what is committed is looked up, then where the topics end: where nothing lies in between, what came of it is among
 * what was looked at. A partition that is nobody's for a moment, or another process's, counts like one's own.
 */
export async function isGroupAtEnd(
  { plan, split, applicationId }: EngineSettings,
  broker: BrokerPort,
  { topics, bySource }: ResolvedTopics,
): Promise<boolean> {
  if (split === 'in-process') return true
  const partitionsOf = (isBoundary: boolean): TopicPartition[] =>
    plan.sources
      .filter(({ kind }) => kind !== 'global' && (kind === 'boundary') === isBoundary)
      .flatMap(({ index }) => bySource[index] ?? [])
      .flatMap((topic) =>
        Array.from({ length: topics.get(topic)?.partitions ?? 0 }, (_, partition) => ({ topic, partition })),
      )
  const [through, first] = [partitionsOf(true), partitionsOf(false)]
  const committed = await broker.committedOffsets(applicationId, [...through, ...first], false)
  const offsets = new Map(committed.map((at) => [partitionKey(at.topic, at.partition), at.offset]))
  const ends = await Promise.all([
    through.length > 0 ? broker.listOffsets(through, 'latest') : [],
    first.length > 0 ? broker.listOffsets(first, 'stable') : [],
  ])
  return ends
    .flat()
    .every(
      ({ topic, partition, offset }) => offset === 0 || (offsets.get(partitionKey(topic, partition)) ?? -1) >= offset,
    )
}
