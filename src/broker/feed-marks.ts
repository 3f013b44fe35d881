/**
 * How far files were fed into topics. Kept in the same write as the records, so that a feed that was interrupted goes on
 * behind its last stored line: nothing twice, nothing lost.
 */
import type { ProducedPartition, ProduceRequest } from './port.ts'

export interface FeedMark {
  readonly topic: string
  /** Name of the fed file, as it was given. */
  readonly file: string
  /** Lines of the file that are stored once the write is. */
  readonly lines: number
}

export interface FeedStore {
  /** Writes the batches (of the mark's topic, without a producer's identity) and the mark, both or neither. */
  produceFed(batches: ProduceRequest['batches'], mark: FeedMark): Promise<ProducedPartition[]>
  /** How many lines of the file are stored in the topic; 0 for one that was never fed. */
  feedMark(topic: string, file: string): Promise<number>
}
