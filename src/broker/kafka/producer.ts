/** Writes record batches as they are, in order per partition, until the broker has them or finally refuses. */
import { type PartitionKey, partitionKey } from '../../base/ids.ts'
import { BrokerError, type ProducedPartition, type ProduceRequest } from '../port.ts'
import type { Cluster } from './cluster.ts'
import { isTransient, refused } from './errors.ts'
import type { Transactions } from './transactions.ts'
import { type BatchToSend, sendProduce } from './wire-calls.ts'

const produceKey = 0
/** Highest version that this client speaks; with it a write joins its partition to the transaction by itself. */
const newestVersion = 12

/** The batches of one partition, of which a request may carry only one. */
interface Outgoing {
  readonly topic: string
  readonly partition: number
  readonly batches: readonly Uint8Array[]
  sent: number
  baseOffset: number
}

export class Producer {
  readonly #cluster: Cluster
  readonly #transactions: Transactions
  /** The last write under way of each partition. */
  readonly #last = new Map<PartitionKey, Promise<unknown>>()

  constructor(cluster: Cluster, transactions: Transactions) {
    this.#cluster = cluster
    this.#transactions = transactions
  }

  async produce(request: ProduceRequest): Promise<ProducedPartition[]> {
    const outgoing = collect(request)
    if (outgoing.length === 0) return []
    // A later batch must not overtake one that is being repeated: its sequence number would be out of order.
    const keys = outgoing.map((out) => partitionKey(out.topic, out.partition))
    const before = keys.map((key) => this.#last.get(key))
    const work = Promise.allSettled(before).then(() => this.#produceAll(request.transactionalId, outgoing))
    const settled = work.catch(() => {
      // Told to who asked for this write; the next one only waits for its end.
    })
    for (const key of keys) this.#last.set(key, settled)
    try {
      await work
    } finally {
      for (const key of keys) if (this.#last.get(key) === settled) this.#last.delete(key)
    }
    return outgoing.map(({ topic, partition, baseOffset }) => ({ topic, partition, baseOffset }))
  }

  async #produceAll(transactionalId: string | null, outgoing: readonly Outgoing[]): Promise<void> {
    if (transactionalId !== null) await this.#transactions.join(transactionalId, firstBatches(outgoing))
    const version = transactionalId === null ? newestVersion : await this.#transactions.produceVersion()
    const topic = (outgoing[0] as Outgoing).topic
    const what = outgoing.length === 1 ? `producing to ${topic}` : `producing to ${topic} and others`
    await this.#cluster.retrying(what, () => this.#round(transactionalId, version, what, outgoing))
  }

  /** Sends until nothing is left; throws the gravest fault of the first round that had one. */
  async #round(
    transactionalId: string | null,
    version: number,
    what: string,
    outgoing: readonly Outgoing[],
  ): Promise<void> {
    for (;;) {
      const left = outgoing.filter((out) => out.sent < out.batches.length)
      if (left.length === 0) return
      const faults: BrokerError[] = []
      const groups = await this.#cluster.byLeader(left, (_out, error) => faults.push(error))
      const sends = [...groups.values()].map(async ({ address, items }) => {
        const faultsThere = await this.#cluster
          .on(address, 'produce', what, async ({ connection, versions }) => {
            const batches = items.map(nextBatch)
            const spoken = Math.min(version, versions.max.get(produceKey) ?? version)
            const timeoutMs = this.#cluster.settings.requestTimeoutMs
            const answers = await sendProduce(connection, spoken, transactionalId, timeoutMs, batches)
            return this.#take(items, answers)
          })
          .catch((error: unknown) => this.#lost(transactionalId, items, error))
        faults.push(...faultsThere)
      })
      await Promise.all(sends)
      if (faults.length) throw faults.find((fault) => !isTransient(fault.code)) ?? (faults[0] as BrokerError)
    }
  }

  #take(items: readonly Outgoing[], answers: Awaited<ReturnType<typeof sendProduce>>): BrokerError[] {
    const faults: BrokerError[] = []
    const byPartition = new Map(answers.map((each) => [partitionKey(each.topic, each.partition), each]))
    for (const out of items) {
      const answer = byPartition.get(partitionKey(out.topic, out.partition))
      const what = `the write to ${out.topic}:${out.partition}`
      if (answer === undefined) faults.push(refused(-1, what, 'The broker left the partition out of its answer.'))
      else if (answer.errorCode !== 0) {
        const fault = refused(answer.errorCode, what, answer.errorMessage)
        if (isTransient(fault.code) || fault.code === 'UNKNOWN_TOPIC_OR_PARTITION') this.#cluster.forget([out.topic])
        faults.push(fault)
      } else {
        if (out.sent === 0) out.baseOffset = answer.baseOffset
        out.sent++
      }
    }
    return faults
  }

  #lost(transactionalId: string | null, items: readonly Outgoing[], error: unknown): BrokerError[] {
    if (!(error instanceof BrokerError)) throw error
    if (transactionalId !== null && error.code === 'NETWORK_EXCEPTION') this.#transactions.indefinite(transactionalId)
    this.#cluster.forget(items.map((out) => out.topic))
    return [error]
  }
}

function nextBatch(out: Outgoing): BatchToSend {
  return { topic: out.topic, partition: out.partition, records: out.batches[out.sent] as Uint8Array }
}

function firstBatches(outgoing: readonly Outgoing[]): BatchToSend[] {
  return outgoing.map((out) => ({ topic: out.topic, partition: out.partition, records: out.batches[0] as Uint8Array }))
}

function collect(request: ProduceRequest): Outgoing[] {
  const collected = new Map<PartitionKey, { topic: string; partition: number; batches: Uint8Array[] }>()
  for (const { topic, partition, records } of request.batches) {
    const batches = splitBatches(records)
    if (batches.length === 0) continue
    const key = partitionKey(topic, partition)
    const known = collected.get(key)
    if (known) known.batches.push(...batches)
    else collected.set(key, { topic, partition, batches })
  }
  return [...collected.values()].map((each) => ({ ...each, sent: 0, baseOffset: -1 }))
}

/** The single batches of what may be several in a row: base offset (8 bytes), then the length of the rest (4). */
function splitBatches(records: Uint8Array): Uint8Array[] {
  const view = new DataView(records.buffer, records.byteOffset, records.byteLength)
  const batches: Uint8Array[] = []
  for (let at = 0; at < records.length; ) {
    const end = records.length - at < 12 ? Number.NaN : at + 12 + view.getInt32(at + 8)
    if (!(end <= records.length) || end <= at) {
      throw new BrokerError('CORRUPT_MESSAGE', 'The bytes to be written are no whole record batches; report it.')
    }
    batches.push(records.subarray(at, end))
    at = end
  }
  return batches
}
