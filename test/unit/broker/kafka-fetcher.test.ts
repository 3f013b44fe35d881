/** Fetches over several brokers: what is asked of whom, and in which order answers stand. Brokers are played here. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'node:test'
import type { Cluster } from '../../../src/broker/kafka/cluster.ts'
import { Fetcher } from '../../../src/broker/kafka/fetcher.ts'
import type { FetchRequest } from '../../../src/broker/port.ts'

type Asked = FetchRequest['partitions'][number]

const topic = 't'
const asking = (partition: number): Asked => ({ topic, partition, offset: 0, maxBytes: 1 })

/** `answers`: after how long a broker answers its n-th request, and which partitions it has something of. */
class Brokers {
  /** Partitions of each request, by broker, in their order. */
  readonly requests: Array<readonly [broker: string, partitions: readonly number[]]> = []
  readonly fetcher: Fetcher
  #asked = new Map<string, readonly Asked[]>()

  constructor(
    leaderOf: (partition: number) => string,
    answers: (broker: string, n: number) => { readonly afterMs: number; readonly has?: readonly number[] },
  ) {
    const cluster = {
      retrier: { closed: false, endable, pause: () => sleep(5) },
      contacted: true,
      settings: { requestTimeoutMs: 30_000, deliveryTimeoutMs: 30_000, firstContactMs: 30_000 },
      forget: () => undefined,
      topic: async () => ({ topicId: 'id' }),
      byLeader: async (items: readonly Asked[]) => {
        const groups = Map.groupBy(items, ({ partition }) => leaderOf(partition))
        for (const [broker, asked] of groups) this.#asked.set(broker, asked)
        return new Map([...groups].map(([address, asked]) => [address, { address, items: asked }]))
      },
      alone: async (broker: string) => {
        const partitions = (this.#asked.get(broker) ?? []).map(({ partition }) => partition)
        const n = this.requests.filter(([each]) => each === broker).length
        this.requests.push([broker, partitions])
        const { afterMs, has = [] } = answers(broker, n)
        await sleep(afterMs, undefined, { ref: false })
        return { errorCode: 0, partitions: partitions.map((partition) => found(partition, has.includes(partition))) }
      },
    }
    this.fetcher = new Fetcher(cluster as unknown as Cluster)
  }

  async fetch(partitions: readonly number[], maxWaitMs: number, abortMs?: number): Promise<readonly number[]> {
    const signal = abortMs === undefined ? {} : { signal: AbortSignal.timeout(abortMs) }
    const request = { partitions: partitions.map(asking), maxWaitMs, maxBytes: 100, ...signal }
    const answer = await this.fetcher.fetch({ ...request, isolation: 'read_committed' })
    return answer.map(({ partition }) => partition)
  }
}

function found(partition: number, hasRecords: boolean): object {
  const ends = { errorCode: 0, highWatermark: 0, lastStableOffset: 0, logStartOffset: 0, aborted: [] }
  return { ...ends, topicId: 'id', partition, records: new Uint8Array(hasRecords ? 1 : 0) }
}

function endable(ms: number, signal?: AbortSignal): { readonly over: Promise<void>; end(): void } {
  let end = (): void => undefined
  const over = new Promise<void>((resolve) => {
    end = resolve
    setTimeout(resolve, Math.max(0, ms)).unref()
    signal?.addEventListener('abort', () => resolve())
  })
  return { over, end }
}

test('an answer stands in the order in which it was read, be partitions known from before', async () => {
  // The first request finds nothing, and what comes meanwhile is found by the next one.
  const brokers = new Brokers(
    () => 'a',
    (_, n) => (n === 0 ? { afterMs: 40 } : { afterMs: 1, has: [1] }),
  )
  // A change elsewhere ends the wait of the first call, and the next one takes its request over, in another order.
  await brokers.fetch([1, 0], 50, 10)
  assert.deepEqual(await brokers.fetch([0, 1], 200), [0, 1])
  assert.deepEqual(
    brokers.requests.map(([, partitions]) => partitions),
    [
      [1, 0],
      [0, 1],
    ],
  )
})

test('a broker that has answered is not asked on and on while another one takes longer than the wait', async () => {
  const brokers = new Brokers(
    (partition) => (partition === 0 ? 'quick' : 'slow'),
    (broker) => ({ afterMs: broker === 'quick' ? 5 : 400 }),
  )
  await brokers.fetch([0, 1], 20)
  const quick = brokers.requests.filter(([broker]) => broker === 'quick').length
  assert.ok(quick < 10, `${quick} requests within a wait of 20 ms, each of which took 5`)
})

test('says of an answer to a request of an earlier call how much earlier it was asked for', async () => {
  const { fetcher } = new Brokers(
    () => 'a',
    (_, n) => (n === 0 ? { afterMs: 150, has: [0] } : { afterMs: 1 }),
  )
  const request = { partitions: [asking(0)], maxWaitMs: 400, maxBytes: 100, isolation: 'read_committed' } as const
  await fetcher.fetch({ ...request, signal: AbortSignal.timeout(10) })
  const left = performance.now()
  await sleep(50)
  const waited = performance.now() - left
  const [takenOver] = await fetcher.fetch(request)
  assert.ok((takenOver?.askedBeforeMs ?? 0) >= waited, `${takenOver?.askedBeforeMs} ms before, of ${waited}`)
  const [own] = await fetcher.fetch({ ...request, maxWaitMs: 1 })
  assert.equal(own?.askedBeforeMs, undefined)
})
