/**
 * The clock by which a store forgets. What is forgotten follows from what was put and from how far event time has come,
 * at every moment and not at commits alone: a reader must not see where a commit fell. The readings of epochs are kept,
 * because what an aborted epoch moved is moved back, or the replay would find its own records too old.
 */
import type { CommitEpoch } from '../../base/ids.ts'
import type { Checkpoint } from '../contract.ts'

export interface Reading {
  /** Largest time put. */
  readonly newest: number
  /** How far event time had come. */
  readonly time: number
  /** What is at this time or before is gone. */
  readonly horizon: number
}

const unset: Reading = {
  newest: Number.NEGATIVE_INFINITY,
  time: Number.NEGATIVE_INFINITY,
  horizon: Number.NEGATIVE_INFINITY,
}

export class RetentionClock {
  /** Largest time ever put. */
  newest = Number.NEGATIVE_INFINITY
  readonly #retentionMs: number
  /** What was forgotten before this store was opened stays forgotten. */
  #floor = Number.NEGATIVE_INFINITY
  #committed = unset
  #sealed: Array<Reading & { readonly epoch: CommitEpoch }> = []

  constructor(retentionMs: number | undefined) {
    this.#retentionMs = retentionMs ?? Number.POSITIVE_INFINITY
  }

  /** The reading that is committed. */
  get committed(): Reading {
    return this.#committed
  }

  /** Nothing at this time or later is gone, whatever the time. */
  get kept(): number {
    return this.newest - this.#retentionMs
  }

  /**
   * What is at this time or before is gone. It is counted back from the newest row, as in Kafka Streams, but never from
   * beyond event time: one partition's data may run far ahead of another's.
   */
  horizon(time: number): number {
    return Math.max(this.#floor, Math.min(this.newest, time) - this.#retentionMs)
  }

  observe(time: number): void {
    if (time > this.newest) this.newest = time
  }

  /** For rows that are committed already. */
  observeCommitted(time: number): void {
    this.observe(time)
    if (time > this.#committed.newest) this.#committed = { ...this.#committed, newest: time }
  }

  /** Goes on from where a store was left. */
  resume({ newest, horizon }: Pick<Checkpoint, 'newest' | 'horizon'>): void {
    this.observeCommitted(newest ?? Number.NEGATIVE_INFINITY)
    if (horizon === undefined) return
    this.#floor = horizon
    this.#committed = { ...this.#committed, horizon }
  }

  /** What is there now is committed, at this event time. */
  begin(time: number): void {
    const { newest, horizon } = this.#committed
    this.#committed = { newest, time, horizon: Math.max(horizon, Math.min(newest, time) - this.#retentionMs) }
  }

  /** Begins anew, with an empty store. */
  reset(): void {
    this.newest = Number.NEGATIVE_INFINITY
    this.#floor = Number.NEGATIVE_INFINITY
    this.#committed = unset
    this.#sealed = []
  }

  seal(epoch: CommitEpoch, time: number): void {
    this.#sealed.push({ epoch, newest: this.newest, time, horizon: this.horizon(time) })
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
  }

  /** The checkpoint with what is committed: a store that opens there has forgotten what this one has. */
  stamp(checkpoint: Checkpoint): Checkpoint {
    const { newest, horizon } = this.#committed
    if (newest === Number.NEGATIVE_INFINITY) return checkpoint
    return horizon === Number.NEGATIVE_INFINITY ? { ...checkpoint, newest } : { ...checkpoint, newest, horizon }
  }

  /** Shows what that one has committed, for good. */
  show({ committed }: RetentionClock): void {
    this.newest = committed.newest
    this.#floor = committed.horizon
    this.#committed = committed
  }
}
