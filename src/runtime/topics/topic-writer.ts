/** Writes records to topics, with an idempotent producer: what is sent again after a lost answer is stored once. */
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError, messageOf } from '../../base/errors.ts'
import { keySlot } from '../../base/hash.ts'
import { batchLimitOf } from '../../broker/batch-limit.ts'
import type { BrokerPort } from '../../broker/port.ts'
import { ProducerStamps } from '../../broker/producer-stamps.ts'
import { headersFault, noHeaders } from '../../broker/wire/headers.ts'
import { PartitionBatches } from '../../broker/wire/partition-batches.ts'
import { whenKnown } from '../../serde/when-known.ts'
import type { NewRecord } from './records.ts'
import type { SerdePair } from './topic-serdes.ts'

const flushRecords = 5000
/** Of all partitions together, well below what Kafka takes in one batch by default. */
const flushBytes = 512 * 1024
const topicLookUps = 50
const topicLookUpEveryMs = 100

type Records = Iterable<NewRecord> | AsyncIterable<NewRecord>

interface Piece {
  readonly topic: string
  readonly serdes: SerdePair
  readonly batches: PartitionBatches
  readonly limit: number | undefined
  /** Records in the call so far, for messages. */
  taken: number
}

export class TopicWriter {
  readonly #broker: BrokerPort
  readonly #now: () => number
  readonly #stamps: ProducerStamps
  #turn: Promise<unknown> = Promise.resolve()
  #keyless = 0

  constructor(broker: BrokerPort, now: () => number) {
    this.#broker = broker
    this.#stamps = new ProducerStamps(broker)
    this.#now = now
  }

  /** Calls take their turns. Gives how many records were stored. */
  write(topic: string, records: Records, serdes: SerdePair): Promise<number> {
    const written = this.#turn.then(() => this.#write(topic, records, serdes))
    // The next call goes on whatever became of this one, whose caller is told.
    this.#turn = written.catch(() => undefined)
    return written
  }

  async #write(topic: string, records: Records, serdes: SerdePair): Promise<number> {
    const partitions = await this.#partitionsOf(topic)
    const limit = await batchLimitOf(this.#broker, topic)
    const batches = new PartitionBatches(partitions, { most: flushBytes, limit })
    const piece: Piece = { topic, serdes, batches, limit, taken: 0 }
    for await (const record of records) {
      await this.#add(piece, record)
      if (batches.records >= flushRecords || batches.bytes >= flushBytes) await this.#flush(piece)
    }
    await this.#flush(piece)
    return piece.taken
  }

  /** An embedded broker makes topics at their first use; in a cluster that is its operators' business. */
  async #partitionsOf(topic: string): Promise<number> {
    const broker = this.#broker
    let [found] = await broker.topics([topic])
    if (!found && broker.kind === 'embedded') {
      await broker.createTopics([{ topic, partitions: -1 }])
      for (let attempt = 0; !found && attempt < topicLookUps; attempt++) {
        if (attempt > 0) await sleep(topicLookUpEveryMs)
        found = (await broker.topics([topic]))[0]
      }
    }
    if (found) return found.partitions
    throw new EngineError('TOPIC_MISSING', `The topic ${topic} does not exist, so nothing can be written to it.`)
  }

  async #add(piece: Piece, record: NewRecord): Promise<void> {
    const { serdes, batches } = piece
    const { partitions } = batches
    const { key = null, value, timestamp = this.#now(), headers = noHeaders } = record
    if (!Number.isSafeInteger(timestamp) || timestamp < 0) {
      throw refused(piece, `has the timestamp ${timestamp}, which is no whole number of milliseconds since 1970`)
    }
    const fault = headersFault(headers)
    if (fault !== undefined) throw refused(piece, `has headers that are none: ${fault}`)
    const keyBytes = await encoded(piece, 'key', () => (key === null ? null : serdes.key.serialize(key)))
    const valueBytes = await encoded(piece, 'value', () => (value === null ? null : serdes.value.serialize(value)))
    const chosen = record.partition ?? (keyBytes === null ? this.#keyless++ : keySlot(keyBytes)) % partitions
    if (!Number.isInteger(chosen) || chosen < 0 || chosen >= partitions)
      throw refused(piece, `names partition ${chosen}; there are ${partitions}, from 0 on`)
    let added = batches.add(chosen, timestamp, keyBytes, valueBytes, headers)
    if (added === 'full') {
      await this.#flush(piece)
      added = batches.add(chosen, timestamp, keyBytes, valueBytes, headers)
    }
    if (typeof added === 'number')
      throw refused(piece, `takes ${added} bytes, and the topic takes at most ${piece.limit} (max.message.bytes)`)
    piece.taken++
  }

  async #flush(piece: Piece): Promise<void> {
    if (piece.batches.records === 0) return
    const batches = piece.batches.take().map(({ partition, records }) => ({ topic: piece.topic, partition, records }))
    try {
      await this.#stamps.stamp(batches)
      await this.#broker.produce({ transactionalId: null, batches })
    } catch (error) {
      this.#stamps.forget()
      throw error
    }
  }
}

async function encoded(piece: Piece, part: string, encode: () => Uint8Array | null): Promise<Uint8Array | null> {
  try {
    return await whenKnown(encode)
  } catch (error) {
    throw refused(piece, `has a ${part} that its serde refuses: ${messageOf(error).replace(/\.$/, '')}`, error)
  }
}

function refused({ topic, taken }: Piece, what: string, cause?: unknown): EngineError {
  const message = `Record ${taken} (from 0) for the topic ${topic} ${what}. Those before it may be stored.`
  return new EngineError('USAGE', message, cause === undefined ? undefined : { cause })
}
