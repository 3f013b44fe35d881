/** `produce` and `read` of a running application. */
import { systemClock } from '../../base/clock.ts'
import type { BrokerPort } from '../../broker/port.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import type { NewRecord, ReadOptions, RecordSerdes, TopicRecord } from './records.ts'
import { TopicReader } from './topic-reader.ts'
import { serdesOf } from './topic-serdes.ts'
import { TopicWriter } from './topic-writer.ts'

export interface ApplicationTopicsOptions {
  readonly broker: BrokerPort
  readonly topology: CompiledTopology
  /** Resolves when the serdes of the topology may be used. */
  readonly ready: Promise<void>
}

export class ApplicationTopics {
  readonly #o: ApplicationTopicsOptions
  readonly #writer: TopicWriter
  readonly #closing = new AbortController()

  constructor(options: ApplicationTopicsOptions) {
    this.#o = options
    this.#writer = new TopicWriter(options.broker, () => systemClock.now())
  }

  async produce<K, V>(
    topic: string,
    records: Iterable<NewRecord<K, V>> | AsyncIterable<NewRecord<K, V>>,
    own: RecordSerdes<K, V> = {},
  ): Promise<number> {
    const serdes = serdesOf(this.#o.topology, topic, own as RecordSerdes<never, never>)
    await this.#o.ready
    return this.#writer.write(topic, records, serdes)
  }

  /** What is wrong with the call is said at once, not at the first record. */
  read<K, V>(topic: string, options: ReadOptions<K, V> = {}): AsyncGenerator<TopicRecord<K, V>, void, undefined> {
    const { broker, topology, ready } = this.#o
    const serdes = serdesOf(topology, topic, options as RecordSerdes<never, never>)
    const { from = 'earliest', until } = options
    const signal = options.signal ? AbortSignal.any([options.signal, this.#closing.signal]) : this.#closing.signal
    const reader = new TopicReader({ broker, topic, serdes, from, signal, monotonic: () => systemClock.monotonic() })
    const reading = async function* (): AsyncGenerator<TopicRecord, void, undefined> {
      await ready
      yield* until === 'end' ? reader.toTheEnd() : reader.onAndOn()
    }
    return reading() as AsyncGenerator<TopicRecord<K, V>, void, undefined>
  }

  /** Readers end. */
  close(): void {
    this.#closing.abort()
  }
}
