/** What windows that close in quiet take for quiet: up to when it is known what came, and when nobody could know. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { knownInputSlot, laneBlockLength, newBlock } from '../../../src/base/counters.ts'
import { decodeHeld, shortName } from '../../../src/engine/commit/held-input.ts'
import { KnownInput } from '../../../src/engine/commit/known-input.ts'
import { LaneCounters } from '../../../src/lanes/lane-counters.ts'
import type { InputKnowledge, Operator, TaskContext } from '../../../src/operators/contract.ts'
import { QuietInput } from '../../../src/operators/quiet/quiet-input.ts'

/** Node 1 has the windows, nodes 0 and 2 are before it and beside that. */
const layout = { nodes: 3, subtopologies: 2, stores: [], sourceTopics: [], sinkTopics: [] }
const nothing = Number.POSITIVE_INFINITY
const free = new Map<number, number>()
const begun = 1_000_000
const fetchMaxWaitMs = 500
const provenMs = fetchMaxWaitMs + 2500

/** Sub-topology 1 has windows and is fed by sub-topology 0, which reads the topics of the sources 0 and 1. */
class World {
  now = begun
  readonly block = newBlock(laneBlockLength(layout))
  /** The second topic ends at 7 for those who read what is committed. */
  readonly ends = { isWithheld: false }
  readonly routes = [
    { handle: 0, source: 0, subtopology: 0, buffer: { isWithheld: false } },
    { handle: 1, source: 1, subtopology: 0, buffer: this.ends },
  ]
  /** By partition: up to when it was read to its end; undefined while something of it waits. */
  readonly seen: Array<number | undefined> = [0, 0]
  readonly known: KnownInput

  constructor(split = 'in-process', lanes = 1) {
    const source = (index: number, subtopology: number): object => ({ index, subtopology, kind: 'topics' })
    const plan = {
      sources: [
        source(0, 0),
        source(1, 0),
        ...[0, 1].map((way) => ({ ...source(2 + way, 1), kind: 'boundary', boundary: way })),
      ],
      boundaries: [
        { fromSubtopology: 0, toSubtopology: 1, topic: 'between', nodesBefore: [0], sourcesBefore: [0, 1] },
        // Not on the way to windows.
        { fromSubtopology: 0, toSubtopology: 1, topic: 'beside' },
      ],
      quiet: [{ node: 1, subtopology: 1, boundaries: [0] }],
      subtopologies: [{ id: 0 }, { id: 1, closesInQuiet: true }],
    }
    this.known = new KnownInput(
      {
        clock: { now: () => this.now, monotonic: () => this.now - begun },
        layout,
        laneCounters: [this.block],
        settings: { plan, fetchMaxWaitMs, split, lanes } as never,
      },
      () => this.routes as never,
      { knownAt: (p) => this.seen[p] },
    )
    this.known.held.holds(0, [])
  }

  get input(): Omit<InputKnowledge, 'heldFrom'> & { heldFrom(): number } {
    const clock = { now: () => this.now, monotonic: () => this.now - begun }
    const told = new LaneCounters(layout, this.block, clock, () => undefined).inputOf(() => 1)
    return { ...told, cameAt: () => 0, behindMs: 0, disorderMs: 0, heldFrom: () => told.heldFrom(1) }
  }

  /** All was read to its end at this moment. */
  readTo(ms: number): void {
    this.now = begun + ms
    this.seen.fill(ms)
  }
}

describe('what is known of the input', () => {
  test('is what was read to its end before the mark of a commit that has gone through', () => {
    const world = new World()
    world.readTo(100)
    world.known.mark()
    assert.equal(world.input.knownTo(), 0)
    world.readTo(150)
    world.known.passed()
    assert.equal(world.input.knownTo(), begun + 100)
    world.known.rests()
    assert.equal(world.input.knownTo(), begun + 150)
  })

  test('goes no further than the partition that is behind, be it of another sub-topology above, or one with records that wait or are held back', () => {
    const world = new World()
    world.readTo(100)
    world.known.rests()
    world.readTo(200)
    world.seen[1] = undefined
    world.known.rests()
    assert.equal(world.input.knownTo(), begun + 100)
    world.seen[1] = 180
    world.ends.isWithheld = true
    world.known.rests()
    assert.equal(world.input.knownTo(), begun + 100)
    world.ends.isWithheld = false
    world.known.rests()
    assert.equal(world.input.knownTo(), begun + 180)
  })

  test('behind a topic between sub-topologies is what has come through to it', () => {
    const world = new World('repartition-topics')
    world.routes.push({ handle: 2, source: 2, subtopology: 1, buffer: { isWithheld: false } })
    world.seen.push(0)
    world.readTo(100)
    world.known.rests()
    assert.equal(world.input.knownTo(), 0)
    world.known.cameThrough(1, { at: 40, held: free })
    world.known.rests()
    assert.equal(world.input.knownTo(), begun + 40)
    world.seen[2] = undefined
    world.known.cameThrough(1, { at: 60, held: free })
    world.known.rests()
    assert.equal(world.input.knownTo(), begun + 40, 'some of it waits')
    world.seen[2] = 100
    world.known.rests()
    assert.equal(world.input.knownTo(), begun + 60)
  })

  test('does not wait to be told of a topic beside the way, from which nothing comes to windows', () => {
    const world = new World('repartition-topics')
    const buffer = { isWithheld: false }
    for (const source of [2, 3]) world.routes.push({ handle: source, source, subtopology: 1, buffer })
    world.seen.push(0, 0)
    world.readTo(100)
    world.known.cameThrough(1, { at: 40, held: free })
    world.known.rests()
    assert.equal(world.input.knownTo(), begun + 40)
    world.readTo(200)
    world.seen[3] = undefined
    world.known.cameThrough(1, { at: 150, held: free })
    world.known.rests()
    assert.equal(world.input.knownTo(), begun + 100, 'what waits there may be of its task')
  })

  test('has what is held back above, as of the mark of the commit that has gone through', () => {
    const world = new World()
    world.readTo(100)
    world.known.mark()
    const beside = [1, 2].map((node) => ({ node, partition: 0, from: 3 }))
    const above = [50, 70].map((from, partition) => ({ node: 0, partition, from }))
    world.known.held.holds(0, [...above, ...beside])
    assert.equal(world.input.heldFrom(), 0, 'nothing is known before the first commit')
    world.known.passed()
    assert.equal(world.input.heldFrom(), 50)
    world.known.held.holds(0, beside)
    world.known.rests()
    assert.equal(world.input.heldFrom(), nothing, 'what it holds back itself is not above it')
  })

  test('has nothing to go by before all lanes have said what they hold back', () => {
    const world = new World('in-process', 2)
    world.readTo(100)
    world.known.rests()
    assert.equal(world.input.heldFrom(), Number.NEGATIVE_INFINITY)
    world.known.held.holds(1, [])
    world.known.rests()
    assert.equal(world.input.heldFrom(), nothing)
  })

  test('behind a topic has what others had told by the mark', () => {
    const world = new World('repartition-topics')
    world.routes.push({ handle: 2, source: 2, subtopology: 1, buffer: { isWithheld: false } })
    world.seen.push(0)
    world.readTo(100)
    world.known.cameThrough(1, { at: 40, held: new Map([[1, 7]]) })
    world.known.mark()
    world.known.cameThrough(1, { at: 60, held: free })
    world.known.passed()
    assert.deepEqual([world.input.knownTo(), world.input.heldFrom()], [begun + 40, 7])
    world.known.rests()
    assert.deepEqual([world.input.knownTo(), world.input.heldFrom()], [begun + 60, nothing])
  })

  test('is told to others with the commit, also where nothing else is to be told of a partition', () => {
    const world = new World('repartition-topics')
    const told = (isTold = false) => {
      const position = { topic: 'in', partition: 0, subtopology: 0, offset: 9, maxTimestamp: 1, watermark: 1 }
      const [told] = world.known.held.withHeld([{ ...position, idle: false, isTold }])
      return [decodeHeld(told?.held)?.get(shortName('between')) ?? nothing, told?.isTold]
    }
    assert.deepEqual(told(), [nothing, false])
    world.known.held.holds(0, [
      { node: 0, partition: 0, from: 50.5 },
      { node: 0, partition: 1, from: 20 },
      { node: 2, partition: 0, from: 10 },
    ])
    assert.deepEqual(told(), [50, true])
    assert.deepEqual(told(), [50, false])
    assert.deepEqual(told(true), [50, true])
    world.known.held.holds(0, [])
    assert.deepEqual(told(), [nothing, true])
    world.known.held.assigned({ topic: 'in', partition: 0 }, 'abcdef.1')
    assert.deepEqual(told(), [nothing, true], 'something was held back when the partition came')
  })

  test('is nothing where no window closes in quiet', () => {
    const world = new World()
    world.readTo(100)
    world.known.rests()
    assert.equal(world.block[knownInputSlot(layout, 0)], 0)
  })

  test('tells for how long nobody could have seen a record', () => {
    const world = new World()
    world.readTo(100)
    world.known.rests()
    world.now = begun + 60_000
    assert.equal(world.input.blindMs(begun + 100), 0)
    assert.equal(world.input.blindMs(world.now), 59_900 - provenMs)
    world.readTo(60_000)
    world.known.rests()
    assert.equal(world.input.blindMs(begun + 60_000), 59_900 - provenMs)
  })
})

describe('quiet', () => {
  const idleMs = 10_000
  const quietOf = (world: World): { quiet: QuietInput; wakes: number[] } => {
    const wakes: number[] = []
    const context = {
      input: world.input,
      wallClock: () => world.now,
      settledTo: () => Number.NEGATIVE_INFINITY,
      wakeAtWallClock: (_operator: Operator, at: number) => wakes.push(at - begun),
    }
    return { quiet: new QuietInput({} as Operator, context as unknown as TaskContext, idleMs), wakes }
  }

  /** Looked at every second, as long as all is read. */
  const reads = (world: World, from: number, to: number): void => {
    for (let ms = from; ms <= to; ms += 1000) {
      world.readTo(ms)
      world.known.rests()
    }
  }

  test('is what is known of, from the last record on, and is asked for again until then', () => {
    const world = new World()
    const { quiet, wakes } = quietOf(world)
    reads(world, 1000, 2000)
    quiet.arrived(5000, 5000)
    reads(world, 3000, 11_000)
    world.now = begun + 12_000
    assert.equal(quiet.timeAt(world.now), undefined)
    assert.deepEqual(wakes, [12_000, 13_000])
    reads(world, 12_000, 13_000)
    assert.equal(quiet.timeAt(world.now), 5000 + 11_000)
  })

  // Of the time from a record to the next look at all of the input, nobody can tell how much was blind: none of it counts.
  for (const [what, cameAt, countedMs] of [
    ['before', 2000, provenMs],
    ['during', 20_000, 0],
  ] as const) {
    test(`leaves out the time in which nobody could have seen a record, for one that came ${what} it`, () => {
      const world = new World()
      const { quiet } = quietOf(world)
      reads(world, 1000, 2000)
      world.now = begun + cameAt
      quiet.arrived(5000, 5000)
      const closesAt = 60_000 + idleMs - countedMs
      reads(world, 60_000, closesAt - 1000)
      assert.equal(quiet.timeAt(world.now), undefined)
      reads(world, closesAt, closesAt)
      assert.equal(quiet.timeAt(world.now), 5000 + idleMs)
    })
  }
})
