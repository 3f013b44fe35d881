/** The broker port on an Apache Kafka cluster. */
import type { TopicPartition } from '../../base/ids.ts'
import type { FeedMark, FeedStore } from '../feed-marks.ts'
import type {
  BrokerNode,
  BrokerPort,
  CommittedOffset,
  FetchedPartition,
  FetchRequest,
  GroupDescription,
  GroupMember,
  JoinedGroup,
  JoinRequest,
  OffsetSpec,
  OffsetToCommit,
  OpenTransaction,
  ProducedPartition,
  ProduceRequest,
  ProducerIdentity,
  TopicInfo,
  TopicSpec,
} from '../port.ts'
import { Cluster } from './cluster.ts'
import { KafkaFeedStore } from './feed-store.ts'
import { Fetcher } from './fetcher.ts'
import { Groups } from './groups.ts'
import { openTransactionsOf } from './open-transactions.ts'
import { type KafkaOptions, settingsOf } from './options.ts'
import { Producer } from './producer.ts'
import { Topics } from './topics.ts'
import { Transactions } from './transactions.ts'

/** Opens no connection yet: the first call does. */
export function connectKafka(options: KafkaOptions): BrokerPort & FeedStore {
  return new KafkaBroker(options)
}

class KafkaBroker implements BrokerPort, FeedStore {
  readonly kind = 'kafka'
  readonly readsInTurn = true
  readonly #cluster: Cluster
  readonly #topics: Topics
  readonly #fetcher: Fetcher
  readonly #groups: Groups
  readonly #transactions: Transactions
  readonly #producer: Producer
  readonly #feeds: KafkaFeedStore

  constructor(options: KafkaOptions) {
    this.#cluster = new Cluster(settingsOf(options))
    this.#topics = new Topics(this.#cluster)
    this.#fetcher = new Fetcher(this.#cluster)
    this.#groups = new Groups(this.#cluster)
    this.#transactions = new Transactions(this.#cluster)
    this.#producer = new Producer(this.#cluster, this.#transactions)
    this.#feeds = new KafkaFeedStore(options.clientId, this.#transactions, this.#producer, this.#groups)
  }

  get connected(): boolean {
    return this.#cluster.connected
  }

  get fault(): string | undefined {
    return this.#cluster.fault
  }

  get nodes(): readonly BrokerNode[] {
    return this.#cluster.nodesSeen
  }

  async topics(names: readonly string[] | null): Promise<TopicInfo[]> {
    const topics = await this.#topics.describe(names)
    if (names !== null) this.#fetcher.described(topics)
    return topics
  }

  createTopics(specs: readonly TopicSpec[]): Promise<void> {
    return this.#topics.create(specs)
  }

  async deleteTopics(names: readonly string[]): Promise<void> {
    await this.#topics.delete(names)
    this.#fetcher.forget(names)
  }

  topicConfig(topic: string): Promise<Readonly<Record<string, string>>> {
    return this.#topics.config(topic)
  }

  listOffsets(
    partitions: readonly TopicPartition[],
    at: OffsetSpec,
  ): Promise<Array<TopicPartition & { offset: number }>> {
    return this.#topics.listOffsets(partitions, at)
  }

  fetch(request: FetchRequest): Promise<FetchedPartition[]> {
    return this.#fetcher.fetch(request)
  }

  initProducer(
    transactionalId: string | null,
    transactionTimeoutMs: number,
    current?: ProducerIdentity,
  ): Promise<ProducerIdentity> {
    return this.#transactions.initialise(transactionalId, transactionTimeoutMs, current)
  }

  produce(request: ProduceRequest): Promise<ProducedPartition[]> {
    return this.#producer.produce(request)
  }

  commitOffsetsInTransaction(
    transactionalId: string,
    identity: ProducerIdentity,
    member: GroupMember,
    offsets: readonly OffsetToCommit[],
  ): Promise<void> {
    return this.#transactions.commitOffsets(transactionalId, identity, member, offsets)
  }

  endTransaction(transactionalId: string, identity: ProducerIdentity, commit: boolean): Promise<ProducerIdentity> {
    return this.#transactions.end(transactionalId, identity, commit)
  }

  commitOffsets(member: GroupMember, offsets: readonly OffsetToCommit[]): Promise<void> {
    return this.#groups.commit(member, offsets)
  }

  committedOffsets(
    groupId: string,
    partitions: readonly TopicPartition[] | null,
    requireStable: boolean,
  ): Promise<CommittedOffset[]> {
    return this.#groups.committed(groupId, partitions, requireStable)
  }

  joinGroup(request: JoinRequest): Promise<JoinedGroup> {
    return this.#groups.join(request)
  }

  syncGroup(
    member: GroupMember,
    protocol: string,
    assignments: ReadonlyArray<{ readonly memberId: string; readonly assignment: Uint8Array }>,
  ): Promise<Uint8Array> {
    return this.#groups.sync(member, protocol, assignments)
  }

  heartbeat(member: GroupMember): Promise<void> {
    return this.#groups.heartbeat(member)
  }

  leaveGroup(member: GroupMember): Promise<void> {
    return this.#groups.leave(member)
  }

  describeGroup(groupId: string): Promise<GroupDescription> {
    return this.#groups.describe(groupId)
  }

  openTransactions(partition: TopicPartition): Promise<OpenTransaction[]> {
    return openTransactionsOf(this.#cluster, partition)
  }

  produceFed(batches: ProduceRequest['batches'], mark: FeedMark): Promise<ProducedPartition[]> {
    return this.#feeds.produceFed(batches, mark)
  }

  feedMark(topic: string, file: string): Promise<number> {
    return this.#feeds.feedMark(topic, file)
  }

  close(): Promise<void> {
    return this.#cluster.close()
  }
}
