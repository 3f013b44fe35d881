/**
 * The embedded broker as a state machine: every call answers at once, or notes a reply and answers when a later call or
 * `tick` brings what it waits for. No time, randomness, timers or input and output of its own.
 */
import type { TopicPartition } from '../../../base/ids.ts'
import type { Clock } from '../../../base/clock.ts'
import type { Random } from '../../../base/random.ts'
import type { FeedMark } from '../../feed-marks.ts'
import {
  BrokerError,
  type CommittedOffset,
  type FetchedPartition,
  type FetchRequest,
  type GroupDescription,
  type GroupMember,
  type JoinedGroup,
  type JoinRequest,
  type OffsetSpec,
  type OffsetToCommit,
  type OpenTransaction,
  type ProducedPartition,
  type ProduceRequest,
  type ProducerIdentity,
  type TopicInfo,
  type TopicSpec,
} from '../../port.ts'
import { maintain } from './compaction.ts'
import { Decided } from './decided.ts'
import { FeedMarks, plannedWrites } from './feed-marks.ts'
import { answer, type FetchWaiter, type FindLog, isReady } from './fetch-waiter.ts'
import { Group, type Reply } from './group.ts'
import { Offsets } from './offsets.ts'
import { identityIn } from './producer-state.ts'
import { recover } from './recovery.ts'
import { type JournalEntry, NoRoomError, type Storage } from './storage.ts'
import { type Partition, Topics, unknownPartition } from './topics.ts'
import { Transactions } from './transactions.ts'

export interface ClusterOptions {
  readonly clock: Clock
  readonly random: Random
  readonly storage: Storage
  /** Partitions of a topic that is made at its first use. */
  readonly partitions: number
  /** Whether producing to a topic that does not exist makes it. On by default. */
  readonly autoCreateTopics?: boolean
  /** Size at which a segment is closed. 16 MiB by default. */
  readonly segmentBytes?: number
  /** A compacted topic's partition is compacted once it has grown by this much, and by half. 4 MiB by default. */
  readonly compactionBytes?: number
  /** How long a group that was empty waits for further members. 0 by default. */
  readonly initialRebalanceDelayMs?: number
}

interface OffsetWaiter {
  readonly groupId: string
  readonly partitions: readonly TopicPartition[] | null
  readonly reply: Reply<CommittedOffset[]>
}

const maxMetadata = 4096
/** What there was no room for is tried again after so long. */
const againMs = 1000

export class EmbeddedCluster {
  readonly #options: ClusterOptions
  readonly #clock: Clock
  readonly #storage: Storage
  readonly #topics: Topics
  readonly #transactions: Transactions
  readonly #offsets = new Offsets()
  readonly #feeds = new FeedMarks()
  readonly #groups = new Map<string, Group>()
  readonly #fetches = new Set<FetchWaiter>()
  readonly #logOf: FindLog = (asked) => this.#topics.logOf(asked)
  readonly #offsetWaiters = new Set<OffsetWaiter>()
  readonly #touched = new Set<Partition>()
  readonly #decided = new Decided()
  /** Until then no transaction is ended for its age, and nothing is tried again. */
  #againAt = Number.NEGATIVE_INFINITY
  #turn = 0

  constructor(options: ClusterOptions) {
    this.#options = options
    this.#clock = options.clock
    this.#storage = options.storage
    this.#topics = new Topics(options.storage, options.random, options.segmentBytes ?? 16 * 2 ** 20, options.partitions)
    this.#transactions = new Transactions({
      journal: (entry) => {
        this.#decided.orStop(() => this.#storage.journal(entry))
      },
      end: (producerId, epoch, commit) => {
        this.#decided.do(() => this.#writeEnd(producerId, epoch, commit))
      },
    })
    const entries = options.storage.journalEntries()
    const [topics, transactions, offsets, feeds] = [this.#topics, this.#transactions, this.#offsets, this.#feeds]
    recover(entries, { topics, transactions, offsets, feeds }, options.clock, options.storage)
    options.storage.replaceJournal(this.#snapshot())
  }

  topics(names: readonly string[] | null): TopicInfo[] {
    return this.#topics.describe(names)
  }

  createTopics(specs: readonly TopicSpec[]): void {
    this.#checkRunning()
    for (const spec of specs) this.#topics.create(spec)
    this.#store()
  }

  deleteTopics(names: readonly string[]): void {
    this.#checkRunning()
    for (const name of names) {
      const topic = this.#topics.delete(name)
      this.#offsets.dropTopic(name)
      this.#feeds.dropTopic(name)
      for (const partition of topic.partitions) this.#touched.add(partition)
    }
    this.#store()
    this.#wake()
  }

  topicConfig(topic: string): Readonly<Record<string, string>> {
    const found = this.#topics.get(topic)
    if (found === undefined) throw unknownPartition({ topic, partition: 0 })
    return found.config
  }

  listOffsets(partitions: readonly TopicPartition[], at: OffsetSpec): Array<TopicPartition & { offset: number }> {
    return partitions.map(({ topic, partition }) => {
      const { log } = this.#topics.partition({ topic, partition })
      const offset = at === 'earliest' ? log.logStart : at === 'latest' ? log.highWatermark : log.lastStableOffset
      return { topic, partition, offset }
    })
  }

  /** Answers through `done`; the function that comes back ends the wait early. */
  fetch(request: Omit<FetchRequest, 'signal'>, done: (fetched: FetchedPartition[]) => void): () => void {
    const isReadyNow = request.partitions.some((asked) => isReady(this.#logOf, asked, request.isolation))
    if (request.maxWaitMs <= 0 || isReadyNow) {
      done(answer(this.#logOf, request, this.#turn++))
      return () => undefined
    }
    const partitions = request.partitions.flatMap((asked) => this.#topics.find(asked) ?? [])
    const waiter = { request, partitions, deadline: this.#clock.monotonic() + request.maxWaitMs, done }
    this.#fetches.add(waiter)
    for (const asked of request.partitions) this.#topics.find(asked)?.waiters.set(waiter, asked)
    return () => {
      this.#answer(waiter)
    }
  }

  initProducer(transactionalId: string | null, timeoutMs: number, current?: ProducerIdentity): ProducerIdentity {
    this.#checkRunning()
    const identity = this.#transactions.initProducer(transactionalId, timeoutMs, current)
    this.#store()
    this.#wake()
    return identity
  }

  get stopped(): BrokerError | undefined {
    return this.#decided.stopped
  }

  /** Takes the bytes of the batches over. `produced`: what an attempt before this one has stored of them. */
  produce({ transactionalId, batches }: ProduceRequest, produced: ProducedPartition[] = []): ProducedPartition[] {
    this.#checkRunning()
    const first = batches[0]
    if (transactionalId !== null && first !== undefined) {
      this.#transactions.enter(transactionalId, identityIn(first.records), this.#clock.monotonic())
    }
    try {
      for (const batch of batches.slice(produced.length)) produced.push(this.#append(batch))
      // What is part of a transaction becomes known with its end.
      if (transactionalId === null) this.#store()
      return produced
    } finally {
      this.#afterWrite()
    }
  }

  /** As `produce`, with the mark of the feed in the same write: both, or neither. */
  produceFed(batches: ProduceRequest['batches'], mark: FeedMark): ProducedPartition[] {
    this.#checkRunning()
    const lines = this.#feeds.get(mark.topic, mark.file)
    const writes = plannedWrites(batches, mark.topic, (partition) => this.#writable(mark.topic, partition).log)
    this.#storage.journal({ kind: 'feed', ...mark, writes })
    try {
      const produced = batches.map((batch) => this.#append(batch))
      this.#feeds.set(mark)
      this.#store()
      return produced
    } catch (error) {
      this.#decided.do(() => {
        for (const { partition, from } of writes) this.#writable(mark.topic, partition).log.truncate(from)
        this.#storage.written()
        this.#storage.journal({ kind: 'feed', ...mark, lines, writes: [] })
      })
      throw error
    } finally {
      this.#afterWrite()
    }
  }

  feedMark(topic: string, file: string): number {
    return this.#feeds.get(topic, file)
  }

  commitOffsetsInTransaction(
    transactionalId: string,
    identity: ProducerIdentity,
    member: GroupMember,
    offsets: readonly OffsetToCommit[],
  ): void {
    this.#checkRunning()
    this.#transactions.enter(transactionalId, identity, this.#clock.monotonic())
    this.#validateCommit(member, offsets, true)
    this.#storage.journal({
      kind: 'pending-offsets',
      producerId: String(identity.producerId),
      epoch: identity.producerEpoch,
      groupId: member.groupId,
      offsets,
    })
    this.#offsets.addPending(identity.producerId, identity.producerEpoch, member.groupId, offsets)
  }

  endTransaction(transactionalId: string, identity: ProducerIdentity, commit: boolean): ProducerIdentity {
    this.#checkRunning()
    const next = this.#transactions.endTransaction(transactionalId, identity, commit)
    this.#afterWrite()
    return next
  }

  commitOffsets(member: GroupMember, offsets: readonly OffsetToCommit[]): void {
    this.#checkRunning()
    this.#validateCommit(member, offsets, false)
    this.#storage.journal({ kind: 'offsets', groupId: member.groupId, offsets })
    this.#store()
    this.#offsets.commit(member.groupId, offsets)
  }

  committedOffsets(
    groupId: string,
    partitions: readonly TopicPartition[] | null,
    requireStable: boolean,
    reply: Reply<CommittedOffset[]>,
  ): void {
    if (requireStable && this.#offsets.isUnstable(groupId, partitions)) {
      this.#offsetWaiters.add({ groupId, partitions, reply })
    } else reply.done(this.#offsets.committed(groupId, partitions))
  }

  joinGroup(request: JoinRequest, clientId: string, reply: Reply<JoinedGroup>): void {
    let group = this.#groups.get(request.groupId)
    if (group === undefined) {
      if (request.memberId !== '') throw unknownMember(request)
      const delay = this.#options.initialRebalanceDelayMs ?? 0
      group = new Group(request.groupId, this.#options.random, () => this.#clock.monotonic(), delay)
      this.#groups.set(request.groupId, group)
    }
    group.join(request, clientId, reply)
  }

  syncGroup(
    member: GroupMember,
    protocol: string,
    assignments: ReadonlyArray<{ readonly memberId: string; readonly assignment: Uint8Array }>,
    reply: Reply<Uint8Array>,
  ): void {
    this.#groupOf(member).sync(member, protocol, assignments, reply)
  }

  heartbeat(member: GroupMember): void {
    this.#groupOf(member).heartbeat(member)
  }

  leaveGroup(member: GroupMember): void {
    this.#groupOf(member).leave(member)
  }

  describeGroup(groupId: string): GroupDescription {
    const group = this.#groups.get(groupId)
    if (group !== undefined) return group.describe()
    return { state: this.#offsets.groupIds().includes(groupId) ? 'Empty' : 'Dead', members: [] }
  }

  openTransactions(partition: TopicPartition): OpenTransaction[] {
    const { open } = this.#topics.partition(partition).log
    return this.#transactions.describe(open)
  }

  /** Monotonic time at which `tick` has something to do next; infinite while nothing is due. */
  nextDeadline(): number {
    let least = this.#decided.waits ? this.#againAt : Math.max(this.#againAt, this.#transactions.nextDeadline())
    if (this.#decided.stopped !== undefined) least = Number.POSITIVE_INFINITY
    for (const { deadline } of this.#fetches) if (deadline < least) least = deadline
    for (const group of this.#groups.values()) least = Math.min(least, group.nextDeadline())
    return least
  }

  /** A write waits for room: no transaction ends meanwhile for being too old, for its producer can do nothing about it. */
  putOff(): void {
    this.#againAt = this.#clock.monotonic() + againMs
  }

  /** Ends the waits, sessions and transactions whose time is over. */
  tick(): void {
    const now = this.#clock.monotonic()
    for (const waiter of [...this.#fetches]) if (now >= waiter.deadline) this.#answer(waiter)
    for (const group of this.#groups.values()) group.expire()
    if (this.#decided.stopped === undefined && now >= this.#againAt) this.#expireTransactions(now)
    this.#afterWrite()
  }

  #expireTransactions(now: number): void {
    try {
      this.#decided.finish()
      this.#transactions.expire(now)
    } catch (error) {
      if (!(error instanceof NoRoomError)) throw error
      this.putOff()
    }
  }

  close(): void {
    this.#storage.close()
  }

  #append({ topic, partition, records }: ProduceRequest['batches'][number]): ProducedPartition {
    const found = this.#writable(topic, partition)
    const baseOffset = found.log.append(records, found.topic.maxBatchBytes)
    this.#touched.add(found)
    return { topic, partition, baseOffset }
  }

  #writable(topic: string, partition: number): Partition {
    const found = this.#topics.find({ topic, partition })
    if (found !== undefined) return found
    if (this.#options.autoCreateTopics !== false && this.#topics.get(topic) === undefined) {
      this.#topics.create({ topic, partitions: this.#options.partitions })
    }
    return this.#topics.partition({ topic, partition })
  }

  #validateCommit(member: GroupMember, offsets: readonly OffsetToCommit[], transactional: boolean): void {
    for (const o of offsets) {
      this.#topics.partition(o)
      if (Buffer.byteLength(o.metadata) > maxMetadata) {
        throw new BrokerError(
          'OFFSET_METADATA_TOO_LARGE',
          `The metadata of an offset may take ${maxMetadata} bytes; those of ${o.topic}:${o.partition} take more.`,
        )
      }
    }
    const group = this.#groups.get(member.groupId)
    if (group !== undefined) group.validateCommit(member, transactional)
    else if (member.generationId >= 0) {
      throw new BrokerError(
        'ILLEGAL_GENERATION',
        `The group ${member.groupId} has no generation ${member.generationId}: the member must join again.`,
      )
    }
  }

  #groupOf(member: GroupMember): Group {
    const group = this.#groups.get(member.groupId)
    if (group === undefined) throw unknownMember(member)
    return group
  }

  #writeEnd(producerId: bigint, epoch: number, commit: boolean): void {
    const timestamp = this.#clock.now()
    for (const topic of this.#topics.all()) {
      for (const partition of topic.partitions) {
        if (partition.log.endTransaction(producerId, epoch + 1, commit, timestamp)) this.#touched.add(partition)
      }
    }
    this.#offsets.end(producerId, commit)
    this.#storage.written()
  }

  #afterWrite(): void {
    if (!this.#decided.waits) this.#maintain()
    this.#wake()
  }

  #maintain(): void {
    for (const partition of this.#touched) {
      maintain(partition, this.#clock.now(), this.#options.compactionBytes ?? this.#topics.compactionBytes)
    }
    if (this.#storage.journalIsLong()) this.#shortenJournal()
  }

  /** Without room on the disk the journal stays long: no write fails for that. */
  #shortenJournal(): void {
    try {
      this.#storage.replaceJournal(this.#snapshot())
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
    }
  }

  /** What was written is about to be acknowledged. Whether it is stored, nobody knows where this fails: it must not be tried again. */
  #store(): void {
    this.#decided.orStop(() => this.#storage.written())
  }

  /** Before anything is written: what was decided before is done first. */
  #checkRunning(): void {
    if (this.#decided.finish()) this.#afterWrite()
  }

  /** Answers the waiting calls that can be answered now. */
  #wake(): void {
    for (const partition of this.#touched) {
      if (partition.waiters.size === 0) continue
      for (const [waiter, asked] of [...partition.waiters]) {
        if (isReady(this.#logOf, asked, waiter.request.isolation)) this.#answer(waiter)
      }
    }
    this.#touched.clear()
    for (const waiter of [...this.#offsetWaiters]) {
      const { groupId, partitions, reply } = waiter
      if (this.#offsets.isUnstable(groupId, partitions)) continue
      this.#offsetWaiters.delete(waiter)
      reply.done(this.#offsets.committed(groupId, partitions))
    }
  }

  #answer(waiter: FetchWaiter): void {
    if (!this.#fetches.delete(waiter)) return
    for (const partition of waiter.partitions) partition.waiters.delete(waiter)
    waiter.done(answer(this.#logOf, waiter.request, this.#turn++))
  }

  #snapshot(): JournalEntry[] {
    return [
      ...this.#topics.snapshot(),
      ...this.#transactions.snapshot(),
      ...this.#offsets.snapshot(),
      ...this.#feeds.snapshot(),
    ]
  }
}

function unknownMember({ groupId, memberId }: { groupId: string; memberId: string }): BrokerError {
  return new BrokerError('UNKNOWN_MEMBER_ID', `The group ${groupId} has no member ${memberId}: it must join again.`)
}
