/** A broker, a clock and timers in one thread, where time passes only when a test says so. */
import { setImmediate } from 'node:timers/promises'
import { VirtualClock } from '../../../src/base/clock.ts'
import { Random } from '../../../src/base/random.ts'
import type { Timers } from '../../../src/base/timers.ts'
import { EmbeddedCluster } from '../../../src/broker/embedded/core/cluster.ts'
import { MemoryStorage } from '../../../src/broker/embedded/core/memory-storage.ts'
import { directClient } from '../../../src/broker/embedded/direct-client.ts'
import type { BrokerPort, ProducerIdentity } from '../../../src/broker/port.ts'
import { TimerQueue } from '../../support/timer-queue.ts'
import { RecordBatchBuilder, stampBatch } from '../../../src/broker/wire/record-batch.ts'

export class World implements Timers {
  readonly clock = new VirtualClock(1_700_000_000_000)
  readonly cluster: EmbeddedCluster
  readonly broker: BrokerPort
  readonly #timers = new TimerQueue<number>()
  readonly #calls = new Map<number, () => void>()
  #number = 0

  constructor(seed = 1) {
    const { clock } = this
    const random = new Random(seed)
    this.cluster = new EmbeddedCluster({ clock, random, storage: new MemoryStorage(), partitions: 1 })
    this.broker = directClient(this.cluster)
  }

  client(): BrokerPort {
    return directClient(this.cluster)
  }

  after(delayMs: number, call: () => void): () => void {
    const number = this.#number++
    this.#timers.set(number, this.clock.monotonic() + delayMs)
    this.#calls.set(number, call)
    return () => {
      this.#timers.cancel(number)
      this.#calls.delete(number)
    }
  }

  soon(call: () => void): void {
    this.after(0, call)
  }

  /** Lets everything happen that needs no time. */
  async settle(): Promise<void> {
    for (let round = 0; round < 5; round++) await setImmediate()
  }

  /** Lets time pass, stopping at every instant at which something is due. */
  async pass(durationMs: number): Promise<void> {
    await this.settle()
    const end = this.clock.monotonic() + durationMs
    for (;;) {
      const next = Math.min(this.#timers.nextTime(), this.cluster.nextDeadline(), end)
      this.clock.advance(Math.max(0, next - this.clock.monotonic()))
      this.cluster.tick()
      for (let due = this.#timers.takeDue(next); due; due = this.#timers.takeDue(next)) {
        const call = this.#calls.get(due.key)
        this.#calls.delete(due.key)
        call?.()
      }
      await this.settle()
      if (this.clock.monotonic() >= end && this.#timers.nextTime() > end) return
    }
  }

  async createTopic(topic: string, partitions: number): Promise<void> {
    await this.broker.createTopics([{ topic, partitions }])
  }

  /** One batch with these timestamps. */
  async produce(topic: string, partition: number, timestamps: readonly number[]): Promise<void> {
    await this.broker.produce({
      transactionalId: null,
      batches: [{ topic, partition, records: batchOf(timestamps) }],
    })
  }

  /** A transaction with these timestamps, ended as told, or left open. Answers with its producer's identity. */
  async transaction(
    topic: string,
    partition: number,
    timestamps: readonly number[],
    end: 'commit' | 'abort' | 'open',
    transactionalId = 'tx',
  ): Promise<ProducerIdentity> {
    const identity = await this.broker.initProducer(transactionalId, 60_000)
    const records = batchOf(timestamps)
    stampBatch(records, { ...identity, baseSequence: 0, transactional: true })
    await this.broker.produce({ transactionalId, batches: [{ topic, partition, records }] })
    if (end !== 'open') await this.broker.endTransaction(transactionalId, identity, end === 'commit')
    return identity
  }
}

/** The value of every record is its timestamp in decimal. */
export function batchOf(timestamps: readonly number[]): Uint8Array {
  const builder = new RecordBatchBuilder()
  for (const timestamp of timestamps) builder.append(timestamp, null, Buffer.from(String(timestamp)), [])
  return builder.finish()
}
