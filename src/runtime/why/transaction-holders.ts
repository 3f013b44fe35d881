/**
 * Who has the transactions that hold records of a partition back. The broker is asked beside everything else, where a
 * partition has stood still for a while, and never waited for: what it does not tell is not told.
 */
import type { Clock } from '../../base/clock.ts'
import { type PartitionKey, partitionKey, type TopicPartition } from '../../base/ids.ts'
import type { TransactionHolder } from '../../view/diagnosis/facts.ts'
import type { AskedBroker } from './asked-broker.ts'

const askAfterMs = 2000
/** Another transaction may have come to be the oldest one. */
const askAgainMs = 10_000

interface Asked {
  readonly sinceMs: number
  atMs: number
  holder: TransactionHolder | null
}

export class TransactionHolders {
  readonly #broker: AskedBroker
  readonly #clock: Clock
  readonly #asked = new Map<PartitionKey, Asked>()

  constructor(broker: AskedBroker, clock: Clock) {
    this.#broker = broker
    this.#clock = clock
  }

  /** What is known by now of the partition, whose records have been held back since then. */
  of(at: TopicPartition, sinceMs: number): TransactionHolder | null {
    const key = partitionKey(at.topic, at.partition)
    const now = this.#clock.now()
    const known = this.#asked.get(key)
    const asked = known?.sinceMs === sinceMs ? known : { sinceMs, atMs: Number.NEGATIVE_INFINITY, holder: null }
    this.#asked.set(key, asked)
    if (now - sinceMs >= askAfterMs && now - asked.atMs >= askAgainMs) {
      asked.atMs = now
      void this.#ask(at).then((holder) => {
        asked.holder = holder ?? asked.holder
      })
    }
    return asked.holder
  }

  async #ask(at: TopicPartition): Promise<TransactionHolder | null> {
    const [oldest] = await this.#broker.openTransactions(at)
    if (oldest === undefined) return null
    const { producerId, transactionalId } = oldest
    return { producerId: String(producerId), transactionalId }
  }
}
