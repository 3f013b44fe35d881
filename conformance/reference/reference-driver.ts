/** Tests an application without broker and threads: feed records, move the clock, read what comes out. */
import { type Duration, tryParseDuration } from '../../src/base/duration.ts'
import { keySlot } from '../../src/base/hash.ts'
import { EngineError } from '../../src/base/errors.ts'
import type { Application } from '../../src/dsl/app.ts'
import type { DropReason } from '../../src/operators/contract.ts'
import type { Serde } from '../../src/serde/serde.ts'
import type { AnyStore } from '../../src/state/contract.ts'
import type { CompiledSource, CompiledTopology } from '../../src/topology/compiled.ts'
import { plainKeySerde, plainValueSerde } from '../../src/topology/serdes/default-serdes.ts'
import { describeText } from '../../src/topology/describe.ts'
import type { SpecOf } from '../../src/topology/operator-spec.ts'
import type { Headers } from '../../src/broker/wire/headers.ts'
import { type EngineRecord, TaskEngine } from './task-engine.ts'

export interface ReferenceOptions {
  /** `topology.optimization`: `'all'` turns the optimizations on. Other keys are accepted and play no part here. */
  readonly config?: Readonly<Record<string, unknown>>
  /** Wall clock at the beginning, epoch milliseconds. Default: 0. */
  readonly startAt?: number
  /**
   * How event time goes on. `watermark`, the default, is the engine's way: one time for all. `kafka-streams` gives every
   * windowed operator a time of its own, that of the records it has seen, and lets it act on records alone: for
   * comparing an application with the same one on Kafka Streams.
   */
  readonly time?: 'watermark' | 'kafka-streams'
  /** Partitions of all topics, or of each by name. Default: 1. */
  readonly partitions?: number | Readonly<Record<string, number>>
}

export interface PipeOptions {
  /** Epoch milliseconds. Default: the driver's wall clock. */
  readonly timestamp?: number
  readonly headers?: Headers
  /** Default: chosen by the key's hash. */
  readonly partition?: number
}

export interface OutputRecord<K = unknown, V = unknown> {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly key: K
  readonly value: V
  readonly timestamp: number
  readonly headers: Headers
}

export interface DroppedRecord {
  readonly reason: DropReason
  /** Operator that dropped it. */
  readonly node: string
  readonly key: unknown
  readonly value: unknown
  readonly timestamp: number
}

export interface InputTopic<K, V> {
  /** Feeds a record and waits until all that follows from it is done. */
  pipe(key: K | null, value: V | null, options?: PipeOptions): Promise<void>
}

export interface OutputTopic<K, V> {
  /** The oldest record not read yet. */
  read(): OutputRecord<K, V> | undefined
  /** All records not read yet. */
  readAll(): Array<OutputRecord<K, V>>
}

/**
 * Runs an application's topology one record at a time. Event time is the largest timestamp fed so far, less the
 * out-of-orderness its source allows; the wall clock moves only by `advanceWallClock`.
 *
 * @example
 * const driver = new ReferenceDriver(app)
 * await driver.input('orders').pipe('a', { amount: 5 }, { timestamp: 1000 })
 * assert.deepEqual(driver.output('totals').read()?.value, 5)
 */
export class ReferenceDriver {
  readonly topology: CompiledTopology
  readonly #engine: TaskEngine
  readonly #partitions: (topic: string) => number
  readonly #read = new Set<EngineRecord>()

  constructor(app: Pick<Application, 'applicationId' | 'compile'>, options: ReferenceOptions = {}) {
    const { partitions = 1, startAt = 0 } = options
    this.topology = app.compile({ optimize: options.config?.['topology.optimization'] === 'all' })
    this.#partitions = (topic) => (typeof partitions === 'number' ? partitions : (partitions[topic] ?? 1))
    this.#engine = new TaskEngine({
      topology: this.topology,
      applicationId: app.applicationId,
      partitions: this.#partitions,
      startAt,
      operatorTime: options.time === 'kafka-streams',
    })
  }

  /** A topic that the application reads. The serdes are those of its source unless others are given. */
  input<K = unknown, V = unknown>(
    topic: string,
    serdes?: { readonly key?: Serde<K>; readonly value?: Serde<V> },
  ): InputTopic<K, V> {
    if (!this.#engine.reads(topic)) throw new EngineError('USAGE', `The application does not read the topic ${topic}.`)
    const source = this.topology.sources.find(
      (s) => s.topics.includes(topic) || s.pattern?.test(topic),
    ) as CompiledSource
    const keySerde = (serdes?.key as Serde<unknown> | undefined) ?? source.keySerde
    const valueSerde = (serdes?.value as Serde<unknown> | undefined) ?? source.valueSerde
    return {
      pipe: (key, value, options) => {
        const keyBytes = key === null || key === undefined ? null : keySerde.serialize(key)
        const valueBytes = value === null || value === undefined ? null : valueSerde.serialize(value)
        const count = this.#partitions(topic)
        const partition = options?.partition ?? (keyBytes === null ? 0 : keySlot(keyBytes) % count)
        if (!(partition >= 0 && partition < count))
          throw new EngineError('USAGE', `The topic ${topic} has ${count} partitions, no partition ${partition}.`)
        const timestamp = options?.timestamp ?? this.#engine.clock.now()
        return this.#engine.feed({
          topic,
          partition,
          key: keyBytes,
          value: valueBytes,
          timestamp,
          headers: options?.headers ?? [],
        })
      },
    }
  }

  /** A topic that the application writes. The serdes are those of its sink unless others are given. */
  output<K = unknown, V = unknown>(
    topic: string,
    serdes?: { readonly key?: Serde<K>; readonly value?: Serde<V> },
  ): OutputTopic<K, V> {
    const take = (limit: number): Array<OutputRecord<K, V>> => {
      const unread = this.#engine.outputs
        .filter((record) => record.topic === topic && !this.#read.has(record))
        .slice(0, limit)
      return unread.map((record) => this.#take(record, serdes as never) as OutputRecord<K, V>)
    }
    return { read: () => take(1)[0], readAll: () => take(Number.POSITIVE_INFINITY) }
  }

  /** All records not read yet, of all topics, in the order in which they were written. */
  readAllOutputs(): OutputRecord[] {
    return this.#engine.outputs
      .filter((record) => !this.#read.has(record))
      .map((record) => this.#take(record, undefined))
  }

  #take(
    record: EngineRecord,
    serdes: { readonly key?: Serde<unknown>; readonly value?: Serde<unknown> } | undefined,
  ): OutputRecord {
    this.#read.add(record)
    const sink = this.#sinkOf(record.topic)
    const keySerde = serdes?.key ?? sink?.keySerde ?? plainKeySerde
    const valueSerde = serdes?.value ?? sink?.valueSerde ?? plainValueSerde
    return {
      ...record,
      key: record.key === null ? null : keySerde.deserialize(record.key),
      value: record.value === null ? null : valueSerde.deserialize(record.value),
    }
  }

  #sinkOf(topic: string): SpecOf<'sink'> | undefined {
    const sinks = this.topology.nodes.flatMap((node) => (node.spec.op === 'sink' ? [node.spec] : []))
    return sinks.find((sink) => sink.topic === topic) ?? sinks.find((sink) => typeof sink.topic === 'function')
  }

  /** Moves the wall clock; timers and scheduled sources that become due fire. */
  async advanceWallClock(duration: Duration): Promise<void> {
    const ms = tryParseDuration(duration)
    if (ms === undefined)
      throw new EngineError('USAGE', `${JSON.stringify(duration)} is no duration; write milliseconds, '10s' or 'PT1M'.`)
    await this.#engine.advanceWallClock(ms)
  }

  /**
   * A store by name, to be read.
   *
   * @throws EngineError `USAGE` when no store has that name.
   */
  store<S = AnyStore>(name: string, partition = 0): S {
    const store = this.#engine.store(name, partition)
    if (store) return store as S
    const known = [...this.topology.stores.keys()].join(', ') || 'none'
    throw new EngineError('USAGE', `There is no store ${name} of partition ${partition} (stores: ${known}).`)
  }

  /** Records that went no further because they were late, had no key, …, so far. */
  dropped(): DroppedRecord[] {
    return this.#engine.drops.map(({ reason, node, record: { key, value, timestamp } }) => ({
      reason,
      node,
      key,
      value,
      timestamp,
    }))
  }

  /** The wall clock, epoch milliseconds. */
  now(): number {
    return this.#engine.clock.now()
  }

  /** The topology as text, as `millrace topology` shows it. */
  describe(): string {
    return describeText(this.topology)
  }

  close(): void {
    this.#engine.close()
  }
}
