/** The embedded broker on a loop: what all applications of a test read and write, and what the test feeds. */
import { Random } from '../base/random.ts'
import { EmbeddedCluster } from '../broker/embedded/core/cluster.ts'
import { MemoryStorage } from '../broker/embedded/core/memory-storage.ts'
import { directClient } from '../broker/embedded/direct-client.ts'
import type { BrokerPort } from '../broker/port.ts'
import type { Headers } from '../broker/wire/headers.ts'
import { RecordBatchBuilder } from '../broker/wire/record-batch.ts'
import type { ConsumerSnapshot } from '../view/view.ts'
import type { VirtualLoop } from './virtual-loop.ts'
import { Written } from './written.ts'

export interface FedRecord {
  readonly partition: number
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly timestamp: number
  readonly headers: Headers
}

export interface VirtualBrokerOptions {
  readonly loop: VirtualLoop
  readonly partitions: (topic: string) => number
  /** Topics of which the test reads nothing. */
  readonly isInternal: (topic: string) => boolean
  /** Several applications use it. */
  readonly isShared: boolean
}

/** Of records that are fed at once. */
const batchBytes = 128 * 1024

export class VirtualBroker {
  readonly written: Written
  readonly #loop: VirtualLoop
  readonly #partitions: (topic: string) => number
  readonly #cluster: EmbeddedCluster
  #tickAt = Number.POSITIVE_INFINITY

  constructor({ loop, partitions, isInternal, isShared }: VirtualBrokerOptions) {
    this.#loop = loop
    this.#partitions = partitions
    this.#cluster = new EmbeddedCluster({
      clock: loop,
      random: new Random(1),
      storage: new MemoryStorage(),
      partitions: partitions(''),
    })
    this.written = new Written(this.#cluster, isInternal, isShared)
  }

  /** True where the topic is new: a running engine does not know it yet. */
  create(topic: string): boolean {
    if (this.#cluster.topics([topic]).length > 0) return false
    this.#cluster.createTopics([{ topic, partitions: this.#partitions(topic) }])
    return true
  }

  /** All there are by now. */
  topics(): string[] {
    return this.#cluster.topics(null).map(({ topic }) => topic)
  }

  partitionsOf(topic: string): number {
    return this.#cluster.topics([topic])[0]?.partitions ?? this.#partitions(topic)
  }

  /** The broker as an application sees it. */
  client(applicationId: string): BrokerPort {
    const client = directClient(this.#cluster, { afterCall: () => this.#planTick() })
    return this.written.noticing(client, applicationId)
  }

  leaveGroup(consumer: ConsumerSnapshot): void {
    this.#cluster.leaveGroup(consumer)
  }

  /** Puts records into topics, all at the same moment. */
  append(records: ReadonlyMap<string, readonly FedRecord[]>): void {
    const batches: ToAppend[] = []
    for (const [topic, fed] of records) pack(topic, fed, batches)
    const packed = batches.map(({ topic, partition, builder }) => ({ topic, partition, records: builder.finish() }))
    const produced = this.#cluster.produce({ transactionalId: null, batches: packed })
    for (const [i, { topic, partition, count }] of batches.entries())
      this.written.fed(topic, partition, produced[i]?.baseOffset ?? 0, count)
    this.#planTick()
  }

  /** The broker's own deadlines are timers too. */
  #planTick(): void {
    const at = this.#cluster.nextDeadline()
    if (at >= this.#tickAt) return
    this.#tickAt = at
    this.#loop
      .timers(() => true)
      .after(Math.max(0, at - this.#loop.monotonic()), () => {
        this.#tickAt = Number.POSITIVE_INFINITY
        this.#cluster.tick()
        this.#planTick()
      })
  }
}

interface ToAppend {
  readonly topic: string
  readonly partition: number
  readonly builder: RecordBatchBuilder
  readonly count: number
}

function pack(topic: string, records: readonly FedRecord[], into: ToAppend[]): void {
  const open = new Map<number, RecordBatchBuilder>()
  const close = (partition: number, builder: RecordBatchBuilder): void => {
    into.push({ topic, partition, builder, count: builder.count })
    open.delete(partition)
  }
  for (const { partition, key, value, timestamp, headers } of records) {
    const builder = open.get(partition) ?? new RecordBatchBuilder()
    open.set(partition, builder)
    builder.append(timestamp, key, value, headers)
    if (builder.bytes >= batchBytes) close(partition, builder)
  }
  for (const [partition, builder] of open) close(partition, builder)
}
