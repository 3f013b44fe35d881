/**
 * The clock by which a store forgets, and how far it has forgotten. Both belong to the epochs: what an aborted epoch
 * moved is moved back, or the replay would find its own records too old.
 */
import type { CommitEpoch } from '../base/ids.ts'

interface Reading {
  readonly epoch: CommitEpoch
  readonly newest: number
  readonly horizon: number
}

const unset: Reading = { epoch: 0, newest: Number.NEGATIVE_INFINITY, horizon: Number.NEGATIVE_INFINITY }

export class RetentionClock {
  /** Largest time ever put. */
  newest = Number.NEGATIVE_INFINITY
  /** What is at this time or before is gone. */
  horizon = Number.NEGATIVE_INFINITY
  #committed = unset
  #sealed: Reading[] = []

  observe(time: number): void {
    if (time > this.newest) this.newest = time
  }

  /** For rows that are committed already. */
  observeCommitted(time: number): void {
    this.observe(time)
    if (time > this.#committed.newest) this.#committed = { ...this.#committed, newest: time }
  }

  /** Moves the horizon up to this time, never back. */
  forget(upTo: number): void {
    if (upTo > this.horizon) this.horizon = upTo
  }

  seal(epoch: CommitEpoch): void {
    this.#sealed.push({ epoch, newest: this.newest, horizon: this.horizon })
  }

  applied(epoch: CommitEpoch): void {
    for (let oldest = this.#sealed[0]; oldest !== undefined && oldest.epoch <= epoch; oldest = this.#sealed[0]) {
      this.#committed = oldest
      this.#sealed.shift()
    }
  }

  discard(): void {
    this.#sealed = []
    this.newest = this.#committed.newest
    this.horizon = this.#committed.horizon
  }

  adopt(other: RetentionClock): void {
    this.newest = other.newest
    this.horizon = other.horizon
  }
}
