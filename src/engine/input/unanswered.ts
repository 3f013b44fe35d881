/**
 * An answer to a fetch may be without some partitions: their broker has not answered yet, a request for them alone is still
 * under way, or they had enough at hand. Or it was put together from several answers. What is known of such partitions is of
 * the past: a row that was written before a record of this answer may lie there. So it is asked where their logs end,
 * before the records are taken.
 */
import { type PartitionKey, partitionKey, type TopicPartition } from '../../base/ids.ts'
import { sleep, type Timers } from '../../base/timers.ts'
import { BrokerError, type BrokerPort, type FetchedPartition, type Isolation } from '../../broker/port.ts'
import type { PartitionBuffer } from './partition-buffer.ts'

/** Of these partitions those that may have something older than what has arrived. */
export type Company = (
  arrived: readonly PartitionBuffer[],
  among: readonly PartitionBuffer[],
) => readonly PartitionBuffer[]

export interface EndsOptions {
  readonly broker: BrokerPort
  readonly timers: Timers
  readonly isolation: Isolation
  readonly maxWaitMs: number
}

const keyOf = ({ topic, partition }: TopicPartition): PartitionKey => partitionKey(topic, partition)

/** Where those end that are not answered, and whose rows this answer's records may need; undefined: nobody knows. */
export async function endsOfUnanswered(
  options: EndsOptions,
  all: readonly PartitionBuffer[],
  answer: readonly FetchedPartition[],
  company: Company | undefined,
  unknown: ReadonlySet<PartitionBuffer>,
): Promise<ReadonlyMap<PartitionBuffer, number | undefined>> {
  const answers = new Map(answer.map((each) => [keyOf(each), each]))
  const arrived = all.filter((buffer) => (answers.get(keyOf(buffer))?.records.length ?? 0) > 0)
  const others = all.filter((buffer) => {
    const own = answers.get(keyOf(buffer))
    if (own !== undefined) return own.isApart === true
    // What is known to have more is waited for as it is, once nothing of it is at hand; and so is what nobody knows of.
    return buffer.lag === 0 && !unknown.has(buffer)
  })
  if (company === undefined || arrived.length === 0 || others.length === 0) return new Map()
  const buffers = company(arrived, others)
  if (buffers.length === 0) return new Map()
  const ends = await endsNow(options, buffers)
  return new Map(buffers.map((buffer) => [buffer, ends.get(keyOf(buffer))]))
}

/** Whoever is told of what fails asks the broker again, and that takes time: the others are taken before. */
export function failedLast(answer: readonly FetchedPartition[]): readonly FetchedPartition[] {
  if (!answer.some(({ error }) => error !== undefined)) return answer
  return answer.toSorted((a, b) => Number(a.error !== undefined) - Number(b.error !== undefined))
}

/** A broker that does not answer in time holds up the tasks of its partitions, and no others. */
async function endsNow(
  { broker, timers, isolation, maxWaitMs }: EndsOptions,
  buffers: readonly PartitionBuffer[],
): Promise<ReadonlyMap<PartitionKey, number>> {
  const places = buffers.map(({ topic, partition }) => ({ topic, partition }))
  const asking = broker.listOffsets(places, isolation === 'read_committed' ? 'stable' : 'latest')
  const known = asking.catch((error: unknown) => {
    // The fetch of these partitions tells of it.
    if (error instanceof BrokerError) return undefined
    throw error
  })
  const ends = await Promise.race([known, sleep(timers, maxWaitMs)])
  return new Map(ends?.map((at) => [keyOf(at), at.offset]))
}
