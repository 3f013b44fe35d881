/** Membership and the fetch loop of the engine on a real Kafka. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { systemClock } from '../../src/base/clock.ts'
import { partitionKey, type TopicPartition } from '../../src/base/ids.ts'
import { systemTimers } from '../../src/base/timers.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { Fetcher } from '../../src/engine/input/fetcher.ts'
import { Membership, type RosterEntry } from '../../src/engine/group/membership.ts'
import type { EngineError } from '../../src/base/errors.ts'
import { RecordBatchBuilder, stampBatch } from '../../src/broker/wire/record-batch.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually } from '../support/millrace.ts'

const kafka = await kafkaForTests()
const skip = 'skip' in kafka ? kafka.skip : false

const keys = (partitions: readonly TopicPartition[]): string[] =>
  partitions.map(({ topic, partition }) => partitionKey(topic, partition)).sort()

async function until(what: string, condition: () => boolean): Promise<void> {
  await eventually(what, condition, 120_000)
}

class Member {
  readonly port: BrokerPort
  readonly membership: Membership
  readonly failures: EngineError[] = []
  readonly owners: Map<string, string>
  readonly name: string
  owned: string[] = []
  lost = 0
  roster: readonly RosterEntry[] = []

  constructor(
    name: string,
    groupId: string,
    topic: string,
    owners: Map<string, string>,
    groupInstanceId: string | null = null,
  ) {
    this.name = name
    this.owners = owners
    this.port = connectKafka({ bootstrapServers: 'skip' in kafka ? [] : [kafka.bootstrap], clientId: name })
    this.membership = new Membership(
      {
        broker: this.port,
        timers: systemTimers,
        groupId,
        groupInstanceId,
        identity: { instance: name, exclusive: false },
        sessionTimeoutMs: 6000,
        rebalanceTimeoutMs: 20_000,
        heartbeatIntervalMs: 200,
        metadataRefreshMs: 1000,
        resolve: () => this.port.topics(topic.split(' ')),
        coPartitioned: [],
      },
      {
        assigned: (added, all) => {
          for (const key of keys(added)) {
            assert.equal(owners.get(key), undefined, `${key} has an owner already`)
            owners.set(key, name)
          }
          this.owned = keys(all)
        },
        revoke: async (partitions) => {
          await this.port.commitOffsets(
            this.membership.member,
            partitions.map((tp) => ({ ...tp, offset: 7, metadata: name })),
          )
          for (const key of keys(partitions)) owners.delete(key)
        },
        lost: (partitions) => {
          this.lost += partitions.length
          for (const key of keys(partitions)) owners.delete(key)
        },
        roster: (members) => {
          this.roster = members
        },
        failed: (error) => {
          this.failures.push(error)
        },
      },
    )
    this.membership.start()
  }

  /** Without a word to the group. */
  async kill(): Promise<void> {
    for (const key of this.owned) this.owners.delete(key)
    await this.membership.leave(false)
    await this.port.close()
  }

  async leave(): Promise<void> {
    for (const key of this.owned) this.owners.delete(key)
    await this.membership.leave(true)
    await this.port.close()
  }
}

describe('the engine on Kafka', { skip }, () => {
  let port: BrokerPort
  before(() => {
    port = connectKafka({ bootstrapServers: 'skip' in kafka ? [] : [kafka.bootstrap], clientId: 'engine-test' })
  })
  after(async () => {
    await port.close()
    if (!('skip' in kafka)) await kafka.stop()
  })

  async function newTopic(partitions: number): Promise<string> {
    const topic = `t-${randomUUID()}`
    await port.createTopics([{ topic, partitions }])
    return topic
  }

  test('members share partitions out, commit what they give away, and take over from one that leaves', async () => {
    const topic = await newTopic(6)
    const groupId = `g-${randomUUID()}`
    const owners = new Map<string, string>()
    const a = new Member('a', groupId, topic, owners)
    await until('a has all', () => a.owned.length === 6)
    const b = new Member('b', groupId, topic, owners)
    const c = new Member('c', groupId, topic, owners)
    const members = [a, b, c]
    await until('all have two', () => owners.size === 6 && members.every(({ owned }) => owned.length === 2))
    const given = [...b.owned, ...c.owned]
    const committed = await port.committedOffsets(groupId, null, true)
    assert.ok(given.every((key) => keys(committed.filter(({ offset }) => offset === 7)).includes(key)))
    const description = await port.describeGroup(groupId)
    assert.deepEqual(description.members.map(({ clientId }) => clientId).sort(), ['a', 'b', 'c'])
    assert.deepEqual(a.roster.map(({ identity }) => identity?.instance).sort(), ['a', 'b', 'c'])
    await b.leave()
    await until('the two have three', () => owners.size === 6 && a.owned.length === 3 && c.owned.length === 3)
    for (const { failures, lost } of members) assert.deepEqual([failures, lost], [[], 0])
    await a.leave()
    await c.leave()
  })

  test('a static member takes over at once, and its predecessor steps back', async () => {
    const topic = await newTopic(4)
    const groupId = `g-${randomUUID()}`
    const a = new Member('a', groupId, topic, new Map(), 'one')
    await until('a has all', () => a.owned.length === 4)
    const { generationId } = a.membership.member
    const next = new Member('next', groupId, topic, new Map(), 'one')
    await until('the next has all', () => next.owned.length === 4)
    // The same generation: no session had to end first.
    assert.equal(next.membership.member.generationId, generationId)
    await until('a is told', () => a.failures.length > 0)
    assert.deepEqual(
      a.failures.map(({ code }) => code),
      ['FENCED'],
    )
    await a.kill()
    await next.leave()
    assert.deepEqual(next.failures, [])
  })

  test('a static leader that is killed finds what it had', async () => {
    const topic = await newTopic(4)
    const groupId = `g-${randomUUID()}`
    const owners = new Map<string, string>()
    const a = new Member('a', groupId, topic, owners, 'one')
    await until('a has all', () => a.owned.length === 4)
    const b = new Member('b', groupId, topic, owners, 'two')
    await until('both have two', () => owners.size === 4 && b.owned.length === 2)
    const had = a.owned
    await a.kill()
    const next = new Member('next', groupId, topic, owners, 'one')
    await until('the next has two', () => next.owned.length === 2)
    assert.deepEqual(next.owned, had)
    assert.deepEqual([b.failures, b.lost, b.owned.length], [[], 0, 2])
    // The group can still change: a third one gets its share, with either as the leader.
    const c = new Member('c', groupId, topic, owners, 'three')
    await until('c has one', () => owners.size === 4 && c.owned.length === 1)
    for (const member of [next, b, c]) await member.leave()
  })

  test('a static member that comes back with another topic is given that one, too', async () => {
    const [topic, another] = [await newTopic(2), await newTopic(2)]
    const groupId = `g-${randomUUID()}`
    const owners = new Map<string, string>()
    const a = new Member('a', groupId, topic, owners, 'one')
    await until('a has all', () => a.owned.length === 2)
    await a.kill()
    const next = new Member('next', groupId, `${topic} ${another}`, owners, 'one')
    await until('the next has those of both', () => next.owned.length === 4)
    await next.kill()
    const last = new Member('last', groupId, another, owners, 'one')
    await until('the last has those of the other', () => last.owned.length === 2)
    assert.ok(last.owned.every((key) => key.startsWith(another)))
    await last.leave()
  })

  test('the fetch loop reads committed records in order and stops at the capacity', async () => {
    const topic = await newTopic(2)
    const identity = await port.initProducer(`tx-${topic}`, 60_000)
    let current = identity
    let sequence = 0
    const send = async (from: number, count: number, commit: boolean): Promise<void> => {
      const builder = new RecordBatchBuilder()
      for (let i = 0; i < count; i++) builder.append(from + i, null, Buffer.from('x'), [])
      const records = builder.finish()
      stampBatch(records, { ...current, baseSequence: sequence, transactional: true })
      sequence += count
      await port.produce({ transactionalId: `tx-${topic}`, batches: [{ topic, partition: 0, records }] })
      const next = await port.endTransaction(`tx-${topic}`, current, commit)
      if (next.producerEpoch !== current.producerEpoch) sequence = 0
      current = next
    }
    await send(0, 50, true)
    await send(1000, 30, false)
    await send(50, 20, true)
    const failures: EngineError[] = []
    const lags: number[] = []
    const fetcher = new Fetcher(
      {
        broker: port,
        clock: systemClock,
        timers: systemTimers,
        isolation: 'read_committed',
        bufferCapacity: 20,
        maxPollRecords: 7,
        maxWaitMs: 200,
        maxBytes: 1 << 20,
        maxPartitionBytes: 1 << 16,
        maxBufferedBytes: 1 << 24,
        outOfRange: 'fail',
      },
      {
        records: () => undefined,
        evidence: (buffer, lag) => buffer.partition === 1 && lags.push(lag ?? -1),
        connected: () => undefined,
        failed: (error) => failures.push(error),
      },
    )
    const buffer = fetcher.add({ topic, partition: 0 }, 0)
    const other = fetcher.add({ topic, partition: 1 }, 0)
    fetcher.start()
    const seen: number[] = []
    await until('all is read', () => {
      assert.ok(buffer.buffered < 20 + 7)
      for (; buffer.hasHead; buffer.shift()) seen.push(buffer.headTimestamp)
      return seen.length >= 70
    })
    assert.deepEqual(
      seen,
      Array.from({ length: 70 }, (_, i) => i),
    )
    await until('the end is seen', () => buffer.lag === 0 && buffer.nextOffset === buffer.logEndOffset)
    assert.equal(buffer.nextOffset, 103, 'behind the markers of three transactions')
    await until('the empty partition is seen to be empty', () => lags.includes(0))
    await port.produce({
      transactionalId: null,
      batches: [{ topic, partition: 1, records: single(5) }],
    })
    await until('the other partition has one', () => other.headTimestamp === 5)
    await fetcher.close()
    assert.deepEqual(failures, [])
  })
})

function single(timestamp: number): Uint8Array {
  const builder = new RecordBatchBuilder()
  builder.append(timestamp, null, Buffer.from('x'), [])
  return builder.finish()
}
