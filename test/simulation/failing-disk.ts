/**
 * A disk that fails: no room for a while, writes that end in an error, machines that lose their power and come back with
 * what was synchronized, files that contradict themselves and are set aside. As with LMDB, the stores of a partition share one file.
 */
import { EngineError } from '../../src/base/errors.ts'
import type { Scheduler } from './scheduler.ts'

export interface DiskFaults {
  /** Chance that the disk is full from a write on, and for how long it is. */
  readonly full: number
  readonly fullMs: number
  /** Chance that a write ends in an error. */
  readonly fails: number
  /** Chance that what is written is synchronized with the write; else it is later. */
  readonly synced: number
  /** Chance that a crash is one of the machine: of each file its last synchronized state is left. */
  readonly powerCuts: number
  /** Chance that such a file is torn: it is set aside, and its stores begin empty. */
  readonly torn: number
  /** A mistake: names of commits are synchronized, and rows are not. */
  readonly losesRowsOnly?: boolean
}

export class FailingDisk {
  readonly faults: DiskFaults
  readonly #scheduler: Scheduler
  #fullUntil = Number.NEGATIVE_INFINITY

  constructor(faults: DiskFaults, scheduler: Scheduler) {
    this.faults = faults
    this.#scheduler = scheduler
  }

  chance(probability: number): boolean {
    return this.#scheduler.random.chance(probability)
  }

  /** Called at the end of a transaction: throws where it does not take effect. */
  check(): void {
    const { now } = this.#scheduler
    const { full, fullMs, fails } = this.faults
    if (now >= this.#fullUntil && this.chance(full)) this.#fullUntil = now + this.#scheduler.random.next() * fullMs
    if (now < this.#fullUntil) throw new EngineError('STORE_DISK_FULL', 'the simulated disk has no room')
    if (this.chance(fails)) throw new EngineError('STORE_CORRUPT', 'the simulated disk could not be written')
  }
}
