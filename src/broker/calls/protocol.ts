/** The calls of the broker port by name: what goes over a message port, to whichever broker is on its other side. */
import type { TopicPartition } from '../../base/ids.ts'
import type { BatchPack } from '../wire/batch-pack.ts'
import type { FeedMark } from '../feed-marks.ts'
import type {
  BrokerError,
  BrokerErrorClass,
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
  ProducerIdentity,
  TopicInfo,
  TopicSpec,
} from '../port.ts'
import type { WireCause } from './wire-cause.ts'

export interface Operations {
  topics(names: readonly string[] | null): TopicInfo[]
  createTopics(specs: readonly TopicSpec[]): void
  deleteTopics(names: readonly string[]): void
  topicConfig(topic: string): Readonly<Record<string, string>>
  listOffsets(partitions: readonly TopicPartition[], at: OffsetSpec): Array<TopicPartition & { offset: number }>
  fetch(request: Omit<FetchRequest, 'signal'>): FetchedPartition[]
  initProducer(transactionalId: string | null, timeoutMs: number, current?: ProducerIdentity): ProducerIdentity
  /** Answers the offset of each batch's first record, in their order. */
  produce(transactionalId: string | null, packs: readonly BatchPack[]): Float64Array
  produceFed(packs: readonly BatchPack[], mark: FeedMark): Float64Array
  feedMark(topic: string, file: string): number
  commitOffsetsInTransaction(
    transactionalId: string,
    identity: ProducerIdentity,
    member: GroupMember,
    offsets: readonly OffsetToCommit[],
  ): void
  endTransaction(transactionalId: string, identity: ProducerIdentity, commit: boolean): ProducerIdentity
  commitOffsets(member: GroupMember, offsets: readonly OffsetToCommit[]): void
  committedOffsets(
    groupId: string,
    partitions: readonly TopicPartition[] | null,
    requireStable: boolean,
  ): CommittedOffset[]
  joinGroup(request: JoinRequest, clientId: string): JoinedGroup
  syncGroup(
    member: GroupMember,
    protocol: string,
    assignments: ReadonlyArray<{ readonly memberId: string; readonly assignment: Uint8Array }>,
  ): Uint8Array
  heartbeat(member: GroupMember): void
  leaveGroup(member: GroupMember): void
  describeGroup(groupId: string): GroupDescription
  openTransactions(partition: TopicPartition): OpenTransaction[]
}

export type OperationName = keyof Operations
export type Arguments<K extends OperationName> = Parameters<Operations[K]>
export type Answer<K extends OperationName> = ReturnType<Operations[K]>

/** Where the answer of a call goes, at once or later. */
export interface Reply<T> {
  done(answer: T): void
  fail(error: BrokerError): void
}
/** Ends a call's wait early. */
export type Cancel = () => void
/** Performs a call of some broker; the answer comes through `reply`. */
export type Performer = <K extends OperationName>(name: K, args: Arguments<K>, reply: Reply<Answer<K>>) => Cancel

export interface Request<K extends OperationName = OperationName> {
  readonly id: number
  readonly name: K
  readonly args: Arguments<K>
}
/** Ends the wait of the request with this id. */
export interface CancelRequest {
  readonly cancel: number
}
export type Response =
  | { readonly id: number; readonly answer: unknown }
  | {
      readonly id: number
      readonly code: string
      readonly message: string
      readonly errorClass: BrokerErrorClass
      readonly cause?: WireCause
    }
