/**
 * Framing of the requests where the library's own is of no use: Produce and Fetch, because it would encode and parse
 * every record, and EndTxn, because it knows no version that answers an epoch.
 */
import { type Connection, type Reader, Writer } from '@platformatic/kafka'
import type { AbortedTransaction, Isolation, ProducerIdentity } from '../port.ts'
import { ChunkReader } from './chunk-reader.ts'

const produceKey = 0
const fetchKey = 1
const endTransactionKey = 26

export function send<T>(
  connection: Connection,
  apiKey: number,
  version: number,
  payload: () => Writer,
  parse: (reader: Reader) => T,
): Promise<T> {
  return new Promise((resolve, reject) => {
    connection.send<T>(
      apiKey,
      version,
      payload,
      (_correlationId, _apiKey, _version, reader) => parse(reader),
      true,
      true,
      (error, answer) => (error ? reject(error) : resolve(answer as T)),
    )
  })
}

export interface BatchToSend {
  readonly topic: string
  readonly partition: number
  /** One record batch. */
  readonly records: Uint8Array
}

export interface ProduceAnswer {
  readonly topic: string
  readonly partition: number
  readonly errorCode: number
  readonly errorMessage: string | null
  readonly baseOffset: number
}

/** Versions 9 to 12 look alike; 12 joins the partitions to the transaction (Transactions V2). */
export function sendProduce(
  connection: Connection,
  version: number,
  transactionalId: string | null,
  timeoutMs: number,
  batches: readonly BatchToSend[],
): Promise<ProduceAnswer[]> {
  const payload = (): Writer =>
    Writer.create()
      .appendString(transactionalId)
      .appendInt16(-1)
      .appendInt32(timeoutMs)
      .appendArray(byTopic(batches), (w, [topic, partitions]) => {
        w.appendString(topic).appendArray(partitions, (inner, { partition, records }) => {
          inner.appendInt32(partition).appendBytes(asBuffer(records))
        })
      })
      .appendTaggedFields()
  return send(connection, produceKey, version, payload, parseProduce)
}

function parseProduce(reader: Reader): ProduceAnswer[] {
  const answers: ProduceAnswer[] = []
  reader.readArray((r) => {
    const topic = r.readString()
    r.readArray((p) => {
      const partition = p.readInt32()
      const errorCode = p.readInt16()
      const baseOffset = Number(p.readInt64())
      p.readInt64()
      p.readInt64()
      let ofRecord: string | null = null
      p.readArray((e) => {
        e.readInt32()
        // Each has one, and what is not read is taken for what comes behind it.
        const message = e.readNullableString()
        ofRecord ??= message
      })
      // That of the batch says what happened; that of the first record says what would have been taken.
      const ofBatch = p.readNullableString()
      const errorMessage = ofBatch && ofRecord ? `${ofBatch.replace(/\.?$/, '.')} ${ofRecord}` : (ofBatch ?? ofRecord)
      answers.push({ topic, partition, errorCode, errorMessage, baseOffset })
    })
  })
  return answers
}

export interface PartitionToFetch {
  readonly topicId: string
  readonly partition: number
  readonly offset: number
  readonly maxBytes: number
}

export interface FetchAnswer {
  /** An error of the request as a whole. */
  readonly errorCode: number
  readonly partitions: readonly FetchAnswerPartition[]
}

export interface FetchAnswerPartition {
  readonly topicId: string
  readonly partition: number
  readonly errorCode: number
  readonly highWatermark: number
  readonly lastStableOffset: number
  readonly logStartOffset: number
  readonly aborted: readonly AbortedTransaction[]
  readonly records: Uint8Array
}

/** Version 13: topics by their id, so that a topic made anew is never mistaken for the old one. */
export function sendFetch(
  connection: Connection,
  request: { readonly maxWaitMs: number; readonly maxBytes: number; readonly isolation: Isolation },
  partitions: readonly PartitionToFetch[],
): Promise<FetchAnswer> {
  const payload = (): Writer =>
    Writer.create()
      .appendInt32(-1)
      .appendInt32(request.maxWaitMs)
      .appendInt32(1)
      .appendInt32(request.maxBytes)
      .appendInt8(request.isolation === 'read_committed' ? 1 : 0)
      .appendInt32(0)
      .appendInt32(-1)
      .appendArray(groupBy(partitions, 'topicId'), (w, [topicId, items]) => {
        w.appendUUID(topicId).appendArray(items, (inner, item) => {
          inner
            .appendInt32(item.partition)
            .appendInt32(-1)
            .appendInt64(BigInt(item.offset))
            .appendInt32(-1)
            .appendInt64(-1n)
            .appendInt32(item.maxBytes)
        })
      })
      .appendArray([], () => undefined)
      .appendString('')
      .appendTaggedFields()
  return send(connection, fetchKey, 13, payload, (reader) =>
    parseFetch(new ChunkReader(reader.buffer.buffers, reader.position)),
  )
}

function parseFetch(reader: ChunkReader): FetchAnswer {
  reader.skip(4)
  const errorCode = reader.int16()
  reader.skip(4)
  const partitions: FetchAnswerPartition[] = []
  for (let topics = reader.unsignedVarInt() - 1; topics > 0; topics--) {
    const topicId = reader.uuid()
    for (let left = reader.unsignedVarInt() - 1; left > 0; left--) partitions.push(parseFetchPartition(reader, topicId))
    reader.taggedFields()
  }
  return { errorCode, partitions }
}

function parseFetchPartition(reader: ChunkReader, topicId: string): FetchAnswerPartition {
  const partition = reader.int32()
  const errorCode = reader.int16()
  const highWatermark = reader.int64()
  const lastStableOffset = reader.int64()
  const logStartOffset = reader.int64()
  const aborted: AbortedTransaction[] = []
  for (let left = reader.unsignedVarInt() - 1; left > 0; left--) {
    aborted.push({ producerId: reader.bigInt64(), firstOffset: reader.int64() })
    reader.taggedFields()
  }
  reader.skip(4)
  const length = reader.unsignedVarInt() - 1
  const records = reader.copy(Math.max(0, length))
  reader.taggedFields()
  return { topicId, partition, errorCode, highWatermark, lastStableOffset, logStartOffset, aborted, records }
}

/** Version 5 answers the identity to go on with; 3 and 4 leave it as it is. */
export function sendEndTransaction(
  connection: Connection,
  version: number,
  transactionalId: string,
  identity: ProducerIdentity,
  commit: boolean,
): Promise<{ readonly errorCode: number; readonly identity: ProducerIdentity }> {
  const payload = (): Writer =>
    Writer.create()
      .appendString(transactionalId)
      .appendInt64(identity.producerId)
      .appendInt16(identity.producerEpoch)
      .appendBoolean(commit)
      .appendTaggedFields()
  return send(connection, endTransactionKey, version, payload, (reader) => {
    reader.readInt32()
    const errorCode = reader.readInt16()
    if (version < 5 || errorCode !== 0) return { errorCode, identity }
    return { errorCode, identity: { producerId: reader.readInt64(), producerEpoch: reader.readInt16() } }
  })
}

/** Items by their topic, in the shape that the library's requests take. */
export function byTopic<T extends { readonly topic: string }>(items: readonly T[]): Array<[topic: string, items: T[]]> {
  return groupBy(items, 'topic')
}

function groupBy<K extends string, T extends Readonly<Record<K, string>>>(
  items: readonly T[],
  key: K,
): [string, T[]][] {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const group = groups.get(item[key])
    if (group) group.push(item)
    else groups.set(item[key], [item])
  }
  return [...groups]
}

export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
