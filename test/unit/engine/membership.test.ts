import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { EngineError } from '../../../src/base/errors.ts'
import { BrokerError } from '../../../src/broker/port.ts'
import type { MembershipOptions } from '../../../src/engine/group/membership.ts'
import { decodeSubscription, encodeSubscription } from '../../../src/engine/group/membership-codec.ts'

import { group, Member, keys, t } from './members.ts'

describe('a group of one', () => {
  test('gets every partition', async () => {
    const { world, ownership } = await group(3)
    const a = new Member(world, ownership, 'a').start()
    await world.settle()
    assert.deepEqual(a.owned, t(0, 1, 2))
    assert.deepEqual(a.membership.subscription, ['t'])
    assert.equal(a.membership.member.generationId, 1)
    assert.deepEqual(
      a.roster.map((entry) => entry.identity?.instance),
      ['a'],
    )
  })

  test('is told of an assignment without partitions, too', async () => {
    const { world, ownership } = await group(1)
    new Member(world, ownership, 'a').start()
    await world.settle()
    const b = new Member(world, ownership, 'b').start()
    await world.pass(3000)
    assert.deepEqual(b.log, ['+'])
  })

  test('sees partitions that are added to a topic', async () => {
    const { world, ownership } = await group(2)
    let partitions = 2
    const resolve = async () => [{ topic: 't', topicId: 'x', partitions }]
    const a = new Member(world, ownership, 'a', { resolve }).start()
    await world.settle()
    partitions = 4
    await world.pass(6000)
    assert.deepEqual(a.log, ['+t:0,t:1', '+t:2,t:3'])
  })

  test('ends where partitions came that it cannot read, and nowhere else', async () => {
    const { world, ownership } = await group(2)
    let refusal: Error | undefined
    const resolve = async () => {
      if (refusal !== undefined) throw refusal
      return [{ topic: 't', topicId: 'x', partitions: 2 }]
    }
    const a = new Member(world, ownership, 'a', { resolve }).start()
    await world.settle()
    refusal = new BrokerError('UNREACHABLE', 'the cable is out')
    await world.pass(12_000)
    assert.deepEqual([a.owned, a.failures], [t(0, 1), []])
    refusal = new EngineError('PARTITIONS_CHANGED', 't has other partitions now')
    await world.pass(6000)
    assert.deepEqual(a.failures, [refusal])
  })

  test('sees topics that come to match a pattern, and that go', async () => {
    const { world, ownership } = await group(1)
    const resolve = async () => (await world.broker.topics(null)).filter(({ topic }) => /^t/.test(topic))
    const a = new Member(world, ownership, 'a', { resolve }).start()
    await world.settle()
    await world.createTopic('t2', 2)
    await world.pass(6000)
    assert.deepEqual(a.owned, ['t2:0', 't2:1', 't:0'])
    await world.broker.deleteTopics(['t'])
    await world.pass(6000)
    assert.deepEqual(a.owned, ['t2:0', 't2:1'])
  })
})

describe('cooperative rebalances', () => {
  test('move no more than they must, and commit before they move', async () => {
    const { world, ownership } = await group(4)
    const a = new Member(world, ownership, 'a').start()
    await world.settle()
    const b = new Member(world, ownership, 'b').start()
    await world.pass(3000)
    assert.deepEqual([a.owned.length, b.owned.length], [2, 2])
    assert.deepEqual([...a.owned, ...b.owned].sort(), t(0, 1, 2, 3))
    assert.equal(a.log.filter((entry) => entry.startsWith('!')).length, 0)
    const committed = await world.broker.committedOffsets('app', null, false)
    assert.deepEqual(keys(committed), b.owned)
    assert.ok(committed.every(({ metadata }) => metadata === 'a'))
  })

  test('wait for a member that takes long to let go, while it goes on with the rest', async () => {
    const { world, ownership } = await group(4)
    const a = new Member(world, ownership, 'a').start()
    a.revokeMs = 20_000
    await world.settle()
    const b = new Member(world, ownership, 'b').start()
    await world.pass(15_000)
    assert.deepEqual([a.owned.length, b.owned.length], [4, 0])
    await world.pass(15_000)
    assert.deepEqual([a.owned.length, b.owned.length], [2, 2])
  })

  test('give the partitions of a member that leaves to the others', async () => {
    const { world, ownership } = await group(4)
    const a = new Member(world, ownership, 'a').start()
    const b = new Member(world, ownership, 'b').start()
    await world.pass(5000)
    ownership.give('b', b.membership.assignment)
    await b.leave()
    await world.pass(3000)
    assert.deepEqual(a.owned, t(0, 1, 2, 3))
    assert.equal((await world.broker.describeGroup('app')).members.length, 1)
  })

  test('give back the place of a member that leaves while it joins', async () => {
    const { world, ownership } = await group(2)
    const a = new Member(world, ownership, 'a').start()
    await world.pass(5000)
    const b = new Member(world, ownership, 'b').start()
    await world.settle()
    await b.leave()
    await world.pass(3000)
    assert.equal((await world.broker.describeGroup('app')).members.length, 1)
    assert.deepEqual(a.owned, t(0, 1))
  })

  test('give the partitions of a member that died to the others after its session', async () => {
    const { world, ownership } = await group(4)
    const a = new Member(world, ownership, 'a').start()
    const b = new Member(world, ownership, 'b').start()
    await world.pass(5000)
    b.kill(ownership)
    await world.pass(5000)
    assert.equal(a.owned.length, 2)
    await world.pass(10_000)
    assert.deepEqual(a.owned, t(0, 1, 2, 3))
  })

  test('keep co-partitioned topics together', async () => {
    const { world, ownership } = await group(4)
    await world.createTopic('u', 4)
    const options = { resolve: () => world.broker.topics(['t', 'u']), coPartitioned: [['t', 'u']] }
    const members = ['a', 'b', 'c'].map((name) => new Member(world, ownership, name, options).start())
    await world.pass(10_000)
    for (const { owned } of members) {
      const numbers = (topic: string) => owned.filter((key) => key.startsWith(topic)).map((key) => key.slice(2))
      assert.deepEqual(numbers('t'), numbers('u'))
    }
    assert.deepEqual(members.map(({ owned }) => owned.length).sort(), [2, 2, 4])
  })

  test('keep together what only a newer release reads together, whichever leads', async () => {
    for (const order of [
      ['old', 'new', 'other new'],
      ['new', 'old', 'other new'],
    ]) {
      const { world, ownership } = await group(6)
      await world.createTopic('u', 6)
      const members: Member[] = []
      for (const name of order) {
        const isNew = name !== 'old'
        const options = {
          resolve: () => world.broker.topics(isNew ? ['t', 'u'] : ['t']),
          coPartitioned: isNew ? [['t', 'u']] : [],
        }
        members.push(new Member(world, ownership, name, options).start())
        await world.pass(5000)
      }
      await world.pass(10_000)
      for (const { owned } of members) {
        const numbers = (topic: string) => owned.filter((key) => key.startsWith(topic)).map((key) => key.slice(2))
        assert.deepEqual(numbers('t'), numbers('u'), order.join(', '))
      }
      assert.equal(members.flatMap(({ owned }) => owned).length, 12, order.join(', '))
    }
  })

  test('of a static member that comes back as a newer release what belongs together is put together', async () => {
    const { world, ownership } = await group(5)
    await world.createTopic('u', 5)
    const resolve = () => world.broker.topics(['t', 'u'])
    const start = (name: string, coPartitioned: string[][]): Member =>
      new Member(world, ownership, name, { resolve, coPartitioned, groupInstanceId: name }).start()
    const first = ['a', 'b', 'c'].map((name) => start(name, []))
    await world.pass(10_000)
    const again: Member[] = []
    for (const [i, name] of ['c', 'b', 'a'].entries()) {
      const gone = first[2 - i] as Member
      await gone.leave()
      gone.kill(ownership)
      again.push(start(name, [['t', 'u']]))
      await world.pass(5000)
    }
    await world.pass(10_000)
    for (const { owned } of again) {
      const numbers = (topic: string) => owned.filter((key) => key.startsWith(topic)).map((key) => key.slice(2))
      assert.deepEqual(numbers('t'), numbers('u'))
    }
    assert.equal(again.flatMap(({ owned }) => owned).length, 10)
  })

  test('a member that the group had given up loses what it had, and joins again', async () => {
    const { world, ownership } = await group(2)
    const a = new Member(world, ownership, 'a').start()
    await world.settle()
    a.cut = new BrokerError('UNREACHABLE', 'the cable is out')
    await world.pass(12_000)
    assert.deepEqual(a.owned, t(0, 1), 'nobody told it otherwise')
    a.cut = undefined
    await world.pass(3000)
    assert.deepEqual(a.log, ['+t:0,t:1', '!t:0,t:1', '+t:0,t:1'])
    assert.deepEqual(a.reached, [false, true])
  })

  test('a member that leaves in the middle of its first join leaves no place behind', async () => {
    for (const others of [0, 1]) {
      const { world, ownership } = await group(2)
      const first = others === 1 ? new Member(world, ownership, 'a').start() : undefined
      await world.pass(3000)
      const leaving = new Member(world, ownership, 'b').start()
      // As far as its request is on its way.
      for (let turn = 0; turn < 5; turn++) await Promise.resolve()
      await leaving.leave()
      leaving.alive = false
      await world.pass(1000)
      const { members } = await world.broker.describeGroup('app')
      assert.equal(members.length, others)
      if (first) assert.deepEqual(first.owned, t(0, 1))
    }
  })

  test('a member that leaves while the coordinator is out of reach is gone all the same', async () => {
    const { world, ownership } = await group(1)
    const a = new Member(world, ownership, 'a').start()
    await world.settle()
    a.cut = new BrokerError('UNREACHABLE', 'the cable is out')
    await a.leave()
    assert.deepEqual(a.failures, [])
  })
})

describe('static members', () => {
  const options = { groupInstanceId: 'one' }

  test('take over at once after a kill, without a rebalance of the others', async () => {
    const { world, ownership } = await group(4)
    const a = new Member(world, ownership, 'a', options).start()
    const b = new Member(world, ownership, 'b', { groupInstanceId: 'two' }).start()
    await world.pass(5000)
    const before = a.owned
    const logOfB = [...b.log]
    const { generationId } = a.membership.member
    a.kill(ownership)
    const next = new Member(world, ownership, 'a2', options).start()
    await world.settle()
    assert.deepEqual(next.owned, before)
    assert.equal(next.membership.member.generationId, generationId)
    await world.pass(15_000)
    assert.deepEqual(b.log, logOfB)
  })

  test('a lonely one takes over at once as well', async () => {
    const { world, ownership } = await group(4)
    const a = new Member(world, ownership, 'a', options).start()
    await world.settle()
    a.kill(ownership)
    const next = new Member(world, ownership, 'a2', options).start()
    await world.settle()
    assert.deepEqual(next.owned, t(0, 1, 2, 3))
  })

  for (const others of [0, 1]) {
    test(`read the topics of a new version, and those that it has left no longer, beside ${others} others`, async () => {
      const { world, ownership } = await group(4)
      await world.createTopic('u', 2)
      const reading = (...names: string[]) => ({ ...options, resolve: () => world.client().topics(names) })
      for (let i = 0; i < others; i++) {
        new Member(world, ownership, `b${i}`, { ...reading('t', 'u'), groupInstanceId: `other-${i}` }).start()
      }
      const a = new Member(world, ownership, 'a', reading('t')).start()
      await world.pass(10_000)
      a.kill(ownership)
      const next = new Member(world, ownership, 'a2', reading('t', 'u')).start()
      await world.pass(10_000)
      const all = [...t(0, 1, 2, 3), 'u:0', 'u:1']
      assert.deepEqual([...ownership.owners.keys()].sort(), all)
      next.kill(ownership)
      const last = new Member(world, ownership, 'a3', reading('u')).start()
      await world.pass(10_000)
      assert.deepEqual([...ownership.owners.keys()].sort(), others > 0 ? all : ['u:0', 'u:1'])
      assert.ok(!last.log.some((line) => line.includes('t:')), `${last.log}`)
    })
  }

  test('see partitions that came while they were away', async () => {
    const { world, ownership } = await group(2)
    let partitions = 2
    const resolve = async () => [{ topic: 't', topicId: 'x', partitions }]
    const a = new Member(world, ownership, 'a', { ...options, resolve }).start()
    await world.settle()
    a.kill(ownership)
    partitions = 4
    const next = new Member(world, ownership, 'a2', { ...options, resolve }).start()
    await world.pass(3000)
    assert.deepEqual(next.owned, t(0, 1, 2, 3))
  })

  test('free what those were to give away who had the place before', async () => {
    const { world, ownership } = await group(4)
    const a = new Member(world, ownership, 'a', options).start()
    a.revokeMs = 5000
    await world.settle()
    const b = new Member(world, ownership, 'b', { groupInstanceId: 'two' }).start()
    await world.pass(4000)
    assert.deepEqual([a.owned.length, b.owned.length], [4, 0])
    a.kill(ownership)
    const next = new Member(world, ownership, 'a2', options).start()
    await world.pass(5000)
    assert.deepEqual([...next.owned, ...b.owned].sort(), t(0, 1, 2, 3))
    assert.equal(b.owned.length, 2)
  })

  test('the one whose name was taken steps back', async () => {
    const { world, ownership } = await group(2)
    const a = new Member(world, ownership, 'a', options).start()
    await world.settle()
    ownership.owners.clear()
    const b = new Member(world, ownership, 'b', options).start()
    await world.pass(3000)
    assert.deepEqual(
      a.failures.map((error) => error.code),
      ['FENCED'],
    )
    assert.deepEqual(b.owned, t(0, 1))
    assert.deepEqual(b.failures, [])
  })

  test('the one whose own request, long given up, takes its place joins anew', async () => {
    const { world, ownership } = await group(2)
    const a = new Member(world, ownership, 'a', options)
    a.cut = new BrokerError('UNREACHABLE', 'the cable is out')
    a.start()
    await world.pass(100)
    a.cut = undefined
    await world.pass(1000)
    assert.deepEqual(a.owned, t(0, 1))
    const identity = { instance: 'a', exclusive: false }
    const metadata = encodeSubscription({ topics: ['t'], owned: [], generationId: -1, identity, together: [] })
    const place = { groupId: 'app', memberId: '', groupInstanceId: options.groupInstanceId ?? null }
    const patience = { sessionTimeoutMs: 10_000, rebalanceTimeoutMs: 60_000 }
    await world.broker.joinGroup({ ...place, ...patience, protocols: [{ name: 'cooperative', metadata }] })
    await world.pass(3000)
    assert.deepEqual([a.failures, a.owned], [[], t(0, 1)])
    assert.ok(a.log.includes('!t:0,t:1'), 'it has lost its place for a moment')
  })

  test('keep their place when they leave, unless for good', async () => {
    const { world, ownership } = await group(2)
    const a = new Member(world, ownership, 'a', options).start()
    await world.settle()
    await a.leave()
    assert.equal((await world.broker.describeGroup('app')).members.length, 1)
    await a.leave(true)
    assert.equal((await world.broker.describeGroup('app')).members.length, 0)
  })
})

describe('members that say at which address they can be asked', () => {
  const at = (instance: string, port: number): Partial<MembershipOptions> => ({
    groupInstanceId: instance,
    identity: { instance, exclusive: false, address: `http://127.0.0.1:${port}` },
  })
  const told = ({ roster }: Member): unknown =>
    roster.map(({ identity, owns }) => [identity?.address, owns?.t?.length]).sort()

  test('are told which partitions each of them has', async () => {
    const { world, ownership } = await group(4)
    const a = new Member(world, ownership, 'a', at('one', 1)).start()
    const b = new Member(world, ownership, 'b', at('two', 2)).start()
    await world.pass(10_000)
    const expected = [
      ['http://127.0.0.1:1', 2],
      ['http://127.0.0.1:2', 2],
    ]
    assert.deepEqual([told(a), told(b)], [expected, expected])
    assert.ok(a.roster.every(({ groupInstanceId, owns }) => (groupInstanceId === 'one') === same(owns?.t, a.owned)))
  })

  test('tell the others when they come back at another one', async () => {
    const { world, ownership } = await group(4)
    const a = new Member(world, ownership, 'a', at('one', 1)).start()
    const b = new Member(world, ownership, 'b', at('two', 2)).start()
    await world.pass(10_000)
    a.kill(ownership)
    const again = new Member(world, ownership, 'a again', at('one', 3)).start()
    await world.pass(10_000)
    const expected = [
      ['http://127.0.0.1:2', 2],
      ['http://127.0.0.1:3', 2],
    ]
    assert.deepEqual([told(again), told(b)], [expected, expected])
    b.kill(ownership)
    const other = new Member(world, ownership, 'b again', at('two', 4)).start()
    await world.pass(10_000)
    expected[0] = ['http://127.0.0.1:3', 2]
    expected[1] = ['http://127.0.0.1:4', 2]
    assert.deepEqual([told(again), told(other)], [expected, expected])
  })

  test('join no more often than those that say none', async () => {
    const generations: number[] = []
    for (const asks of [true, false]) {
      const { world, ownership } = await group(1)
      const members: Member[] = []
      for (const [i, name] of ['three', 'one', 'two'].entries()) {
        const options = asks ? at(name, i) : { groupInstanceId: name }
        members.push(new Member(world, ownership, name, options).start())
        await world.pass(5000)
      }
      // With one partition nobody has anything to give away, which takes further rebalances.
      generations.push(members[0]?.membership.member.generationId ?? -1)
    }
    assert.equal(generations[0], generations[1])
  })

  test('nobody is told anything where none of them does', async () => {
    const { world, ownership } = await group(4)
    const a = new Member(world, ownership, 'a').start()
    new Member(world, ownership, 'b').start()
    await world.pass(10_000)
    assert.ok(a.roster.length === 2 && a.roster.every(({ owns }) => owns === undefined))
  })

  function same(partitions: readonly number[] | undefined, owned: readonly string[]): boolean {
    return (
      partitions
        ?.map((partition) => `t:${partition}`)
        .sort()
        .join() === owned.toSorted().join()
    )
  }
})

describe('members of another kind', () => {
  const exclusive = (instance: string) => ({ identity: { instance, exclusive: true } })

  test('a process that needs all partitions keeps them, and the second is told who was first', async () => {
    const { world, ownership } = await group(4)
    const a = new Member(world, ownership, 'a', exclusive('a')).start()
    await world.settle()
    const b = new Member(world, ownership, 'b', exclusive('b')).start()
    await world.pass(5000)
    assert.deepEqual([a.owned, b.owned], [t(0, 1, 2, 3), []])
    assert.deepEqual(
      b.roster.map((entry) => entry.identity?.instance),
      ['a', 'b'],
    )
    assert.equal(a.log.length, 2, 'no partition of the first was touched')
  })

  test('a group of another protocol is not joined', async () => {
    const { world, ownership } = await group(2)
    const protocols = [{ name: 'range', metadata: new Uint8Array(0) }]
    void world.broker.joinGroup({
      groupId: 'app',
      memberId: '',
      groupInstanceId: null,
      sessionTimeoutMs: 60_000,
      rebalanceTimeoutMs: 60_000,
      protocols,
    })
    await world.settle()
    const a = new Member(world, ownership, 'a').start()
    await world.settle()
    assert.deepEqual(
      a.failures.map((error) => error.code),
      ['FOREIGN_GROUP_MEMBER'],
    )
  })

  test('a member without our mark is shown in the roster', async () => {
    const { world, ownership } = await group(2)
    const a = new Member(world, ownership, 'a').start()
    await world.settle()
    const said = { topics: ['t'], owned: [], generationId: -1, identity: undefined, together: [] }
    const other = encodeSubscription(said)
    const joining = world.broker.joinGroup({
      groupId: 'app',
      memberId: '',
      groupInstanceId: null,
      sessionTimeoutMs: 60_000,
      rebalanceTimeoutMs: 60_000,
      protocols: [{ name: 'cooperative', metadata: other }],
    })
    await world.pass(3000)
    await joining
    assert.deepEqual(
      a.roster.map((entry) => entry.identity?.instance ?? null),
      ['a', null],
    )
  })
})

describe('what members say of themselves', () => {
  test('comes back as it went', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string()),
        fc.array(fc.record({ topic: fc.constantFrom('a', 'ü', 'c'), partition: fc.nat(9) })),
        fc.integer({ min: -1, max: 1000 }),
        fc.option(fc.record({ instance: fc.string(), exclusive: fc.boolean() }, { noNullPrototype: true }), {
          nil: undefined,
        }),
        fc.array(fc.array(fc.nat(9))),
        (names, owned, generationId, identity, sets) => {
          const topics = [...new Set(names.map((each) => each.toWellFormed()))]
          // Who is not of ours says nothing of it.
          const together = identity === undefined ? [] : sets.map((set) => set.flatMap((place) => topics[place] ?? []))
          const subscription = { topics, owned, generationId, identity, together }
          const back = decodeSubscription(encodeSubscription(subscription))
          assert.deepEqual({ ...back, owned: keys(back.owned) }, { ...subscription, owned: keys(owned) })
        },
      ),
    )
  })

  test('by other clients is read as far as it goes', () => {
    // Version 0 of the consumer protocol: topics and no further data.
    const bytes = Uint8Array.from([0, 0, 0, 0, 0, 1, 0, 1, 0x74, 0xff, 0xff, 0xff, 0xff])
    const plain = { topics: ['t'], owned: [], generationId: -1, identity: undefined, together: [] }
    assert.deepEqual(decodeSubscription(bytes), plain)
    assert.throws(() => decodeSubscription(bytes.subarray(0, 7)), /cut off|bounds/)
  })
})

describe('any sequence of joins, leaves, kills and outages', () => {
  type Event = { readonly kind: 'join' | 'leave' | 'kill' | 'cut' | 'mend'; readonly who: number; readonly ms: number }
  const event: fc.Arbitrary<Event> = fc.record({
    kind: fc.constantFrom('join', 'join', 'leave', 'kill', 'cut', 'mend'),
    who: fc.nat(4),
    ms: fc.constantFrom(0, 1, 300, 2000, 15_000),
  })

  test('leaves no partition with two owners at any time, and none without one in the end', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 14 }), fc.nat(7), async (events, partitions) => {
        const { world, ownership } = await group(partitions + 1)
        const members: Array<Member | undefined> = []
        let serial = 0
        for (const { kind, who, ms } of events) {
          const member = members[who]
          if (kind === 'join' && !member) {
            const joined = new Member(world, ownership, `${who}.${serial++}`)
            joined.revokeMs = who * 200
            members[who] = joined.start()
          } else if (member && kind === 'leave') {
            ownership.give(member.name, member.membership.assignment)
            member.alive = true
            await member.leave()
            members[who] = undefined
          } else if (member && kind === 'kill') {
            member.kill(ownership)
            members[who] = undefined
          } else if (member && kind === 'cut') {
            member.cut = new BrokerError('UNREACHABLE', 'the cable is out')
          } else if (member && kind === 'mend') {
            member.cut = undefined
          }
          // An outage as long as the session lets the group give partitions to others before this one knows.
          for (const each of members) {
            if (!each) continue
            each.outageMs = each.cut ? each.outageMs + ms : 0
            if (each.outageMs <= 5000) continue
            each.cut = undefined
            each.outageMs = 0
          }
          await world.pass(ms)
        }
        for (const each of members) if (each) each.cut = undefined
        await world.pass(60_000)
        const alive = members.filter((each) => each !== undefined)
        for (const { name, failures } of alive) assert.deepEqual(failures, [], `${name} failed`)
        if (alive.length === 0) return
        assert.equal(ownership.owners.size, partitions + 1, 'a partition has no owner')
        const loads = alive.map(({ owned }) => owned.length)
        assert.ok(Math.max(...loads) - Math.min(...loads) <= 1, `unbalanced: ${loads}`)
      }),
      { numRuns: 200 },
    )
  })
})
