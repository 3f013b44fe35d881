/**
 * When to ask the broker again. Each request wakes threads and the broker: what trickles in is taken together, where it can be
 * shortly before a commit. A backlog is never kept waiting, and neither is what most records that came wait for.
 */
import type { Clock } from '../../base/clock.ts'
import type { PartitionBuffer } from './partition-buffer.ts'

export interface FetchPaceEvents {
  /** Whether nothing is let through for want of a record of a partition that has none. */
  starving?(): boolean
  /** Records that were fetched and not dispatched. */
  waiting?(): number
  /** How long what comes now may still lie at the broker and be part of the next commit all the same; 0 or less: not at all. */
  slackMs?(): number
}

/** A request, and what was at hand once its answer was there, before any of that was dispatched. */
export interface LastFetch {
  readonly began: number
  readonly atHand: number
}

/** Commits may be far apart; what the application does with a record is not to wait for them. */
const longestSlackMs = 100
/**
 * Where input comes all the time, there is always a partition that has got something since it was read, and records that are
 * younger than all of its own wait for that. To ask until none of them waits takes many requests, each of which brings little, so
 * that much of it waits again. So one request is made at once for what waits, and none where that is no more than this part of
 * what came: it goes with what comes next, as if it had come a little later.
 */
const fewPart = 1 / 8

export class FetchPace {
  readonly #paceMs: number
  readonly #clock: Clock
  readonly #events: FetchPaceEvents
  #last: LastFetch | undefined
  /** Whether the last request was made at once for what waits, and whether the next one is. */
  #wasHurried = false
  #isHurried = false

  /** `paceMs`: so long passes at least from one request to the next where nothing is in a hurry; 0: nothing at all. */
  constructor(paceMs: number, clock: Clock, events: FetchPaceEvents) {
    this.#paceMs = paceMs
    this.#clock = clock
    this.#events = events
  }

  get isKept(): boolean {
    return this.#paceMs > 0
  }

  /** How long to wait before the next request for these partitions; 0 or less: not at all. To be asked again until then. */
  leftMs(wanted: ReadonlyArray<{ readonly buffer: PartitionBuffer }>, last: LastFetch): number {
    if (last !== this.#last) {
      this.#last = last
      this.#wasHurried = this.#isHurried
      this.#isHurried = false
    }
    if (!this.isKept || wanted.some(({ buffer }) => buffer.backlog > 0)) return 0
    this.#isHurried = !this.#wasHurried && this.#areStarving(last.atHand)
    if (this.#isHurried) return 0
    const spent = this.#clock.monotonic() - last.began
    const slack = Math.min(this.#events.slackMs?.() ?? 0, longestSlackMs, this.#paceMs + longestSlackMs - spent)
    return Math.ceil(Math.max(this.#paceMs - spent, slack))
  }

  #areStarving(atHand: number): boolean {
    if (!this.#events.starving?.()) return false
    const { waiting } = this.#events
    return waiting === undefined || waiting() > atHand * fewPart
  }
}
