/**
 * Outputs on their way from the lanes to the producer. With exactly-once they wait for their commit, or until they are many: the
 * first of them opens the transaction, which the broker ends after its timeout, however slow the lanes are. With at-least-once
 * nothing holds them back but the changelogs of a commit that are just being written, which are not to wait for what comes behind them.
 */
import { assert } from '../../base/assert.ts'
import type { Clock } from '../../base/clock.ts'
import { usualSizes } from '../../base/sizes.ts'
import type { EngineSettings } from '../settings.ts'
import type { Producer, ToProduce } from './producer.ts'

/** A function that takes longer than this part of the transaction's timeout is slow: of such calls there may be some in a row. */
const slowPart = 8

type Limits = Pick<EngineSettings, 'guarantee' | 'transactionTimeoutMs' | 'uncommittedMaxBytes' | 'sizes'>

export class Outgoing {
  readonly #limits: Limits
  readonly #producer: Producer
  readonly #clock: Clock
  /** How long the slowest function of the application takes. */
  readonly #slowestMs: () => number
  /** No transaction holds outputs back. */
  readonly #isFree: boolean
  /** Of the open epoch. */
  #gathered: ToProduce[] = []
  #gatheredBytes = 0
  /** They leave as they come. */
  #leaves: boolean
  /** Of the next epoch: they wait until this one is committed, or may leave ahead of that. */
  #next: ToProduce[] = []
  #nextBytes = 0
  #nextLeaves = false

  constructor(limits: Limits, producer: Producer, clock: Clock, slowestMs: () => number) {
    this.#limits = limits
    this.#producer = producer
    this.#clock = clock
    this.#slowestMs = slowestMs
    this.#isFree = limits.guarantee === 'at-least-once'
    this.#leaves = this.#isFree
  }

  /** What waits here. */
  get bytes(): number {
    return this.#gatheredBytes + this.#nextBytes
  }

  /** Outputs of the open epoch. */
  add(batches: readonly ToProduce[]): void {
    if (this.#leaves) {
      this.#send(batches)
      return
    }
    for (const batch of batches) {
      this.#gathered.push(batch)
      this.#gatheredBytes += batch.records.length
    }
    const { transactionTimeoutMs, uncommittedMaxBytes, sizes = usualSizes } = this.#limits
    const slow = this.#slowestMs() > transactionTimeoutMs / slowPart
    if (this.#gatheredBytes >= (slow ? uncommittedMaxBytes / 2 : sizes.aheadBytes)) {
      this.#leaves = true
      this.#send(this.#takeGathered())
    }
  }

  /** Outputs of the epoch behind the open one. */
  addNext(batches: readonly ToProduce[]): void {
    if (this.#nextLeaves) {
      this.#send(batches)
      return
    }
    for (const batch of batches) {
      this.#next.push(batch)
      this.#nextBytes += batch.records.length
    }
  }

  /** The open epoch is complete: what was gathered leaves with what its commit flushes. */
  completed(): void {
    this.#producer.queue(this.#takeGathered(), this.#clock.monotonic())
  }

  /** The broker has all of the open epoch; its offsets are not committed yet. */
  written(): void {
    assert(this.#gathered.length === 0, 'an epoch is written, and outputs of it have not left')
    if (!this.#isFree) return
    this.#nextLeaves = true
    this.#send(this.#takeNext())
  }

  /** The open epoch is committed; the next one is open now. */
  committed(): void {
    assert(this.#gathered.length === 0, 'an epoch is committed, and outputs of it have not left')
    this.#leaves = this.#isFree
    this.#nextLeaves = false
    const held = this.#takeNext()
    if (held.length > 0) this.add(held)
  }

  #takeGathered(): ToProduce[] {
    const batches = this.#gathered
    this.#gathered = []
    this.#gatheredBytes = 0
    return batches
  }

  #takeNext(): ToProduce[] {
    const batches = this.#next
    this.#next = []
    this.#nextBytes = 0
    return batches
  }

  #send(batches: readonly ToProduce[]): void {
    if (batches.length > 0) this.#producer.send(batches, this.#clock.monotonic())
  }
}
