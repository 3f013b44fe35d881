/**
 * What members tell one another, in the encoding of Kafka's consumer protocol, so that Kafka's own tools show the
 * subscription and the assignment. Ours goes into the free field (`userData`), behind a magic number.
 */
import type { TopicPartition } from '../../base/ids.ts'
import type { TopicInfo } from '../../broker/port.ts'
import { CorruptBatchError } from '../../broker/wire/corrupt.ts'

/** What a member of ours says of itself. */
export interface MemberIdentity {
  /** Name of the process. */
  readonly instance: string
  /** It needs every partition for itself: its sub-topologies hand records to one another in process. */
  readonly exclusive: boolean
  /** Name of its machine or pod. */
  readonly host?: string
  /** Under which name it talks to the broker. */
  readonly client?: string
  /** Where its HTTP interface is, for whoever looks for a key that it has. */
  readonly address?: string
}

export interface Subscription {
  readonly topics: readonly string[]
  readonly owned: readonly TopicPartition[]
  /** Generation in which it owned them; -1 for none. */
  readonly generationId: number
  /** Undefined for a member that is not of ours. */
  readonly identity: MemberIdentity | undefined
  /** Topics whose partitions of the same number are to be on one member, as its release has it. */
  readonly together: TopicSets
}

export type TopicSets = ReadonlyArray<readonly string[]>

/** By their places among other topics: a broker keeps what all members say and are told in one record, and names are long. */
type PlaceSets = ReadonlyArray<readonly number[]>

function placesIn(topics: readonly string[], sets: TopicSets): PlaceSets {
  const places = new Map(topics.map((topic, place) => [topic, place]))
  return sets.map((set) => set.flatMap((topic) => places.get(topic) ?? []))
}

function namesOf(topics: readonly string[], sets: PlaceSets): TopicSets {
  return sets.map((set) => set.flatMap((place) => topics[place] ?? []))
}

/** Which of the topics that a member reads are kept together, as it is told. */
export function keptTogether(reads: Readonly<Record<string, number>>, sets: TopicSets): PlaceSets {
  return placesIn(Object.keys(reads).sort(), sets).filter(({ length }) => length > 1)
}

/** A member as the leader saw it. */
export interface RosterEntry {
  readonly memberId: string
  readonly groupInstanceId: string | null
  /** Null for a member that is not of ours. */
  readonly identity: MemberIdentity | null
  /** What it may work on now: partitions by topic. Left out where no member says at which address it can be asked. */
  readonly owns?: Readonly<Record<string, readonly number[]>>
  /** It had partitions that are to go to others, who get them once it joins again. */
  readonly gives?: true
  /** Of the member that is told: the topics that it reads, each with as many partitions as were shared out. */
  readonly reads?: Readonly<Record<string, number>>
  /** Of the member that is told: which of these were kept together, by their places in the order of names. */
  readonly together?: PlaceSets
}

export interface Assignment {
  readonly partitions: readonly TopicPartition[]
  /** All members, the senior one first; empty where the leader was not of ours. */
  readonly roster: readonly RosterEntry[]
}

const magic = Buffer.from('MLR1')
const subscriptionVersion = 2
const assignmentVersion = 0

export function encodeSubscription(subscription: Subscription): Uint8Array {
  const out = new Writer()
  out.int16(subscriptionVersion)
  out.int32(subscription.topics.length)
  for (const topic of subscription.topics) out.string(topic)
  const { identity, topics, together } = subscription
  out.bytes(identity ? ours({ ...identity, together: placesIn(topics, together) }) : null)
  out.partitions(subscription.owned)
  out.int32(subscription.generationId)
  return out.finish()
}

export function decodeSubscription(bytes: Uint8Array): Subscription {
  const input = new Reader(bytes)
  const version = input.int16()
  const topics = Array.from({ length: input.count() }, () => input.string())
  const { together = [], ...identity } = parseOurs(input.bytes(), isSaid) ?? {}
  const owned = version >= 1 ? input.partitions() : []
  const generationId = version >= 2 && input.left >= 4 ? input.int32() : -1
  const sets = namesOf(topics, together)
  return { topics, owned, generationId, together: sets, identity: isIdentity(identity) ? identity : undefined }
}

export function encodeAssignment({ partitions, roster }: Assignment): Uint8Array {
  const out = new Writer()
  out.int16(assignmentVersion)
  out.partitions(partitions)
  out.bytes(ours(roster))
  return out.finish()
}

/** No bytes at all are an empty assignment: so a coordinator answers a member that the leader left out. */
export function decodeAssignment(bytes: Uint8Array): Assignment {
  if (bytes.length === 0) return { partitions: [], roster: [] }
  const input = new Reader(bytes)
  input.int16()
  const partitions = input.partitions()
  return { partitions, roster: parseOurs(input.bytes(), isRoster) ?? [] }
}

/** What is told of the static member itself; undefined for another kind of member. */
export function entryOf(roster: readonly RosterEntry[], groupInstanceId: string | null): RosterEntry | undefined {
  return roster.find((entry) => groupInstanceId !== null && entry.groupInstanceId === groupInstanceId)
}

/** Whether an assignment shared out just what is to be read now, and kept together what is to be. Where it does not say so it is taken for right. */
export function wasMadeFor(
  { reads, together: places = [] }: Pick<RosterEntry, 'reads' | 'together'>,
  topics: readonly TopicInfo[],
  together: TopicSets,
): boolean {
  if (reads === undefined) return true
  const isSame =
    Object.keys(reads).length === topics.length && topics.every(({ topic, partitions }) => reads[topic] === partitions)
  const kept = namesOf(Object.keys(reads).sort(), places)
  // Tables that every process reads as a whole are in nobody's assignment.
  const isShared = (topic: string): boolean => reads[topic] !== undefined
  const keeps = (set: readonly string[]): boolean => {
    const shared = set.filter(isShared)
    return shared.length < 2 || kept.some((of) => shared.every((topic) => of.includes(topic)))
  }
  return isSame && together.every(keeps)
}

function ours(value: unknown): Uint8Array {
  return Buffer.concat([magic, Buffer.from(JSON.stringify(value))])
}

function parseOurs<T>(bytes: Uint8Array | null, is: (value: unknown) => value is T): T | undefined {
  if (bytes === null || bytes.length < magic.length || magic.compare(bytes, 0, magic.length) !== 0) return undefined
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8', magic.length))
  } catch {
    // Our magic before something that is not ours: it is treated as a member of another kind.
    return undefined
  }
  return is(value) ? value : undefined
}

/** What a member says of itself; of an earlier build without what is to be together. */
function isSaid(value: unknown): value is MemberIdentity & { readonly together?: PlaceSets } {
  return isIdentity(value) && isSets((value as { readonly together?: unknown }).together)
}

function isSets(value: unknown): boolean {
  const isSet = (each: unknown): boolean => isArray(each) && (each as unknown[]).every(Number.isInteger)
  return value === undefined || (isArray(value) && (value as unknown[]).every(isSet))
}

function isIdentity(value: unknown): value is MemberIdentity {
  const v = value as Partial<MemberIdentity> | null
  return typeof v === 'object' && v !== null && typeof v.instance === 'string' && typeof v.exclusive === 'boolean'
}

function isRoster(value: unknown): value is RosterEntry[] {
  return Array.isArray(value) && value.every(isRosterEntry)
}

function isRosterEntry(value: unknown): value is RosterEntry {
  const v = value as Partial<RosterEntry> | null
  if (typeof v?.memberId !== 'string') return false
  return isRecordOf(v.owns, isArray) && isRecordOf(v.reads, Number.isInteger) && isSets(v.together)
}

function isRecordOf(value: unknown, is: (each: unknown) => boolean): boolean {
  return value === undefined || (typeof value === 'object' && value !== null && Object.values(value).every(is))
}

function isArray(value: unknown): boolean {
  return Array.isArray(value)
}

class Writer {
  readonly #parts: Buffer[] = []

  int16(value: number): void {
    const part = Buffer.allocUnsafe(2)
    part.writeInt16BE(value)
    this.#parts.push(part)
  }

  int32(value: number): void {
    const part = Buffer.allocUnsafe(4)
    part.writeInt32BE(value)
    this.#parts.push(part)
  }

  string(value: string): void {
    const part = Buffer.from(value)
    this.int16(part.length)
    this.#parts.push(part)
  }

  bytes(value: Uint8Array | null): void {
    this.int32(value === null ? -1 : value.length)
    if (value !== null) this.#parts.push(Buffer.from(value))
  }

  partitions(partitions: readonly TopicPartition[]): void {
    const byTopic = Map.groupBy(partitions, ({ topic }) => topic)
    this.int32(byTopic.size)
    for (const [topic, list] of byTopic) {
      this.string(topic)
      this.int32(list.length)
      for (const { partition } of list) this.int32(partition)
    }
  }

  finish(): Uint8Array {
    return new Uint8Array(Buffer.concat(this.#parts))
  }
}

class Reader {
  readonly #view: DataView
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  get left(): number {
    return this.#bytes.length - this.#at
  }

  int16(): number {
    return this.#view.getInt16(this.#take(2))
  }

  int32(): number {
    return this.#view.getInt32(this.#take(4))
  }

  /** Length of an array, each element of which takes two bytes at the least. */
  count(): number {
    const count = this.int32()
    if (count < 0) return 0
    if (count * 2 > this.left) throw cutOff()
    return count
  }

  string(): string {
    const length = Math.max(0, this.int16())
    const at = this.#take(length)
    return Buffer.from(this.#bytes.subarray(at, at + length)).toString()
  }

  bytes(): Uint8Array | null {
    if (this.left < 4) return null
    const length = this.int32()
    if (length < 0) return null
    const at = this.#take(length)
    return this.#bytes.subarray(at, at + length)
  }

  partitions(): TopicPartition[] {
    const result: TopicPartition[] = []
    for (let topics = this.count(); topics > 0; topics--) {
      const topic = this.string()
      for (let partitions = this.count(); partitions > 0; partitions--) {
        result.push({ topic, partition: this.int32() })
      }
    }
    return result
  }

  #take(length: number): number {
    const at = this.#at
    if (length > this.left) throw cutOff()
    this.#at = at + length
    return at
  }
}

function cutOff(): CorruptBatchError {
  return new CorruptBatchError('What a member of the group says of itself is cut off: its bytes end too early.')
}
