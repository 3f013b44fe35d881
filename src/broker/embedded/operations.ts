/** The calls of the embedded broker by name: what goes over a message port, and how the cluster performs each. */
import type { TopicPartition } from '../../base/ids.ts'
import { type BatchPack, eachBatch } from '../wire/batch-pack.ts'
import type { FeedMark } from '../feed-marks.ts'
import type {
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
  ProducedPartition,
  ProduceRequest,
  ProducerIdentity,
  TopicInfo,
  TopicSpec,
} from '../port.ts'
import { BrokerError } from '../port.ts'
import type { EmbeddedCluster } from './core/cluster.ts'
import type { Reply } from './core/group.ts'

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

/** Ends a call's wait early. */
export type Cancel = () => void
const nothingToCancel: Cancel = () => undefined

/** Calls that may have to wait, and those whose arguments travel in another form. */
type Handled = 'fetch' | 'committedOffsets' | 'joinGroup' | 'syncGroup' | 'produce' | 'produceFed'
type Handler<K extends OperationName> = (
  cluster: EmbeddedCluster,
  args: Arguments<K>,
  reply: Reply<Answer<K>>,
) => Cancel | undefined

const handlers: { readonly [K in Handled]: Handler<K> } = {
  fetch: (cluster, [request], reply) =>
    cluster.fetch(request, (fetched) => {
      reply.done(fetched)
    }),
  committedOffsets: (cluster, args, reply) => {
    cluster.committedOffsets(...args, reply)
    return undefined
  },
  joinGroup: (cluster, args, reply) => {
    cluster.joinGroup(...args, reply)
    return undefined
  },
  syncGroup: (cluster, args, reply) => {
    cluster.syncGroup(...args, reply)
    return undefined
  },
  produce: (cluster, [transactionalId, packs], reply) => {
    reply.done(baseOffsets(cluster.produce({ transactionalId, batches: unpack(packs) })))
    return undefined
  },
  produceFed: (cluster, [packs, mark], reply) => {
    reply.done(baseOffsets(cluster.produceFed(unpack(packs), mark)))
    return undefined
  },
}

function unpack(packs: readonly BatchPack[]): ProduceRequest['batches'] {
  const batches: Array<ProduceRequest['batches'][number]> = []
  for (const pack of packs) {
    eachBatch(pack, (topic, partition, _, records) => batches.push({ topic, partition, records }))
  }
  return batches
}

const baseOffsets = (produced: readonly ProducedPartition[]): Float64Array =>
  Float64Array.from(produced, ({ baseOffset }) => baseOffset)

/** Performs a call; the answer or a `BrokerError` comes through `reply`, at once or later. */
export function perform<K extends OperationName>(
  cluster: EmbeddedCluster,
  name: K,
  args: Arguments<K>,
  reply: Reply<Answer<K>>,
): Cancel {
  try {
    if (name in handlers) {
      const handler = handlers[name as K & Handled] as Handler<K>
      return handler(cluster, args, reply) ?? nothingToCancel
    }
    const method = cluster[name as Exclude<K, Handled>] as unknown as (...given: Arguments<K>) => Answer<K>
    reply.done(method.apply(cluster, args))
  } catch (error) {
    reply.fail(asBrokerError(error))
  }
  return nothingToCancel
}

/** What is no `BrokerError` is a fault of the broker itself. */
export function asBrokerError(error: unknown): BrokerError {
  if (error instanceof BrokerError) return error
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return new BrokerError('UNKNOWN_SERVER_ERROR', `The embedded broker failed: ${message}`, undefined, error)
}

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
  | { readonly id: number; readonly code: string; readonly message: string; readonly errorClass: BrokerErrorClass }
