/**
 * Reads a partition once, up to an offset that is known to be there. An answer without records and without an error says
 * nothing of the log: its leader is away, or slow. Whoever took it for the end would leave records out without a word.
 */
import { EngineError } from '../base/errors.ts'
import type { TopicPartition } from '../base/ids.ts'
import type { BrokerPort, FetchedPartition } from './port.ts'
import { endOfBatches } from './wire/record-batch.ts'

const maxWaitMs = 250

export interface Range extends TopicPartition {
  readonly from: number
  /** The first offset that is not meant: no further than what is committed. */
  readonly to: number
  readonly maxBytes: number
}

/**
 * Waits before it is asked again, or throws where it is not to be any more. `vain`: so many answers in a row brought nothing.
 * Answers with where the log ends by now, if it is to be read no further than that.
 */
export type AskAgain = (at: TopicPartition, vain: number) => Promise<number | undefined>

export interface ReadPiece {
  readonly answer: FetchedPartition
  /** Records before this offset are not meant. */
  readonly from: number
}

/**
 * Committed records, as the broker answers with them.
 * @throws EngineError `BROKER_REFUSED` where the partition cannot be read.
 */
export async function* readUpTo(broker: BrokerPort, range: Range, again: AskAgain): AsyncGenerator<ReadPiece, void> {
  const { topic, partition, maxBytes } = range
  let end = range.to
  let vain = 0
  for (let from = range.from; from < end; ) {
    const answer = await fetchCommitted(broker, { topic, partition }, from, maxBytes)
    const next = behind(answer, from)
    if (next > from) {
      vain = 0
      if (answer?.error === undefined) yield { answer: answer as FetchedPartition, from }
      from = next
      continue
    }
    end = Math.min(end, (await again({ topic, partition }, ++vain)) ?? end)
  }
}

/** One answer of the partition; undefined where the broker said nothing of it. */
export async function fetchCommitted(
  broker: BrokerPort,
  at: TopicPartition,
  offset: number,
  maxBytes: number,
): Promise<FetchedPartition | undefined> {
  const partitions = [{ ...at, offset, maxBytes }]
  const [answer] = await broker.fetch({ partitions, maxWaitMs, maxBytes, isolation: 'read_committed' })
  return answer
}

/** Where to read on behind this answer: at the same offset where it says nothing of what lies there. */
export function behind(answer: FetchedPartition | undefined, offset: number): number {
  if (answer === undefined) return offset
  const { topic, partition, error, records, logStartOffset } = answer
  if (error === undefined) return endOfBatches(records, offset)
  if (error === 'OFFSET_OUT_OF_RANGE') return Math.max(logStartOffset, offset)
  throw new EngineError('BROKER_REFUSED', `${topic}:${partition} cannot be read: ${error}`)
}
