/** A fetch that is answered for some of the partitions of a task: what is known of the others must be of now. */
import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { BrokerError, type BrokerPort, type FetchedPartition, type FetchRequest } from '../../../src/broker/port.ts'
import { Fetcher } from '../../../src/engine/input/fetcher.ts'
import { LogEnds } from '../../../src/engine/input/log-ends.ts'
import { PartitionBuffer } from '../../../src/engine/input/partition-buffer.ts'
import { World } from './world.ts'

const topic = 't'

const commitEveryMs = 50
/** From the broker into a lane. */
const wayMs = 5

type Answer = (request: FetchRequest, client: BrokerPort) => Promise<FetchedPartition[]>

/** Partition 1 is not answered. */
const withoutOne: Answer = (request, client) =>
  client.fetch({ ...request, partitions: request.partitions.filter(({ partition }) => partition !== 1) })

const nothingIn = (partition: number): FetchedPartition => {
  const ends = { highWatermark: 0, lastStableOffset: 0, logStartOffset: 0 }
  return { topic, partition, ...ends, records: new Uint8Array(0), aborted: [] }
}

interface SceneOptions {
  readonly partitions?: number
  readonly readsInTurn?: boolean
  readonly taskOf?: (partition: number) => string
  readonly paceMs?: number
}

/** Fetches partitions of one task from a broker that answers as it is told to. */
class Scene {
  readonly world = new World()
  readonly fetcher: Fetcher
  readonly buffers: PartitionBuffer[] = []
  readonly #partitions: number
  #answers = 0
  readonly #taskOf: (partition: number) => string
  /** What came of the last answer, in its order. */
  readonly told: string[] = []
  /** Questions for ends, each by the partitions that it names. */
  readonly asked: string[] = []
  /** What comes of them; by default the truth. */
  listing: (() => Promise<never>) | undefined
  /** Called with each question. */
  onQuestion: (() => Promise<void>) | undefined
  /** Requests of the fetch loop. */
  requests = 0
  answer: Answer

  constructor(
    answer: Answer,
    { partitions = 2, readsInTurn = false, taskOf = () => 'one', paceMs = 0 }: SceneOptions = {},
  ) {
    const { world } = this
    const client = world.client()
    this.answer = answer
    this.#partitions = partitions
    this.#taskOf = taskOf
    const broker: BrokerPort = Object.create(client, {
      readsInTurn: { value: readsInTurn },
      fetch: {
        value: async (request: FetchRequest) => {
          this.requests++
          // At first all are seen to be empty.
          const isFirst = this.#answers++ === 0
          const answered = isFirst
            ? await client.fetch({ ...request, maxWaitMs: 0 })
            : await this.answer(request, client)
          this.told.length = 0
          return answered
        },
      },
      listOffsets: {
        value: (...args: Parameters<BrokerPort['listOffsets']>) => {
          this.asked.push(args[0].map(({ partition }) => partition).join())
          if (this.listing && this.#answers > 1) return this.listing()
          return (this.onQuestion?.() ?? Promise.resolve()).then(() => client.listOffsets(...args))
        },
      },
    })
    this.fetcher = new Fetcher(
      {
        broker,
        clock: world.clock,
        timers: world,
        paceMs,
        isolation: 'read_committed',
        bufferCapacity: 1000,
        maxPollRecords: 1000,
        maxWaitMs: 500,
        maxBytes: 1 << 20,
        maxPartitionBytes: 1 << 18,
        maxBufferedBytes: 1 << 24,
        outOfRange: 'earliest',
      },
      {
        records: ({ partition }) => this.told.push(`${partition} arrived`),
        evidence: ({ partition }, lag, failed) =>
          this.told.push(`${partition} ${failed ? 'fails' : lag === undefined ? 'is not known' : `lags by ${lag}`}`),
        connected: () => undefined,
        // Heads wait for as long as anything is at hand, which a test takes out.
        starving: () => this.#atHand > 0,
        waiting: () => this.#atHand,
        slackMs: () => commitEveryMs - (world.clock.monotonic() % commitEveryMs) - wayMs,
        failed: (error) => assert.fail(error),
      },
    )
    scenes.push(this)
  }

  get #atHand(): number {
    return this.buffers.reduce((sum, { buffered }) => sum + buffered, 0)
  }

  async start(): Promise<void> {
    await this.world.createTopic(topic, this.#partitions)
    for (let partition = 0; partition < this.#partitions; partition++)
      this.buffers.push(this.fetcher.add({ topic, partition }, 0, undefined, false, this.#taskOf(partition)))
    this.fetcher.start()
    await this.world.pass(1)
    assert.equal(this.asked.join('; '), [...this.buffers.keys()].join(), 'of none is known yet what it has')
    this.asked.length = 0
  }

  /** Partition 1 gets a record, and then partition 0 another. */
  async play(): Promise<PartitionBuffer> {
    await this.start()
    await this.world.produce(topic, 1, [1])
    await this.world.produce(topic, 0, [2])
    await this.world.settle()
    return this.buffers[1] as PartitionBuffer
  }

  async close(): Promise<void> {
    const closing = this.fetcher.close()
    await this.world.pass(3000)
    await closing
  }
}

const refusing = (): Promise<never> => Promise.reject(new BrokerError('UNREACHABLE', 'nobody there'))

let scenes: Scene[] = []
afterEach(async () => {
  for (const scene of scenes) await scene.close()
  scenes = []
})

describe('an answer without some partitions', () => {
  test('lets records go once it is known where those end that belong to what it brings', async () => {
    const scene = new Scene(withoutOne)
    const other = await scene.play()
    assert.deepEqual(scene.told, ['0 arrived', '0 lags by 0', '1 is not known', '1 lags by 1'])
    assert.equal(other.lag, 1)
  })

  test('asks for none of other tasks', async () => {
    const scene = new Scene(withoutOne, { taskOf: (partition) => `of ${partition}` })
    await scene.play()
    assert.deepEqual(scene.told, ['0 arrived', '0 lags by 0'])
  })

  test('is not complete by the answer of a partition that has gone meanwhile', async () => {
    const scene = new Scene(async (request, client) => [...(await withoutOne(request, client)), nothingIn(2)])
    await scene.play()
    assert.deepEqual(scene.told, ['0 arrived', '0 lags by 0', '1 is not known', '1 lags by 1'])
  })

  test('asks again for what it was not told, once something comes that needs it or its broker answers', async () => {
    const scene = new Scene(withoutOne)
    scene.listing = refusing
    await scene.play()
    assert.deepEqual(scene.told, ['0 arrived', '0 lags by 0', '1 is not known'])
    await scene.world.produce(topic, 0, [3])
    await scene.world.settle()
    assert.deepEqual(scene.told, ['0 lags by 0', '1 is not known'])
    scene.listing = undefined
    scene.answer = async (request, client) => [...(await withoutOne(request, client)), nothingIn(1)]
    await scene.world.pass(1100)
    assert.deepEqual(scene.told, ['0 lags by 0', '1 is not known', '1 is not known', '1 lags by 1'])
    assert.deepEqual(scene.asked, ['1', '1', '1'])
  })

  test('holds up no other tasks while a broker takes its time to say its ends', async () => {
    const scene = new Scene(withoutOne, { partitions: 3, taskOf: (partition) => (partition === 2 ? 'b' : 'a') })
    scene.listing = () => new Promise(() => undefined)
    await scene.play()
    for (let i = 0; i < 5; i++) {
      await scene.world.produce(topic, 0, [3])
      await scene.world.produce(topic, 2, [3])
      await scene.world.pass(50)
    }
    const [held, , other] = scene.buffers
    assert.deepEqual([held?.position, other?.position, scene.asked], [1, 5, ['1']])
    // It is given up after a while, and asked for again with what has come.
    await scene.world.pass(500)
    assert.deepEqual([held?.position, scene.asked], [6, ['1', '1']])
  })
})

describe('an answer that was put together from several', () => {
  const old: Answer = async (request, client) => {
    const answer = [...(await withoutOne(request, client)), nothingIn(1)]
    return answer.map((each) => ({ ...each, isApart: true }))
  }

  test('takes nothing back of what is known', async () => {
    const scene = new Scene(old)
    await scene.play()
    assert.deepEqual(scene.told, ['0 arrived', '0 lags by 0', '1 lags by 0', '1 is not known', '1 lags by 1'])
    await scene.world.produce(topic, 0, [3])
    await scene.world.settle()
    assert.deepEqual(scene.told, ['0 lags by 0', '1 lags by 1'])
  })

  test('does not tell what nobody answered', async () => {
    const scene = new Scene(old)
    scene.listing = refusing
    await scene.play()
    assert.deepEqual(scene.told, ['0 arrived', '0 lags by 0', '1 lags by 0', '1 is not known'])
    await scene.world.pass(600)
    assert.deepEqual(scene.told, ['0 lags by 0', '1 is not known', '1 is not known'])
  })
})

describe('an answer that was read in turn', () => {
  for (const readsInTurn of [true, false]) {
    const name = readsInTurn ? 'lacks what came behind a partition that was read before' : 'is of one moment by default'
    test(name, async () => {
      let order: number[] = []
      const whole: Answer = (request, client) => {
        order = request.partitions.map(({ partition }) => partition)
        return client.fetch(request)
      }
      const scene = new Scene(whole, { partitions: 4, readsInTurn })
      await scene.start()
      for (let n = 0; n < 8; n++) {
        const partition = n % 4
        // Which one is read first changes from request to request.
        const before = order.slice(0, order.indexOf(partition)).sort()
        scene.asked.length = 0
        await scene.world.produce(topic, partition, [n])
        await scene.world.settle()
        assert.equal(scene.asked.join('; '), readsInTurn ? before.join() : '')
      }
    })
  }
})

describe('a question that finds each time that some more has come', () => {
  const untilMs = 200
  /** A broker that took so long for an answer is a slow one for a while. */
  const slowMs = 60

  /** Each partition gets a record a millisecond, and another with each question. So many of each are left at hand. */
  async function requestsWhere(left: number, wasSlow = false): Promise<number> {
    const scene = new Scene((request, client) => client.fetch(request), { readsInTurn: true, paceMs: 5 })
    await scene.start()
    const { world, buffers } = scene
    const come = async (): Promise<void> => {
      for (const partition of [0, 1]) await world.produce(topic, partition, [1])
    }
    const after = (ms: number): Promise<void> => new Promise((resolve) => world.after(ms, resolve))
    if (wasSlow) {
      scene.onQuestion = () => after(slowMs)
      await come()
      await world.pass(2 * slowMs)
    }
    scene.onQuestion = async () => {
      for (const buffer of buffers) while (buffer.buffered > left) buffer.shift()
      await come()
      await after(1)
    }
    const before = scene.requests
    for (let ms = 0; ms < untilMs; ms++) {
      await come()
      await world.pass(1)
    }
    return scene.requests - before
  }

  for (const wasSlow of [false, true]) {
    const broker = wasSlow ? ', where a broker was slow once' : ''
    test(`is followed by one request where what came waits for it, and by none where a few do${broker}`, async () => {
      const commits = untilMs / commitEveryMs
      const [all, few] = [await requestsWhere(Number.POSITIVE_INFINITY, wasSlow), await requestsWhere(1, wasSlow)]
      assert.ok(all > commits && all <= 3 * commits, `${all} requests in ${commits} commits where all waits`)
      assert.ok(few <= commits + 1, `${few} requests in ${commits} commits where a few do`)
    })
  }
})

describe('a partition that is known to have more', () => {
  test('may be said to have nothing by an answer that was under way: it is asked for then', async () => {
    const scene = new Scene(withoutOne)
    await scene.start()
    const [, other] = scene.buffers as [PartitionBuffer, PartitionBuffer]
    other.sawEnds(1, 1, 0)
    await scene.world.produce(topic, 1, [1])
    await scene.world.produce(topic, 0, [3])
    await scene.world.settle()
    assert.deepEqual([scene.told, scene.asked], [['0 arrived', '0 lags by 0'], []], 'it is waited for as it is')
    // What was read before another row came is all that this answer has.
    const limits = { maxWaitMs: 0, maxBytes: 1 << 20, isolation: 'read_committed' as const }
    const read = await scene.world
      .client()
      .fetch({ ...limits, partitions: [{ topic, partition: 1, offset: 0, maxBytes: 1 << 20 }] })
    await scene.world.produce(topic, 1, [2])
    let answers = 0
    scene.answer = async (request, client) => (answers++ === 0 ? read : withoutOne(request, client))
    await scene.world.pass(600)
    assert.deepEqual(scene.asked, ['0,1'], 'of what came behind it nothing is known')
    assert.equal(other.lag, 1)
  })

  test('is asked for by its first answer', async () => {
    const scene = new Scene((request, client) => client.fetch(request))
    await scene.start()
    scene.fetcher.remove({ topic, partition: 1 })
    const again = scene.fetcher.add({ topic, partition: 1 }, 0, undefined, false, 'one')
    assert.equal(scene.fetcher.lagOf(again), undefined)
    await scene.world.pass(600)
    assert.deepEqual([scene.asked, scene.fetcher.lagOf(again)], [['1'], 0])
  })
})

test('what lies nowhere any more is not known, and others go on, until it was looked up', async () => {
  const told: string[] = []
  const scene = new Scene(async (request, client) => {
    const first = request.partitions.filter(({ partition }) => partition === 0)
    const answer = await client.fetch({ ...request, partitions: first })
    const isAsked = request.partitions.some(({ partition }) => partition === 1)
    told.push(...scene.told)
    return isAsked ? [{ ...nothingIn(1), error: 'OFFSET_OUT_OF_RANGE' }, ...answer] : answer
  })
  let refuse: (() => void) | undefined
  scene.listing = () => new Promise((_, reject) => (refuse = () => reject(new BrokerError('UNREACHABLE', 'gone'))))
  await scene.start()
  const atFirst = scene.told.filter((each) => each.startsWith('1')).length
  for (let n = 2; n < 6; n++) {
    await scene.world.produce(topic, 0, [n])
    await scene.world.pass(600)
  }
  assert.deepEqual(told.filter((each) => each.startsWith('1')).slice(atFirst), ['1 is not known', '1 fails'])
  assert.equal(scene.buffers[0]?.position, 4)
  refuse?.()
})

test('an end that was asked for apart from fetches is told to whoever waits by it', async () => {
  const world = new World()
  await world.createTopic(topic, 1)
  const options = {
    topic,
    partition: 0,
    offset: 0,
    capacity: 10,
    maxPollRecords: 4,
    isolation: 'read_committed' as const,
  }
  const nothing = (): void => undefined
  const nobody = { arrived: nothing, polled: nothing, hungry: nothing, failed: nothing }
  const buffer = new PartitionBuffer(options, nobody)
  const told: number[] = []
  const ends = new LogEnds(
    { broker: world.client(), clock: world.clock, timers: world },
    () => [buffer],
    ({ lag }) => told.push(lag),
  ).start()
  await world.pass(3000)
  assert.deepEqual(told, [], 'nothing is there')
  await world.produce(topic, 0, [1])
  await world.pass(1500)
  assert.deepEqual(told, [1])
  ends.close()
})

test('an end that went back is believed after a while, however often it is asked for', () => {
  const options = {
    topic,
    partition: 0,
    offset: 90,
    capacity: 10,
    maxPollRecords: 4,
    isolation: 'read_committed' as const,
  }
  const nothing = (): void => undefined
  const buffer = new PartitionBuffer(options, { arrived: nothing, polled: nothing, hungry: nothing, failed: nothing })
  buffer.endsAtLeast(100, 0)
  for (let at = 5000; at < 120_000; at += 5000) {
    buffer.endsAtLeast(90, at)
    buffer.sawEnds(90, 90, at + 1)
    if (at < 60_000) assert.equal(buffer.lag, 10, 'a fetch may have been answered before')
  }
  assert.equal(buffer.lag, 0)
})
