import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { BrokerError, type BrokerPort, type FetchRequest } from '../../../src/broker/port.ts'
import { Fetcher, type FetcherOptions } from '../../../src/engine/input/fetcher.ts'
import type { PartitionBuffer } from '../../../src/engine/input/partition-buffer.ts'
import type { EngineError } from '../../../src/base/errors.ts'
import { batchOf, World } from './world.ts'

const tp = (partition: number, topic = 't') => ({ topic, partition })
const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i)

class Harness {
  readonly world: World
  readonly fetcher: Fetcher
  readonly requests: FetchRequest[] = []
  readonly evidence: string[] = []
  readonly askedAt: Array<number | undefined> = []
  readonly connected: boolean[] = []
  readonly failures: EngineError[] = []
  readonly warnings: string[] = []
  readonly arrived: string[] = []
  readonly polls: number[] = []
  /** Makes the next requests fail. */
  failing: (() => BrokerError) | undefined
  /** Something is buffered, and waits for a partition that has nothing. */
  starving = false
  /** When the next commit begins. */
  commitAtMs = 0
  readonly buffered: number[] = []

  constructor(world: World, options: Partial<FetcherOptions> = {}) {
    this.world = world
    const client = world.client()
    const broker: BrokerPort = Object.create(client, {
      fetch: {
        value: (request: FetchRequest) => {
          this.requests.push(request)
          return this.failing ? Promise.reject(this.failing()) : client.fetch(request)
        },
      },
      listOffsets: { value: client.listOffsets.bind(client) },
    })
    const defaults: FetcherOptions = {
      broker,
      clock: world.clock,
      timers: world,
      isolation: 'read_committed',
      bufferCapacity: 10,
      maxPollRecords: 4,
      maxWaitMs: 500,
      maxBytes: 1 << 20,
      maxPartitionBytes: 1 << 18,
      maxBufferedBytes: 1 << 24,
      outOfRange: 'fail',
    }
    this.fetcher = new Fetcher(
      { ...defaults, ...options },
      {
        records: (buffer) => this.arrived.push(`${buffer.topic}:${buffer.partition}`),
        polled: (_, records) => this.polls.push(records),
        evidence: (buffer, lag, failed, askedAt) => {
          this.evidence.push(`${buffer.partition}:${failed ? 'failed' : lag}`)
          this.askedAt.push(askedAt)
        },
        connected: (connected) => this.connected.push(connected),
        buffered: (bytes) => this.buffered.push(bytes),
        starving: () => this.starving,
        slackMs: () => this.commitAtMs - world.clock.monotonic(),
        warning: (message) => this.warnings.push(message),
        failed: (error) => this.failures.push(error),
      },
    )
    running.push(this)
  }

  async start(partitions: number, offset = 0): Promise<PartitionBuffer[]> {
    const buffers = range(0, partitions).map((partition) => this.fetcher.add(tp(partition), offset))
    this.fetcher.start()
    await this.world.settle()
    return buffers
  }
}

let running: Harness[] = []
afterEach(async () => {
  for (const { fetcher, world } of running) {
    const closing = fetcher.close()
    await world.pass(3000)
    await closing
  }
  running = []
})

async function worldWith(partitions: number): Promise<World> {
  const world = new World()
  await world.createTopic('t', partitions)
  return world
}

function takeAll(buffer: PartitionBuffer): number[] {
  const taken: number[] = []
  while (buffer.hasHead) {
    taken.push(buffer.headTimestamp)
    buffer.shift()
  }
  return taken
}

describe('fetching', () => {
  test('tells of an answer when it was asked for, however long it waited at the broker', async () => {
    const world = await worldWith(1)
    const harness = new Harness(world)
    const began = world.clock.monotonic()
    await harness.start(1)
    await world.pass(500)
    assert.deepEqual([harness.evidence, harness.askedAt], [['0:0'], [began]])
  })

  test('asks at a pace where little trickles in, and at once where more is known to lie there', async () => {
    const world = await worldWith(1)
    const harness = new Harness(world, { paceMs: 5, bufferCapacity: 1000 })
    const [buffer] = (await harness.start(1)) as [PartitionBuffer]
    // It has waited for longer than its pace: the first record is taken as it comes.
    await world.pass(20)
    const before = harness.requests.length
    for (let ms = 1; ms <= 20; ms++) {
      await world.produce('t', 0, [ms])
      await world.pass(1)
    }
    await world.pass(5)
    assert.deepEqual(takeAll(buffer), range(1, 20))
    const asked = harness.requests.length - before
    assert.ok(asked <= 7, `${asked} requests for records that came one a millisecond`)

    await world.pass(20)
    const records = 50
    const small = new Harness(world, { paceMs: 5, bufferCapacity: 1000, maxPartitionBytes: 100, maxBytes: 100 })
    for (let i = 0; i < records; i++) await world.produce('t', 0, [100 + i])
    const started = world.clock.monotonic()
    const [backlog] = (await small.start(1, 20)) as [PartitionBuffer]
    for (let round = 0; round < records && backlog.buffered < records; round++) await world.settle()
    assert.equal(backlog.buffered, records)
    assert.equal(world.clock.monotonic(), started)
  })

  test('asks once for each commit where little trickles in, shortly before it, but never leaves it for long', async () => {
    const world = await worldWith(1)
    const harness = new Harness(world, { paceMs: 5, bufferCapacity: 10_000 })
    const [buffer] = (await harness.start(1)) as [PartitionBuffer]
    await world.pass(20)
    const asked: number[] = []
    const commitMs = 50
    const began = world.clock.monotonic()
    for (let ms = 1; ms <= 400; ms++) {
      harness.commitAtMs = began + Math.ceil(ms / commitMs) * commitMs
      await world.produce('t', 0, [ms])
      const before = harness.requests.length
      await world.pass(1)
      for (let n = before; n < harness.requests.length; n++) asked.push(ms)
    }
    // The first record ends a wait at the broker, and one request follows it.
    assert.deepEqual(
      asked.filter((ms) => ms > commitMs).map((ms) => ms % commitMs),
      asked.filter((ms) => ms > commitMs).map(() => 0),
    )
    assert.ok(takeAll(buffer).length >= 400 - commitMs)

    harness.commitAtMs = Number.POSITIVE_INFINITY
    const before = harness.requests.length
    for (let ms = 401; ms <= 1000; ms++) {
      await world.produce('t', 0, [ms])
      await world.pass(1)
    }
    assert.ok(harness.requests.length - before >= 5)
  })

  test('brings records in order, and goes on where it stopped', async () => {
    const world = await worldWith(1)
    await world.produce('t', 0, [5, 3, 9])
    const harness = new Harness(world)
    const [buffer] = (await harness.start(1)) as [PartitionBuffer]
    assert.deepEqual(takeAll(buffer), [5, 3, 9])
    assert.equal(buffer.nextOffset, 3)
    await world.produce('t', 0, [7])
    await world.settle()
    assert.deepEqual([buffer.headTimestamp, buffer.headOffset, buffer.position], [7, 3, 4])
    assert.deepEqual(harness.arrived, ['t:0', 't:0'])
    assert.equal(harness.evidence.at(-1), '0:0')
  })

  test('stops at the capacity, which is exceeded by less than one poll', async () => {
    const world = await worldWith(1)
    await world.produce('t', 0, range(0, 100))
    const harness = new Harness(world)
    const [buffer] = (await harness.start(1)) as [PartitionBuffer]
    assert.equal(buffer.buffered, 12)
    assert.equal(harness.fetcher.isPaused(tp(0)), true)
    assert.ok(harness.polls.every((records) => records <= 4))
    const seen: number[] = []
    while (buffer.hasHead) {
      seen.push(buffer.headTimestamp)
      buffer.shift()
      assert.ok(buffer.buffered < 10 + 4)
    }
    assert.deepEqual(seen, range(0, 100))
    assert.equal(harness.requests.length, 1, 'nothing was fetched while records were left over')
    await world.settle()
    assert.equal(harness.fetcher.isPaused(tp(0)), false)
    assert.equal(harness.requests.length, 2)
  })

  test('asks again as soon as a full buffer has room, though a request waits at the broker', async () => {
    const world = await worldWith(2)
    await world.produce('t', 0, range(0, 12))
    const harness = new Harness(world)
    const [full] = (await harness.start(2)) as [PartitionBuffer]
    assert.deepEqual(
      harness.requests.at(-1)?.partitions.map((p) => p.partition),
      [1],
    )
    await world.produce('t', 0, [50])
    for (let i = 0; i < 3; i++) full.shift()
    await world.settle()
    assert.equal(harness.world.clock.monotonic(), 0, 'no wait had to end by itself')
    assert.deepEqual(takeAll(full), [...range(3, 9), 50])
  })

  test('a full partition does not keep another from being filled', async () => {
    const world = await worldWith(2)
    await world.produce('t', 0, range(0, 500))
    const harness = new Harness(world)
    const [, other] = (await harness.start(2)) as [PartitionBuffer, PartitionBuffer]
    assert.equal(other.hasHead, false)
    await world.produce('t', 1, [1])
    await world.settle()
    assert.equal(other.headTimestamp, 1)
  })

  test('asks for partitions in another order each time', async () => {
    const world = await worldWith(3)
    const harness = new Harness(world)
    await harness.start(3)
    await world.pass(2000)
    const firsts = new Set(harness.requests.map((request) => request.partitions[0]?.partition))
    assert.equal(firsts.size, 3)
  })

  test('passes over aborted transactions and markers, and counts what is left', async () => {
    const world = await worldWith(1)
    await world.transaction('t', 0, [1, 2], 'commit')
    await world.transaction('t', 0, [3, 4, 5], 'abort')
    await world.transaction('t', 0, [6], 'commit')
    const harness = new Harness(world)
    const [buffer] = (await harness.start(1)) as [PartitionBuffer]
    assert.equal(buffer.buffered, 3)
    assert.deepEqual(takeAll(buffer), [1, 2, 6])
    assert.equal(buffer.buffered, 0)
    assert.equal(buffer.position, 9)
    assert.equal(buffer.nextOffset, 9, 'the position lies behind the last marker')
    assert.equal(buffer.lag, 0)
  })

  test('counts what lies between the records of a transaction that is aborted later', async () => {
    const world = await worldWith(1)
    const aborted = await world.transaction('t', 0, [1], 'open', 'x')
    await world.transaction('t', 0, [2, 3], 'commit', 'y')
    await world.produce('t', 0, [4])
    await world.broker.endTransaction('x', aborted, false)
    await world.transaction('t', 0, [5], 'commit', 'x')
    const harness = new Harness(world)
    const [buffer] = (await harness.start(1)) as [PartitionBuffer]
    assert.equal(buffer.buffered, 4)
    assert.deepEqual(takeAll(buffer), [2, 3, 4, 5])
  })

  test('moves past a tail of nothing but aborted records', async () => {
    const world = await worldWith(1)
    await world.transaction('t', 0, [3, 4, 5], 'abort')
    const harness = new Harness(world)
    const [buffer] = (await harness.start(1)) as [PartitionBuffer]
    assert.deepEqual([buffer.buffered, buffer.hasHead, buffer.nextOffset, buffer.lag], [0, false, 4, 0])
    assert.deepEqual(harness.arrived, [])
  })

  test('sees an open transaction as the end, and reads it once it is committed', async () => {
    const world = await worldWith(1)
    const identity = await world.transaction('t', 0, [1, 2], 'open')
    const harness = new Harness(world)
    const [buffer] = (await harness.start(1)) as [PartitionBuffer]
    assert.equal(buffer.hasHead, false)
    await world.broker.endTransaction('tx', identity, true)
    await world.settle()
    assert.deepEqual(takeAll(buffer), [1, 2])
  })

  test('begins in the middle of a batch', async () => {
    const world = await worldWith(1)
    await world.produce('t', 0, range(0, 8))
    const harness = new Harness(world)
    const buffer = harness.fetcher.add(tp(0), 5)
    harness.fetcher.start()
    await world.settle()
    assert.equal(buffer.buffered, 3)
    assert.deepEqual(takeAll(buffer), [5, 6, 7])
  })

  test('a timestamp extractor gives the event time, and may pass a record over', async () => {
    const world = await worldWith(1)
    await world.produce('t', 0, [1, 2, 3, 4])
    const harness = new Harness(world)
    const buffer = harness.fetcher.add(tp(0), 0, ({ timestamp }) => (timestamp % 2 ? Number.NaN : timestamp * 10))
    harness.fetcher.start()
    await world.settle()
    assert.deepEqual(takeAll(buffer), [20, 40])
    assert.deepEqual([buffer.buffered, buffer.nextOffset], [0, 4])
  })

  test('an extractor that throws fails its partition and says where', async () => {
    const world = await worldWith(2)
    await world.produce('t', 0, [1, 2, 3])
    const harness = new Harness(world)
    const buffer = harness.fetcher.add(tp(0), 0, ({ timestamp }) => {
      if (timestamp === 2) throw new RangeError('no such time')
      return timestamp
    })
    harness.fetcher.start()
    await world.settle()
    buffer.shift()
    assert.equal(buffer.hasHead, false)
    assert.match(harness.failures[0]?.message ?? '', /t:0 .* offset 1: no such time/)
  })
})

describe('pauses', () => {
  test('a paused application is not fetched for; what is under way is kept', async () => {
    const world = await worldWith(1)
    const harness = new Harness(world)
    const [buffer] = (await harness.start(1)) as [PartitionBuffer]
    harness.fetcher.pause('application')
    assert.equal(harness.fetcher.isPaused(tp(0)), true)
    await world.pass(600)
    const before = harness.requests.length
    await world.produce('t', 0, [1])
    await world.pass(5000)
    assert.equal(harness.requests.length, before)
    assert.equal(buffer.hasHead, false)
    harness.fetcher.resume('application')
    await world.settle()
    assert.equal(buffer.headTimestamp, 1)
    assert.equal(harness.fetcher.isPaused(tp(0)), false)
  })

  test('a partition that is being restored is not fetched, others are', async () => {
    const world = await worldWith(2)
    await world.produce('t', 0, [1])
    await world.produce('t', 1, [2])
    const harness = new Harness(world)
    const buffers = range(0, 2).map((partition) => harness.fetcher.add(tp(partition), 0))
    harness.fetcher.pause('restoring', tp(0))
    harness.fetcher.start()
    await world.settle()
    assert.deepEqual(
      buffers.map((buffer) => buffer.hasHead),
      [false, true],
    )
    harness.fetcher.resume('restoring', tp(0))
    await world.settle()
    assert.deepEqual(
      buffers.map((buffer) => buffer.hasHead),
      [true, true],
    )
  })

  test('both causes must go', async () => {
    const world = await worldWith(1)
    await world.produce('t', 0, [1])
    const harness = new Harness(world)
    const buffer = harness.fetcher.add(tp(0), 0)
    harness.fetcher.pause('restoring')
    harness.fetcher.pause('application')
    harness.fetcher.start()
    harness.fetcher.resume('restoring')
    await world.settle()
    assert.equal(buffer.hasHead, false)
    harness.fetcher.resume('application')
    await world.settle()
    assert.equal(buffer.hasHead, true)
  })
})

describe('partitions that come and go', () => {
  test('one that is added joins the request that waits', async () => {
    const world = await worldWith(2)
    const harness = new Harness(world)
    await harness.start(1)
    await world.produce('t', 1, [4])
    const buffer = harness.fetcher.add(tp(1), 0)
    await world.settle()
    assert.equal(buffer.headTimestamp, 4)
  })

  test('what comes for a removed one is thrown away', async () => {
    const world = await worldWith(1)
    const harness = new Harness(world)
    const [buffer] = (await harness.start(1)) as [PartitionBuffer]
    harness.fetcher.remove(tp(0))
    await world.produce('t', 0, [1])
    await world.pass(1000)
    assert.equal(buffer.hasHead, false)
    assert.deepEqual(harness.arrived, [])
  })

  test('after a seek the answer to the earlier request does not count', async () => {
    const world = await worldWith(1)
    const harness = new Harness(world)
    const [buffer] = (await harness.start(1)) as [PartitionBuffer]
    await world.produce('t', 0, [1, 2, 3])
    harness.fetcher.seek(tp(0), 2)
    await world.settle()
    assert.deepEqual(takeAll(buffer), [3])
  })
})

describe('answers that come late', () => {
  test('do not count for a partition that was moved, nor for one that was given up and taken again', async () => {
    const world = await worldWith(2)
    await world.produce('t', 0, [1, 2, 3])
    await world.produce('t', 1, [4, 5, 6])
    const client = world.client()
    let late: (() => void) | undefined
    let calls = 0
    const broker: BrokerPort = Object.create(client, {
      fetch: {
        value: async (request: FetchRequest) => {
          const answer = await client.fetch(request)
          if (calls++ === 0) await new Promise<void>((resolve) => (late = resolve))
          return answer
        },
      },
    })
    const harness = new Harness(world, { broker })
    const [moved] = (await harness.start(2, 2)) as [PartitionBuffer]
    harness.fetcher.seek(tp(0), 0)
    harness.fetcher.remove(tp(1))
    const again = harness.fetcher.add(tp(1), 1)
    late?.()
    await world.settle()
    assert.deepEqual(
      [takeAll(moved), takeAll(again)],
      [
        [1, 2, 3],
        [5, 6],
      ],
    )
  })
})

describe('failing brokers', () => {
  test('an unreachable one is asked again until it answers', async () => {
    const world = await worldWith(1)
    await world.produce('t', 0, [1])
    const harness = new Harness(world)
    harness.failing = () => new BrokerError('UNREACHABLE', 'nobody there')
    const [buffer] = (await harness.start(1)) as [PartitionBuffer]
    await world.pass(20_000)
    assert.deepEqual(harness.connected, [false])
    assert.ok(harness.requests.length >= 10 && harness.requests.length <= 20, 'with growing pauses')
    assert.ok(harness.evidence.every((each) => each === '0:failed'))
    harness.failing = undefined
    await world.pass(2000)
    assert.equal(buffer.headTimestamp, 1)
    assert.deepEqual(harness.connected, [false, true])
    assert.deepEqual(harness.failures, [])
  })

  test('a refusal ends the loop', async () => {
    const world = await worldWith(1)
    const harness = new Harness(world)
    harness.failing = () => new BrokerError('TOPIC_AUTHORIZATION_FAILED', 'not for you')
    await harness.start(1)
    await world.pass(5000)
    assert.deepEqual(
      harness.failures.map((error) => error.code),
      ['BROKER_REFUSED'],
    )
    assert.equal(harness.requests.length, 1)
  })

  test('a topic that is gone fails its partitions, others go on', async () => {
    const world = await worldWith(1)
    await world.createTopic('gone', 1)
    const harness = new Harness(world)
    const [buffer] = (await harness.start(1)) as [PartitionBuffer]
    harness.fetcher.add(tp(0, 'gone'), 0)
    await world.settle()
    await world.broker.deleteTopics(['gone'])
    await world.pass(1000)
    assert.deepEqual(
      harness.failures.map((error) => error.code),
      ['TOPIC_MISSING'],
    )
    await world.produce('t', 0, [1])
    await world.settle()
    assert.equal(buffer.hasHead, true)
  })

  test('an offset that no longer exists fails the partition by default', async () => {
    const world = await worldWith(1)
    const harness = new Harness(world)
    await harness.start(1, 500)
    await world.pass(1000)
    assert.deepEqual(
      harness.failures.map((error) => error.code),
      ['OFFSETS_MISSING'],
    )
    assert.match(harness.failures[0]?.message ?? '', /offset 500 of t:0/)
    assert.equal(harness.requests.length, 1)
  })

  test('or is read from elsewhere, with a warning, where the application says so', async () => {
    const world = await worldWith(1)
    await world.produce('t', 0, [1, 2])
    const earliest = new Harness(world, { outOfRange: 'earliest' })
    const [buffer] = (await earliest.start(1, 500)) as [PartitionBuffer]
    await world.pass(1000)
    assert.deepEqual(takeAll(buffer), [1, 2])
    assert.match(earliest.warnings[0] ?? '', /offset 500 of t:0 no longer exists; reading on from earliest, 0/)
    const latest = new Harness(world, { outOfRange: 'latest' })
    const [other] = (await latest.start(1, 500)) as [PartitionBuffer]
    await world.pass(1000)
    assert.deepEqual([other.hasHead, other.position, other.nextOffset], [false, 2, 2])
    assert.deepEqual(latest.failures, [])
  })

  test('damaged bytes fail the partition', async () => {
    const world = await worldWith(1)
    await world.produce('t', 0, [1, 2, 3])
    const client = world.client()
    const broker: BrokerPort = Object.create(client, {
      fetch: {
        value: async (request: FetchRequest) => {
          const answer = await client.fetch(request)
          for (const { records } of answer)
            if (records.length) records[records.length - 1] = 0xff ^ (records.at(-1) ?? 0)
          return answer
        },
      },
    })
    const harness = new Harness(world, { broker })
    const [buffer] = (await harness.start(1)) as [PartitionBuffer]
    assert.equal(buffer.hasHead, false)
    assert.match(harness.failures[0]?.message ?? '', /t:0 cannot be read at offset 0/)
  })
})

describe('bytes buffered', () => {
  const size = batchOf(range(0, 100)).length

  async function crowded(): Promise<{ world: World; harness: Harness; buffers: PartitionBuffer[] }> {
    const world = await worldWith(4)
    for (let partition = 0; partition < 4; partition++) await world.produce('t', partition, range(0, 100))
    // Room for one batch and a half: the second one exceeds it.
    const harness = new Harness(world, { maxBufferedBytes: Math.floor(size * 1.5), maxPartitionBytes: size })
    const buffers = await harness.start(4)
    await world.pass(2000)
    return { world, harness, buffers }
  }

  test('never exceed their bound by more than one batch, and all partitions get their turn', async () => {
    const { world, harness, buffers } = await crowded()
    assert.ok(harness.buffered.length > 0)
    let taken = 0
    for (let round = 0; round < 50 && taken < 400; round++) {
      for (const buffer of buffers) taken += takeAll(buffer).length
      await world.pass(600)
    }
    assert.equal(taken, 400)
    assert.ok(Math.max(...harness.buffered) <= size * 2.5, `${Math.max(...harness.buffered)} bytes were buffered`)
    assert.equal(harness.fetcher.bufferedBytes, 0)
  })

  test('let a partition in for which the others wait, though there is no room', async () => {
    const { world, harness, buffers } = await crowded()
    const empty = (): number => buffers.filter((buffer) => !buffer.hasHead).length
    const before = empty()
    assert.ok(before > 0, 'there is no room for all of them')
    await world.pass(5000)
    assert.equal(empty(), before)
    assert.equal(
      buffers.every((buffer) => harness.fetcher.isHeld(tp(buffer.partition))),
      true,
    )
    harness.starving = true
    await world.pass(5000)
    assert.equal(empty(), 0)
  })
})
