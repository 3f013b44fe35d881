/** A fetch that is answered for some of the partitions of a task: what is known of the others must be of now. */
import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { BrokerError, type BrokerPort, type FetchedPartition, type FetchRequest } from '../../../src/broker/port.ts'
import { Fetcher } from '../../../src/engine/input/fetcher.ts'
import { LogEnds } from '../../../src/engine/input/log-ends.ts'
import { PartitionBuffer } from '../../../src/engine/input/partition-buffer.ts'
import type { Company } from '../../../src/engine/input/unanswered.ts'
import { World } from './world.ts'

const topic = 't'

/** Fetches two partitions. Of partition 1 answers bring what `other` says, whatever lies in it. */
class Scene {
  readonly world = new World()
  readonly #fetcher: Fetcher
  /** What came of the last answer, in its order. */
  readonly told: string[] = []
  company: Company = (_, among) => among
  /** Makes the next questions for ends fail. */
  listing: (() => BrokerError) | undefined

  constructor(other: readonly FetchedPartition[] = []) {
    const { world } = this
    const client = world.client()
    const broker: BrokerPort = Object.create(client, {
      fetch: {
        value: async (request: FetchRequest) => {
          const partitions = request.partitions.filter(({ partition }) => partition === 0)
          const answer = await client.fetch({ ...request, partitions })
          this.told.length = 0
          const [isApart = false] = other.map((each) => each.isApart)
          return [...answer.map((each) => ({ ...each, isApart })), ...other]
        },
      },
      listOffsets: {
        value: (...args: Parameters<BrokerPort['listOffsets']>) =>
          this.listing ? Promise.reject(this.listing()) : client.listOffsets(...args),
      },
    })
    this.#fetcher = new Fetcher(
      {
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
      },
      {
        records: ({ partition }) => this.told.push(`${partition} arrived`),
        company: (arrived, among) => this.company(arrived, among),
        evidence: ({ partition }, lag) =>
          this.told.push(`${partition} ${lag === undefined ? 'is not known' : `lags by ${lag}`}`),
        connected: () => undefined,
        failed: (error) => assert.fail(error),
      },
    )
    scenes.push(this)
  }

  /** Partition 1 gets a record, and then partition 0 another. */
  async play(): Promise<PartitionBuffer> {
    await this.world.createTopic(topic, 2)
    const [, other] = [0, 1].map((partition) => this.#fetcher.add({ topic, partition }, 0))
    this.#fetcher.start()
    await this.world.settle()
    await this.world.produce(topic, 1, [1])
    await this.world.produce(topic, 0, [2])
    await this.world.settle()
    return other as PartitionBuffer
  }

  async close(): Promise<void> {
    const closing = this.#fetcher.close()
    await this.world.pass(3000)
    await closing
  }
}

let scenes: Scene[] = []
afterEach(async () => {
  for (const scene of scenes) await scene.close()
  scenes = []
})

describe('an answer without some partitions', () => {
  test('is taken once it is known where those end that belong to what it brings', async () => {
    const scene = new Scene()
    const other = await scene.play()
    assert.deepEqual(scene.told, ['1 lags by 1', '0 arrived', '0 lags by 0'])
    assert.equal(other.lag, 1)
  })

  test('asks for none of other tasks', async () => {
    const scene = new Scene()
    scene.company = () => []
    await scene.play()
    assert.deepEqual(scene.told, ['0 arrived', '0 lags by 0'])
  })

  test('is not complete by the answer of a partition that has gone meanwhile', async () => {
    const ends = { highWatermark: 0, lastStableOffset: 0, logStartOffset: 0 }
    const scene = new Scene([{ topic, partition: 2, ...ends, records: new Uint8Array(0), aborted: [] }])
    await scene.play()
    assert.deepEqual(scene.told, ['1 lags by 1', '0 arrived', '0 lags by 0'])
  })

  test('may come together with what was read before, which takes nothing back', async () => {
    const ends = { highWatermark: 0, lastStableOffset: 0, logStartOffset: 0 }
    const scene = new Scene([{ topic, partition: 1, ...ends, records: new Uint8Array(0), aborted: [], isApart: true }])
    await scene.play()
    assert.deepEqual(scene.told, ['0 lags by 1', '1 lags by 1', '0 arrived', '0 lags by 0', '1 lags by 1'])
  })

  test('holds up a task whose broker does not say where its partition ends', async () => {
    const scene = new Scene()
    let asked = 0
    scene.listing = () => {
      asked++
      return new BrokerError('UNREACHABLE', 'nobody there')
    }
    await scene.play()
    assert.deepEqual(scene.told, ['1 is not known', '0 arrived', '0 lags by 0'])
    // Others are not held up again and again.
    await scene.world.produce(topic, 0, [3])
    await scene.world.settle()
    assert.deepEqual([scene.told, asked], [['0 lags by 0'], 1])
  })
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
