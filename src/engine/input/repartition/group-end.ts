/** Whether a group whose processes share partitions has come to the end of its input, whoever has the partitions. */
import { partitionKey, type TopicPartition } from '../../../base/ids.ts'
import { idsIn, ofTopics } from '../../group/made-anew.ts'
import type { ResolvedTopics } from '../../group/topics.ts'
import type { EngineOptions } from '../../engine-options.ts'

/**
 * Within a process each answers for the partitions that it has; one that has none, as one that has just lost its place,
 * knows nothing of the input and looks at what the group has done.
 *
 * First what is committed is looked up, then where the topics end: where nothing lies in between, what came of it is among
 * what was looked at. A partition that is nobody's for a moment, or another process's, counts like one's own.
 */
export async function isGroupAtEnd(
  { settings: { plan, split, applicationId }, broker }: Pick<EngineOptions, 'settings' | 'broker'>,
  { topics, bySource }: ResolvedTopics,
  partitionsHere: number,
): Promise<boolean> {
  if (split === 'in-process' && partitionsHere > 0) return true
  const partitionsOf = (isBoundary: boolean): TopicPartition[] =>
    plan.sources
      .filter(({ kind }) => kind !== 'global' && (kind === 'boundary') === isBoundary)
      .flatMap(({ index }) => bySource[index] ?? [])
      .flatMap((topic) =>
        Array.from({ length: topics.get(topic)?.partitions ?? 0 }, (_, partition) => ({ topic, partition })),
      )
  const [through, first] = [partitionsOf(true), partitionsOf(false)]
  const told = await broker.committedOffsets(applicationId, [...through, ...first], false)
  const committed = ofTopics(told, idsIn(topics))
  const offsets = new Map(committed.map((at) => [partitionKey(at.topic, at.partition), at.offset]))
  const ends = await Promise.all([
    through.length > 0 ? broker.listOffsets(through, 'latest') : [],
    first.length > 0 ? broker.listOffsets(first, 'stable') : [],
  ])
  const left = ends
    .flat()
    .filter(
      ({ topic, partition, offset }) => offset > 0 && (offsets.get(partitionKey(topic, partition)) ?? -1) < offset,
    )
  if (left.length === 0) return true
  // Nobody has to commit that nothing is left of a topic whose records are past their time.
  if (left.some(({ topic, partition }) => (offsets.get(partitionKey(topic, partition)) ?? -1) >= 0)) return false
  const begins = await broker.listOffsets(
    left.map(({ topic, partition }) => ({ topic, partition })),
    'earliest',
  )
  const begun = new Map(begins.map((at) => [partitionKey(at.topic, at.partition), at.offset]))
  return left.every(({ topic, partition, offset }) => (begun.get(partitionKey(topic, partition)) ?? 0) >= offset)
}
