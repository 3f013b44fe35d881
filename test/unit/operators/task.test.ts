import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { compile, EngineError, serdes, type Topology, tumbling } from '../../../src/index.ts'
import { originAt, type Rec } from '../../../src/operators/contract.ts'
import { Task } from '../../../src/operators/task.ts'
import type { AnyStore, StoreLifecycle, StoreSpec } from '../../../src/state/contract.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { openStore } from '../../../src/state/open-store.ts'

const text = (bytes: Uint8Array | null): string | null => (bytes === null ? null : new TextDecoder().decode(bytes))
const bytes = (value: string): Uint8Array => new TextEncoder().encode(value)

class Harness {
  readonly topology
  readonly task: Task
  readonly out: string[] = []
  readonly counts: Float64Array
  readonly stores = new Map<string, AnyStore & StoreLifecycle>()

  constructor(build: (topology: Topology) => void, stores?: ReadonlyMap<string, AnyStore & StoreLifecycle>) {
    this.topology = compile(build)
    this.counts = new Float64Array(this.topology.nodes.length)
    for (const name of this.topology.subtopologies[0]?.stores ?? []) {
      const spec = this.topology.stores.get(name) as StoreSpec
      const kept = stores?.get(name)
      this.stores.set(
        name,
        kept ?? openStore(spec, new MemoryBackend(), 0, { streamTime: () => Number.NEGATIVE_INFINITY }),
      )
    }
    this.task = new Task({
      topology: this.topology,
      subtopology: 0,
      partition: 0,
      stores: this.stores,
      globalStores: new Map(),
      host: {
        emit: (topic, given, value, rec) => {
          const key = given === undefined ? (rec.keyBytes ?? null) : given
          this.out.push(`${topic} ${text(key)}=${text(value)}@${rec.timestamp}`)
        },
        handOff: () => undefined,
        dropped: (_rec, reason) => this.out.push(`dropped ${reason}`),
        wallClock: () => 0,
        requestCommit: () => undefined,
        probe: { currentNode: -1, steps: 0, counts: this.counts },
      },
    })
    this.task.init()
  }

  rec(key: string, value: string, timestamp: number, watermark = timestamp): Rec {
    const origin = originAt('in', 0, timestamp, watermark, 1)
    return this.task.decode(0, bytes(key), bytes(value), timestamp, [], origin)
  }
}

describe('a task', () => {
  test('keeps what functions forward apart while several wait', async () => {
    const gates = new Map<string, () => void>()
    const harness = new Harness((topology) =>
      topology
        .stream<string, string>('in', { value: serdes.string })
        .process<string, string>((context) => async (value, key) => {
          await new Promise<void>((resolve) => gates.set(key, resolve))
          await context.forward(key, `${value}!`)
        })
        .processValues<string>((context) => async (value) => {
          await null
          await context.forward(value)
        })
        .to('out', { value: serdes.string }),
    )
    const first = harness.task.process(0, harness.rec('a', '1', 10))
    const second = harness.task.process(0, harness.rec('b', '2', 20))
    gates.get('b')?.()
    await second
    gates.get('a')?.()
    await first
    assert.deepEqual(harness.out, ['out b=2!@20', 'out a=1!@10'])
  })

  test('tells each final result once, also when it is made anew over the same state', () => {
    const build = (topology: Topology): void =>
      topology
        .stream('in', { value: serdes.string })
        .groupByKey()
        .windowedBy(tumbling(10), { emit: 'on-close' })
        .count({ store: 'counts' })
        .toStream()
        .selectKey((_count, window) => `${window.key}@${window.start}`)
        .to('out')
    const before = new Harness(build)
    for (const [key, at] of [
      ['a', 1],
      ['a', 12],
      ['b', 13],
    ] as const) {
      void before.task.process(0, before.rec(key, 'x', at))
      void before.task.advance(at)
    }
    assert.deepEqual(before.out, ['out a@0=1@1'])
    const after = new Harness(build, before.stores)
    void after.task.advance(15)
    assert.deepEqual(after.out, [])
    void after.task.advance(20)
    assert.deepEqual(after.out, ['out a@10=1@12', 'out b@10=1@13'])
  })

  test('is asked for nothing before its next wake-up', () => {
    const harness = new Harness((topology) =>
      topology
        .stream('in', { value: serdes.string })
        .groupByKey()
        .windowedBy(tumbling(10))
        .count()
        .suppress({ until: 'window-closes' })
        .toStream()
        .to('out'),
    )
    assert.equal(harness.task.nextWake, Number.POSITIVE_INFINITY)
    void harness.task.process(0, harness.rec('a', 'x', 3))
    assert.equal(harness.task.nextWake, 10)
    void harness.task.advance(9)
    assert.deepEqual(harness.out, [])
    void harness.task.advance(10)
    assert.equal(harness.out.length, 1)
    assert.equal(harness.task.nextWake, Number.POSITIVE_INFINITY)
  })

  test('counts records by node, and names the node that failed', () => {
    const harness = new Harness((topology) =>
      topology
        .stream('in', { value: serdes.string })
        .filter((value) => value !== 'skip')
        .peek(
          (value) => {
            if (value === 'bad') throw new RangeError('no such thing')
          },
          { name: 'look' },
        )
        .to('out'),
    )
    for (const value of ['x', 'skip', 'y']) void harness.task.process(0, harness.rec('a', value, 1))
    assert.deepEqual([...harness.counts], [3, 3, 2, 2])
    assert.throws(
      () => harness.task.process(0, harness.rec('a', 'bad', 7)),
      (error) => EngineError.is(error) && error.details.node === 'look' && error.details.offset === 7,
    )
    assert.equal(harness.task.currentNode, -1)
  })

  test('sends bytes on as they came where nothing changed them', () => {
    const harness = new Harness((topology) => topology.stream('in').to('out'))
    const value = bytes('{ "spaces": "kept" }')
    const origin = originAt('in', 0, 0, 1, 1)
    const rec = harness.task.decode(0, bytes('k'), value, 1, [], origin)
    assert.equal(rec.value, undefined)
    void harness.task.process(0, rec)
    assert.deepEqual(harness.out, ['out k={ "spaces": "kept" }@1'])
  })
})
