/** Results over stores that forget do not depend on when a task is told how far event time has come, nor on commits. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { compile, keyValueStore, serdes, session, sliding, type Topology, tumbling } from '../../../src/index.ts'
import { Task } from '../../../src/operators/task.ts'
import { originAt } from '../../../src/operators/contract.ts'
import type { StoreLifecycle, StoreSpec } from '../../../src/state/contract.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { openStore } from '../../../src/state/open-store.ts'
import { checkpointAt } from '../state/backend-suite.ts'

const bytes = (value: string): Uint8Array => new TextEncoder().encode(value)
const text = (value: Uint8Array | null): string | null => (value === null ? null : new TextDecoder().decode(value))

interface Input {
  readonly key: string
  /** Event time goes on by this much, and the record lies so much behind it. */
  readonly by: number
  readonly back: number
  /** Behind it the task is advanced; an epoch is sealed. */
  readonly advance: boolean
  readonly seal: boolean
}

/** Outputs of a task that is advanced, and whose stores are sealed, where `Input` says so. */
function outputs(build: (topology: Topology) => void, inputs: readonly Input[]): string[] {
  const topology = compile(build)
  const out: string[] = []
  const stores = new Map<string, ReturnType<typeof openStore>>()
  let task: Task | undefined
  for (const name of topology.subtopologies[0]?.stores ?? []) {
    const spec = topology.stores.get(name) as StoreSpec
    const streamTime = (): number =>
      (spec.kind === 'key-value' ? task?.rowTime : task?.settledTo) ?? Number.NEGATIVE_INFINITY
    const removableTo = (): number => task?.settledTo ?? Number.NEGATIVE_INFINITY
    stores.set(name, openStore(spec, new MemoryBackend(), 0, { streamTime, removableTo }))
  }
  task = new Task({
    topology,
    subtopology: 0,
    partition: 0,
    stores,
    globalStores: new Map(),
    host: {
      emit: (_topic, given, value, rec) => {
        const key = given === undefined ? (rec.keyBytes ?? null) : given
        out.push(`${text(key)}=${text(value)}@${rec.timestamp}`)
      },
      handOff: () => undefined,
      dropped: (rec, reason) => out.push(`${rec.timestamp} dropped: ${reason}`),
      wallClock: () => 0,
      requestCommit: () => undefined,
    },
  })
  task.init()
  let watermark = 0
  let epoch = 0
  inputs.forEach(({ key, by, back, advance, seal }, offset) => {
    // A record finds its task advanced to the watermark before its dispatch.
    void task.advance(watermark)
    const origin = { ...originAt('in', 0, offset, watermark + by, 1), at: watermark }
    watermark += by
    const timestamp = Math.max(0, watermark + 5 - back)
    void task.process(0, task.decode(0, bytes(key), bytes('x'), timestamp, [], origin))
    if (advance) void task.advance(watermark)
    if (!seal) return
    epoch++
    for (const store of stores.values() as Iterable<StoreLifecycle>) {
      if (store.seal(epoch) !== null) store.applied(epoch, checkpointAt(epoch))
      store.committed(epoch)
    }
  })
  void task.advance(watermark)
  return out
}

const windows = { tumbling: tumbling(10, { grace: 5 }), sliding: sliding(10, { grace: 5 }), sessions: session(10) }

const someInputs = fc.array(
  fc.record({
    key: fc.constantFrom('a', 'b'),
    by: fc.oneof({ weight: 6, arbitrary: fc.nat(4) }, { weight: 1, arbitrary: fc.nat(60) }),
    back: fc.nat(40),
    advance: fc.boolean(),
    seal: fc.boolean(),
  }),
  { minLength: 1, maxLength: 40 },
)

describe('an aggregate in windows gives the same, wherever its task is advanced and its stores are sealed', () => {
  for (const [name, window] of Object.entries(windows)) {
    for (const emit of ['update', 'on-close'] as const) {
      test(`${name}, ${emit === 'update' ? 'told at every update' : 'told when it closes'}`, () => {
        const build = (topology: Topology): void =>
          topology
            .stream('in', { value: serdes.string })
            .groupByKey()
            .windowedBy(window as never, emit === 'on-close' ? { emit } : {})
            .count({ store: 'counts' })
            .toStream()
            .selectKey((_count, { key, start, end }) => `${key}@${start}-${end}`)
            .to('out')
        const property = fc.property(someInputs, (inputs) => {
          const always = inputs.map((input) => ({ ...input, advance: true, seal: true }))
          const [cut, whole] = [outputs(build, inputs), outputs(build, always)]
          // What closes is told earlier or later.
          if (emit === 'on-close') for (const list of [cut, whole]) list.sort()
          assert.deepEqual(cut, whole)
        })
        fc.assert(property, { numRuns: 300 })
      })
    }
  }
})

describe('timers over rows with a time to live give the same, wherever their task is advanced and its stores are sealed', () => {
  const rows = keyValueStore<string, number>('rows', { key: serdes.string, value: serdes.json<number>(), ttl: '10ms' })
  const last = 400

  test('in a processor', () => {
    const build = (topology: Topology): void =>
      topology
        .stream('in', { value: serdes.string })
        .process<string, string>(
          (context) => ({
            process: (_value, key) => context.timers.set(key, context.streamTime() + 3),
            onTimer: (key, time) => {
              const seen = context.store(rows).get(key)
              context.store(rows).put(key, time)
              if (time < last) context.timers.set(key, time + (time % 3 === 0 ? 13 : 7))
              return context.forward(key, `${time} sees ${seen}`)
            },
          }),
          { stores: [rows], timers: true },
        )
        .to('out', { value: serdes.string })
    same(build)
  })

  test('as of their own times, where event time has gone past them at once', () => {
    const build = (topology: Topology): void =>
      topology
        .stream('in', { value: serdes.string })
        .process<string, string>(
          (context) => ({
            process: () => context.timers.set('a', 20),
            onTimer: (key, time) => {
              const seen = context.store(rows).get(key)
              if (time === 20) context.store(rows).put(key, time)
              if (time < 40) context.timers.set(key, time + 8)
              return context.forward(key, `${time} sees ${seen}`)
            },
          }),
          { stores: [rows], timers: true },
        )
        .to('out', { value: serdes.string })
    const told = outputs(build, [
      { key: 'a', by: 10, back: 0, advance: true, seal: true },
      { key: 'b', by: 1000, back: 0, advance: true, seal: true },
    ])
    assert.deepEqual(told, [
      'a=20 sees undefined@20',
      'a=28 sees 20@28',
      'a=36 sees undefined@36',
      'a=44 sees undefined@44',
    ])
  })

  function same(build: (topology: Topology) => void): void {
    const property = fc.property(someInputs, (inputs) => {
      const always = inputs.map((input) => ({ ...input, advance: true, seal: true }))
      assert.deepEqual(outputs(build, inputs), outputs(build, always))
    })
    fc.assert(property, { numRuns: 300 })
  }
})
