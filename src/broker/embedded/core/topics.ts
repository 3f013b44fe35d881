import { assert } from '../../../base/assert.ts'
import type { TopicPartition } from '../../../base/ids.ts'
import type { Random } from '../../../base/random.ts'
import { BrokerError, type TopicInfo, type TopicSpec } from '../../port.ts'
import type { Asked, FetchWaiter, NoLog } from './fetch-waiter.ts'
import { PartitionLog } from './partition-log.ts'
import type { JournalEntry, Storage } from './storage.ts'

/** Settings that a topic has unless it was made with others; the names and values are Kafka's. */
const defaults: Readonly<Record<string, string>> = {
  'cleanup.policy': 'delete',
  'delete.retention.ms': '86400000',
  'max.message.bytes': '1048588',
  'message.timestamp.type': 'CreateTime',
  'min.compaction.lag.ms': '0',
  'retention.bytes': '-1',
  'retention.ms': '-1',
}
/** What compacted logs may grow by, all together and each of them: it costs memory, and looking at each record more often time. */
const compactionBytesOfAll = 64 * 2 ** 20
const leastCompactionBytes = 4 * 2 ** 20
const legalName = /^[a-zA-Z0-9._-]{1,249}$/

export interface Partition {
  readonly topic: Topic
  readonly partition: number
  readonly log: PartitionLog
  /** Fetches that wait for something here, with what they ask of it. */
  readonly waiters: Map<FetchWaiter, Asked>
  /** Size of what was compacted, after it last was. */
  cleanBytes: number
  /** Records before this offset were compacted in this run: each of their keys is there once. */
  cleanEnd: number
  /** How many keys the last compaction met behind what was clean before; 0 before the first. */
  cleanKeys: number
  /** How far each compaction of this run went, and when (wall clock). */
  readonly passes: Array<{ readonly end: number; readonly at: number }>
}

export class Topic {
  readonly name: string
  readonly id: string
  readonly config: Readonly<Record<string, string>>
  readonly partitions: readonly Partition[]
  readonly maxBatchBytes: number
  readonly compacted: boolean
  readonly deleteRetentionMs: number
  /** So long a record is kept from compaction, counted from its timestamp. */
  readonly minCompactionLagMs: number
  /** -1 for no limit. */
  readonly retentionBytes: number
  readonly retentionMs: number

  constructor(
    name: string,
    id: string,
    partitions: number,
    config: Readonly<Record<string, string>>,
    storage: Storage,
    segmentBytes: number,
  ) {
    this.name = name
    this.id = id
    this.config = { ...defaults, ...config }
    this.maxBatchBytes = Number(this.config['max.message.bytes'])
    this.compacted = (this.config['cleanup.policy'] as string).split(',').includes('compact')
    const expires = (this.config['cleanup.policy'] as string).split(',').includes('delete')
    this.deleteRetentionMs = Number(this.config['delete.retention.ms'])
    this.minCompactionLagMs = Number(this.config['min.compaction.lag.ms'])
    this.retentionBytes = expires ? Number(this.config['retention.bytes']) : -1
    this.retentionMs = expires ? Number(this.config['retention.ms']) : -1
    // A segment waits for the newest of its records: a large one would keep far more than the lag asks for.
    const mostSegmentBytes = this.minCompactionLagMs > 0 ? Math.min(segmentBytes, leastCompactionBytes) : segmentBytes
    const ownSegmentBytes = Math.min(mostSegmentBytes, Number(this.config['segment.bytes'] ?? mostSegmentBytes))
    const rules = { gaps: this.compacted, expires: this.retentionBytes >= 0 || this.retentionMs >= 0 }
    this.partitions = Array.from({ length: partitions }, (_, partition) => ({
      topic: this,
      partition,
      log: new PartitionLog(storage.partition(id, partition), ownSegmentBytes, rules),
      waiters: new Map<FetchWaiter, Asked>(),
      cleanBytes: 0,
      cleanEnd: 0,
      cleanKeys: 0,
      passes: [],
    }))
  }
}

export class Topics {
  readonly #byName = new Map<string, Topic>()
  /** Partitions of topics that are compacted. */
  #compacted = 0
  readonly #storage: Storage
  readonly #random: Random
  readonly #segmentBytes: number
  readonly #defaultPartitions: number

  constructor(storage: Storage, random: Random, segmentBytes: number, defaultPartitions: number) {
    this.#storage = storage
    this.#random = random
    this.#segmentBytes = segmentBytes
    this.#defaultPartitions = defaultPartitions
  }

  describe(names: readonly string[] | null): TopicInfo[] {
    const wanted = names ?? [...this.#byName.keys()].filter((name) => !name.startsWith('__'))
    return wanted.flatMap((name) => {
      const topic = this.#byName.get(name)
      return topic === undefined ? [] : [{ topic: name, topicId: topic.id, partitions: topic.partitions.length }]
    })
  }

  /** By how much a compacted log grows at least until it is compacted again. */
  get compactionBytes(): number {
    return Math.max(leastCompactionBytes, Math.floor(compactionBytesOfAll / Math.max(1, this.#compacted)))
  }

  get(name: string): Topic | undefined {
    return this.#byName.get(name)
  }

  partition(at: TopicPartition): Partition {
    const partition = this.find(at)
    if (partition === undefined) throw unknownPartition(at)
    return partition
  }

  find(at: TopicPartition): Partition | undefined {
    return this.#byName.get(at.topic)?.partitions[at.partition]
  }

  /** Without a `topicId` whichever topic has the name. */
  logOf(at: TopicPartition & { readonly topicId?: string }): PartitionLog | NoLog {
    const found = this.find(at)
    if (found === undefined) return 'UNKNOWN_TOPIC_OR_PARTITION'
    return at.topicId === undefined || at.topicId === found.topic.id ? found.log : 'UNKNOWN_TOPIC_ID'
  }

  all(): Topic[] {
    return [...this.#byName.values()]
  }

  /** Makes the topic unless it exists. A partition count below 1 asks for the broker's default. */
  create(spec: TopicSpec): Topic {
    const existing = this.#byName.get(spec.topic)
    if (existing !== undefined) return existing
    if (!legalName.test(spec.topic) || spec.topic === '.' || spec.topic === '..') {
      throw new BrokerError(
        'INVALID_TOPIC_EXCEPTION',
        `«${spec.topic}» is no name for a topic: 1 to 249 letters, digits, dots, underscores and hyphens are.`,
      )
    }
    const partitions = spec.partitions >= 1 ? spec.partitions : this.#defaultPartitions
    const topicId = this.#newId()
    this.#storage.journal({ kind: 'topic', topic: spec.topic, topicId, partitions, config: spec.config ?? {} })
    return this.#add(spec.topic, topicId, partitions, spec.config ?? {})
  }

  delete(name: string): Topic {
    const topic = this.#byName.get(name)
    if (topic === undefined) throw unknownPartition({ topic: name, partition: 0 })
    this.#storage.journal({ kind: 'topic-deleted', topic: name })
    this.#byName.delete(name)
    if (topic.compacted) this.#compacted -= topic.partitions.length
    assert(this.#compacted >= 0, `${this.#compacted} partitions are compacted`)
    this.#storage.removeTopic(topic.id)
    return topic
  }

  restore(entries: Iterable<Extract<JournalEntry, { kind: 'topic' }>>): void {
    for (const { topic, topicId, partitions, config } of entries) this.#add(topic, topicId, partitions, config)
  }

  snapshot(): JournalEntry[] {
    return this.all().map(({ name, id, partitions, config }) => ({
      kind: 'topic',
      topic: name,
      topicId: id,
      partitions: partitions.length,
      config,
    }))
  }

  #add(name: string, id: string, partitions: number, config: Readonly<Record<string, string>>): Topic {
    assert(partitions > 0, `the topic ${name} has no partitions`)
    assert(!this.#byName.has(name), `the topic ${name} is made twice`)
    const topic = new Topic(name, id, partitions, config, this.#storage, this.#segmentBytes)
    this.#byName.set(name, topic)
    if (topic.compacted) this.#compacted += partitions
    return topic
  }

  #newId(): string {
    const part = (): string =>
      Math.floor(this.#random.next() * 2 ** 32)
        .toString(16)
        .padStart(8, '0')
    return part() + part() + part() + part()
  }
}

export function unknownPartition({ topic, partition }: TopicPartition): BrokerError {
  return new BrokerError('UNKNOWN_TOPIC_OR_PARTITION', `There is no partition ${partition} of a topic ${topic}.`)
}
