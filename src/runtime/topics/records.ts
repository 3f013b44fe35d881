/** What programs write to topics and read from them. */
import type { Headers } from '../../broker/wire/headers.ts'
import type { Serde } from '../../serde/serde.ts'

/** A record to write. */
export interface NewRecord<K = unknown, V = unknown> {
  /** The key, not yet encoded. Default: none. */
  readonly key?: K | null
  /** The value, not yet encoded; null for a deletion. */
  readonly value: V | null
  /** Event time, epoch milliseconds. Default: the moment of writing. */
  readonly timestamp?: number
  /** Default: none. */
  readonly headers?: Headers
  /** Default: chosen by the key's hash, as Kafka's own clients do; without a key one after the other. */
  readonly partition?: number
}

/** A committed record of a topic. */
export interface TopicRecord<K = unknown, V = unknown> {
  /** The topic that it lies in. */
  readonly topic: string
  /** Its partition. */
  readonly partition: number
  /** Its offset there. */
  readonly offset: number
  /** The key, decoded; null where it has none. */
  readonly key: K
  /** The value, decoded; null for a deletion. */
  readonly value: V
  /** Event time, epoch milliseconds. */
  readonly timestamp: number
  /** The headers, in their order. */
  readonly headers: Headers
}

/** How the keys and values of a topic are encoded. Default: as the application reads or writes the topic. */
export interface RecordSerdes<K = unknown, V = unknown> {
  /** Serde of the keys. */
  readonly key?: Serde<K>
  /** Serde of the values. */
  readonly value?: Serde<V>
}

/** What `runtime.read` reads, and how long. */
export interface ReadOptions<K = unknown, V = unknown> extends RecordSerdes<K, V> {
  /** With which record it begins in each partition: the first, or the next one to be written. Default: `earliest`. */
  readonly from?: 'earliest' | 'latest'
  /** `end`: up to what is committed at the moment of the call. Default: on and on, until `signal` or a `break`. */
  readonly until?: 'end'
  /** Ends the reading without an error. */
  readonly signal?: AbortSignal
}
