/**
 * Membership in a consumer group by Kafka's classic protocol, with cooperative rebalances: partitions that stay are
 * never interrupted, and those that go are let go only after `revoke` has been awaited, commit included. One loop joins;
 * heartbeats go on beside it.
 */
import { assert } from '../../base/assert.ts'
import { partitionKey, type TopicPartition } from '../../base/ids.ts'
import type { Timers } from '../../base/timers.ts'
import { BrokerError, type BrokerPort, type GroupMember, type TopicInfo } from '../../broker/port.ts'
import { EngineError, messageOf } from '../../base/errors.ts'
import {
  type Assignment,
  decodeAssignment,
  encodeSubscription,
  entryOf,
  type MemberIdentity,
  type RosterEntry,
  type Subscription,
  wasMadeFor,
} from './membership-codec.ts'
import { MadeAnew } from './made-anew.ts'
import { assignAll } from './membership-leader.ts'
import { isPassing } from './own-place.ts'
import { keysOf } from './places.ts'
import { refusalOf } from './refusals.ts'

export type { MemberIdentity, RosterEntry } from './membership-codec.ts'

export interface MembershipOptions {
  readonly broker: BrokerPort
  readonly timers: Timers
  readonly groupId: string
  /** With it the member is static: a restarted process takes over at once, and leaving keeps the place. */
  readonly groupInstanceId: string | null
  readonly identity: MemberIdentity
  readonly sessionTimeoutMs: number
  /** How long the group waits for a member that has yet to let go of partitions. */
  readonly rebalanceTimeoutMs: number
  readonly heartbeatIntervalMs: number
  /** How often new topics and partitions are looked for. */
  readonly metadataRefreshMs: number
  /** The topics to read, as they are now: names, and what matches the patterns. */
  readonly resolve: () => Promise<readonly TopicInfo[]>
  /** Topics whose partitions of the same number belong on one member. */
  readonly coPartitioned: Subscription['together']
}

export interface MembershipEvents {
  /** These came; `all` is what the member has now. Told after every rebalance, also when nothing came. */
  assigned(added: readonly TopicPartition[], all: readonly TopicPartition[]): void
  /** These go to others once this resolves. The member still has them, and may commit, till then. */
  revoke(partitions: readonly TopicPartition[]): Promise<void>
  /** These are gone without a chance to commit: the group went on without this member. */
  lost(partitions: readonly TopicPartition[]): void
  /** About to join again: offsets may not be committed between this and `joined`. */
  joining?(): Promise<void>
  joined?(): void
  /** All members of the group, the senior one first, and what this one was given, after every rebalance. */
  roster?(members: readonly RosterEntry[], memberId: string, given: readonly TopicPartition[]): void
  connected?(connected: boolean, why: string | undefined): void
  /** The member is out, and does not come back by itself. */
  failed(error: EngineError): void
}

const protocol = 'cooperative'
const noGeneration = -1
const shortestBackoffMs = 50
const longestBackoffMs = 1000
/** Another rebalance often follows, of which members hear by a heartbeat: till then nobody has what is given away. */
const livelyMs = 200
/** The others hear of a join with their next heartbeat. */
const longestJoinMs = 3000
const livelyHeartbeats = 15

export class Membership {
  readonly #o: MembershipOptions
  readonly #events: MembershipEvents
  #memberId = ''
  #generationId = noGeneration
  /** Generation whose assignment `#owned` is. */
  #ownedGenerationId = noGeneration
  #owned: readonly TopicPartition[] = []
  #topics: readonly TopicInfo[] = []
  #leader = false
  #joined = false
  /** The group has said which partitions are this member's own; after a loss it has to say so anew. */
  isAssigned = false
  /** Between a request to join and the assignment: a heartbeat would speak of a generation that is past. */
  #joining = false
  #joinWanted = true
  #closed = false
  #connected = true
  /**
   * Requests for a place, as nobody yet, that were given up. The broker may come to them later, each as if another
   * process had joined, until heartbeats have been answered for a while.
   */
  #givenUp = 0
  /** Heartbeats that follow one another faster. */
  #lively = 0
  /** It has asked for a rebalance so that the others learn its new address. */
  #corrected = false
  #compared = false
  #backoffMs = shortestBackoffMs
  #wake: (() => void) | undefined
  #loop: Promise<void> | undefined
  readonly #cancels = new Set<() => void>()

  constructor(options: MembershipOptions, events: MembershipEvents) {
    this.#o = options
    this.#events = events
  }

  /** As which offsets are committed. Generation -1 before the first rebalance. */
  get member(): GroupMember {
    const { groupId, groupInstanceId } = this.#o
    return { groupId, groupInstanceId, memberId: this.#memberId, generationId: this.#generationId }
  }

  get assignment(): readonly TopicPartition[] {
    return this.#owned
  }

  get subscription(): string[] {
    return this.#topics.map(({ topic }) => topic).sort()
  }

  /** True between the end of a rebalance and the beginning of the next. */
  get stable(): boolean {
    return this.#joined && !this.#joinWanted
  }

  /** A request of its own may have taken its place: who is told that somebody has it knows nothing of another process. */
  get mayHaveReplacedItself(): boolean {
    return this.#givenUp > 0
  }

  start(): void {
    if (this.#loop) return
    this.#loop = this.#run()
    this.#repeat(
      () => this.#nextHeartbeatMs(),
      () => this.#heartbeat(),
    )
    this.#repeat(
      () => this.#o.metadataRefreshMs,
      () => this.#refreshMetadata(),
    )
  }

  /** Joins again soon, as when the application's topics have changed. */
  rejoin(): void {
    this.#joinWanted = true
    this.#wake?.()
  }

  /**
   * Ends the membership, with no further event. A static member keeps its place for its session timeout, so that its
   * successor takes over at once; `forGood` gives the place up.
   */
  async leave(forGood = this.#o.groupInstanceId === null): Promise<void> {
    this.#closed = true
    for (const cancel of this.#cancels) cancel()
    this.#wake?.()
    if (!forGood) return
    // The place that is asked for comes all the same: nobody would give it back.
    if (this.#joining) await Promise.race([this.#loop, this.#passed(longestJoinMs)])
    if (this.#memberId === '') return
    try {
      await this.#o.broker.leaveGroup(this.member)
    } catch (error) {
      // The group notices by itself that the member is gone, only later.
      if (!(error instanceof BrokerError)) throw error
    }
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      if (!this.#joinWanted) {
        await this.#pause(undefined)
        continue
      }
      this.#joinWanted = false
      try {
        await this.#rebalance()
        this.#backoffMs = shortestBackoffMs
        this.#setConnected(true, undefined)
      } catch (error) {
        this.#joinWanted = true
        await this.#joinFailed(error)
      }
    }
  }

  async #rebalance(): Promise<void> {
    this.#topics = await this.#o.resolve()
    if (this.#joined) await this.#events.joining?.()
    if (this.#closed) return
    let mine: Assignment | undefined
    assert(!this.#joining, 'a member joins once at a time')
    this.#joining = true
    try {
      mine = await this.#joinAndSync()
    } finally {
      this.#joining = false
    }
    if (mine === undefined) return
    assert(this.#memberId !== '', 'a group took a member in and gave it no id')
    this.#ownedGenerationId = this.#generationId
    this.#joined = true
    this.#lively = livelyHeartbeats
    this.#events.joined?.()
    this.#events.roster?.(mine.roster, this.#memberId, mine.partitions)
    // Not begun with: tasks that read a topic that is missing there would be begun later than those that feed them.
    if (this.#isOutdated(mine.roster)) this.#joinWanted = true
    else await this.#adopt(mine)
    this.#correct(mine.roster)
  }

  /** Undefined where the member left meanwhile. */
  async #joinAndSync(): Promise<Assignment | undefined> {
    const { broker, groupId, groupInstanceId, sessionTimeoutMs, rebalanceTimeoutMs, identity } = this.#o
    const subscription: Subscription = {
      topics: this.subscription,
      owned: this.#owned,
      generationId: this.#ownedGenerationId,
      identity,
      together: this.#o.coPartitioned,
    }
    const joined = await broker.joinGroup({
      groupId,
      memberId: this.#memberId,
      groupInstanceId,
      sessionTimeoutMs,
      rebalanceTimeoutMs,
      protocols: [{ name: protocol, metadata: encodeSubscription(subscription) }],
    })
    this.#memberId = joined.memberId
    this.#generationId = joined.generationId
    const { member } = this
    if (this.#closed) {
      // Left while the join was under way: the place that it brought is given back.
      if (groupInstanceId === null) await broker.leaveGroup(member)
      return undefined
    }
    this.#leader = joined.leaderId === joined.memberId
    const assignments = this.#leader && !joined.skipAssignment ? await assignAll(this.#o, this.#topics, joined) : []
    const answer = await broker.syncGroup(member, joined.protocol, assignments)
    return this.#closed ? undefined : decodeAssignment(answer)
  }

  async #adopt({ partitions }: Assignment): Promise<void> {
    const before = keysOf(this.#owned)
    const after = keysOf(partitions)
    const revoked = this.#owned.filter(({ topic, partition }) => !after.has(partitionKey(topic, partition)))
    if (revoked.length > 0) {
      await this.#events.revoke(revoked)
      const gone = keysOf(revoked)
      this.#owned = this.#owned.filter(({ topic, partition }) => !gone.has(partitionKey(topic, partition)))
      // Others can have them as soon as the group hears that they are free.
      this.#joinWanted = true
    }
    if (this.#closed || !this.#joined) return
    const added = partitions.filter(({ topic, partition }) => !before.has(partitionKey(topic, partition)))
    this.#owned = partitions
    this.isAssigned = true
    this.#events.assigned(added, partitions)
  }

  /**
   * A static member that is started anew gets its old assignment, in which the others read its old address, made for the topics
   * that were read then, and their partitions. And who had the place may not have told that what it was to give away is free.
   */
  #correct(roster: readonly RosterEntry[]): void {
    const { identity } = this.#o
    const told = entryOf(roster, this.#o.groupInstanceId)
    if (told?.gives === true) this.#joinWanted = true
    const isTold = told === undefined || told.identity?.address === identity.address
    if (identity.address === undefined || this.#corrected || isTold) return
    this.#corrected = true
    this.#joinWanted = true
  }

  #isOutdated(roster: readonly RosterEntry[]): boolean {
    const told = this.#compared ? undefined : entryOf(roster, this.#o.groupInstanceId)
    this.#compared = true
    return told !== undefined && !wasMadeFor(told, this.#topics, this.#o.coPartitioned)
  }

  #passed(ms: number): Promise<void> {
    return new Promise((resolve) => this.#o.timers.after(ms, resolve))
  }

  async #joinFailed(error: unknown): Promise<void> {
    if (this.#closed) return
    if (!(error instanceof BrokerError)) {
      const shown = EngineError.is(error)
        ? error
        : new EngineError('INVARIANT_BROKEN', messageOf(error), { cause: error })
      this.#fail(shown)
      return
    }
    switch (error.code) {
      case 'REBALANCE_IN_PROGRESS':
      case 'MEMBER_ID_REQUIRED':
        return
      case 'UNKNOWN_MEMBER_ID':
      case 'ILLEGAL_GENERATION':
        this.#lose(error.code === 'UNKNOWN_MEMBER_ID')
        return
      case 'FENCED_INSTANCE_ID':
        if (this.#replacedItself()) return
    }
    if (!isPassing(error)) {
      this.#fail(refusalOf(error, this.#o))
      return
    }
    if (this.#memberId === '') this.#givenUp++
    this.#setConnected(false, error.message)
    const backoffMs = this.#backoffMs
    this.#backoffMs = Math.min(longestBackoffMs, backoffMs * 2)
    await this.#pause(backoffMs)
  }

  /** The place goes to whoever asks last, and the broker has come to a request of our own that was given up. */
  #replacedItself(): boolean {
    if (this.#givenUp === 0) return false
    this.#givenUp--
    this.#lose(true)
    return true
  }

  #nextHeartbeatMs(): number {
    const { heartbeatIntervalMs } = this.#o
    if (this.#lively === 0) return heartbeatIntervalMs
    this.#lively--
    return Math.min(livelyMs, heartbeatIntervalMs)
  }

  async #heartbeat(): Promise<void> {
    if (!this.#joined || this.#joining) return
    const { member } = this
    try {
      await this.#o.broker.heartbeat(member)
      this.#setConnected(true, undefined)
      if (this.#lively === 0) this.#givenUp = 0
    } catch (error) {
      if (this.#closed || this.#joining) return
      if (!(error instanceof BrokerError)) throw error
      // What became of an earlier generation or member is not news any more.
      const now = this.member
      if (now.memberId !== member.memberId || now.generationId !== member.generationId) return
      this.#heartbeatFailed(error)
    }
  }

  #heartbeatFailed(error: BrokerError): void {
    switch (error.code) {
      case 'REBALANCE_IN_PROGRESS':
        this.rejoin()
        return
      case 'UNKNOWN_MEMBER_ID':
      case 'ILLEGAL_GENERATION':
        this.#lose(error.code === 'UNKNOWN_MEMBER_ID')
        this.rejoin()
        return
      case 'FENCED_INSTANCE_ID':
        if (!this.#replacedItself()) break
        this.rejoin()
        return
    }
    if (isPassing(error)) this.#setConnected(false, error.message)
    else this.#fail(refusalOf(error, this.#o))
  }

  /** The group went on without this member: whatever it had may belong to another by now. */
  #lose(unknownMember: boolean): void {
    const lost = this.#owned
    this.#owned = []
    this.isAssigned = false
    this.#generationId = noGeneration
    this.#ownedGenerationId = noGeneration
    this.#joined = false
    if (unknownMember) this.#memberId = ''
    if (lost.length > 0) this.#events.lost(lost)
  }

  async #refreshMetadata(): Promise<void> {
    if (!this.stable) return
    const before = this.#topics
    let now: readonly TopicInfo[]
    try {
      now = await this.#o.resolve()
    } catch (error) {
      // Looked for again soon; a broker that stays away is told of by the heartbeats.
      if (error instanceof BrokerError) return
      if (!EngineError.is(error)) throw error
      // To go on would mean to leave out what lies in the new partitions, or in the new topic, without a word.
      if (error.code === 'PARTITIONS_CHANGED' || error instanceof MadeAnew) this.#fail(error)
      return
    }
    if (before !== this.#topics) return
    const counts = new Map(before.map(({ topic, partitions }) => [topic, partitions]))
    const otherTopics = now.length !== before.length || now.some(({ topic }) => !counts.has(topic))
    const otherCounts = now.some(({ topic, partitions }) => counts.get(topic) !== partitions)
    // Of partitions that came the leader takes care; topics are each member's own subscription.
    if (otherTopics || (otherCounts && this.#leader)) this.rejoin()
  }

  #fail(error: EngineError): void {
    if (this.#closed) return
    this.#closed = true
    for (const cancel of this.#cancels) cancel()
    this.#wake?.()
    this.#events.failed(error)
  }

  #setConnected(connected: boolean, why: string | undefined): void {
    if (connected === this.#connected) return
    this.#connected = connected
    this.#events.connected?.(connected, why)
  }

  /** Calls again and again, never twice at once. */
  #repeat(everyMs: () => number, call: () => Promise<void>): void {
    const cancel = this.#o.timers.after(everyMs(), () => {
      this.#cancels.delete(cancel)
      call().then(
        () => (this.#closed ? undefined : this.#repeat(everyMs, call)),
        (error: unknown) => this.#fail(new EngineError('INVARIANT_BROKEN', messageOf(error), { cause: error })),
      )
    })
    this.#cancels.add(cancel)
  }

  #pause(atMostMs: number | undefined): Promise<void> {
    return new Promise((resolve) => {
      let cancel: (() => void) | undefined
      const done = (): void => {
        cancel?.()
        this.#wake = undefined
        resolve()
      }
      if (atMostMs !== undefined) cancel = this.#o.timers.after(atMostMs, done)
      this.#wake = done
    })
  }
}
