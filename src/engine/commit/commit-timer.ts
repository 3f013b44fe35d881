/**
 * When commits begin. The interval is the most that may pass between the beginnings of two commits; where all input at
 * hand is worked off there is nothing to gain by waiting that long, and a commit begins from the idle interval on. A
 * busy application thus pays for as few transactions as were asked for, and a record of a quiet one is seen soon.
 */
import { assert } from '../../base/assert.ts'
import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'

export interface CommitTimerHost {
  /** Called every interval and at least every second, whatever else happens. */
  tick(): void
  /** Something is to be committed, and a commit may begin. */
  wanted(): boolean
  /** All input that is known of is worked off. */
  caughtUp(): boolean
  begin(): void
}

const longestTickMs = 1000

export class CommitTimer {
  readonly #intervalMs: number
  readonly #idleMs: number
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #host: CommitTimerHost
  #beganAt = Number.NEGATIVE_INFINITY
  #cancel: (() => void) | undefined
  #closed = false

  constructor(intervalMs: number, idleIntervalMs: number, clock: Clock, timers: Timers, host: CommitTimerHost) {
    assert(intervalMs > 0 && idleIntervalMs >= 0, 'commits have an interval')
    this.#intervalMs = intervalMs
    this.#idleMs = Math.min(intervalMs, idleIntervalMs)
    this.#clock = clock
    this.#timers = timers
    this.#host = host
  }

  start(): void {
    this.#timers.after(Math.min(this.#intervalMs, longestTickMs), () => {
      if (this.#closed) return
      this.#host.tick()
      this.check()
      this.start()
    })
  }

  /** How long it is at least until a commit begins by itself; 0 where one may begin now. */
  get dueInMs(): number {
    return Math.max(0, this.#idleMs - this.#waitedMs)
  }

  /** A commit has begun, for whatever reason: the next one is counted from here. */
  began(): void {
    this.#beganAt = this.#clock.monotonic()
    this.#arm(this.#idleMs)
  }

  /** To be called when something was worked off: begins a commit if it is time for one. */
  check(): void {
    if (this.#closed) return
    const waited = this.#waitedMs
    if (waited < this.#idleMs || !this.#host.wanted()) return
    if (waited >= this.#intervalMs || this.#host.caughtUp()) this.#host.begin()
  }

  close(): void {
    this.#closed = true
    this.#cancel?.()
  }

  /** One timer at a time: at the idle interval, then, where that began nothing, at the interval. */
  #arm(atMs: number): void {
    this.#cancel?.()
    const left = atMs - this.#waitedMs
    this.#cancel = this.#timers.after(Math.max(0, Math.ceil(left)), () => {
      this.#cancel = undefined
      if (this.#closed) return
      // The platform's timers count from the turn of the loop in which they are set, so they may be early.
      if (this.#waitedMs < atMs) {
        this.#arm(atMs)
        return
      }
      const before = this.#beganAt
      this.check()
      if (!this.#closed && this.#beganAt === before && atMs < this.#intervalMs) this.#arm(this.#intervalMs)
    })
  }

  get #waitedMs(): number {
    return this.#clock.monotonic() - this.#beganAt
  }
}
