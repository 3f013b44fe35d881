import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { BrokerError, type BrokerPort, type FetchRequest } from '../../../src/broker/port.ts'
import { Fetcher } from '../../../src/engine/input/fetcher.ts'
import { World } from './world.ts'

type Step =
  | { readonly kind: 'produce'; readonly p: number; readonly count: number }
  | { readonly kind: 'commit' | 'abort'; readonly p: number; readonly count: number }
  | { readonly kind: 'take'; readonly p: number; readonly count: number }
  | { readonly kind: 'pause' | 'resume' | 'break' | 'mend' }
  | { readonly kind: 'rewind'; readonly p: number }
  | { readonly kind: 'pass'; readonly ms: number }

const partitions = 3
const p = fc.nat(partitions - 1)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom('produce', 'commit', 'abort'),
      p,
      count: fc.integer({ min: 1, max: 30 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('take'), p, count: fc.integer({ min: 1, max: 25 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('pause', 'resume', 'break', 'mend') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rewind'), p }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('pass'), ms: fc.constantFrom(0, 0, 10, 700) }) },
)

const capacity = 10
const maxPollRecords = 4

/** A broker, a fetcher, and what each partition must still give. */
class Scene {
  readonly world: World
  readonly fetcher: Fetcher
  /** Offsets of the records that count, by partition, in order. */
  readonly visible: number[][] = Array.from({ length: partitions }, () => [])
  readonly taken: number[] = Array.from({ length: partitions }, () => 0)
  broken = false
  serial = 0

  constructor(world: World) {
    this.world = world
    const client = world.client()
    const broker: BrokerPort = Object.create(client, {
      fetch: {
        value: (request: FetchRequest) =>
          this.broken ? Promise.reject(new BrokerError('UNREACHABLE', 'nobody there')) : client.fetch(request),
      },
    })
    this.fetcher = new Fetcher(
      {
        broker,
        clock: world.clock,
        timers: world,
        isolation: 'read_committed',
        bufferCapacity: capacity,
        maxPollRecords,
        maxWaitMs: 500,
        maxBytes: 2000,
        maxPartitionBytes: 800,
        maxBufferedBytes: 1 << 24,
        outOfRange: 'fail',
      },
      {
        records: (buffer) => assert.ok(buffer.hasHead),
        polled: (_, records) => assert.ok(records >= 1 && records <= maxPollRecords),
        evidence: () => undefined,
        connected: () => undefined,
        failed: (error) => assert.fail(error.message),
      },
    )
    for (let partition = 0; partition < partitions; partition++) this.fetcher.add({ topic: 't', partition }, 0)
    this.fetcher.start()
  }

  async run(each: Step): Promise<void> {
    switch (each.kind) {
      case 'produce':
      case 'commit':
      case 'abort':
        await this.#produce(each.p, each.count, each.kind)
        break
      case 'take':
        this.take(each.p, each.count)
        break
      case 'pause':
        this.fetcher.pause('application')
        break
      case 'resume':
        this.fetcher.resume('application')
        break
      case 'break':
      case 'mend':
        this.broken = each.kind === 'break'
        break
      case 'rewind':
        this.#rewind(each.p)
        break
      case 'pass':
        await this.world.pass(each.ms)
    }
    for (const buffer of this.fetcher.buffers) assert.ok(buffer.buffered < capacity + maxPollRecords)
  }

  take(partition: number, count: number): void {
    const buffer = this.fetcher.buffer({ topic: 't', partition })
    const visible = this.visible[partition] as number[]
    for (let i = 0; i < count && buffer?.hasHead; i++) {
      const { buffered } = buffer
      assert.ok(buffered > 0)
      assert.equal(buffer.headOffset, visible[this.taken[partition] as number])
      assert.equal(buffer.headTimestamp, 1_000_000 + buffer.headOffset)
      buffer.shift()
      assert.ok(buffer.buffered >= buffered - 1, 'one record came out')
      this.taken[partition] = (this.taken[partition] as number) + 1
    }
    assert.ok(buffer?.hasHead || buffer?.buffered === 0)
  }

  /** As a restart in place does: back to some offset that was committed. */
  #rewind(partition: number): void {
    const index = (this.taken[partition] as number) >> 1
    const offset = this.visible[partition]?.[index]
    if (offset === undefined) return
    this.taken[partition] = index
    this.fetcher.seek({ topic: 't', partition }, offset)
  }

  async #produce(partition: number, count: number, kind: 'produce' | 'commit' | 'abort'): Promise<void> {
    const { world } = this
    const [end] = await world.broker.listOffsets([{ topic: 't', partition }], 'latest')
    const from = end?.offset ?? 0
    const offsets = Array.from({ length: count }, (_, i) => from + i)
    const timestamps = offsets.map((offset) => 1_000_000 + offset)
    if (kind === 'produce') await world.produce('t', partition, timestamps)
    else await world.transaction('t', partition, timestamps, kind, `tx-${this.serial++ % 3}`)
    if (kind !== 'abort') this.visible[partition]?.push(...offsets)
  }
}

describe('the fetch loop under any sequence of events', () => {
  test('gives every committed record once and in order, and never holds more than it may', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const world = new World()
        await world.createTopic('t', partitions)
        const scene = new Scene(world)
        for (const each of steps) await scene.run(each)
        scene.broken = false
        scene.fetcher.resume('application')
        for (let round = 0; round < 200; round++) {
          await world.pass(round === 0 ? 3000 : 1)
          for (let partition = 0; partition < partitions; partition++) scene.take(partition, 1000)
          if (scene.taken.every((taken, partition) => taken === scene.visible[partition]?.length)) break
        }
        await world.pass(1)
        for (const [partition, visible] of scene.visible.entries()) {
          assert.equal(scene.taken[partition], visible.length, `records of partition ${partition} are missing`)
          const buffer = scene.fetcher.buffer({ topic: 't', partition })
          assert.deepEqual([buffer?.buffered, buffer?.lag], [0, 0])
          assert.equal(buffer?.nextOffset, buffer?.position)
        }
        const closing = scene.fetcher.close()
        await world.pass(1000)
        await closing
      }),
      { numRuns: 150 },
    )
  })
})
