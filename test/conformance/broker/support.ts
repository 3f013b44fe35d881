import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  type AbortedTransaction,
  BrokerError,
  type BrokerErrorClass,
  type BrokerPort,
  type GroupMember,
  type Isolation,
  type JoinedGroup,
  type JoinRequest,
  type OffsetToCommit,
  type ProducedPartition,
  type ProducerIdentity,
} from '../../../src/broker/port.ts'
import type { TopicPartition } from '../../../src/base/ids.ts'
import type { Headers } from '../../../src/broker/wire/headers.ts'
import { decodeHeaders, RecordBatchBuilder, RecordCursor, stampBatch } from '../../../src/broker/wire/record-batch.ts'

export const unique = (name: string): string => `${name}-${randomUUID().slice(0, 12)}`
export const text = (value: string): Uint8Array => new TextEncoder().encode(value)

export async function newTopic(
  client: BrokerPort,
  partitions = 1,
  config: Readonly<Record<string, string>> = {},
): Promise<string> {
  const topic = unique('topic')
  await client.createTopics([{ topic, partitions, config }])
  return topic
}

export interface ReadRecord {
  readonly offset: number
  readonly timestamp: number
  readonly key: string | null
  readonly value: string | null
  readonly headers: Headers
}

export function batchOf(values: readonly string[], key: string | null = null, timestamp = 1000): Uint8Array {
  const builder = new RecordBatchBuilder()
  for (const value of values) builder.append(timestamp, key === null ? null : text(key), text(value), [])
  return builder.finish()
}

export function decode(
  records: Uint8Array,
  from: number,
  aborted: readonly AbortedTransaction[],
  isolation: Isolation,
): { records: ReadRecord[]; position: number } {
  const cursor = new RecordCursor()
  cursor.reset(records, from, aborted, isolation)
  const read: ReadRecord[] = []
  const range = (start: number, end: number): string | null =>
    start < 0 ? null : Buffer.from(cursor.bytes.subarray(start, end)).toString()
  while (cursor.next()) {
    read.push({
      offset: cursor.offset,
      timestamp: cursor.timestamp,
      key: range(cursor.keyStart, cursor.keyEnd),
      value: range(cursor.valueStart, cursor.valueEnd),
      headers: decodeHeaders(cursor.bytes, cursor.headersStart, cursor.headersEnd),
    })
  }
  return { records: read, position: cursor.position }
}

/** Reads the partition from `from` on, up to its present end under the isolation. */
export async function readToEnd(
  client: BrokerPort,
  topic: string,
  options: { readonly partition?: number; readonly from?: number; readonly isolation?: Isolation } = {},
): Promise<{ records: ReadRecord[]; position: number }> {
  const { partition = 0, from = 0, isolation = 'read_committed' } = options
  const at = isolation === 'read_committed' ? 'stable' : 'latest'
  const [end] = await client.listOffsets([{ topic, partition }], at)
  const all: ReadRecord[] = []
  let position = from
  while (position < (end?.offset ?? 0)) {
    const [fetched] = await client.fetch({
      partitions: [{ topic, partition, offset: position, maxBytes: 1_000_000 }],
      maxWaitMs: 5000,
      maxBytes: 1_000_000,
      isolation,
    })
    assert.equal(fetched?.error, undefined)
    assert.ok(fetched !== undefined && fetched.records.length > 0, `nothing came from offset ${position}`)
    const read = decode(fetched.records, position, fetched.aborted, isolation)
    all.push(...read.records)
    position = read.position
  }
  return { records: all, position }
}

export async function valuesOf(client: BrokerPort, topic: string, isolation?: Isolation): Promise<string[]> {
  const { records } = await readToEnd(client, topic, isolation === undefined ? {} : { isolation })
  return records.map(({ value }) => value ?? '')
}

/** An idempotent or transactional producer that keeps its sequences. */
export class Producer {
  readonly client: BrokerPort
  readonly transactionalId: string | null
  identity: ProducerIdentity
  readonly #sequences = new Map<string, number>()
  /** Where the open transaction has written. */
  readonly #written = new Map<string, TopicPartition>()

  private constructor(client: BrokerPort, transactionalId: string | null, identity: ProducerIdentity) {
    this.client = client
    this.transactionalId = transactionalId
    this.identity = identity
  }

  static async start(
    client: BrokerPort,
    transactionalId: string | null = null,
    current?: ProducerIdentity,
  ): Promise<Producer> {
    return new Producer(client, transactionalId, await client.initProducer(transactionalId, 60_000, current))
  }

  stamped(topic: string, partition: number, values: readonly string[]): Uint8Array {
    const key = `${topic}:${partition}`
    const baseSequence = this.#sequences.get(key) ?? 0
    this.#sequences.set(key, baseSequence + values.length)
    const records = batchOf(values)
    stampBatch(records, { ...this.identity, baseSequence, transactional: this.transactionalId !== null })
    return records
  }

  async send(topic: string, values: readonly string[], partition = 0): Promise<ProducedPartition> {
    return this.sendRaw(topic, this.stamped(topic, partition, values), partition)
  }

  async sendRaw(topic: string, records: Uint8Array, partition = 0): Promise<ProducedPartition> {
    const { transactionalId } = this
    const [produced] = await this.client.produce({ transactionalId, batches: [{ topic, partition, records }] })
    this.#written.set(`${topic}:${partition}`, { topic, partition })
    return produced as ProducedPartition
  }

  sendOffsets(member: GroupMember, offsets: readonly OffsetToCommit[]): Promise<void> {
    return this.client.commitOffsetsInTransaction(this.transactionalId as string, this.identity, member, offsets)
  }

  /** Ends the transaction, and waits until its markers are written: a broker may answer before. */
  async end(commit: boolean): Promise<void> {
    const places = [...this.#written.values()]
    this.#written.clear()
    const before = await this.client.listOffsets(places, 'latest')
    await this.#end(commit)
    for (;;) {
      const [latest, stable] = await Promise.all([
        this.client.listOffsets(places, 'latest'),
        this.client.listOffsets(places, 'stable'),
      ])
      // Either the marker came now, or nothing was open there any more.
      if (before.every(({ offset }, i) => (latest[i]?.offset ?? 0) > offset || stable[i]?.offset === offset)) return
    }
  }

  async #end(commit: boolean): Promise<void> {
    const next = await this.client.endTransaction(this.transactionalId as string, this.identity, commit)
    if (next.producerId !== this.identity.producerId || next.producerEpoch !== this.identity.producerEpoch) {
      this.#sequences.clear()
    }
    this.identity = next
  }
}

/** What a consumer says of itself, with words of its own: Kafka's coordinator reads it and wants its format kept. */
export function subscription(userData: string): Uint8Array {
  const words = text(userData)
  const bytes = new Uint8Array(10 + words.length)
  new DataView(bytes.buffer).setInt32(6, words.length)
  bytes.set(words, 10)
  return bytes
}

/** A member outside of any generation, for groups that nobody has joined. */
export const outsider = (groupId: string): GroupMember => ({
  groupId,
  memberId: '',
  generationId: -1,
  groupInstanceId: null,
})

export function joinRequest(groupId: string, more: Partial<JoinRequest> = {}): JoinRequest {
  return {
    groupId,
    memberId: '',
    groupInstanceId: null,
    sessionTimeoutMs: 20_000,
    rebalanceTimeoutMs: 20_000,
    protocols: [{ name: 'range', metadata: subscription('about me') }],
    ...more,
  }
}

export const memberOf = (groupId: string, joined: JoinedGroup, groupInstanceId: string | null = null): GroupMember => ({
  groupId,
  memberId: joined.memberId,
  generationId: joined.generationId,
  groupInstanceId,
})

/** Joins a group alone and takes the assignment `mine`. */
export async function joinAlone(
  client: BrokerPort,
  groupId: string,
  more: Partial<JoinRequest> = {},
): Promise<GroupMember> {
  const joined = await client.joinGroup(joinRequest(groupId, more))
  const member = memberOf(groupId, joined, more.groupInstanceId ?? null)
  await client.syncGroup(member, joined.protocol, [{ memberId: joined.memberId, assignment: text('mine') }])
  return member
}

/** Fails unless the call is refused with one of the codes (or with the class of error). */
export async function refused(call: Promise<unknown>, ...codes: readonly string[]): Promise<void> {
  await assert.rejects(call, (error: unknown) => {
    assert.ok(error instanceof BrokerError, String(error))
    assert.ok(codes.includes(error.code), `${error.code}: ${error.message}`)
    return true
  })
}

export async function refusedAs(call: Promise<unknown>, errorClass: BrokerErrorClass): Promise<void> {
  await assert.rejects(call, (error: unknown) => {
    assert.ok(error instanceof BrokerError, String(error))
    assert.equal(error.errorClass, errorClass, `${error.code}: ${error.message}`)
    return true
  })
}

/** Repeats a heartbeat until the group says what is expected of it. */
export async function heartbeatUntil(client: BrokerPort, member: GroupMember, code: string): Promise<void> {
  for (;;) {
    try {
      await client.heartbeat(member)
    } catch (error) {
      assert.ok(error instanceof BrokerError, String(error))
      assert.equal(error.code, code)
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
