import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { partitionKey, type TopicPartition } from '../../../src/base/ids.ts'
import { type AssignorMember, assignCooperatively } from '../../../src/engine/group/membership-assignor.ts'

const keys = (partitions: readonly TopicPartition[]): string[] =>
  partitions.map(({ topic, partition }) => partitionKey(topic, partition))

interface Group {
  readonly partitions: ReadonlyMap<string, number>
  readonly coPartitioned: ReadonlyArray<readonly string[]>
  readonly exclusive: boolean
  members: AssignorMember[]
}

/** One rebalance as the group lives it: everybody takes over what it was given. True if somebody had to let go. */
function rebalance(group: Group): boolean {
  const assigned = assignCooperatively(group)
  const owners = new Map<string, string>()
  let revoked = false
  group.members = group.members.map((member) => {
    const owned = assigned.get(member.memberId) ?? []
    const kept = new Set(keys(owned))
    revoked ||= keys(member.owned).some((key) => !kept.has(key))
    for (const key of kept) {
      assert.equal(owners.get(key), undefined, `${key} was given to two`)
      owners.set(key, member.memberId)
    }
    return { ...member, owned, generationId: Math.max(0, member.generationId) + 1 }
  })
  for (const member of group.members) {
    for (const { topic } of member.owned) assert.ok(member.topics.includes(topic), 'given what it does not read')
  }
  return revoked
}

function settle(group: Group): number {
  let rounds = 1
  while (rebalance(group)) assert.ok(++rounds < 6, 'does not come to rest')
  return rounds
}

const newcomer = (memberId: string, topics: readonly string[]): AssignorMember => ({
  memberId,
  topics,
  owned: [],
  generationId: -1,
})

const moved = (before: readonly AssignorMember[], after: readonly AssignorMember[]): number => {
  const owner = new Map(before.flatMap((member) => keys(member.owned).map((key) => [key, member.memberId])))
  return after
    .flatMap((member) =>
      keys(member.owned).map((key) => owner.get(key) !== undefined && owner.get(key) !== member.memberId),
    )
    .filter(Boolean).length
}

const allTopics = ['a', 'b', 'c']
const counts = fc.tuple(fc.nat(12), fc.nat(12), fc.nat(12)).map(([a, b, c]) => new Map(Object.entries({ a, b, c })))

describe('the assignor', () => {
  test('comes to rest balanced, complete, and with co-partitioned topics together', () => {
    fc.assert(
      fc.property(
        counts,
        fc.array(fc.nat(7), { minLength: 1, maxLength: 12 }),
        fc.constantFrom(
          [],
          [['a', 'b']],
          [
            ['a', 'b'],
            ['b', 'c'],
          ],
        ),
        (partitions, toggles, coPartitioned) => {
          const group: Group = { partitions, coPartitioned, exclusive: false, members: [] }
          for (const who of toggles) {
            const at = group.members.findIndex(({ memberId }) => memberId === `m${who}`)
            if (at >= 0) group.members.splice(at, 1)
            else group.members.push(newcomer(`m${who}`, allTopics))
            if (group.members.length === 0) continue
            assert.ok(settle(group) <= 3)
            const owned = group.members.flatMap((member) => keys(member.owned))
            assert.equal(
              owned.length,
              [...partitions.values()].reduce((sum, count) => sum + count, 0),
            )
            for (const set of coPartitioned) {
              for (const member of group.members) {
                const of = (topic: string) => member.owned.filter((tp) => tp.topic === topic).map((tp) => tp.partition)
                const [first, second] = set as [string, string]
                const common = Math.min(partitions.get(first) ?? 0, partitions.get(second) ?? 0)
                assert.deepEqual(
                  of(first).filter((partition) => partition < common),
                  of(second).filter((partition) => partition < common),
                )
              }
            }
            if (coPartitioned.length > 0) continue
            const loads = group.members.map((member) => member.owned.length)
            assert.ok(Math.max(...loads) - Math.min(...loads) <= 1, `unbalanced: ${loads}`)
          }
        },
      ),
    )
  })

  test('moves nothing when nothing changed, and only a share when somebody comes', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 6 }), (count, size) => {
        const members = Array.from({ length: size }, (_, i) => newcomer(`m${i}`, ['a']))
        const group: Group = { partitions: new Map([['a', count]]), coPartitioned: [], exclusive: false, members }
        settle(group)
        const rested = group.members
        assert.equal(settle(group), 1)
        assert.equal(moved(rested, group.members), 0)
        const before = group.members
        group.members = [...before, newcomer('late', ['a'])]
        settle(group)
        assert.ok(moved(before, group.members) <= Math.ceil(count / (size + 1)))
      }),
    )
  })

  test('spreads the partitions of each topic, not only the sum', () => {
    const partitions = new Map(Object.entries({ a: 4, b: 4 }))
    const members = [newcomer('x', ['a', 'b']), newcomer('y', ['a', 'b'])]
    const group: Group = { partitions, coPartitioned: [], exclusive: false, members }
    settle(group)
    for (const member of group.members) {
      assert.equal(member.owned.filter(({ topic }) => topic === 'a').length, 2)
    }
  })

  test('gives everything to the senior member where one needs it all', () => {
    const partitions = new Map([['a', 5]])
    const members = [newcomer('first', ['a']), newcomer('second', ['a'])]
    const group: Group = { partitions, coPartitioned: [], exclusive: true, members }
    settle(group)
    assert.deepEqual(
      group.members.map((member) => member.owned.length),
      [5, 0],
    )
  })

  test('members of different releases get only what they read', () => {
    const partitions = new Map(Object.entries({ a: 3, b: 3 }))
    const members = [newcomer('old', ['a']), newcomer('new', ['a', 'b'])]
    const group: Group = { partitions, coPartitioned: [['a', 'b']], exclusive: false, members }
    settle(group)
    const owned = group.members.flatMap((member) => keys(member.owned))
    assert.equal(owned.length, 6)
  })

  test('where no release reads all that belongs together, what one does not read is in no other hands', () => {
    const partitions = new Map(Object.entries({ a: 4, b: 4, c: 6 }))
    const group: Group = {
      partitions,
      coPartitioned: [
        ['a', 'b'],
        ['a', 'c'],
      ],
      exclusive: false,
      members: [newcomer('old', ['a', 'c'])],
    }
    settle(group)
    group.members = [...group.members, newcomer('new', ['a', 'b']), newcomer('newer', ['a', 'b'])]
    settle(group)
    const of = new Map<number, string>()
    for (const { memberId, owned } of group.members) {
      for (const { partition } of owned) {
        assert.equal(of.get(partition) ?? memberId, memberId, `number ${partition} is in two hands`)
        of.set(partition, memberId)
      }
      assert.ok(owned.length > 0)
    }
    assert.equal(of.size, 6)
    group.members = group.members.slice(1)
    settle(group)
    assert.equal(group.members.flatMap(({ owned }) => owned).length, 8)
  })

  test('nobody gets a part of what belongs together while another still has the rest', () => {
    const partitions = new Map(Object.entries({ a: 3, b: 3 }))
    const group: Group = {
      partitions,
      coPartitioned: [['a', 'b']],
      exclusive: false,
      members: [newcomer('old', ['a'])],
    }
    settle(group)
    group.members = [...group.members, newcomer('new', ['a', 'b'])]
    rebalance(group)
    assert.deepEqual(
      group.members.map(({ owned }) => keys(owned)),
      [[], []],
    )
    settle(group)
    assert.deepEqual(
      group.members.map(({ owned }) => owned.length),
      [0, 6],
    )
  })

  test('what two claim from the same generation is taken from both before anybody has it', () => {
    const claim = [{ topic: 'a', partition: 0 }]
    const members = ['x', 'y'].map((memberId) => ({ memberId, topics: ['a'], owned: claim, generationId: 4 }))
    const first = assignCooperatively({ members, partitions: new Map([['a', 1]]), coPartitioned: [], exclusive: false })
    assert.deepEqual([...first.values()], [[], []])
  })

  test('of two claims the younger generation is right, and the older must let go', () => {
    const claim = [{ topic: 'a', partition: 0 }]
    const members = [3, 4].map((generationId) => ({
      memberId: `g${generationId}`,
      topics: ['a'],
      owned: claim,
      generationId,
    }))
    const first = assignCooperatively({ members, partitions: new Map([['a', 1]]), coPartitioned: [], exclusive: false })
    assert.deepEqual([first.get('g3'), first.get('g4')], [[], claim])
  })
})
