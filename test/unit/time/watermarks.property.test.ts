import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import type { PartitionTiming } from '../../../src/time/partition-watermarks.ts'
import { noHead, Watermarks } from '../../../src/time/watermarks.ts'
import { passTo } from './story.ts'
import { type NaivePartition, NaiveWatermarks } from './naive-watermarks.ts'

type Step =
  | { readonly kind: 'fetch'; readonly p: number; readonly timestamps: readonly number[]; readonly lag: number }
  | { readonly kind: 'pick'; readonly times: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'pause' | 'resume' }
  | { readonly kind: 'revoke' | 'assign'; readonly p: number }

const timing: fc.Arbitrary<PartitionTiming> = fc.record({
  maxOutOfOrdernessMs: fc.constantFrom(0, 5, 40),
  idlenessMs: fc.constantFrom(0, 30, 100),
  alignment: fc.option(fc.record({ group: fc.constantFrom('g', 'h'), maxDriftMs: fc.constantFrom(0, 20, 60) }), {
    nil: undefined,
  }),
})

const p = fc.nat(5)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('fetch' as const),
      p,
      timestamps: fc.array(fc.nat(300), { maxLength: 4 }),
      lag: fc.constantFrom(0, 0, 0, 3),
    }),
  },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('pick' as const), times: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 60 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('pause' as const, 'resume' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('revoke' as const, 'assign' as const), p }) },
)

/** Drives the real watermarks and the naive ones side by side. */
class Pair {
  readonly real = new Watermarks({ evidenceTtlMs: 1e9 })
  readonly naive = new NaiveWatermarks()
  readonly queues: Array<Array<{ timestamp: number; offset: number }>>
  readonly timings: readonly PartitionTiming[]
  readonly tasks: number
  now = 0
  offset = 0
  onDispatch: (timestamp: number, watermarkBefore: number) => void = () => undefined

  /** `tasks`: how many tasks the partitions feed in turn; 0: none waits for another. */
  constructor(timings: readonly PartitionTiming[], tasks = 0) {
    this.timings = timings
    this.tasks = tasks
    this.queues = timings.map(() => [])
    for (let index = 0; index < timings.length; index++) this.assign(index)
  }

  run(each: Step): void {
    switch (each.kind) {
      case 'fetch':
        this.fetch(each.p % this.timings.length, each.timestamps, each.lag)
        break
      case 'pick':
        for (let i = 0; i < each.times; i++) this.pick()
        break
      case 'wait':
        this.now += each.ms
        passTo(this.real, this.now)
        this.naive.tick(this.now)
        break
      case 'pause':
        this.real.suspend('pause', this.now)
        this.naive.setPaused(true, this.now)
        break
      case 'resume':
        this.real.resume('pause', this.now)
        this.naive.setPaused(false, this.now)
        // What lies at the broker may be something else by now.
        for (const partition of this.naive.partitions) partition.lag = undefined
        break
      case 'revoke':
        this.revoke(each.p % this.timings.length)
        break
      case 'assign':
        this.assign(each.p % this.timings.length)
    }
    this.compare()
  }

  find(index: number): NaivePartition | undefined {
    return this.naive.partitions.find(({ name }) => name === `t:${index}`)
  }

  assign(index: number): void {
    if (this.find(index)) return
    const each = this.timings[index] as PartitionTiming
    const task = this.tasks > 0 ? index % this.tasks : undefined
    const input = task === undefined ? undefined : { task: String(task), lag: undefined, at: this.now }
    this.real.assign({ topic: 't', partition: index }, each, input)
    this.naive.partitions.push({
      name: `t:${index}`,
      timing: each,
      task,
      lag: undefined,
      maxTs: Number.NEGATIVE_INFINITY,
      head: null,
      seenEmpty: false,
      idle: false,
      accrued: 0,
      since: undefined,
    })
  }

  revoke(index: number): void {
    this.real.revoke({ topic: 't', partition: index }, this.now)
    const at = this.naive.partitions.findIndex(({ name }) => name === `t:${index}`)
    if (at >= 0) this.naive.partitions.splice(at, 1)
    this.queues[index] = []
  }

  fetch(index: number, timestamps: readonly number[], lag: number): void {
    const partition = this.find(index)
    if (!partition) return
    const handle = this.real.handle('t', index)
    const queue = this.queues[index] as Array<{ timestamp: number; offset: number }>
    for (const timestamp of timestamps) queue.push({ timestamp, offset: this.offset++ })
    const [first] = queue
    if (partition.head === null && first) {
      queue.shift()
      this.real.headArrived(handle, first.timestamp, first.offset, this.now)
      this.naive.arrive(partition, first, this.now)
    }
    this.real.evidence(handle, lag, false, this.now)
    this.naive.evidence(partition, lag, this.now)
  }

  pick(): void {
    const handle = this.real.pick(this.now)
    const partition = this.naive.pick(this.now)
    assert.equal(handle, partition ? this.real.handle('t', Number(partition.name.slice(2))) : -1)
    if (!partition) return
    const next = this.queues[Number(partition.name.slice(2))]?.shift() ?? null
    const before = this.real.global()
    this.onDispatch(partition.head?.timestamp ?? 0, before)
    const watermark = this.real.dispatched(handle, next?.timestamp ?? noHead, next?.offset ?? -1, this.now)
    assert.equal(watermark, this.naive.dispatch(partition, next, this.now))
    assert.ok(watermark >= before, 'the watermark fell')
  }

  compare(): void {
    const snapshot = this.real.snapshot(this.now, 1_000_000 + this.now)
    this.naive.advance()
    assert.equal(this.real.global(), this.naive.global)
    for (const each of this.naive.partitions) {
      const shown = snapshot.partitions[each.name as 't:0']
      const wm = this.naive.wm(each)
      assert.equal(shown?.watermarkMs, wm === Number.NEGATIVE_INFINITY ? null : wm)
      assert.equal(shown?.idle, each.idle, `idleness of ${each.name}`)
      assert.equal(shown?.alignmentHeld, this.naive.laggards(each).length > 0)
      assert.equal('headHeldSinceMs' in (shown ?? {}), each.head !== null && each !== this.naive.oldest())
    }
    const waiting = this.naive.partitions.filter((each) => each.head !== null && this.naive.waits(each))
    const longest = this.real.longestWait()
    assert.equal(longest === undefined, waiting.length === 0)
    if (longest) {
      const held = waiting.find(({ name }) => name === longest.held)
      const awaited = this.naive.partitions.find(({ name }) => name === longest.awaited)
      assert.deepEqual([held?.task, awaited?.head], [awaited?.task, null])
    }
    const binding = this.naive.binding()
    const shown = snapshot.alignmentBinding
    assert.deepEqual(
      shown && { partition: shown.partition, emptyLaggards: shown.emptyLaggards, since: shown.sinceMs - 1_000_000 },
      binding,
    )
  }
}

describe('watermarks against the rules written plainly', () => {
  test('agree after any steps', () => {
    fc.assert(
      fc.property(
        fc.array(timing, { minLength: 1, maxLength: 6 }),
        fc.nat(3),
        fc.array(step, { maxLength: 80 }),
        (timings, tasks, steps) => {
          const pair = new Pair(timings, tasks)
          for (const each of steps) pair.run(each)
        },
      ),
      { numRuns: 1500 },
    )
  })

  test('agree with more partitions than the first tables hold', () => {
    fc.assert(
      fc.property(
        fc.array(timing, { minLength: 9, maxLength: 40 }),
        fc.nat(12),
        fc.array(fc.tuple(fc.nat(39), fc.array(fc.nat(300), { maxLength: 4 }), fc.nat(1)), { maxLength: 30 }),
        (timings, tasks, fetches) => {
          const pair = new Pair(timings, tasks)
          for (const [index, timestamps, lag] of fetches) {
            pair.run({ kind: 'fetch', p: index, timestamps, lag })
            pair.run({ kind: 'pick', times: 3 })
          }
        },
      ),
      { numRuns: 100 },
    )
  })

  test('no record is late for its partition alone: the watermark never passes what a partition may still bring', () => {
    fc.assert(
      fc.property(
        fc.array(timing, { minLength: 2, maxLength: 4 }),
        fc.nat(2),
        fc.array(step, { maxLength: 60 }),
        (timings, tasks, steps) => {
          // Without idleness, revocation and disorder beyond the bound, nothing is ever late.
          const calm = timings.map((each) => ({ ...each, idlenessMs: 0 }))
          const pair = new Pair(calm, tasks)
          const highest = calm.map(() => 0)
          for (const each of steps) {
            if (each.kind === 'revoke' || each.kind === 'assign') continue
            if (each.kind === 'fetch') {
              const index = each.p % calm.length
              const timestamps = each.timestamps.map((disorder) => {
                const bound = calm[index]?.maxOutOfOrdernessMs ?? 0
                const timestamp = Math.max(0, (highest[index] as number) + (disorder % 50) - (disorder % (bound + 1)))
                const kept = Math.max(timestamp, (highest[index] as number) - bound)
                highest[index] = Math.max(highest[index] as number, kept)
                return kept
              })
              pair.run({ ...each, timestamps })
            } else pair.run(each)
          }
        },
      ),
      { numRuns: 500 },
    )
  })
})
