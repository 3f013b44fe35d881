/** A lane's block of counters, written by the lane alone. */
import type { Clock } from '../base/clock.ts'
import {
  type CounterLayout,
  deadLetterSlot,
  dropReasons,
  dropSlot,
  laneIndex,
  laneSlots,
  storeSlot,
  subtopologySlot,
} from '../base/counters.ts'
import type { Probe } from '../operators/node-operator.ts'

const dropIndex = new Map<string, number>(dropReasons.map((reason, i) => [reason, i]))

/** Notes the node at work in shared memory, so that a lane that is stuck shows where. */
class SharedProbe implements Probe {
  readonly #block: Float64Array
  readonly counts: Float64Array

  constructor(layout: CounterLayout, block: Float64Array) {
    this.#block = block
    this.counts = block.subarray(laneSlots.length, laneSlots.length + layout.nodes)
    this.currentNode = -1
  }

  get currentNode(): number {
    return this.#block[laneIndex.currentNode] as number
  }

  set currentNode(node: number) {
    this.#block[laneIndex.currentNode] = node
  }
}

export class LaneCounters {
  readonly probe: Probe
  readonly #layout: CounterLayout
  readonly #block: Float64Array

  constructor(layout: CounterLayout, block: Float64Array) {
    this.#layout = layout
    this.#block = block
    this.probe = new SharedProbe(layout, block)
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
    block[laneIndex.currentTopic] = topic
    block[laneIndex.currentPartition] = partition
    block[laneIndex.currentOffset] = offset
    const slot = subtopologySlot(this.#layout, subtopology)
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

  addToStore(store: string, slot: number, amount: number): void {
    const index = this.#layout.stores.indexOf(store)
    if (index >= 0) this.add(storeSlot(this.#layout, index, slot), amount)
  }

  /** Of the records whose promises are pending the one that has waited longest: the lane cannot be done before it. */
  waitsFor(topic: number, partition: number, offset: number): void {
    const block = this.#block
    block[laneIndex.currentTopic] = topic
    block[laneIndex.currentPartition] = partition
    block[laneIndex.currentOffset] = offset
  }

  progress(runner: { readonly processed: number; readonly inFlight: number }, clock: Clock): void {
    const block = this.#block
    if (block[laneIndex.recordsProcessed] !== runner.processed) {
      block[laneIndex.recordsProcessed] = runner.processed
      block[laneIndex.lastProgressMs] = clock.now()
    }
    block[laneIndex.inFlightAsync] = runner.inFlight
    this.add(laneIndex.heartbeats, 1)
  }

  reset(): void {
    this.#block[laneIndex.queuedRecords] = 0
    this.#block[laneIndex.inFlightAsync] = 0
    this.#block[laneIndex.handedOverBytes] = 0
    this.#block[laneIndex.takenOverBytes] = 0
    this.#block[laneIndex.uncommittedBytes] = 0
  }
}
