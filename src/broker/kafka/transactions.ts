/**
 * Transactions of one or more transactional ids. Where the cluster has Transactions V2 a write or an offset commit
 * joins the transaction by itself and every end raises the producer's epoch, so that a request that was under way for
 * too long cannot hit the next transaction. On V1 partitions and groups are added first, and after a result that was
 * never seen the epoch is raised here.
 *
 * A transaction may begin once the markers of the one before are written, which happens behind the answer to its end. A broker that
 * is to add a partition before that looks again after 20 ms (`add.partitions.to.txn.retry.backoff.ms`). So on V2 as well what is
 * written soon after an end is announced first: such a request is refused at once, and repeated after two milliseconds.
 */
import { addOffsetsToTxnV3, addPartitionsToTxnV3, initProducerIdV4, txnOffsetCommitV4 } from '@platformatic/kafka'
import { type PartitionKey, partitionKey, type TopicPartition } from '../../base/ids.ts'
import { BrokerError, type GroupMember, type OffsetToCommit, type ProducerIdentity } from '../port.ts'
import type { Cluster } from './cluster.ts'
import type { Link } from './connections.ts'
import { answered, isTransient, refused } from './errors.ts'
import { type BatchToSend, byTopic, sendEndTransaction } from './wire-calls.ts'
import { sendTxnOffsetCommit } from './wire-txn-offsets.ts'

const endTransactionKey = 26
const transactionsV2 = 2
/** Markers are written by then, but on a broker that is very busy. */
const markersMs = 50
const noIdentity: ProducerIdentity = { producerId: -1n, producerEpoch: -1 }

interface Open {
  readonly timeoutMs: number
  /** The identity that this client was given last. */
  readonly identity: ProducerIdentity | undefined
  /** Something was sent that the coordinator may know of. */
  started: boolean
  /** An answer was lost: a copy of the request may still be under way. */
  indefinite: boolean
  /** When the transaction before it ended, by `performance.now()`. */
  readonly endedBeforeMs: number
  /** On V2: what the first write or offset commit has announced, for what comes beside it to wait for. */
  announced: Promise<void> | undefined
  readonly partitions: Set<PartitionKey>
  readonly groups: Set<string>
}

export class Transactions {
  readonly #cluster: Cluster
  readonly #open = new Map<string, Open>()

  constructor(cluster: Cluster) {
    this.#cluster = cluster
  }

  async produceVersion(): Promise<number> {
    return (await this.#isV2()) ? 12 : 11
  }

  async initialise(
    transactionalId: string | null,
    timeoutMs: number,
    current: ProducerIdentity = noIdentity,
  ): Promise<ProducerIdentity> {
    const what =
      transactionalId === null ? 'asking for a producer id' : `taking the transactional id ${transactionalId}`
    const call = async (link: { connection: Parameters<typeof initProducerIdV4.api.async>[0] }) => {
      const { producerId, producerEpoch } = current
      const answer = await answered(
        initProducerIdV4.api.async(link.connection, transactionalId, timeoutMs, producerId, producerEpoch),
      )
      if (answer.errorCode !== 0) throw fenceIfStale(refused(answer.errorCode, what), current)
      return { producerId: answer.producerId, producerEpoch: answer.producerEpoch }
    }
    if (transactionalId === null) return this.#cluster.retrying(what, () => this.#cluster.anywhere(what, call))
    const identity = await this.#cluster.onCoordinator('transaction', transactionalId, what, call)
    this.#open.set(transactionalId, fresh(timeoutMs, identity))
    return identity
  }

  /** Before a write: on V1 the coordinator is told of the partitions first. */
  async join(transactionalId: string, batches: readonly BatchToSend[]): Promise<void> {
    const open = this.#state(transactionalId)
    const isFirst = !open.started
    open.started = true
    if (await this.#isV2()) {
      const identity = identityOf((batches[0] as BatchToSend).records)
      await this.#announce(open, isFirst, () => this.#addPartitions(transactionalId, identity, batches))
      return
    }
    const added = batches.filter((batch) => !open.partitions.has(partitionKey(batch.topic, batch.partition)))
    if (added.length === 0) return
    await this.#addPartitions(transactionalId, identityOf((added[0] as BatchToSend).records), added)
    for (const { topic, partition } of added) open.partitions.add(partitionKey(topic, partition))
  }

  /** A request of the open transaction got no answer. */
  indefinite(transactionalId: string): void {
    this.#state(transactionalId).indefinite = true
  }

  async commitOffsets(
    transactionalId: string,
    identity: ProducerIdentity,
    member: GroupMember,
    offsets: readonly OffsetToCommit[],
  ): Promise<void> {
    if (offsets.length === 0) return
    const open = this.#state(transactionalId)
    const isFirst = !open.started
    open.started = true
    const v2 = await this.#isV2()
    const add = (): Promise<void> => this.#addGroup(transactionalId, identity, member.groupId)
    if (v2) await this.#announce(open, isFirst, add)
    else if (!open.groups.has(member.groupId)) {
      await add()
      open.groups.add(member.groupId)
    }
    const what = `committing offsets of group ${member.groupId} in a transaction`
    const call = async ({ connection }: Link): Promise<void> => {
      const answer = await this.#watched(transactionalId, () =>
        sendTxnOffsetCommit(
          connection,
          v2 ? 5 : txnOffsetCommitV4.api.version,
          transactionalId,
          identity,
          member,
          offsets,
        ),
      )
      throwGravest(
        answer.map(({ topic, partition, errorCode }) => ({ errorCode, what: `${what} (${topic}:${partition})` })),
      )
    }
    await this.#cluster.onCoordinator('group', member.groupId, what, call, 'commit')
  }

  async end(transactionalId: string, identity: ProducerIdentity, commit: boolean): Promise<ProducerIdentity> {
    const open = this.#state(transactionalId)
    // A transaction in which nothing was sent is nothing to the coordinator.
    if (!open.started && isSame(open.identity, identity)) return identity
    const v2 = await this.#isV2()
    const what = `${commit ? 'committing' : 'aborting'} the transaction of ${transactionalId}`
    const call = async (link: Link): Promise<ProducerIdentity> => {
      const version = v2 ? 5 : Math.min(4, link.versions.max.get(endTransactionKey) ?? 3)
      const answer = await this.#watched(transactionalId, () =>
        sendEndTransaction(link.connection, version, transactionalId, identity, commit),
      )
      if (answer.errorCode !== 0) throw staleEpoch(refused(answer.errorCode, what))
      return answer.identity
    }
    const next = await this.#cluster.onCoordinator('transaction', transactionalId, what, call, 'commit')
    const { indefinite, timeoutMs } = open
    if (isSame(open.identity, identity)) this.#open.set(transactionalId, fresh(timeoutMs, next, performance.now()))
    // A delayed copy of a request of this transaction would be valid in the next one.
    return indefinite && !v2 ? this.initialise(transactionalId, timeoutMs, next) : next
  }

  async #isV2(): Promise<boolean> {
    return (await this.#cluster.transactionVersion()) >= transactionsV2
  }

  #state(transactionalId: string): Open {
    const known = this.#open.get(transactionalId)
    if (known) return known
    const open = fresh(60_000, undefined)
    this.#open.set(transactionalId, open)
    return open
  }

  /** What comes first after an end, where markers may yet have to be written. */
  async #announce(open: Open, isFirst: boolean, add: () => Promise<void>): Promise<void> {
    if (isFirst && performance.now() - open.endedBeforeMs < markersMs) open.announced = add()
    await open.announced
  }

  /** Whatever is no answer leaves open whether the request took effect. */
  async #watched<T>(transactionalId: string, exchange: () => Promise<T>): Promise<T> {
    try {
      return await exchange()
    } catch (error) {
      this.indefinite(transactionalId)
      throw error
    }
  }

  async #addPartitions(
    transactionalId: string,
    identity: ProducerIdentity,
    partitions: readonly TopicPartition[],
  ): Promise<void> {
    const what = `adding partitions to the transaction of ${transactionalId}`
    const topics = byTopic(partitions).map(([name, items]) => ({
      name,
      partitions: items.map((item) => item.partition),
    }))
    const call = async ({ connection }: Link): Promise<void> => {
      const transaction = { transactionalId, ...identity, verifyOnly: false, topics }
      const answer = await answered(addPartitionsToTxnV3.api.async(connection, [transaction]))
      const results = answer.resultsByTransaction.flatMap(({ topicResults }) =>
        topicResults.flatMap(({ name, resultsByPartition }) =>
          resultsByPartition.map(({ partitionIndex, partitionErrorCode }) => ({
            errorCode: partitionErrorCode,
            what: `${what} (${name}:${partitionIndex})`,
          })),
        ),
      )
      throwGravest(results, staleEpoch)
    }
    await this.#cluster.onCoordinator('transaction', transactionalId, what, call, 'commit')
  }

  async #addGroup(transactionalId: string, identity: ProducerIdentity, groupId: string): Promise<void> {
    const what = `adding group ${groupId} to the transaction of ${transactionalId}`
    const call = async ({ connection }: Link): Promise<void> => {
      const { producerId, producerEpoch } = identity
      const answer = await answered(
        addOffsetsToTxnV3.api.async(connection, transactionalId, producerId, producerEpoch, groupId),
      )
      if (answer.errorCode !== 0) throw staleEpoch(refused(answer.errorCode, what))
    }
    await this.#cluster.onCoordinator('transaction', transactionalId, what, call, 'commit')
  }
}

function isSame(one: ProducerIdentity | undefined, other: ProducerIdentity): boolean {
  return one === undefined || (one.producerId === other.producerId && one.producerEpoch === other.producerEpoch)
}

function fresh(
  timeoutMs: number,
  identity: ProducerIdentity | undefined,
  endedBeforeMs = Number.NEGATIVE_INFINITY,
): Open {
  const begun = {
    started: false,
    indefinite: false,
    announced: undefined,
    partitions: new Set<PartitionKey>(),
    groups: new Set<string>(),
  }
  return { timeoutMs, identity, endedBeforeMs, ...begun }
}

/** OPERATION_NOT_ATTEMPTED only says that another partition failed. */
const notAttempted = 55

/** Throws the first error that repeating does not help, else the first one, as `asThrown` has it. */
export function throwGravest(
  results: ReadonlyArray<{ readonly errorCode: number; readonly what: string }>,
  asThrown = (error: BrokerError): BrokerError => error,
): void {
  const failed = results.filter(({ errorCode }) => errorCode !== 0)
  if (failed.length === 0) return
  const telling = failed.filter(({ errorCode }) => errorCode !== notAttempted)
  const faults = (telling.length ? telling : failed).map(({ errorCode, what }) => refused(errorCode, what))
  throw asThrown(faults.find((fault) => !isTransient(fault.code)) ?? (faults[0] as BrokerError))
}

/** Brokers name it by either code, depending on version, that somebody else took the id since. */
function fenceIfStale(error: BrokerError, current: ProducerIdentity): BrokerError {
  if (current.producerId < 0n || error.code !== 'INVALID_PRODUCER_EPOCH') return error
  return new BrokerError('PRODUCER_FENCED', error.message, 'epoch-lost', error)
}

/**
 * A coordinator refuses an epoch that is past with `PRODUCER_FENCED`, also where it ended the transaction by itself for its age. A
 * partition's leader says `INVALID_PRODUCER_EPOCH` of both: whoever is told that finds out which it was.
 */
function staleEpoch(error: BrokerError): BrokerError {
  if (error.code !== 'PRODUCER_FENCED') return error
  const why = 'It is this process itself where the broker has ended a transaction that was open for too long.'
  return new BrokerError('INVALID_PRODUCER_EPOCH', `${error.message} ${why}`, 'epoch-lost', error)
}

/** Producer id and epoch stand in every batch's header. */
function identityOf(batch: Uint8Array): ProducerIdentity {
  const view = new DataView(batch.buffer, batch.byteOffset, batch.byteLength)
  return { producerId: view.getBigInt64(43), producerEpoch: view.getInt16(51) }
}
