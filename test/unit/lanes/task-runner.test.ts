/** Records of one task while functions have not answered: their order by key, what is waited for, and what is shown of it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as soon, setTimeout as sleep } from 'node:timers/promises'
import { ByteRange } from '../../../src/base/byte-range.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { type CounterLayout, functionSlot, laneBlockLength, newBlock } from '../../../src/base/counters.ts'
import { messageOf } from '../../../src/base/errors.ts'
import { keySlot } from '../../../src/base/hash.ts'
import { Random } from '../../../src/base/random.ts'
import { systemTimers } from '../../../src/base/timers.ts'
import { compile, serdes, type Topology } from '../../../src/index.ts'
import type { LaneOptions } from '../../../src/lanes/lane-options.ts'
import { CallGates } from '../../../src/lanes/tasks/call-gates.ts'
import { Calls } from '../../../src/lanes/tasks/calls.ts'
import { passingOver } from '../../../src/lanes/tasks/passing-over.ts'
import { TaskRunner } from '../../../src/lanes/tasks/task-runner.ts'
import { TaskSlot } from '../../../src/lanes/tasks/task-slot.ts'
import { originAt, Rec } from '../../../src/operators/contract.ts'
import { Task } from '../../../src/operators/task.ts'

const text = { key: serdes.string, value: serdes.string }

/** A lane with one task, without threads. */
class OneTask {
  readonly topology
  readonly probe
  readonly calls: Calls
  readonly runner: TaskRunner
  readonly failures: string[] = []
  /** Offsets by key, in the order in which they came out. */
  readonly out = new Map<string, number[]>()
  given = 0
  slot: TaskSlot
  readonly #gates: CallGates
  readonly #layout: CounterLayout
  readonly #counters: Float64Array
  readonly #passesOver: boolean
  readonly #keys = new Map<number, string>()
  #offset = 0

  constructor(build: (topology: Topology) => void, { maxInFlight = 1000, passesOver = false } = {}) {
    const topology = compile(build)
    this.topology = topology
    this.#passesOver = passesOver
    const { nodes, subtopologies } = topology
    this.probe = { currentNode: -1, steps: 0, counts: new Float64Array(nodes.length) }
    this.#layout = {
      nodes: nodes.length,
      subtopologies: subtopologies.length,
      stores: [],
      sourceTopics: ['in'],
      sinkTopics: ['out'],
    }
    this.#counters = newBlock(laneBlockLength(this.#layout))
    this.calls = new Calls(systemClock, topology, () => this.probe.currentNode)
    const options = {
      clock: systemClock,
      timers: { turns: systemTimers, pauses: systemTimers, timeouts: systemTimers },
      random: () => 0.5,
      lanes: 1,
      maxInFlight,
      wake: () => undefined,
      layout: this.#layout,
      counters: this.#counters,
    } as unknown as LaneOptions
    this.#gates = new CallGates(options, this.calls)
    this.runner = new TaskRunner(
      {
        failed: (_slot, rec, error) => this.failures.push(`${rec?.origin.offset}: ${messageOf(error)}`),
        settled: () => undefined,
        alive: (slot) => slot === this.slot,
        decode: () => undefined,
      },
      this.calls,
      1000,
    )
    this.slot = this.#make()
  }

  #make(): TaskSlot {
    const alive = (): boolean => slot === this.slot
    const task = new Task({
      topology: this.topology,
      subtopology: 0,
      partition: 0,
      stores: new Map(),
      globalStores: new Map(),
      host: {
        emit: (_topic, _key, _value, { origin: { offset } }) => {
          if (!alive()) return
          const key = this.#keys.get(offset) as string
          const offsets = this.out.get(key) ?? []
          this.out.set(key, offsets)
          offsets.push(offset)
        },
        handOff: () => undefined,
        dropped: () => undefined,
        wallClock: () => 0,
        requestCommit: () => undefined,
        probe: this.probe,
        gate: (node) => this.#gates.of(node),
        returned: (origin) => {
          if (alive()) this.calls.returned(origin, slot.timerCall)
          else this.probe.currentNode = -1
        },
        called: (origin, node) => {
          if (alive()) this.calls.called(origin, slot.timerCall, node)
        },
        ...(this.#passesOver && {
          around: (operator, node) =>
            passingOver(operator, node, (rec, error) => {
              this.failures.push(`${rec.origin.offset}: ${messageOf(error)}`)
              return alive()
            }),
        }),
      },
    })
    const slot: TaskSlot = new TaskSlot(0, 0, 0, false, task, new Map(), 1 as never, false)
    task.init()
    return slot
  }

  put(key: string | null, value: string, partition = 0): void {
    this.given++
    const offset = this.#offset++
    this.#keys.set(offset, key ?? `none of ${partition}`)
    const range = key === null ? null : ByteRange.of(Buffer.from(key))
    const origin = originAt(partition < 0 ? '' : 'in', partition, offset, 0, 1)
    this.runner.submit(this.slot, 0, new Rec(key, value, 0, [], origin, range, undefined), 0, offset)
  }

  /** The lane begins anew: what is under way is of nobody's interest. */
  reset(): void {
    this.runner.reset()
    this.#gates.reset()
    this.out.clear()
    this.failures.length = 0
    this.given = 0
    this.slot = this.#make()
  }

  revoke(): void {
    this.slot.task.close()
    this.slot = undefined as never
  }

  async settled(): Promise<void> {
    for (let i = 0; i < 4000 && (this.runner.inFlight > 0 || this.runner.parked > 0); i++) await sleep(1)
    // What a lane before a reset has begun comes back as well.
    await sleep(20)
  }

  /** Calls that are out and records that wait for one, at all gates. */
  atGates(): number {
    let sum = 0
    for (const { index } of this.topology.nodes)
      for (const what of ['calls', 'waiting'] as const)
        sum += this.#counters[functionSlot(this.#layout, index, what)] as number
    return sum
  }

  /** Nothing is left under way, and nothing shows that anything is. */
  assertIsDone(): void {
    const { inFlight, parked } = this.runner
    assert.deepEqual(
      {
        ...{ inFlight, parked, keys: this.slot.keys.size, oldest: this.calls.oldest, atGates: this.atGates() },
        ...{ outstanding: this.slot.outstandingByParity, waiting: this.slot.waiting.oldestAt },
        ...{ node: this.probe.currentNode, finished: this.calls.finished },
      },
      {
        ...{ inFlight: 0, parked: 0, keys: 0, oldest: undefined, atGates: 0 },
        ...{ outstanding: [0, 0], waiting: Number.POSITIVE_INFINITY, node: -1, finished: this.given },
      },
    )
    for (const [key, offsets] of this.out) {
      const inOrder = offsets.toSorted((a, b) => a - b)
      assert.deepEqual(offsets, inOrder, `records of ${key} overtook one another`)
    }
    const came = [...this.out.values()].reduce((sum, offsets) => sum + new Set(offsets).size, 0)
    assert.ok(came + this.failures.length >= this.given, `${came} came and ${this.failures.length} failed`)
  }

  nameOf(node: number | undefined): string | undefined {
    return this.topology.nodes[node ?? -1]?.name
  }
}

describe('a task with functions that wait', () => {
  for (const passesOver of [false, true])
    for (const resets of [false, true])
      test(`loses nothing and keeps the order of keys${passesOver ? ', passing over failures' : ''}${resets ? ', begun anew again and again' : ''}`, async () => {
        const random = new Random(passesOver ? 5 : 6)
        const wait = (): Promise<unknown> => {
          const how = random.next()
          if (how < 0.3) return Promise.resolve()
          return how < 0.6 ? soon() : sleep(random.next() * 3)
        }
        const lane = new OneTask(
          (topology) =>
            topology
              .stream('in', text)
              .mapValues((value) => {
                const what = random.next()
                if (what < 0.02) throw new Error('at once')
                if (what < 0.3) return value
                return wait().then(() => {
                  if (random.chance(0.03)) throw new Error('later')
                  return value
                })
              })
              .flatMapValues((value) => (random.chance(0.5) ? [value] : wait().then(() => [value, value])))
              .mapValues((value) => wait().then(() => value), { concurrency: 3 })
              .filter(() => random.chance(0.5) || wait().then(() => true))
              .to('out', text),
          { maxInFlight: 40, passesOver },
        )
        for (let i = 0; i < 1000; i++) {
          const key = random.int(60)
          lane.put(key < 3 ? null : `k${key}`, 'v', key < 3 ? key : 0)
          if (random.chance(0.1)) await wait()
          if (resets && random.chance(0.005)) lane.reset()
        }
        await lane.settled()
        lane.assertIsDone()
        assert.ok(lane.failures.length > 0 || resets)
        for (const failure of lane.failures) assert.match(failure, /^\d+: A function of .* failed on the record in\//)
      })

  test('takes keys of one slot for one, and both come through', async () => {
    const bySlot = new Map<number, string>()
    let pair: readonly [string, string] | undefined
    for (let i = 0; pair === undefined; i++) {
      const slot = keySlot(Buffer.from(`k${i}`))
      const other = bySlot.get(slot)
      if (other !== undefined) pair = [other, `k${i}`]
      bySlot.set(slot, `k${i}`)
    }
    const lane = new OneTask((topology) =>
      topology
        .stream('in', text)
        .mapValues((value) => soon(value))
        .to('out', text),
    )
    for (let i = 0; i < 20; i++) lane.put(pair[i % 2] as string, 'v')
    await lane.settled()
    lane.assertIsDone()
    assert.deepEqual(
      [...lane.out.values()].map(({ length }) => length),
      [10, 10],
    )
  })

  test('tells the engine of no key where there is neither a key nor a partition', async () => {
    const lane = new OneTask((topology) =>
      topology
        .stream('in', text)
        .mapValues((value) => soon(value))
        .to('out', text),
    )
    lane.put(null, 'v', -1)
    lane.put(null, 'v', 3)
    lane.put('k', 'v')
    await lane.settled()
    assert.deepEqual(lane.calls.takeKeys()?.toSorted(), [3, keySlot(Buffer.from('k'))].toSorted())
  })

  test('fails where what a function throws has no text', async () => {
    const lane = new OneTask((topology) =>
      topology
        .stream('in', text)
        .mapValues((value) => soon(value))
        .peek(() => {
          throw Object.create(null)
        })
        .to('out', text),
    )
    lane.put('k', 'v')
    await lane.settled()
    assert.match(lane.failures.join(), /failed on the record in\/0 at offset 0: what was thrown has no text/)
    lane.assertIsDone()
  })

  test('shows nothing of what comes back to a lane that has begun anew, and calls nobody for it', async () => {
    const answers: Array<() => void> = []
    const lane = new OneTask((topology) =>
      topology
        .stream('in', text)
        .mapValues((value) => new Promise<string>((resolve) => answers.push(() => resolve(value))), { concurrency: 2 })
        .filter(() => true)
        .to('out', text),
    )
    for (let i = 0; i < 10; i++) lane.put(`k${i}`, 'v')
    await soon()
    lane.reset()
    lane.put('new', 'v')
    await soon()
    assert.equal(answers.length, 3)
    const [first, second, third] = answers
    first?.()
    second?.()
    await soon()
    assert.equal(answers.length, 3, 'a record from before was put to the function')
    assert.equal(lane.atGates(), 1)
    assert.equal(lane.probe.currentNode, -1)
    third?.()
    await lane.settled()
    lane.assertIsDone()
  })

  test('begins no call for a record from before, which it has let through at once', async () => {
    const answers: Array<() => void> = []
    const asked: string[] = []
    const lane = new OneTask((topology) =>
      topology
        .stream('in', text)
        .mapValues((value) => new Promise<string>((resolve) => answers.push(() => resolve(value))))
        .mapValues(async (value) => asked.push(value))
        .to('out'),
    )
    lane.put('k', 'before')
    lane.reset()
    lane.put('k', 'after')
    for (const answer of answers) answer()
    await lane.settled()
    assert.deepEqual(asked, ['after'])
    lane.assertIsDone()
  })

  test('knows no call any more of a task that is gone', async () => {
    const answers: Array<() => void> = []
    const answer = (): Promise<void> => new Promise((resolve) => answers.push(resolve))
    const lane = new OneTask((topology) =>
      topology
        .stream('in', text)
        .process<string, string>((context) => {
          context.schedule('1s', 'wall-clock', answer)
          return answer
        })
        .to('out', text),
    )
    lane.put('k', 'v')
    lane.runner.wallClock(lane.slot, 5000)
    assert.equal(lane.runner.inFlight, 2)
    // Its partition went to another process, and the lane goes on.
    lane.revoke()
    for (const each of answers) each()
    await lane.settled()
    assert.equal(lane.runner.inFlight, 0)
    assert.equal(lane.calls.oldest, undefined)
  })

  test('knows no call any more when all of a record have ended that were made side by side', async () => {
    const lane = new OneTask((topology) =>
      topology
        .stream('in', text)
        .process<string, string>((context) => async (value, key) => {
          await Promise.all([1, 2, 3].map((n) => context.forward(key, `${value}${n}`)))
        })
        .mapValues((value) => soon(value), { concurrency: 2 })
        .to('out', text),
    )
    for (let i = 0; i < 12; i++) lane.put(`k${i}`, 'v')
    await lane.settled()
    lane.assertIsDone()
  })

  test('names the function that has a record, also where it waited for its turn', async () => {
    const lane = new OneTask(
      (topology) =>
        topology
          .stream('in', text)
          .mapValues((value) => sleep(value === 'slow' ? 300 : 5).then(() => value), { name: 'ask' })
          .filter(() => true, { name: 'after' })
          .to('out', text),
      { maxInFlight: 2 },
    )
    for (const [key, value] of Object.entries({ a: 'quick', b: 'quick', c: 'slow', d: 'slow' })) lane.put(key, value)
    while (lane.out.size < 2) await sleep(1)
    await sleep(5)
    assert.equal(lane.nameOf(lane.calls.oldest?.node), 'ask')
    await lane.settled()
    lane.assertIsDone()
  })

  test('names a processor that has a record, also where it has forwarded some', async () => {
    const answers: Array<() => void> = []
    const lane = new OneTask((topology) =>
      topology
        .stream('in', text)
        .process<string, string>((context) => async (value, key) => {
          // Not waited for: the function goes on while it is under way.
          void context.forward(key, value)
          await new Promise<void>((resolve) => answers.push(resolve))
        })
        .to('out', text),
    )
    lane.put('k', 'v')
    assert.match(lane.nameOf(lane.calls.oldest?.node) ?? '', /PROCESSOR/)
    answers[0]?.()
    await lane.settled()
    lane.assertIsDone()
  })

  test('names the function that has a record, also where calls before it have come back and gone on to the sink', async () => {
    const answers: Array<() => void> = []
    const asked = (value: string): Promise<string> => new Promise((resolve) => answers.push(() => resolve(value)))
    const lane = new OneTask((topology) => {
      const stream = topology.stream('in', text)
      stream.mapValues(asked, { name: 'first' }).to('out', text)
      stream.mapValues(asked, { name: 'second' }).to('out', text)
    })
    lane.put('k', 'v')
    assert.equal(lane.nameOf(lane.calls.oldest?.node), 'first')
    answers[0]?.()
    await soon()
    assert.equal(answers.length, 2)
    assert.equal(lane.nameOf(lane.calls.oldest?.node), 'second')
    answers[1]?.()
    await lane.settled()
    lane.assertIsDone()
  })
})
