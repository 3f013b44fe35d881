/** What marks writes outside of transactions, so that one that is sent again after a lost answer is stored once. */
import { type PartitionKey, partitionKey } from '../base/ids.ts'
import type { BrokerPort, ProducerIdentity, ProduceRequest } from './port.ts'
import { countRecords, stampBatch } from './wire/record-batch.ts'

/** Of transactions, of which there are none: Kafka wants a number all the same. */
const timeoutMs = 60_000
/** They begin at 0 again behind the largest whole number of four bytes. */
const sequences = 2 ** 31

export class ProducerStamps {
  readonly #broker: BrokerPort
  #identity: ProducerIdentity | undefined
  readonly #sequences = new Map<PartitionKey, number>()

  constructor(broker: BrokerPort) {
    this.#broker = broker
  }

  /** Stamps single batches, in place. They are to be written in this order, each before the next of its partition. */
  async stamp(batches: ProduceRequest['batches']): Promise<void> {
    this.#identity ??= await this.#broker.initProducer(null, timeoutMs)
    for (const { topic, partition, records } of batches) {
      const key = partitionKey(topic, partition)
      const baseSequence = this.#sequences.get(key) ?? 0
      this.#sequences.set(key, (baseSequence + countRecords(records)) % sequences)
      stampBatch(records, { ...this.#identity, baseSequence, transactional: false })
    }
  }

  /** After a write of which nobody knows whether it was stored, and which is not sent again: the next one is another's. */
  forget(): void {
    this.#identity = undefined
    this.#sequences.clear()
  }
}
