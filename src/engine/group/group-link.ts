/** The engine's place in its consumer group: what membership tells, made into what the engine does. */
import type { TopicPartition } from '../../base/ids.ts'
import type { GroupMember, TopicInfo } from '../../broker/port.ts'
import { EngineError } from '../../base/errors.ts'
import type { EngineOptions } from '../engine-options.ts'
import type { Run } from '../run.ts'
import { GroupHistory } from './group-history.ts'
import { Membership, type RosterEntry } from './membership.ts'
import { placesOf } from './places.ts'
import { TopicWatch } from './topic-watch.ts'
import { resolveAgain, type ResolvedTopics } from './topics.ts'

export interface GroupLinkHost {
  /** Partitions are this process's own from now on; resolves when they are being processed. */
  assigned(added: readonly TopicPartition[], all: readonly TopicPartition[]): Promise<void>
  /** Partitions will go to another member once this resolves. */
  revoking(partitions: readonly TopicPartition[]): Promise<void>
  /** Partitions are gone without a chance to commit. */
  lost(partitions: readonly TopicPartition[]): void
  connected(connected: boolean, why: string | undefined): void
  /** Topics or partitions have come; what is assigned from now on may be of them. */
  resolved(topics: ResolvedTopics): void
  /** A rebalance happened. */
  rebalanced(): void
  failed(error: unknown): void
  /** Settles when the run of the engine at this moment is over: what it was waiting for will not come. */
  runEnded(): Promise<void>
  /** Offsets may not be committed until it is given back: to whom it was taken from, whatever run there is by then. */
  holdCommits(): { readonly held: Promise<void> | undefined; giveBack(): void }
}

export class GroupLink {
  readonly #o: EngineOptions
  readonly #host: GroupLinkHost
  #membership: Membership | undefined
  readonly #history = new GroupHistory()
  #watch: TopicWatch | undefined
  /** Assignments are worked off one after the other. */
  #work: Promise<void> = Promise.resolve()

  constructor(options: EngineOptions, host: GroupLinkHost) {
    this.#o = options
    this.#host = host
  }

  get assignment(): readonly TopicPartition[] {
    return this.#membership?.assignment ?? []
  }

  get changes(): GroupHistory['changes'] {
    return this.#history.changes
  }

  get joined(): boolean {
    return this.#membership !== undefined
  }

  member(): GroupMember {
    const { settings } = this.#o
    const { applicationId: groupId, ha } = settings
    // Who is no member commits as nobody: the group does not look at it, the producer's identity alone decides.
    if (ha?.groupMode === 'assign') return { groupId, memberId: '', generationId: -1, groupInstanceId: null }
    return (
      this.#membership?.member ?? {
        groupId: settings.applicationId,
        memberId: '',
        generationId: -1,
        groupInstanceId: settings.groupInstanceId,
      }
    )
  }

  get isInGroup(): boolean {
    return this.#o.settings.ha?.groupMode !== 'assign'
  }

  get mayHaveReplacedItself(): boolean {
    return this.#membership?.mayHaveReplacedItself === true
  }

  subscription(topics: ResolvedTopics): string[] {
    return this.#membership?.subscription ?? this.#read(topics).map((info) => info.topic)
  }

  join(topics: ResolvedTopics): void {
    const { broker, settings, timers } = this.#o
    let known = topics
    this.#membership = new Membership(
      {
        broker,
        timers,
        groupId: settings.applicationId,
        groupInstanceId: settings.groupInstanceId,
        identity: {
          instance: settings.instanceId,
          exclusive: settings.split === 'in-process',
          ...(settings.advertisedAddress !== undefined && { address: settings.advertisedAddress }),
          ...(settings.hostName !== undefined && { host: settings.hostName }),
          ...(settings.clientId !== undefined && { client: settings.clientId }),
        },
        sessionTimeoutMs: settings.sessionTimeoutMs,
        rebalanceTimeoutMs: settings.rebalanceTimeoutMs,
        heartbeatIntervalMs: settings.heartbeatIntervalMs,
        metadataRefreshMs: settings.metadataMaxAgeMs,
        resolve: async () => {
          known = await resolveAgain(settings, broker, known)
          this.#host.resolved(known)
          return this.#read(known)
        },
        get coPartitioned() {
          const { bySource } = known
          const sets = settings.plan.subtopologies.map((s) => [
            ...new Set(s.sources.flatMap((at) => bySource[at] ?? [])),
          ])
          return sets.filter(({ length }) => length > 1)
        },
      },
      {
        assigned: (added, all) => {
          for (const resolve of this.#takers.splice(0)) resolve()
          this.#queue(() => this.#host.assigned(added, all))
        },
        revoke: (partitions) => this.inTurn(() => this.#host.revoking(partitions)),
        lost: (partitions) => {
          this.#o.fact({ type: 'places', places: null })
          this.#host.lost(partitions)
        },
        joining: () => this.#hold(),
        joined: () => this.#release(),
        roster: (members, memberId, given) => this.#roster(members, memberId, known, given),
        connected: (connected, why) => this.#host.connected(connected, why),
        failed: (error) => {
          // Who is fenced may be called back: then the place is taken anew.
          if (settings.ha) this.#membership = undefined
          this.#host.failed(error)
        },
      },
    )
    this.#membership.start()
  }

  readonly #takers: Array<() => void> = []

  /** With high availability: takes the active's place, fencing who had it; resolves once it is ours. */
  async take(topics: ResolvedTopics): Promise<void> {
    if (this.#o.settings.ha?.groupMode === 'assign') return
    if (!this.#membership) this.join(topics)
    if (this.#membership?.stable) return
    await new Promise<void>((resolve) => this.#takers.push(resolve))
  }

  /**
   * With high availability, from the moment this pod processes till its run is over. The group says nothing to a pod that
   * stays out of it; and what it says before the pod can take partitions in, it does not say again.
   */
  lookForNew(topics: { lookUp(): Promise<unknown> }): void {
    const { settings, timers } = this.#o
    this.#watch?.close()
    const watch = new TopicWatch({
      timers,
      everyMs: settings.metadataMaxAgeMs,
      lookUp: () => topics.lookUp(),
      looked: () => this.#queue(() => this.#host.assigned([], this.assignment)),
      failed: (error) => this.#host.failed(error),
    })
    this.#watch = watch
    void this.#host.runEnded().then(() => watch.close())
  }

  /** With high availability: leaves the place to whoever takes it, without a word to the group. */
  async standDown(): Promise<void> {
    const membership = this.#membership
    this.#membership = undefined
    this.#giveBack = undefined
    await membership?.leave(false)
  }

  #giveBack: (() => void) | undefined

  /** Joining is tried again until it works: one hold for all tries. */
  async #hold(): Promise<void> {
    if (this.#giveBack !== undefined) return
    const { held, giveBack } = this.#host.holdCommits()
    this.#giveBack = giveBack
    await held
  }

  #release(): void {
    this.#giveBack?.()
    this.#giveBack = undefined
  }

  async leave(): Promise<void> {
    this.#watch?.close()
    await this.#membership?.leave()
  }

  /** Assignments, revocations and restarts change the same things: one after the other. */
  inTurn(step: () => Promise<void>): Promise<void> {
    const turn = this.#work.then(() => Promise.race([step(), this.#host.runEnded()]))
    // Whoever asked for the turn hears of its failure; the next one has its turn all the same.
    this.#work = turn.catch(() => undefined)
    return turn
  }

  #queue(step: () => Promise<void>): void {
    this.inTurn(step).catch((error) => this.#host.failed(error))
  }

  /**
   * As `inTurn`, once the group has said which partitions are this process's own: without a word of it nobody knows where the
   * input was left, nor whether another process has it by now.
   */
  async inPlace(run: Run, step: () => Promise<void>): Promise<void> {
    while (!run.isOver && this.#membership?.isAssigned === false) {
      const assigned = new Promise<void>((resolve) => this.#takers.push(resolve))
      await Promise.race([assigned, this.#host.runEnded()])
    }
    if (!run.isOver) await this.inTurn(step)
  }

  /** Topics that the group shares out: those of streams and tables, not of global tables. */
  #read(topics: ResolvedTopics): TopicInfo[] {
    const names = new Set<string>()
    for (const { index, kind } of this.#o.settings.plan.sources) {
      if (kind !== 'global') for (const topic of topics.bySource[index] ?? []) names.add(topic)
    }
    return [...names].map((name) => topics.topics.get(name)).filter((info) => info !== undefined)
  }

  /** Two processes would split the state of one key: only a split through topics allows for more than one. */
  #roster(
    members: readonly RosterEntry[],
    memberId: string,
    topics: ResolvedTopics,
    given: readonly TopicPartition[],
  ): void {
    this.#host.rebalanced()
    this.#history.roster(members, this.#o.clock.now())
    const { groupInstanceId } = this.#o.settings
    // A static member that was restarted has a new id; the roster may still name it by the old one.
    const isSelf = (member: RosterEntry | undefined): boolean =>
      member !== undefined &&
      (member.memberId === memberId || (groupInstanceId !== null && member.groupInstanceId === groupInstanceId))
    const others = members.filter((member) => !isSelf(member))
    if (this.#o.settings.split === 'repartition-topics') {
      const isTold = members.some(({ owns }) => owns !== undefined)
      this.#o.fact({ type: 'places', places: placesOf(this.#o.settings, topics, others, given, isTold) })
    }
    if (this.#o.settings.ha) {
      // All partitions are the active's own: a member that only looks on is shown, and does no harm.
      const strangers = others.filter((member) => member.identity === null).map((member) => member.memberId)
      const names = strangers.join(', ')
      const message = `the group ${this.#o.settings.applicationId} has members that are no part of this application: ${names}`
      if (strangers.length > 0) this.#o.fact({ type: 'log', level: 'error', message })
      if (strangers.length === others.length) return
    }
    if (this.#o.settings.split !== 'in-process' || others.length === 0) return
    const senior = isSelf(members[0])
    const stranger = others.find((member) => member.identity === null)
    if (senior && stranger === undefined) return
    this.#host.failed(
      new EngineError(
        'FOREIGN_GROUP_MEMBER',
        `the group ${this.#o.settings.applicationId} has another member (${(stranger ?? others[0])?.memberId}), and ` +
          'topology.sub-topology-split is in-process: one process alone can have all partitions',
      ),
    )
  }
}
