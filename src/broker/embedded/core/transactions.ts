/**
 * The transaction coordinator, as Kafka's behaves under transaction version 2: every end of a transaction raises the
 * producer's epoch, so that nothing that was sent late can touch the next one. Ends take effect at once.
 */
import { assert } from '../../../base/assert.ts'
import type { OpenTransaction, ProducerIdentity } from '../../port.ts'
import { BrokerError } from '../../port.ts'
import type { JournalEntry } from './storage.ts'

const lastEpoch = 32_766
const maxTimeoutMs = 15 * 60_000

interface Ended {
  readonly producerId: bigint
  readonly epoch: number
  readonly commit: boolean
}

class Producer {
  readonly transactionalId: string
  producerId: bigint
  epoch = -1
  /** The identity before the last rise of the epoch, while a repeated request under it is to be understood. */
  lastProducerId = -1n
  lastEpoch = -1
  timeoutMs: number
  /** Monotonic time of the open transaction's begin; undefined without one. */
  startedAt: number | undefined
  ended: Ended | undefined

  constructor(transactionalId: string, producerId: bigint, timeoutMs: number) {
    this.transactionalId = transactionalId
    this.producerId = producerId
    this.timeoutMs = timeoutMs
  }
}

/** What the coordinator asks of the cluster: `epoch` is the one that the transaction was written under. */
export interface TransactionEffects {
  /** Stores the entry, or throws: then nothing of it is stored. */
  journal(entry: JournalEntry): void
  /** Writes the markers and applies or drops the pending offsets. Where there is no room for all of them it throws, and ends it later. */
  end(producerId: bigint, epoch: number, commit: boolean): void
}

export class Transactions {
  readonly #producers = new Map<string, Producer>()
  readonly #effects: TransactionEffects
  #nextProducerId = 1000n

  constructor(effects: TransactionEffects) {
    this.#effects = effects
  }

  initProducer(
    transactionalId: string | null,
    timeoutMs: number,
    current: ProducerIdentity | undefined,
  ): ProducerIdentity {
    if (transactionalId === null) return { producerId: this.#newProducerId(), producerEpoch: 0 }
    if (!(timeoutMs > 0 && timeoutMs <= maxTimeoutMs)) {
      throw new BrokerError(
        'INVALID_TRANSACTION_TIMEOUT',
        `A transaction timeout of ${timeoutMs} ms is not between 1 and ${maxTimeoutMs}.`,
      )
    }
    const known = this.#producers.get(transactionalId)
    if (known !== undefined && current !== undefined && !knows(known, current.producerId)) throw fenced(known, current)
    const producer = known ?? new Producer(transactionalId, this.#newProducerId(), timeoutMs)
    // As the original does it: an open transaction is aborted before anybody looks at the caller's epoch.
    if (producer.startedAt !== undefined) this.#abort(producer)
    this.#change(producer, () => {
      producer.timeoutMs = timeoutMs
      this.#raise(producer, current)
    })
    this.#producers.set(transactionalId, producer)
    return identityOf(producer)
  }

  /** Checks that the identity may write under the id, and opens its transaction at the first write. */
  enter(transactionalId: string, identity: ProducerIdentity, now: number): void {
    const producer = this.#producers.get(transactionalId)
    if (producer === undefined || producer.producerId !== identity.producerId) {
      if (producer?.lastProducerId === identity.producerId) throw staleEpoch(producer, identity)
      throw unknownMapping(transactionalId, identity)
    }
    if (producer.epoch !== identity.producerEpoch) throw staleEpoch(producer, identity)
    producer.startedAt ??= now
  }

  endTransaction(transactionalId: string, identity: ProducerIdentity, commit: boolean): ProducerIdentity {
    const producer = this.#producers.get(transactionalId)
    if (producer === undefined || !knows(producer, identity.producerId)) throw unknownMapping(transactionalId, identity)
    const isCurrent = producer.producerId === identity.producerId && producer.epoch === identity.producerEpoch
    const isRepeat =
      producer.lastProducerId === identity.producerId &&
      producer.lastEpoch === identity.producerEpoch &&
      producer.ended?.producerId === identity.producerId &&
      producer.startedAt === undefined
    if (!isCurrent && !isRepeat) throw fenced(producer, identity)
    if (isRepeat) {
      if (producer.ended?.commit === commit) return identityOf(producer)
      throw invalidState(producer, commit, `was ${producer.ended?.commit ? 'committed' : 'aborted'} already`)
    }
    // A transaction in which nothing was sent is nothing.
    if (producer.startedAt === undefined) return identityOf(producer)
    this.#end(producer, commit)
    return identityOf(producer)
  }

  /** Oldest first; `open`: those of one partition, by producer id. */
  describe(open: ReadonlyMap<bigint, { readonly firstOffset: number; readonly epoch: number }>): OpenTransaction[] {
    const names = new Map([...this.#producers.values()].map((each) => [each.producerId, each.transactionalId]))
    return [...open]
      .map(([producerId, { firstOffset, epoch }]) => ({
        producerId,
        producerEpoch: epoch,
        firstOffset,
        transactionalId: names.get(producerId) ?? null,
      }))
      .sort((a, b) => a.firstOffset - b.firstOffset)
  }

  /** Aborts the transactions that are open for longer than their producers allowed. */
  expire(now: number): void {
    for (const producer of this.#producers.values()) {
      if (producer.startedAt !== undefined && now >= producer.startedAt + producer.timeoutMs) this.#abort(producer)
    }
  }

  nextDeadline(): number {
    let least = Number.POSITIVE_INFINITY
    for (const { startedAt, timeoutMs } of this.#producers.values()) {
      if (startedAt !== undefined && startedAt + timeoutMs < least) least = startedAt + timeoutMs
    }
    return least
  }

  /**
   * After the logs are read: what became of a transaction that has no marker in one of them. That of the present epoch
   * goes on; of others, the last one's decision is known, and what nobody knows of was never committed.
   */
  outcomeOf(producerId: bigint, epoch: number, now: number): 'open' | 'committed' | 'aborted' {
    for (const producer of this.#producers.values()) {
      if (producer.producerId === producerId && producer.epoch === epoch) {
        producer.startedAt ??= now
        return 'open'
      }
      const { ended } = producer
      if (ended?.producerId === producerId && ended.epoch === epoch && ended.commit) return 'committed'
    }
    return 'aborted'
  }

  restore(entry: Extract<JournalEntry, { kind: 'producer' }>): void {
    const producer = new Producer(entry.transactionalId, BigInt(entry.producerId), entry.timeoutMs)
    producer.epoch = entry.epoch
    producer.lastProducerId = BigInt(entry.lastProducerId)
    producer.lastEpoch = entry.lastEpoch
    if (entry.ended !== null) {
      const { producerId, epoch, commit } = entry.ended
      producer.ended = { producerId: BigInt(producerId), epoch, commit }
    }
    this.#producers.set(entry.transactionalId, producer)
  }

  restoreProducerIds(next: bigint): void {
    if (next > this.#nextProducerId) this.#nextProducerId = next
  }

  snapshot(): JournalEntry[] {
    return [{ kind: 'producer-ids', next: String(this.#nextProducerId) }, ...[...this.#producers.values()].map(entryOf)]
  }

  /** Ends the transaction on the coordinator's own account: the risen epoch fences whoever had it open. */
  #abort(producer: Producer): void {
    this.#end(producer, false)
  }

  #end(producer: Producer, commit: boolean): void {
    const { producerId, epoch } = producer
    assert(producer.startedAt !== undefined, `${producer.transactionalId} ends a transaction that nobody began`)
    // The decision is stored first: a crash between this and the markers is made good from it at the next start.
    this.#change(producer, () => {
      this.#setNext(producer)
      assert(producer.epoch !== epoch, 'the end of a transaction raises the epoch')
      producer.ended = { producerId, epoch, commit }
      producer.startedAt = undefined
    })
    this.#effects.end(producerId, epoch, commit)
  }

  /** What cannot be stored has not happened. */
  #change(producer: Producer, change: () => void): void {
    const before = { ...producer }
    try {
      change()
      this.#effects.journal(entryOf(producer))
    } catch (error) {
      Object.assign(producer, before)
      throw error
    }
  }

  /** The next identity; the one before it stays known as the last. */
  #setNext(producer: Producer): void {
    producer.lastProducerId = producer.producerId
    producer.lastEpoch = producer.epoch
    if (producer.epoch >= lastEpoch) {
      producer.producerId = this.#newProducerId()
      producer.epoch = 0
    } else producer.epoch++
  }

  #raise(producer: Producer, current: ProducerIdentity | undefined): void {
    if (current === undefined || producer.epoch === -1) {
      this.#setNext(producer)
      producer.lastProducerId = -1n
      producer.lastEpoch = -1
      producer.ended = undefined
      return
    }
    if (current.producerId === producer.producerId && current.producerEpoch === producer.epoch) {
      this.#setNext(producer)
      return
    }
    const isLast = current.producerId === producer.lastProducerId && current.producerEpoch === producer.lastEpoch
    if (!isLast) throw fenced(producer, current)
  }

  #newProducerId(): bigint {
    const producerId = this.#nextProducerId++
    this.#effects.journal({ kind: 'producer-ids', next: String(this.#nextProducerId) })
    return producerId
  }
}

function entryOf(producer: Producer): JournalEntry {
  const { ended } = producer
  return {
    kind: 'producer',
    transactionalId: producer.transactionalId,
    producerId: String(producer.producerId),
    epoch: producer.epoch,
    lastProducerId: String(producer.lastProducerId),
    lastEpoch: producer.lastEpoch,
    timeoutMs: producer.timeoutMs,
    ended: ended === undefined ? null : { ...ended, producerId: String(ended.producerId) },
  }
}

const identityOf = (producer: Producer): ProducerIdentity => ({
  producerId: producer.producerId,
  producerEpoch: producer.epoch,
})

const knows = (producer: Producer, producerId: bigint): boolean =>
  producer.producerId === producerId || producer.lastProducerId === producerId

function fenced(producer: Producer, identity: ProducerIdentity): BrokerError {
  return new BrokerError(
    'PRODUCER_FENCED',
    `Epoch ${identity.producerEpoch} of the transactional id ${producer.transactionalId} is over: epoch ${producer.epoch} has taken its place.`,
  )
}

function staleEpoch(producer: Producer, identity: ProducerIdentity): BrokerError {
  return new BrokerError('INVALID_PRODUCER_EPOCH', fenced(producer, identity).message)
}

function unknownMapping(transactionalId: string, identity: ProducerIdentity): BrokerError {
  return new BrokerError(
    'INVALID_PRODUCER_ID_MAPPING',
    `Producer ${identity.producerId} does not hold the transactional id ${transactionalId}.`,
  )
}

function invalidState(producer: Producer, commit: boolean, why: string): BrokerError {
  return new BrokerError(
    'INVALID_TXN_STATE',
    `The transaction of ${producer.transactionalId} cannot be ${commit ? 'committed' : 'aborted'}: it ${why}.`,
  )
}
