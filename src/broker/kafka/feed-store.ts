/**
 * Marks of fed files on Kafka: records and mark are one transaction, and the mark is an offset of a group that nobody
 * joins, one group a file. Kafka drops the offsets of a topic with the topic, and those of an idle group after
 * `offsets.retention.minutes`: a feed taken up again later than that begins anew.
 */
import { createHash } from 'node:crypto'
import { type BatchHeader, batchHeader, stampBatch } from '../wire/record-batch.ts'
import type { FeedMark, FeedStore } from '../feed-marks.ts'
import type { GroupMember, ProducedPartition, ProduceRequest, ProducerIdentity } from '../port.ts'
import type { Groups } from './groups.ts'
import type { Producer } from './producer.ts'
import type { Transactions } from './transactions.ts'

const transactionTimeoutMs = 60_000
const longestMetadata = 1024

interface Feeding {
  readonly groupId: string
  identity: ProducerIdentity
  readonly sequences: Map<number, number>
}

export class KafkaFeedStore implements FeedStore {
  readonly #prefix: string
  readonly #transactions: Transactions
  readonly #producer: Producer
  readonly #groups: Groups
  readonly #feeding = new Map<string, Feeding>()

  constructor(prefix: string, transactions: Transactions, producer: Producer, groups: Groups) {
    this.#prefix = prefix
    this.#transactions = transactions
    this.#producer = producer
    this.#groups = groups
  }

  async produceFed(batches: ProduceRequest['batches'], mark: FeedMark): Promise<ProducedPartition[]> {
    const feeding = await this.#open(mark.topic, mark.file)
    const { groupId } = feeding
    try {
      const written = await this.#write(feeding, batches)
      const offset = { topic: mark.topic, partition: 0, offset: mark.lines, metadata: shortened(mark.file) }
      await this.#transactions.commitOffsets(groupId, feeding.identity, memberOf(groupId), [offset])
      const next = await this.#transactions.end(groupId, feeding.identity, true)
      if (next.producerEpoch !== feeding.identity.producerEpoch) feeding.sequences.clear()
      feeding.identity = next
      return written
    } catch (error) {
      // The next write takes the id anew, which aborts what this one left open.
      this.#feeding.delete(groupId)
      throw error
    }
  }

  async feedMark(topic: string, file: string): Promise<number> {
    // Taking the id settles a transaction that an interrupted run left open; nothing would be stable before that.
    const { groupId } = await this.#open(topic, file)
    const [committed] = await this.#groups.committed(groupId, [{ topic, partition: 0 }], true)
    return Math.max(0, committed?.offset ?? 0)
  }

  async #open(topic: string, file: string): Promise<Feeding> {
    const name = createHash('sha256').update(`${topic}\n${file}`).digest('hex').slice(0, 16)
    const groupId = `${this.#prefix}-feed-${name}`
    const known = this.#feeding.get(groupId)
    if (known) return known
    const identity = await this.#transactions.initialise(groupId, transactionTimeoutMs)
    const feeding: Feeding = { groupId, identity, sequences: new Map() }
    this.#feeding.set(groupId, feeding)
    return feeding
  }

  #write(feeding: Feeding, batches: ProduceRequest['batches']): Promise<ProducedPartition[]> {
    for (const { partition, records } of batches) {
      for (let at = 0; at < records.length; ) {
        const { size, baseOffset, lastOffset }: BatchHeader = batchHeader(records, at)
        const baseSequence = feeding.sequences.get(partition) ?? 0
        stampBatch(records.subarray(at, at + size), { ...feeding.identity, baseSequence, transactional: true })
        feeding.sequences.set(partition, (baseSequence + lastOffset - baseOffset + 1) & 0x7fffffff)
        at += size
      }
    }
    return this.#producer.produce({ transactionalId: feeding.groupId, batches })
  }
}

/** A commit by nobody: the group has no members. */
function memberOf(groupId: string): GroupMember {
  return { groupId, memberId: '', generationId: -1, groupInstanceId: null }
}

function shortened(file: string): string {
  return file.slice(-longestMetadata)
}
