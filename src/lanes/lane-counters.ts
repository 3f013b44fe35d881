/** A lane's block of counters, written by the lane alone. */
import type { Clock } from '../base/clock.ts'
import {
  type CounterLayout,
  deadLetterSlot,
  dropReasons,
  dropSlot,
  finishedSlot,
  heldSlot,
  knownInputSlot,
  type LaneDoing,
  laneDoings,
  laneIndex,
  laneSlots,
  storeSlot,
  subtopologySlot,
} from '../base/counters.ts'
import type { HostInput } from '../operators/quiet/input-knowledge.ts'
import type { Probe } from '../operators/node-operator.ts'

/** Written for every record: looked up by name once, and not each time. */
const { currentNode, currentTopic, currentPartition, currentOffset, steps } = laneIndex
const [idle, busy, waiting, held] = laneDoings.map((_, i) => i) as [number, number, number, number]
const dropIndex = new Map<string, number>(dropReasons.map((reason, i) => [reason, i]))

/** What goes with the thread, beside what a restart in place sets back. */
const ofThread = ['heapUsedBytes', 'loopUtilization', 'timersPending', 'unwrittenBytes'] as const

/** Notes the node at work in shared memory, so that a lane that is stuck shows where. */
class SharedProbe implements Probe {
  readonly #block: Float64Array
  readonly counts: Float64Array
  readonly resumes: () => void

  constructor(layout: CounterLayout, block: Float64Array, resumes: () => void) {
    this.#block = block
    this.resumes = resumes
    this.counts = block.subarray(laneSlots.length, laneSlots.length + layout.nodes)
    this.currentNode = -1
  }

  get currentNode(): number {
    return this.#block[currentNode] as number
  }

  set currentNode(node: number) {
    this.#block[currentNode] = node
  }

  get steps(): number {
    return this.#block[steps] as number
  }

  set steps(count: number) {
    this.#block[steps] = count
  }
}

export class LaneCounters {
  readonly probe: Probe
  readonly #layout: CounterLayout
  readonly #block: Float64Array
  /** Where the records of the first sub-topology are counted, and how far the next one's are from there. */
  readonly #firstTaken: number
  readonly #toNext: number
  /** Records that the threads which this lane had before have done. */
  readonly #processedBefore: number

  /** From now on the lane's time counts, unless it did before an in-place restart. `wake`: asks for a turn. */
  constructor(layout: CounterLayout, block: Float64Array, clock: Clock, wake: () => void) {
    this.#layout = layout
    this.#block = block
    this.#processedBefore = block[laneIndex.recordsProcessed] as number
    this.#firstTaken = subtopologySlot(layout, 0)
    this.#toNext = subtopologySlot(layout, 1) - this.#firstTaken
    if (block[laneIndex.doingSinceMs] === 0) block[laneIndex.doingSinceMs] = clock.now()
    this.probe = new SharedProbe(layout, block, () => {
      if (block[laneIndex.doing] === busy) return
      this.#does(busy, clock.now())
      wake() // What else a promise sets going follows at once; the turn behind it ends this time.
    })
  }

  /** What the engine has noted of the input of a sub-topology. */
  inputOf(subtopology: () => number): HostInput {
    const at = (slot: number): number => this.#block[knownInputSlot(this.#layout, subtopology()) + slot] as number
    const blindMs = (upTo: number): number => at(1) + Math.max(0, upTo - at(0) - at(2))
    return {
      knownTo: () => at(0),
      blindMs: (upTo) => (at(0) === 0 ? 0 : blindMs(upTo)),
      heldFrom: (node) => this.#block[heldSlot(this.#layout, node)] as number,
    }
  }

  add(slot: number, amount: number): void {
    this.#block[slot] = (this.#block[slot] as number) + amount
  }

  set(slot: number, value: number): void {
    this.#block[slot] = value
  }

  queued(records: number): void {
    this.add(laneIndex.recordsReceived, records)
    this.add(laneIndex.queuedRecords, records)
  }

  consumed(records: number): void {
    this.add(laneIndex.queuedRecords, -records)
  }

  /** The record that is about to be worked on: what a stuck lane shows. */
  at(topic: number, partition: number, offset: number, subtopology: number): void {
    const block = this.#block
    block[currentTopic] = topic
    block[currentPartition] = partition
    block[currentOffset] = offset
    const slot = this.#firstTaken + subtopology * this.#toNext
    block[slot] = (block[slot] as number) + 1
  }

  dropped(subtopology: number, reason: string): void {
    this.add(dropSlot(this.#layout, subtopology, dropIndex.get(reason) ?? 0), 1)
  }

  deadLetter(reason: string): void {
    this.add(deadLetterSlot(this.#layout, dropIndex.get(reason) ?? 0), 1)
  }

  store(store: string, slot: number, value: number): void {
    const index = this.#layout.stores.indexOf(store)
    if (index >= 0) this.#block[storeSlot(this.#layout, index, slot)] = value
  }

  progress(runner: { readonly processed: number; readonly inFlight: number }, clock: Clock): void {
    const block = this.#block
    const processed = this.#processedBefore + runner.processed
    if (block[laneIndex.recordsProcessed] !== processed) {
      block[laneIndex.recordsProcessed] = processed
      block[laneIndex.lastProgressMs] = clock.now()
    }
    block[laneIndex.inFlightAsync] = runner.inFlight
    this.add(laneIndex.heartbeats, 1)
  }

  /** Before all that may call a function of the application: one that does not return shows as a turn without an end. */
  turnBegins(now: number): void {
    this.add(laneIndex.turnsBegun, 1)
    this.#does(busy, now)
  }

  /** `more`: the next turn follows at once. What is queued all the same waits for somebody else. */
  turnEnds(now: number, more: boolean): void {
    this.add(laneIndex.turnsEnded, 1)
    if (more) return
    const block = this.#block
    const isHeld = (block[laneIndex.queuedRecords] as number) > 0
    this.#does((block[laneIndex.inFlightAsync] as number) > 0 ? waiting : isHeld ? held : idle, now)
  }

  /** Every moment counts for one thing only, so that the four times are the wall clock's together. */
  #does(doing: number, now: number): void {
    const block = this.#block
    const slot = laneIndex[laneDoings[block[laneIndex.doing] as number] as LaneDoing]
    const sinceMs = block[laneIndex.doingSinceMs] as number
    block[slot] = (block[slot] as number) + Math.max(0, now - sinceMs)
    block[laneIndex.doing] = doing
    block[laneIndex.doingSinceMs] = now
  }

  /** Records that are done, by sub-topology. */
  finished(records: Float64Array): void {
    for (let i = 0; i < records.length; i++) this.#block[finishedSlot(this.#layout, i)] = records[i] as number
  }

  reset(): void {
    this.#block[laneIndex.finishedRecords] = 0
    this.#block[laneIndex.occupiedMs] = 0
    for (let i = 0; i < this.#layout.subtopologies; i++) this.#block[finishedSlot(this.#layout, i)] = 0
    this.#block[laneIndex.arrivedRecords] = 0
    this.#block[laneIndex.givenRecords] = 0
    this.#block[laneIndex.oldestCall] = 0
    this.#block[laneIndex.failingCalls] = 0
    this.#block[laneIndex.longestChain] = 0
    this.#block[laneIndex.queuedRecords] = 0
    this.#block[laneIndex.inFlightAsync] = 0
    this.#block[laneIndex.handedOverBytes] = 0
    this.#block[laneIndex.takenOverBytes] = 0
    this.#block[laneIndex.uncommittedBytes] = 0
  }
}

/** What a lane's block shows once its thread has ended: it is in no function, and has nothing before it. */
export function threadEnded(layout: CounterLayout, block: Float64Array, clock: Clock): void {
  const counters = new LaneCounters(layout, block, clock, () => undefined)
  counters.reset()
  if (block[laneIndex.turnsBegun] === block[laneIndex.turnsEnded]) counters.turnBegins(clock.now())
  counters.turnEnds(clock.now(), false)
  for (const slot of ofThread) counters.set(laneIndex[slot], 0)
}
