/**
 * The broker port: all that the engine knows of a broker. Two implementations, `embedded/` and `kafka/`, and one
 * conformance suite that runs against both. The calls are those of the Kafka protocol with leader routing, retries of
 * retriable errors and connection keeping inside the implementation; record data is record batches, format 2, as on
 * Kafka's wire (see `./wire/record-batch.ts`). All failures are `BrokerError`s.
 */
import type { GenerationId, ProducerEpoch, TopicPartition } from '../base/ids.ts'

export interface TopicInfo {
  readonly topic: string
  /** Identity of this incarnation of the topic: a topic deleted and made again has another one. */
  readonly topicId: string
  readonly partitions: number
}

export interface TopicSpec {
  readonly topic: string
  readonly partitions: number
  /** Topic settings by Kafka's names (`cleanup.policy`, `retention.ms`, …). */
  readonly config?: Readonly<Record<string, string>>
}

export type Isolation = 'read_committed' | 'read_uncommitted'

export interface FetchPartition extends TopicPartition {
  readonly offset: number
  readonly maxBytes: number
  /** The incarnation of the topic that is meant: another one is answered with `UNKNOWN_TOPIC_ID`. Default: any. */
  readonly topicId?: string
}

export interface FetchRequest {
  readonly partitions: readonly FetchPartition[]
  /** How long the broker may wait while there is nothing to give. */
  readonly maxWaitMs: number
  readonly maxBytes: number
  readonly isolation: Isolation
  /** Ends the wait early; the call then resolves with what there is (possibly nothing). */
  readonly signal?: AbortSignal
}

export interface AbortedTransaction {
  readonly producerId: bigint
  readonly firstOffset: number
}

export interface FetchedPartition extends TopicPartition {
  /** Whole record batches, uncompressed or compressed as they lie; the first may begin before the asked offset. Empty when there is nothing new. The receiver owns the bytes. */
  readonly records: Uint8Array
  readonly highWatermark: number
  readonly lastStableOffset: number
  readonly logStartOffset: number
  /** Only under `read_committed`: transactions to skip, by first offset. */
  readonly aborted: readonly AbortedTransaction[]
  /** The partitions of this answer, all of them marked, were not read at one moment: what one lacks may be there by now. */
  readonly isApart?: boolean
  /** The broker was asked for it so long before this call, milliseconds. Default 0: the call asked for it. */
  readonly askedBeforeMs?: number
  /** `OFFSET_OUT_OF_RANGE`, `UNKNOWN_TOPIC_OR_PARTITION`, …: this partition alone failed, with a non-retriable code. */
  readonly error?: string
}

export interface ProducerIdentity {
  readonly producerId: bigint
  readonly producerEpoch: ProducerEpoch
}

export interface ProduceRequest {
  readonly transactionalId: string | null
  /** One or more whole batches a partition, identity and sequence already in their headers. */
  readonly batches: ReadonlyArray<TopicPartition & { readonly records: Uint8Array }>
}

export interface ProducedPartition extends TopicPartition {
  readonly baseOffset: number
}

export interface GroupMember {
  readonly groupId: string
  readonly memberId: string
  readonly generationId: GenerationId
  readonly groupInstanceId: string | null
}

export interface OffsetToCommit extends TopicPartition {
  readonly offset: number
  readonly metadata: string
}

/** `offset` is -1 where the group has committed none. */
export interface CommittedOffset extends TopicPartition {
  readonly offset: number
  readonly metadata: string
}

export interface JoinRequest {
  readonly groupId: string
  /** Empty at the first join. */
  readonly memberId: string
  readonly groupInstanceId: string | null
  readonly sessionTimeoutMs: number
  readonly rebalanceTimeoutMs: number
  /** Assignment protocols in order of preference, with this member's metadata for each. */
  readonly protocols: ReadonlyArray<{ readonly name: string; readonly metadata: Uint8Array }>
}

export interface JoinedGroup {
  readonly memberId: string
  readonly generationId: GenerationId
  readonly leaderId: string
  readonly protocol: string
  /** Kafka tells a returning static leader that the assignment stands as it is. */
  readonly skipAssignment: boolean
  /** Filled for the leader alone. */
  readonly members: ReadonlyArray<{
    readonly memberId: string
    readonly groupInstanceId: string | null
    readonly metadata: Uint8Array
  }>
}

export interface GroupDescription {
  readonly state: string
  readonly members: ReadonlyArray<{
    readonly memberId: string
    readonly groupInstanceId: string | null
    /** Kafka goes on telling that of whoever had the place of a static member first; so it does with the address. */
    readonly clientId: string
    /** Address that the broker sees it at; undefined where it is in the same process. */
    readonly clientHost?: string
    /** What it said of itself when it joined last; left out while the group rebalances. */
    readonly metadata?: Uint8Array
  }>
}

/** What a call to a broker is for. */
export type CallKind = 'fetch' | 'produce' | 'group' | 'transaction' | 'other'

/** One broker of the cluster, as this client has met it. Times are milliseconds since the epoch. */
export interface BrokerNode {
  /** Null while only its address is known. */
  readonly id: number | null
  readonly address: string
  readonly connected: boolean
  /** Since when it is connected, or is not. */
  readonly sinceMs: number
  readonly lastError: string | null
  /** Of each kind the call that has waited longest for its answer. */
  readonly calls: ReadonlyArray<{ readonly kind: CallKind; readonly what: string; readonly sinceMs: number }>
}

/** A transaction that nobody has decided yet. */
export interface OpenTransaction {
  readonly producerId: bigint
  readonly producerEpoch: ProducerEpoch
  readonly firstOffset: number
  /** Null where the broker does not tell it. */
  readonly transactionalId: string | null
}

export type OffsetSpec = 'earliest' | 'latest' | 'stable'

export interface BrokerPort {
  readonly kind: 'embedded' | 'kafka'
  /**
   * A fetch reads one partition after the other, in the order of its answer. What is written meanwhile may be seen of a later
   * one, and not of an earlier one. Default: it reads all of them at one moment.
   */
  readonly readsInTurn?: boolean

  /** Describes the topics that exist among those asked for; null asks for all, internal ones left out. */
  topics(names: readonly string[] | null): Promise<TopicInfo[]>
  /** A topic that exists already is no error. */
  createTopics(specs: readonly TopicSpec[]): Promise<void>
  deleteTopics(names: readonly string[]): Promise<void>
  topicConfig(topic: string): Promise<Readonly<Record<string, string>>>

  /** `stable` is the last stable offset: what a reader of committed records can reach. */
  listOffsets(
    partitions: readonly TopicPartition[],
    at: OffsetSpec,
  ): Promise<Array<TopicPartition & { offset: number }>>
  /** Resolves when there is data for at least one partition, when the wait is over, or when the signal fires. */
  fetch(request: FetchRequest): Promise<FetchedPartition[]>

  /**
   * A producer identity. With a transactional id: fences older holders, aborts their open transaction, and answers
   * once that is decided. With `current`: succeeds only if nobody else took the id since (else `PRODUCER_FENCED`).
   */
  initProducer(
    transactionalId: string | null,
    transactionTimeoutMs: number,
    current?: ProducerIdentity,
  ): Promise<ProducerIdentity>
  /**
   * Writes batches, all in-sync replicas acknowledging. Partitions join the open transaction by themselves. The bytes are the
   * caller's again once it resolves.
   */
  produce(request: ProduceRequest): Promise<ProducedPartition[]>
  /** Offsets that take effect with the transaction. */
  commitOffsetsInTransaction(
    transactionalId: string,
    identity: ProducerIdentity,
    member: GroupMember,
    offsets: readonly OffsetToCommit[],
  ): Promise<void>
  /** Answers with the identity to go on with (a broker may raise the epoch with every transaction). */
  endTransaction(transactionalId: string, identity: ProducerIdentity, commit: boolean): Promise<ProducerIdentity>

  commitOffsets(member: GroupMember, offsets: readonly OffsetToCommit[]): Promise<void>
  /** `requireStable` waits until offsets of open transactions are decided. Null asks for all of the group. */
  committedOffsets(
    groupId: string,
    partitions: readonly TopicPartition[] | null,
    requireStable: boolean,
  ): Promise<CommittedOffset[]>

  /** Answers when the group's join phase is over. */
  joinGroup(request: JoinRequest): Promise<JoinedGroup>
  /** The leader gives everybody's assignment; all get their own. */
  syncGroup(
    member: GroupMember,
    protocol: string,
    assignments: ReadonlyArray<{ readonly memberId: string; readonly assignment: Uint8Array }>,
  ): Promise<Uint8Array>
  /** Fails with `REBALANCE_IN_PROGRESS` when the member must join again. */
  heartbeat(member: GroupMember): Promise<void>
  leaveGroup(member: GroupMember): Promise<void>
  describeGroup(groupId: string): Promise<GroupDescription>

  /** Who holds the partition's last stable offset back. Asked for where something stands still, never on the way of records. */
  openTransactions(partition: TopicPartition): Promise<OpenTransaction[]>

  /** True while the last exchange with the broker went well; cached, for the health probes. */
  readonly connected: boolean
  /** Why it is not, in a sentence with the broker's address; undefined where that is not known. */
  readonly fault?: string | undefined
  /** What is known of each broker; left out where there is no network between. */
  readonly nodes?: readonly BrokerNode[]
  close(): Promise<void>
}

/** Why an embedded broker stores nothing. */
export interface BrokerTrouble {
  /** It waits for room on its disk, and goes on by itself; else only a start anew helps. */
  readonly isWaiting: boolean
  readonly sentence: string
}

/** How the engine treats a broker's error, whatever its name (`../../docs/errors.md`). */
export type BrokerErrorClass = 'retriable' | 'abortable' | 'epoch-lost' | 'record' | 'config' | 'offset' | 'unreachable'

/** A broker refused, or could not be reached. `code` is Kafka's name of the error (`PRODUCER_FENCED`, …), `UNREACHABLE` or `CLOSED`. */
export class BrokerError extends Error {
  override readonly name = 'BrokerError'
  readonly code: string
  readonly errorClass: BrokerErrorClass

  constructor(
    code: string,
    message: string,
    errorClass: BrokerErrorClass = classifyBrokerError(code),
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.errorClass = errorClass
  }
}

const classes: Readonly<Record<string, BrokerErrorClass>> = {
  UNREACHABLE: 'unreachable',
  NETWORK_EXCEPTION: 'retriable',
  COORDINATOR_LOAD_IN_PROGRESS: 'retriable',
  COORDINATOR_NOT_AVAILABLE: 'retriable',
  NOT_COORDINATOR: 'retriable',
  NOT_LEADER_OR_FOLLOWER: 'retriable',
  LEADER_NOT_AVAILABLE: 'retriable',
  CONCURRENT_TRANSACTIONS: 'retriable',
  UNSTABLE_OFFSET_COMMIT: 'retriable',
  REQUEST_TIMED_OUT: 'retriable',
  NOT_ENOUGH_REPLICAS: 'retriable',
  NOT_ENOUGH_REPLICAS_AFTER_APPEND: 'retriable',
  KAFKA_STORAGE_ERROR: 'retriable',
  TRANSACTION_ABORTABLE: 'abortable',
  UNKNOWN_MEMBER_ID: 'abortable',
  ILLEGAL_GENERATION: 'abortable',
  REBALANCE_IN_PROGRESS: 'abortable',
  INVALID_PRODUCER_EPOCH: 'epoch-lost',
  PRODUCER_FENCED: 'epoch-lost',
  INVALID_TXN_STATE: 'epoch-lost',
  INVALID_PRODUCER_ID_MAPPING: 'epoch-lost',
  UNKNOWN_PRODUCER_ID: 'epoch-lost',
  OUT_OF_ORDER_SEQUENCE_NUMBER: 'epoch-lost',
  FENCED_INSTANCE_ID: 'epoch-lost',
  MESSAGE_TOO_LARGE: 'record',
  RECORD_LIST_TOO_LARGE: 'record',
  INVALID_RECORD: 'record',
  INVALID_TIMESTAMP: 'record',
  CORRUPT_MESSAGE: 'record',
  TOPIC_AUTHORIZATION_FAILED: 'config',
  GROUP_AUTHORIZATION_FAILED: 'config',
  CLUSTER_AUTHORIZATION_FAILED: 'config',
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 'config',
  SASL_AUTHENTICATION_FAILED: 'config',
  INVALID_TRANSACTION_TIMEOUT: 'config',
  UNSUPPORTED_VERSION: 'config',
  UNKNOWN_TOPIC_OR_PARTITION: 'config',
  UNKNOWN_TOPIC_ID: 'config',
  INVALID_TOPIC_EXCEPTION: 'config',
  INVALID_PARTITIONS: 'config',
  INVALID_CONFIG: 'config',
  POLICY_VIOLATION: 'config',
  INCONSISTENT_GROUP_PROTOCOL: 'config',
  OFFSET_OUT_OF_RANGE: 'offset',
}

/** The class of an error code; unknown codes abort the transaction and restart in place. */
export function classifyBrokerError(code: string): BrokerErrorClass {
  return classes[code] ?? 'abortable'
}

/** Whether there was no answer of a broker at all, or none to somebody whom it knows. */
export function isBroken({ code, errorClass }: BrokerError): boolean {
  return errorClass === 'unreachable' || code === 'NETWORK_EXCEPTION' || code.startsWith('SASL_')
}
