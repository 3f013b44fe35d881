/**
 * Who gets which partitions: sticky, balanced, cooperative. Partitions that must lie together (those of one number of
 * all topics that a sub-topology reads) move as one unit. A unit of which another member still owns a partition is given to
 * nobody; its owner sees that it lost it, commits, lets go and joins again, and only then does the new owner get it. So
 * no partition has two owners at any time, and nobody has a part of a unit.
 */
import { type PartitionKey, partitionKey, type TopicPartition } from '../../base/ids.ts'

export interface AssignorMember {
  readonly memberId: string
  readonly topics: readonly string[]
  readonly owned: readonly TopicPartition[]
  readonly generationId: number
}

export interface AssignorInput {
  /** In order of seniority. */
  readonly members: readonly AssignorMember[]
  /** Number of partitions of every topic that exists. */
  readonly partitions: ReadonlyMap<string, number>
  /** Topics whose partitions of the same number belong on one member, as the members say, of all releases that are there. */
  readonly coPartitioned: ReadonlyArray<readonly string[]>
  /** One member, the senior one, gets everything. */
  readonly exclusive: boolean
}

interface Unit {
  /** Topics of which this is one partition each. */
  readonly set: string
  /** Members that may have it. */
  readonly readers: ReadonlySet<string>
  readonly partitions: readonly TopicPartition[]
}

interface Load {
  readonly member: AssignorMember
  readonly units: Set<Unit>
  readonly perSet: Map<string, number>
}

/** The new assignment, by member id. */
export function assignCooperatively(input: AssignorInput): Map<string, TopicPartition[]> {
  const members = input.exclusive ? input.members.slice(0, 1) : input.members
  const claims = claimsOf(input.members)
  const target = new Map<string, TopicPartition[]>(input.members.map(({ memberId }) => [memberId, []]))
  const reads = new Map(members.map(({ memberId, topics }) => [memberId, new Set(topics)]))
  for (const [memberId, units] of balanced(members, unitsOf(input, members), claims.owner)) {
    // A part of one would be a stream without its table, or a table without its stream.
    const free = units.filter(({ partitions }) => partitions.every((tp) => isFree(claims, tp, memberId)))
    const all = free.flatMap(({ partitions }) => partitions).filter(({ topic }) => reads.get(memberId)?.has(topic))
    target.set(memberId, all.sort(byTopicAndPartition))
  }
  return target
}

/** Nobody else claims it, or the member is the one that is believed. */
function isFree({ claimants, owner }: Claims, { topic, partition }: TopicPartition, memberId: string): boolean {
  const key = partitionKey(topic, partition)
  const of = claimants.get(key)
  return of === undefined || owner.get(key) === memberId || of.every((id) => id === memberId)
}

interface Claims {
  /** The member that owned a partition last: the one with the highest generation. */
  readonly owner: ReadonlyMap<PartitionKey, string>
  /** All that say they own it. */
  readonly claimants: ReadonlyMap<PartitionKey, readonly string[]>
}

function claimsOf(members: readonly AssignorMember[]): Claims {
  const owner = new Map<PartitionKey, string>()
  const generation = new Map<PartitionKey, number>()
  const claimants = new Map<PartitionKey, string[]>()
  for (const member of members) {
    for (const { topic, partition } of member.owned) {
      const key = partitionKey(topic, partition)
      const others = claimants.get(key)
      if (others) others.push(member.memberId)
      else claimants.set(key, [member.memberId])
      const best = generation.get(key)
      if (best === undefined || member.generationId > best) {
        generation.set(key, member.generationId)
        owner.set(key, member.memberId)
      } else if (member.generationId === best) {
        // Two that claim the same at the same time: neither is believed, and both must let go.
        owner.delete(key)
      }
    }
  }
  return { owner, claimants }
}

function unitsOf({ partitions, coPartitioned }: AssignorInput, members: readonly AssignorMember[]): Unit[] {
  const subscribed = new Set(members.flatMap((member) => member.topics))
  const read = [...partitions.keys()].filter((topic) => subscribed.has(topic))
  return topicSets(read, coPartitioned).flatMap((topics) => unitsOfSet(topics, partitions, members))
}

function unitsOfSet(
  topics: readonly string[],
  partitions: ReadonlyMap<string, number>,
  members: readonly AssignorMember[],
): Unit[] {
  const countOf = (topic: string): number => partitions.get(topic) ?? 0
  const readers = new Map<string, ReadonlySet<string>>()
  return Array.from({ length: Math.max(...topics.map(countOf)) }, (_, partition) => {
    const there = topics.filter((topic) => partition < countOf(topic))
    const names = there.join('\n')
    const known = readers.get(names) ?? readersOf(there, members)
    readers.set(names, known)
    return { set: topics.join('\n'), readers: known, partitions: there.map((topic) => ({ topic, partition })) }
  })
}

/**
 * Those that read all of these topics. Where members of different releases read them and none reads all, those that read the most: what such
 * a one does not read nobody has for as long, for with another it would be in two hands.
 */
function readersOf(topics: readonly string[], members: readonly AssignorMember[]): Set<string> {
  const counts = members.map((member) => topics.filter((topic) => member.topics.includes(topic)).length)
  const most = Math.max(...counts)
  return new Set(members.filter((_, i) => counts[i] === most).map(({ memberId }) => memberId))
}

/** Topics joined into the smallest sets in which no two co-partitioned ones are apart. */
function topicSets(topics: readonly string[], coPartitioned: ReadonlyArray<readonly string[]>): string[][] {
  const root = new Map(topics.map((topic) => [topic, topic]))
  const find = (topic: string): string => {
    let at = topic
    while (root.get(at) !== at) at = root.get(at) as string
    return at
  }
  for (const group of coPartitioned) {
    const [first, ...rest] = group.filter((topic) => root.has(topic))
    if (first !== undefined) for (const topic of rest) root.set(find(topic), find(first))
  }
  const sets = Map.groupBy([...topics].sort(), find)
  return [...sets.values()].sort((a, b) => ((a[0] as string) < (b[0] as string) ? -1 : 1))
}

/** Everybody keeps what is theirs; what is free goes to the least loaded; then units move from the most to the least. */
function balanced(
  members: readonly AssignorMember[],
  units: readonly Unit[],
  owner: ReadonlyMap<PartitionKey, string>,
): Map<string, Unit[]> {
  const loads = members.map((member) => ({
    member,
    units: new Set<Unit>(),
    perSet: new Map<string, number>(),
  }))
  const byId = new Map(loads.map((load) => [load.member.memberId, load]))
  const free: Unit[] = []
  for (const unit of units) {
    const keeper = byId.get(mainOwner(unit, owner) ?? '')
    if (keeper && mayHave(keeper, unit)) give(keeper, unit)
    else free.push(unit)
  }
  for (const unit of free) {
    const least = leastLoaded(loads, unit)
    if (least) give(least, unit)
  }
  while (moveOne(loads));
  return new Map(loads.map(({ member, units: mine }) => [member.memberId, [...mine]]))
}

/** The member that owns most of a unit's partitions. */
function mainOwner(unit: Unit, owner: ReadonlyMap<PartitionKey, string>): string | undefined {
  const counts = new Map<string, number>()
  let best: string | undefined
  for (const { topic, partition } of unit.partitions) {
    const id = owner.get(partitionKey(topic, partition))
    if (id === undefined) continue
    const count = (counts.get(id) ?? 0) + 1
    counts.set(id, count)
    if (best === undefined || count > (counts.get(best) ?? 0)) best = id
  }
  return best
}

const mayHave = ({ member }: Load, { readers }: Unit): boolean => readers.has(member.memberId)
const inSet = (load: Load, unit: Unit): number => load.perSet.get(unit.set) ?? 0

function give(load: Load, unit: Unit): void {
  load.units.add(unit)
  load.perSet.set(unit.set, inSet(load, unit) + 1)
}

function take(load: Load, unit: Unit): void {
  load.units.delete(unit)
  load.perSet.set(unit.set, inSet(load, unit) - 1)
}

function leastLoaded(loads: readonly Load[], unit: Unit): Load | undefined {
  let best: Load | undefined
  for (const load of loads) {
    if (!mayHave(load, unit)) continue
    const difference = best ? load.units.size - best.units.size || inSet(load, unit) - inSet(best, unit) : -1
    if (difference < 0) best = load
  }
  return best
}

/** Moves one unit from a member to another that has at least two fewer; false when there is none to move. */
function moveOne(loads: readonly Load[]): boolean {
  const descending = [...loads].sort((a, b) => b.units.size - a.units.size)
  for (const from of descending) {
    for (const to of descending.toReversed()) {
      if (from.units.size - to.units.size < 2) break
      let chosen: Unit | undefined
      for (const unit of from.units) {
        if (!mayHave(to, unit)) continue
        const gain = inSet(from, unit) - inSet(to, unit)
        if (chosen === undefined || gain >= inSet(from, chosen) - inSet(to, chosen)) chosen = unit
      }
      if (chosen === undefined) continue
      take(from, chosen)
      give(to, chosen)
      return true
    }
  }
  return false
}

function byTopicAndPartition(a: TopicPartition, b: TopicPartition): number {
  return a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.partition - b.partition
}
