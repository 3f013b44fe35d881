/** One consumer group under the classic protocol: members, generations, rebalances, static membership. */
import { assert } from '../../../base/assert.ts'
import type { Random } from '../../../base/random.ts'
import type { GroupDescription, GroupMember, JoinedGroup, JoinRequest } from '../../port.ts'
import { BrokerError } from '../../port.ts'

export type GroupState = 'Empty' | 'PreparingRebalance' | 'CompletingRebalance' | 'Stable'

/** How a waiting call is answered. */
export interface Reply<T> {
  done(answer: T): void
  fail(error: BrokerError): void
}

interface Member {
  readonly memberId: string
  readonly groupInstanceId: string | null
  readonly clientId: string
  sessionTimeoutMs: number
  rebalanceTimeoutMs: number
  protocols: JoinRequest['protocols']
  assignment: Uint8Array
  join: Reply<JoinedGroup> | undefined
  sync: Reply<Uint8Array> | undefined
  /** When the session ends without a sign of life. Not looked at while the member waits for an answer. */
  expiresAt: number
}

const noAssignment = new Uint8Array(0)
const never = Number.POSITIVE_INFINITY

export class Group {
  readonly groupId: string
  readonly #random: Random
  readonly #now: () => number
  readonly #initialDelayMs: number
  readonly #members = new Map<string, Member>()
  readonly #static = new Map<string, string>()
  #state: GroupState = 'Empty'
  #generation = 0
  #leader = ''
  #protocol = ''
  #joinDeadline = never
  /** While a group that was empty waits for its first members, nobody is hurried. */
  #initialUntil = -1
  #syncDeadline = never

  constructor(groupId: string, random: Random, now: () => number, initialDelayMs: number) {
    this.groupId = groupId
    this.#random = random
    this.#now = now
    this.#initialDelayMs = initialDelayMs
  }

  get state(): GroupState {
    return this.#state
  }

  join(request: JoinRequest, clientId: string, reply: Reply<JoinedGroup>): void {
    if (request.protocols.length === 0 || !this.#supports(request)) {
      throw new BrokerError(
        'INCONSISTENT_GROUP_PROTOCOL',
        `The group ${this.groupId} and the joining member have no assignment protocol in common.`,
      )
    }
    if (request.memberId === '') {
      const known = request.groupInstanceId === null ? undefined : this.#static.get(request.groupInstanceId)
      if (known === undefined) this.#add(request, clientId, reply)
      else this.#takeOver(known, request, clientId, reply)
      return
    }
    this.#rejoin(this.#validated(request.memberId, request.groupInstanceId), request, reply)
  }

  sync(
    from: GroupMember,
    protocol: string,
    assignments: ReadonlyArray<{ readonly memberId: string; readonly assignment: Uint8Array }>,
    reply: Reply<Uint8Array>,
  ): void {
    const member = this.#validatedMember(from)
    if (protocol !== this.#protocol) {
      throw new BrokerError('INCONSISTENT_GROUP_PROTOCOL', `The group chose ${this.#protocol}, not ${protocol}.`)
    }
    if (this.#state === 'PreparingRebalance') throw this.#rebalancing()
    this.#alive(member)
    if (this.#state === 'Stable') {
      reply.done(member.assignment)
      return
    }
    member.sync = reply
    if (member.memberId !== this.#leader) return
    assert(this.#state === 'CompletingRebalance', `a leader assigns partitions while the group is ${this.#state}`)
    const given = new Map(assignments.map((a) => [a.memberId, a.assignment]))
    this.#state = 'Stable'
    this.#syncDeadline = never
    for (const m of this.#members.values()) {
      m.assignment = given.get(m.memberId) ?? noAssignment
      const waiting = m.sync
      if (waiting === undefined) continue
      m.sync = undefined
      this.#alive(m)
      waiting.done(m.assignment)
    }
  }

  heartbeat(from: GroupMember): void {
    const member = this.#validatedMember(from)
    this.#alive(member)
    if (this.#state === 'PreparingRebalance') throw this.#rebalancing()
  }

  leave(from: GroupMember): void {
    this.#remove(this.#validated(from.memberId, from.groupInstanceId), this.#unknown(from.memberId))
  }

  /** Throws unless offsets may be committed so. */
  validateCommit(from: GroupMember, transactional: boolean): void {
    if (from.generationId < 0 && this.#state === 'Empty') return
    if (from.generationId >= 0 || from.memberId !== '' || from.groupInstanceId !== null) {
      this.#alive(this.#validatedMember(from))
    } else if (!transactional) {
      throw this.#unknown(from.memberId)
    }
    if (!transactional && this.#state === 'CompletingRebalance') throw this.#rebalancing()
  }

  describe(): GroupDescription {
    const isStable = this.#state === 'Stable'
    const members = [...this.#members.values()].map(({ memberId, groupInstanceId, clientId, protocols }) => {
      const chosen = isStable ? protocols.find(({ name }) => name === this.#protocol) : undefined
      return { memberId, groupInstanceId, clientId, ...(chosen !== undefined && { metadata: chosen.metadata }) }
    })
    return { state: this.#state, members }
  }

  nextDeadline(): number {
    let least = Math.min(this.#joinDeadline, this.#syncDeadline)
    for (const member of this.#members.values()) {
      if (member.join === undefined && member.sync === undefined && member.expiresAt < least) least = member.expiresAt
    }
    return least
  }

  expire(): void {
    const now = this.#now()
    for (const member of [...this.#members.values()]) {
      if (member.join === undefined && member.sync === undefined && now >= member.expiresAt) {
        this.#remove(member, this.#unknown(member.memberId))
      }
    }
    if (now >= this.#joinDeadline) this.#completeJoin()
    if (now >= this.#syncDeadline) this.#expireSync()
  }

  #supports(request: JoinRequest): boolean {
    const others = [...this.#members.values()].filter(
      (m) => m.memberId !== request.memberId && m.memberId !== this.#static.get(request.groupInstanceId ?? ''),
    )
    return (
      others.length === 0 ||
      request.protocols.some(({ name }) => others.every((m) => m.protocols.some((p) => p.name === name)))
    )
  }

  #add(request: JoinRequest, clientId: string, reply: Reply<JoinedGroup>): void {
    const member: Member = {
      memberId: this.#newMemberId(request.groupInstanceId ?? clientId),
      groupInstanceId: request.groupInstanceId,
      clientId,
      sessionTimeoutMs: request.sessionTimeoutMs,
      rebalanceTimeoutMs: request.rebalanceTimeoutMs,
      protocols: request.protocols,
      assignment: noAssignment,
      join: reply,
      sync: undefined,
      expiresAt: 0,
    }
    assert(!this.#members.has(member.memberId), 'two members drew one id')
    this.#members.set(member.memberId, member)
    if (member.groupInstanceId !== null) this.#static.set(member.groupInstanceId, member.memberId)
    this.#prepareRebalance()
  }

  /** A static member came back under its instance id: it takes the place of its predecessor, who is fenced. */
  #takeOver(oldId: string, request: JoinRequest, clientId: string, reply: Reply<JoinedGroup>): void {
    const old = this.#members.get(oldId)
    assert(old !== undefined, `the instance id ${request.groupInstanceId} belongs to nobody`)
    const fenced = new BrokerError(
      'FENCED_INSTANCE_ID',
      `Another process joined the group ${this.groupId} under the instance id ${old.groupInstanceId}.`,
    )
    old.join?.fail(fenced)
    old.sync?.fail(fenced)
    const before = old.protocols
    const member: Member = {
      ...old,
      memberId: this.#newMemberId(request.groupInstanceId as string),
      clientId,
      join: undefined,
      sync: undefined,
    }
    this.#update(member, request)
    // The order of the members is kept: whoever follows a leader that left does not depend on who came back.
    const all = [...this.#members.values()]
    this.#members.clear()
    for (const m of all) this.#members.set(m === old ? member.memberId : m.memberId, m === old ? member : m)
    this.#static.set(request.groupInstanceId as string, member.memberId)
    const wasLeader = this.#leader === oldId
    if (wasLeader) this.#leader = member.memberId
    this.#alive(member)
    if (this.#state === 'Stable' && sameNames(before, request.protocols)) {
      reply.done({ ...this.#joined(member), skipAssignment: wasLeader })
      return
    }
    member.join = reply
    if (this.#state === 'PreparingRebalance') this.#maybeCompleteJoin()
    else this.#prepareRebalance()
  }

  #rejoin(member: Member, request: JoinRequest, reply: Reply<JoinedGroup>): void {
    const changed = !sameProtocols(member.protocols, request.protocols)
    const answersAtOnce =
      !changed &&
      (this.#state === 'CompletingRebalance' || (this.#state === 'Stable' && member.memberId !== this.#leader))
    this.#update(member, request)
    if (answersAtOnce) {
      this.#alive(member)
      reply.done(this.#joined(member))
      return
    }
    member.join?.fail(this.#rebalancing())
    member.join = reply
    if (this.#state === 'PreparingRebalance') this.#maybeCompleteJoin()
    else this.#prepareRebalance()
  }

  #update(member: Member, request: JoinRequest): void {
    member.protocols = request.protocols
    member.sessionTimeoutMs = request.sessionTimeoutMs
    member.rebalanceTimeoutMs = request.rebalanceTimeoutMs
  }

  #prepareRebalance(): void {
    if (this.#state === 'PreparingRebalance') {
      this.#maybeCompleteJoin()
      return
    }
    const wasEmpty = this.#state === 'Empty'
    for (const member of this.#members.values()) {
      const { sync } = member
      member.sync = undefined
      if (sync === undefined) continue
      this.#alive(member)
      sync.fail(this.#rebalancing())
    }
    this.#state = 'PreparingRebalance'
    this.#syncDeadline = never
    this.#initialUntil = wasEmpty && this.#initialDelayMs > 0 ? this.#now() + this.#initialDelayMs : -1
    this.#joinDeadline = this.#initialUntil > 0 ? this.#initialUntil : this.#now() + this.#longestRebalance()
    this.#maybeCompleteJoin()
  }

  #maybeCompleteJoin(): void {
    if (this.#now() < this.#initialUntil) return
    for (const member of this.#members.values()) if (member.join === undefined) return
    this.#completeJoin()
  }

  #completeJoin(): void {
    this.#joinDeadline = never
    this.#initialUntil = -1
    for (const member of [...this.#members.values()]) {
      // A static member that is late keeps its place until its session ends.
      if (member.join === undefined && member.groupInstanceId === null) this.#forget(member)
    }
    if (this.#members.size === 0) {
      this.#generation++
      this.#state = 'Empty'
      this.#leader = ''
      this.#protocol = ''
      return
    }
    if (this.#members.get(this.#leader)?.join === undefined) {
      const joined = [...this.#members.values()].find((m) => m.join !== undefined)
      if (joined === undefined) {
        this.#joinDeadline = this.#now() + this.#longestRebalance()
        return
      }
      this.#leader = joined.memberId
    }
    this.#generation++
    this.#protocol = this.#chooseProtocol()
    assert(this.#members.has(this.#leader), 'a generation is led by one of its members')
    assert(this.#protocol !== '', 'members that joined have a protocol in common')
    this.#state = 'CompletingRebalance'
    this.#syncDeadline = this.#now() + this.#longestRebalance()
    for (const member of this.#members.values()) {
      const { join } = member
      member.join = undefined
      member.assignment = noAssignment
      this.#alive(member)
      join?.done(this.#joined(member))
    }
  }

  /** Members that joined and then did not ask for their assignment in time are out. */
  #expireSync(): void {
    this.#syncDeadline = never
    const late = [...this.#members.values()].filter((m) => m.sync === undefined)
    for (const member of late) this.#forget(member)
    this.#prepareRebalance()
  }

  #remove(member: Member, error: BrokerError): void {
    member.join?.fail(error)
    member.sync?.fail(error)
    this.#forget(member)
    if (this.#state === 'PreparingRebalance') this.#maybeCompleteJoin()
    else this.#prepareRebalance()
  }

  #forget(member: Member): void {
    this.#members.delete(member.memberId)
    const { groupInstanceId } = member
    if (groupInstanceId !== null && this.#static.get(groupInstanceId) === member.memberId) {
      this.#static.delete(groupInstanceId)
    }
  }

  #joined(member: Member): JoinedGroup {
    const isLeader = member.memberId === this.#leader
    return {
      memberId: member.memberId,
      generationId: this.#generation,
      leaderId: this.#leader,
      protocol: this.#protocol,
      skipAssignment: false,
      members: isLeader
        ? [...this.#members.values()].map((m) => ({
            memberId: m.memberId,
            groupInstanceId: m.groupInstanceId,
            metadata: m.protocols.find((p) => p.name === this.#protocol)?.metadata ?? noAssignment,
          }))
        : [],
    }
  }

  /** Of the protocols that all members know, the one that most of them like best. */
  #chooseProtocol(): string {
    const members = [...this.#members.values()]
    const first = members[0] as Member
    const common = first.protocols.filter(({ name }) => members.every((m) => m.protocols.some((p) => p.name === name)))
    const votes = new Map(common.map(({ name }) => [name, 0]))
    for (const member of members) {
      const liked = member.protocols.find(({ name }) => votes.has(name))
      if (liked !== undefined) votes.set(liked.name, (votes.get(liked.name) as number) + 1)
    }
    let best = ''
    for (const [name, count] of votes) if (best === '' || count > (votes.get(best) as number)) best = name
    return best
  }

  #validated(memberId: string, groupInstanceId: string | null): Member {
    if (groupInstanceId !== null) {
      const holder = this.#static.get(groupInstanceId)
      if (holder === undefined) throw this.#unknown(memberId)
      if (holder !== memberId) {
        throw new BrokerError(
          'FENCED_INSTANCE_ID',
          `Another process holds the instance id ${groupInstanceId} in the group ${this.groupId}.`,
        )
      }
    }
    const member = this.#members.get(memberId)
    if (member === undefined) throw this.#unknown(memberId)
    return member
  }

  #validatedMember(from: GroupMember): Member {
    const member = this.#validated(from.memberId, from.groupInstanceId)
    if (from.generationId !== this.#generation) {
      throw new BrokerError(
        'ILLEGAL_GENERATION',
        `The group ${this.groupId} is at generation ${this.#generation}, the member at ${from.generationId}: it must join again.`,
      )
    }
    return member
  }

  #alive(member: Member): void {
    member.expiresAt = this.#now() + member.sessionTimeoutMs
  }

  #longestRebalance(): number {
    let longest = 0
    for (const member of this.#members.values()) longest = Math.max(longest, member.rebalanceTimeoutMs)
    return longest
  }

  #newMemberId(prefix: string): string {
    const part = (): string =>
      Math.floor(this.#random.next() * 2 ** 32)
        .toString(16)
        .padStart(8, '0')
    return `${prefix}-${part()}${part()}`
  }

  #unknown(memberId: string): BrokerError {
    return new BrokerError(
      'UNKNOWN_MEMBER_ID',
      `The group ${this.groupId} has no member ${memberId === '' ? 'without an id' : memberId}: it must join again.`,
    )
  }

  #rebalancing(): BrokerError {
    return new BrokerError(
      'REBALANCE_IN_PROGRESS',
      `The group ${this.groupId} is rebalancing: the member must join again.`,
    )
  }
}

function sameNames(a: JoinRequest['protocols'], b: JoinRequest['protocols']): boolean {
  return a.length === b.length && a.every((p, i) => p.name === b[i]?.name)
}

function sameProtocols(a: JoinRequest['protocols'], b: JoinRequest['protocols']): boolean {
  return sameNames(a, b) && a.every((p, i) => Buffer.compare(p.metadata, (b[i] as typeof p).metadata) === 0)
}
