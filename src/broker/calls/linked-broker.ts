/** The broker port over a broker in another place: a link carries the calls. */
import type { TopicPartition } from '../../base/ids.ts'
import { buffersOf } from '../wire/batch-pack.ts'
import type { FeedMark, FeedStore } from '../feed-marks.ts'
import type {
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
import { packed } from './packs.ts'
import type { Answer, Arguments, OperationName } from './protocol.ts'

/** How calls get to the broker and answers back. */
export interface Link {
  readonly connected: boolean
  /** Why it is not, where that is known. */
  readonly fault?: string | undefined
  /** `transfer` names buffers that may be handed over; `signal` ends the call's wait early. */
  call<K extends OperationName>(
    name: K,
    args: Arguments<K>,
    transfer?: readonly ArrayBuffer[],
    signal?: AbortSignal,
  ): Promise<Answer<K>>
  close(): Promise<void>
}

export abstract class LinkedBroker implements BrokerPort, FeedStore {
  abstract readonly kind: BrokerPort['kind']
  readonly #link: Link
  readonly #clientId: string

  constructor(link: Link, clientId: string) {
    this.#link = link
    this.#clientId = clientId
  }

  get connected(): boolean {
    return this.#link.connected
  }

  get fault(): string | undefined {
    return this.#link.fault
  }

  topics(names: readonly string[] | null): Promise<TopicInfo[]> {
    return this.#link.call('topics', [names])
  }

  createTopics(specs: readonly TopicSpec[]): Promise<void> {
    return this.#link.call('createTopics', [specs])
  }

  deleteTopics(names: readonly string[]): Promise<void> {
    return this.#link.call('deleteTopics', [names])
  }

  topicConfig(topic: string): Promise<Readonly<Record<string, string>>> {
    return this.#link.call('topicConfig', [topic])
  }

  listOffsets(
    partitions: readonly TopicPartition[],
    at: OffsetSpec,
  ): Promise<Array<TopicPartition & { offset: number }>> {
    return this.#link.call('listOffsets', [partitions, at])
  }

  fetch(request: FetchRequest): Promise<FetchedPartition[]> {
    const { signal, ...rest } = request
    return this.#link.call('fetch', [rest], [], signal)
  }

  initProducer(
    transactionalId: string | null,
    transactionTimeoutMs: number,
    current?: ProducerIdentity,
  ): Promise<ProducerIdentity> {
    return this.#link.call('initProducer', [transactionalId, transactionTimeoutMs, current])
  }

  async produce({ transactionalId, batches }: ProduceRequest): Promise<ProducedPartition[]> {
    const packs = packed(batches)
    return produced(batches, await this.#link.call('produce', [transactionalId, packs], buffersOf(packs)))
  }

  async produceFed(batches: ProduceRequest['batches'], mark: FeedMark): Promise<ProducedPartition[]> {
    const packs = packed(batches)
    return produced(batches, await this.#link.call('produceFed', [packs, mark], buffersOf(packs)))
  }

  feedMark(topic: string, file: string): Promise<number> {
    return this.#link.call('feedMark', [topic, file])
  }

  commitOffsetsInTransaction(
    transactionalId: string,
    identity: ProducerIdentity,
    member: GroupMember,
    offsets: readonly OffsetToCommit[],
  ): Promise<void> {
    return this.#link.call('commitOffsetsInTransaction', [transactionalId, identity, member, offsets])
  }

  endTransaction(transactionalId: string, identity: ProducerIdentity, commit: boolean): Promise<ProducerIdentity> {
    return this.#link.call('endTransaction', [transactionalId, identity, commit])
  }

  commitOffsets(member: GroupMember, offsets: readonly OffsetToCommit[]): Promise<void> {
    return this.#link.call('commitOffsets', [member, offsets])
  }

  committedOffsets(
    groupId: string,
    partitions: readonly TopicPartition[] | null,
    requireStable: boolean,
  ): Promise<CommittedOffset[]> {
    return this.#link.call('committedOffsets', [groupId, partitions, requireStable])
  }

  joinGroup(request: JoinRequest): Promise<JoinedGroup> {
    const protocols = request.protocols.map(({ name, metadata }) => ({ name, metadata: new Uint8Array(metadata) }))
    return this.#link.call('joinGroup', [{ ...request, protocols }, this.#clientId])
  }

  syncGroup(
    member: GroupMember,
    protocol: string,
    assignments: ReadonlyArray<{ readonly memberId: string; readonly assignment: Uint8Array }>,
  ): Promise<Uint8Array> {
    const given = assignments.map(({ memberId, assignment }) => ({ memberId, assignment: new Uint8Array(assignment) }))
    return this.#link.call('syncGroup', [member, protocol, given])
  }

  heartbeat(member: GroupMember): Promise<void> {
    return this.#link.call('heartbeat', [member])
  }

  leaveGroup(member: GroupMember): Promise<void> {
    return this.#link.call('leaveGroup', [member])
  }

  describeGroup(groupId: string): Promise<GroupDescription> {
    return this.#link.call('describeGroup', [groupId])
  }

  openTransactions(partition: TopicPartition): Promise<OpenTransaction[]> {
    return this.#link.call('openTransactions', [partition])
  }

  close(): Promise<void> {
    return this.#link.close()
  }
}

const produced = (batches: ProduceRequest['batches'], offsets: Float64Array): ProducedPartition[] =>
  batches.map(({ topic, partition }, i) => ({ topic, partition, baseOffset: offsets[i] as number }))
