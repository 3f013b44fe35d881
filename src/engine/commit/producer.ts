/**
 * The one producer of an engine's run: stamps the lanes' record batches with identity and sequence and writes them, in
 * transactions (exactly-once) or idempotently (at-least-once). Several requests are under way at once, but never two
 * with batches of one partition, so that its sequence is never overtaken; what gathers meanwhile leaves in one request.
 */
import { assert } from '../../base/assert.ts'
import { type Clock, systemClock } from '../../base/clock.ts'
import { partitionKey } from '../../base/ids.ts'
import {
  type BrokerPort,
  BrokerError,
  type GroupMember,
  type OffsetToCommit,
  type ProducedPartition,
  type ProducerIdentity,
} from '../../broker/port.ts'
import { type BatchPack, eachBatch, PackUse } from '../../broker/wire/batch-pack.ts'
import { batchHeader, stampBatch } from '../../broker/wire/record-batch.ts'
import { splitBatch } from '../../broker/wire/split-batch.ts'
import { type Found, foundUntilNow, isOfRecords, judge, saysTooLarge } from './topic-limits.ts'

export interface ToProduce {
  readonly topic: string
  readonly partition: number
  /** One whole record batch. */
  readonly records: Uint8Array
  readonly count: number
  /** Told when the broker has the batch: its bytes may be gone then. */
  readonly use?: PackUse | undefined
}

/** Told of the offset of a batch's first record. */
export type Written = (batch: ToProduce, offset: number) => void

interface Queued {
  /** Name of the batch's partition. */
  readonly id: string
  readonly batch: ToProduce
  readonly done: Written | undefined
}

const requestBytes = 1024 * 1024
/** As many as a broker remembers of a producer without an order between them. */
const requestsUnderWay = 5

export class Producer {
  readonly #broker: BrokerPort
  readonly #transactionalId: string | null
  readonly #transactionTimeoutMs: number
  #identity: ProducerIdentity | undefined
  readonly #sequences = new Map<string, number>()
  /** What a topic is known to take, where it refused a batch as too large. */
  readonly #limits = new Map<string, number>()
  /** What has not left yet, by partition, in its order. */
  readonly #queues = new Map<string, Queued[]>()
  readonly #underWay = new Set<Promise<void>>()
  /** Partitions with a batch under way. */
  readonly #busy = new Set<string>()
  #failure: unknown
  /** What was found out of topics before this run: its lanes were told. */
  readonly #known: Found
  readonly #clock: Pick<Clock, 'now'>
  /** The first single record that was refused: told once all others have been tried. */
  #refused: BrokerError | undefined
  #partitions = new Set<string>()
  #bytes = 0
  #queuedBytes = 0
  #openSince: number | null = null
  /** Something was sent or offsets were added since the last end: only then is there a transaction to end. */
  #open = false
  #closed = false

  constructor(
    broker: BrokerPort,
    transactionalId: string | null,
    transactionTimeoutMs: number,
    identity?: ProducerIdentity,
    clock: Pick<Clock, 'now'> = systemClock,
  ) {
    this.#broker = broker
    this.#known = foundUntilNow(broker)
    this.#clock = clock
    this.#transactionalId = transactionalId
    this.#transactionTimeoutMs = transactionTimeoutMs
    this.#identity = identity
  }

  /**
   * The producer of the next run, under the same identity until `init`. This one sends nothing any more: what is still
   * under way for the run that ended must not reach into the next one's transaction.
   */
  successor(): Producer {
    this.#closed = true
    this.#queues.clear()
    return new Producer(this.#broker, this.#transactionalId, this.#transactionTimeoutMs, this.#identity, this.#clock)
  }

  /** Bytes that the broker has not confirmed yet. */
  get queuedBytes(): number {
    return this.#queuedBytes
  }

  get identity(): ProducerIdentity | undefined {
    return this.#identity
  }

  /** The open transaction, for `/debug/barriers`. */
  get transaction(): {
    producerId: string
    producerEpoch: number
    partitions: number
    bytes: number
    /** By the monotonic clock. */
    openSince: number | null
  } | null {
    if (!this.#identity) return null
    const { producerId, producerEpoch } = this.#identity
    return {
      producerId: String(producerId),
      producerEpoch,
      partitions: this.#partitions.size,
      bytes: this.#bytes,
      openSince: this.#openSince,
    }
  }

  /** Takes the identity, fencing whoever had it. `conditional`: only if nobody else took it since. */
  async init(conditional = false): Promise<void> {
    this.#refuseIfClosed()
    const current = conditional ? this.#identity : undefined
    this.#identity = await this.#broker.initProducer(this.#transactionalId, this.#transactionTimeoutMs, current)
    this.#sequences.clear()
    this.#clear()
  }

  /**
   * Takes the identity again, unless somebody else has taken it. The transaction coordinator cannot tell a successor from
   * its own clean-up of a transaction that took too long; the group can: a successor has our place in it. `confirm` asks
   * it, and rejects where somebody else is there.
   */
  async retake(confirm: (() => Promise<void>) | undefined): Promise<void> {
    try {
      await this.init(this.#identity !== undefined)
    } catch (error) {
      const lost = error instanceof BrokerError && error.errorClass === 'epoch-lost'
      if (!lost || confirm === undefined) throw error
      await confirm()
      await this.init()
    }
  }

  /**
   * Queues batches; they leave at once, behind those queued before. `now`, by the monotonic clock, dates the transaction's
   * beginning. `done` hears of those that the broker has, all of them before a `flush` resolves.
   */
  send(batches: readonly ToProduce[], now: number, done?: Written): void {
    this.queue(batches, now, done)
    this.#pump()
  }

  /** The same, but they leave with what is sent or flushed next: a request more costs more than what it carries. */
  queue(batches: readonly ToProduce[], now: number, done?: Written): void {
    for (const batch of batches) this.#enqueue(batch, done, now)
  }

  /** Resolves when everything queued so far is acknowledged; rejects with the first failure. */
  async flush(): Promise<void> {
    this.#pump()
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
    const failure = this.#failure ?? this.#refused
    if (failure !== undefined) throw failure
  }

  async sendOffsets(member: GroupMember, offsets: readonly OffsetToCommit[]): Promise<void> {
    this.#refuseIfClosed()
    if (this.#transactionalId === null) return
    assert(this.#underWay.size === 0, 'offsets join a transaction before the records that brought them')
    this.#open = true
    await this.#broker.commitOffsetsInTransaction(this.#transactionalId, this.#identityOrThrow(), member, offsets)
  }

  /** Ends the open transaction. Without one nothing ends: what belongs to the next commit may be under way. */
  async end(commit: boolean): Promise<void> {
    this.#refuseIfClosed()
    if (this.#transactionalId === null) {
      this.#forgetTransaction()
      return
    }
    assert(!commit || this.#underWay.size === 0, 'a transaction is committed while records of it are under way')
    assert(!commit || this.#queues.size === 0, 'a transaction is committed before all its records have left')
    if (this.#open) {
      const before = this.#identityOrThrow()
      const after = await this.#broker.endTransaction(this.#transactionalId, before, commit)
      // A raised epoch starts every partition's sequence anew.
      if (after.producerEpoch !== before.producerEpoch || after.producerId !== before.producerId)
        this.#sequences.clear()
      this.#identity = after
    }
    this.#clear()
  }

  #refuseIfClosed(): void {
    if (this.#closed) throw new BrokerError('INVALID_TXN_STATE', 'the run of this producer has ended')
  }

  #clear(): void {
    this.#queues.clear()
    this.#failure = undefined
    this.#refused = undefined
    this.#queuedBytes = 0
    this.#forgetTransaction()
  }

  #forgetTransaction(): void {
    this.#partitions = new Set()
    this.#bytes = 0
    this.#openSince = null
    this.#open = false
  }

  #identityOrThrow(): ProducerIdentity {
    if (!this.#identity) throw new BrokerError('INVALID_TXN_STATE', 'the producer has no identity yet')
    return this.#identity
  }

  #enqueue(batch: ToProduce, done: Written | undefined, now: number): void {
    assert(batch.count > 0, `a batch for ${batch.topic}:${batch.partition} has no records`)
    const id = partitionKey(batch.topic, batch.partition)
    const queue = this.#queues.get(id)
    if (queue) queue.push({ id, batch, done })
    else this.#queues.set(id, [{ id, batch, done }])
    this.#partitions.add(id)
    this.#bytes += batch.records.length
    this.#queuedBytes += batch.records.length
    this.#openSince ??= now
    this.#open = true
  }

  #pump(): void {
    while (!this.#closed && this.#failure === undefined && this.#underWay.size < requestsUnderWay) {
      const chosen = this.#choose()
      if (chosen.length === 0) return
      const bytes = chosen.reduce((sum, { batch }) => sum + batch.records.length, 0)
      const request = this.#send(chosen)
        .catch((error: unknown) => {
          this.#failure ??= error
        })
        .finally(() => {
          this.#underWay.delete(request)
          for (const { id } of chosen) this.#busy.delete(id)
          this.#queuedBytes = Math.max(0, this.#queuedBytes - bytes)
          this.#pump()
        })
      this.#underWay.add(request)
    }
  }

  /**
   * The batches of one request: the oldest of each partition that has none under way, so that every batch's base offset
   * is known and no batch overtakes another of its partition, repeated or not.
   */
  #choose(): Queued[] {
    const chosen: Queued[] = []
    let bytes = 0
    for (const [id, queue] of this.#queues) {
      const [first] = queue
      if (first === undefined || this.#busy.has(id)) continue
      if (bytes > 0 && bytes + first.batch.records.length > requestBytes) break
      bytes += first.batch.records.length
      chosen.push(first)
      queue.shift()
      this.#busy.add(id)
      // Behind the others: no partition goes first each time.
      this.#queues.delete(id)
      if (queue.length > 0) this.#queues.set(id, queue)
    }
    return chosen
  }

  async #send(chosen: readonly Queued[]): Promise<void> {
    const identity = this.#identityOrThrow()
    const transactional = this.#transactionalId !== null
    for (const { id, batch } of chosen) {
      const baseSequence = this.#sequences.get(id) ?? 0
      stampBatch(batch.records, { ...identity, baseSequence, transactional })
      this.#sequences.set(id, (baseSequence + batch.count) % 0x80000000)
    }
    if (this.#limits.size > 0 && chosen.some(({ batch }) => this.#isTooLarge(batch)))
      return this.#inParts(chosen, false)
    let produced: ProducedPartition[]
    try {
      produced = await this.#broker.produce({
        transactionalId: this.#transactionalId,
        batches: chosen.map(({ batch: { topic, partition, records } }) => ({ topic, partition, records })),
      })
    } catch (error) {
      if (!isOfRecords(error)) throw error
      return this.#inParts(chosen)
    }
    // Answers come in the order of the request, each partition once.
    for (const [i, { batch, done }] of chosen.entries()) {
      done?.(batch, offsetOf(produced, i, batch))
      batch.use?.done()
    }
  }

  #isTooLarge({ topic, records, count }: ToProduce): boolean {
    return count > 1 && records.length > (this.#limits.get(topic) ?? Number.POSITIVE_INFINITY)
  }

  /**
   * Writes batches one by one, in halves where the broker takes them only so. Those that it took before it refused another one
   * of the request are repeated: it knows them by their sequences.
   */
  async #inParts(chosen: readonly Queued[], wereSent = true): Promise<void> {
    for (const { id, batch, done } of chosen) {
      let sequence = batchHeader(batch.records).baseSequence
      const left = [batch]
      for (let part = left.shift(); part !== undefined; part = left.shift()) {
        const { topic, partition } = part
        // A whole one may be there already: what it was refused with was another partition's batch. Halves would not be known again.
        const isKnown = !(wereSent && part === batch) && this.#isTooLarge(part)
        const refusal = isKnown ? undefined : await this.#writeAlone(part, sequence, done)
        if (refusal === undefined && !isKnown) {
          sequence = (sequence + part.count) % 0x80000000
          continue
        }
        if (refusal !== undefined) {
          assert(part.count > 0, 'half a batch has no records')
          if (part.count === 1) {
            this.#refuse(part, refusal)
            continue
          }
          if (saysTooLarge(refusal)) this.#noteLimit(part)
        }
        left.unshift(...splitBatch(part.records, part.count).map((half) => ({ topic, partition, ...half })))
      }
      // What was refused has no place in it.
      this.#sequences.set(id, sequence)
      batch.use?.done()
    }
  }

  /** A half of it is a little more than half as large. */
  #noteLimit({ topic, records }: ToProduce): void {
    const limit = this.#limits.get(topic) ?? Number.POSITIVE_INFINITY
    this.#limits.set(topic, Math.min(limit, Math.floor(records.length * 0.75)))
  }

  /**
   * Here nobody knows any more which record it was made from, and which policy holds for it. The lanes do, once they
   * know what its topic takes: the replay brings it before them again. What else this run brings is tried meanwhile, so that
   * one restart is enough for all of it.
   */
  #refuse({ topic, partition, records }: ToProduce, cause: BrokerError): void {
    const { maxTimestamp: timestamp } = batchHeader(records)
    const refused = { topic, partition, bytes: records.length, timestamp, cause }
    const { error, isMoreToFind } = judge(this.#broker, this.#known, refused, this.#clock.now())
    if (!isMoreToFind) throw error
    this.#refused ??= error
  }

  /** Answers the error where the broker refuses it for what its records are. */
  async #writeAlone(
    part: ToProduce,
    baseSequence: number,
    done: Written | undefined,
  ): Promise<BrokerError | undefined> {
    this.#refuseIfClosed()
    const { topic, partition, records } = part
    const transactional = this.#transactionalId !== null
    stampBatch(records, { ...this.#identityOrThrow(), baseSequence, transactional })
    try {
      const batches = [{ topic, partition, records }]
      const produced = await this.#broker.produce({ transactionalId: this.#transactionalId, batches })
      done?.(part, offsetOf(produced, 0, part))
      return undefined
    } catch (error) {
      if (isOfRecords(error)) return error
      throw error
    }
  }
}

function offsetOf(produced: readonly ProducedPartition[], at: number, { topic, partition }: ToProduce): number {
  const same = (each: ProducedPartition | undefined): boolean => each?.topic === topic && each.partition === partition
  const found = same(produced[at]) ? produced[at] : produced.find(same)
  return found?.baseOffset ?? -1
}

/** What lanes packed for their way to the engine. */
export function unpack(packs: readonly BatchPack[]): ToProduce[] {
  const batches: ToProduce[] = []
  for (const pack of packs) {
    const use = new PackUse(pack)
    eachBatch(pack, (topic, partition, count, records) =>
      batches.push({ topic, partition, records, count, use: use.add() }),
    )
  }
  return batches
}
