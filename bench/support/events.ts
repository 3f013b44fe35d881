/**
 * Generated input: record i has timestamp `firstTimestamp + i` ms, key `u<n>` and a small JSON object for a value. Keys
 * go to partitions by the standard hash, so every partition is in the order of time.
 */
import { keySlot } from '../../src/base/hash.ts'
import { Random } from '../../src/base/random.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'

export const firstTimestamp = 1_760_000_000_000
const batchBytes = 256 * 1024

export interface InputSize {
  readonly records: number
  readonly users: number
  readonly pages: number
  readonly seed: number
  /** Number of the first record: of those before it somebody else has taken care. Default 0. */
  readonly first?: number
  /** Writes an event. Default: as JSON. */
  readonly serialize?: (event: Event) => Uint8Array
}

/** An event as the workloads see it once it is parsed. */
export interface Event {
  readonly user: string
  readonly page: string
  readonly ms: number
  readonly ts: number
  readonly ok: boolean
}

export interface User {
  readonly user: string
  readonly name: string
  readonly tier: string
  readonly country: string
}

class Writer {
  readonly #broker: BrokerPort
  readonly #topic: string
  readonly #builders: readonly RecordBatchBuilder[]

  constructor(broker: BrokerPort, topic: string, partitions: number) {
    this.#broker = broker
    this.#topic = topic
    this.#builders = Array.from({ length: partitions }, () => new RecordBatchBuilder())
  }

  async add(timestamp: number, key: string, value: string | Uint8Array): Promise<void> {
    const keyBytes = Buffer.from(key, 'latin1')
    const partition = keySlot(keyBytes) % this.#builders.length
    const builder = this.#builders[partition] as RecordBatchBuilder
    builder.append(timestamp, keyBytes, typeof value === 'string' ? Buffer.from(value, 'latin1') : value, [])
    if (builder.bytes >= batchBytes) await this.#flush(partition)
  }

  async end(): Promise<void> {
    for (let partition = 0; partition < this.#builders.length; partition++) await this.#flush(partition)
  }

  async #flush(partition: number): Promise<void> {
    const builder = this.#builders[partition] as RecordBatchBuilder
    if (builder.count === 0) return
    const batches = [{ topic: this.#topic, partition, records: builder.finish() }]
    await this.#broker.produce({ transactionalId: null, batches })
  }
}

async function newTopic(broker: BrokerPort, topic: string, partitions: number): Promise<Writer> {
  // The timestamps lie in the past: any other setting would delete the records.
  await broker.createTopics([{ topic, partitions, config: { 'retention.ms': '-1' } }])
  return new Writer(broker, topic, partitions)
}

export async function produceEvents(
  broker: BrokerPort,
  topic: string,
  partitions: number,
  size: InputSize,
): Promise<void> {
  const random = new Random(size.seed)
  await produce(broker, topic, partitions, size, () => `u${random.int(size.users)}`, random)
}

/** An event of every user, in no order that any of them would profit from. */
export async function produceEachUser(
  broker: BrokerPort,
  topic: string,
  partitions: number,
  size: Omit<InputSize, 'records'>,
): Promise<void> {
  // A prime number of steps goes through all of them.
  const step = 1_000_003
  const records = { ...size, records: size.users }
  const random = new Random(size.seed)
  await produce(broker, topic, partitions, records, (i) => `u${(i * step) % size.users}`, random)
}

async function produce(
  broker: BrokerPort,
  topic: string,
  partitions: number,
  size: InputSize,
  userOf: (i: number) => string,
  random: Random,
): Promise<void> {
  const writer = await newTopic(broker, topic, partitions)
  const first = size.first ?? 0
  for (let i = first; i < first + size.records; i++) {
    const user = userOf(i - first)
    const page = random.int(size.pages)
    const ms = random.int(5000)
    const ok = random.int(10) !== 0
    const ts = firstTimestamp + i
    const value =
      size.serialize?.({ user, page: `p${page}`, ms, ts, ok }) ??
      `{"user":"${user}","page":"p${page}","ms":${ms},"ts":${ts},"ok":${ok}}`
    await writer.add(ts, user, value)
  }
  await writer.end()
}

/** One row for every user, older than every event. */
export async function produceUsers(
  broker: BrokerPort,
  topic: string,
  partitions: number,
  users: number,
  prefix = 'u',
): Promise<void> {
  const writer = await newTopic(broker, topic, partitions)
  const tiers = ['free', 'pro', 'team']
  const countries = ['BR', 'DE', 'IN', 'JP', 'US']
  for (let i = 0; i < users; i++) {
    const row: User = {
      user: `${prefix}${i}`,
      name: `name-${i}`,
      tier: tiers[i % 3] as string,
      country: countries[i % 5] as string,
    }
    await writer.add(firstTimestamp - users + i, row.user, JSON.stringify(row))
  }
  await writer.end()
}
