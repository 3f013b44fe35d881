/**
 * One event loop with a clock of its own, in place of the threads, sockets and timers of a running engine. What is said
 * between its parts is a job; jobs run in the order in which they came, so a channel never overtakes itself.
 *
 * The wall clock moves only where a test moves it. The monotonic clock, which durations are counted on, also goes on
 * where something cannot come about without it, such as the pause before a restart.
 */
import type { Clock } from '../base/clock.ts'
import type { Timers } from '../base/timers.ts'

interface Timer {
  readonly at: number
  readonly isLong: boolean
  readonly call: () => void
}

/** Kept from before a test runner may put a clock of its own in their place. */
const { setImmediate: immediately } = globalThis

/** Timers with a longer delay are somebody's wish; shorter ones are mostly the engine's housekeeping. */
const longMs = 1000

export class VirtualLoop implements Clock {
  #wall: number
  #time = 0
  #spent = 0
  #jobs: Array<() => void> = []
  /** In the order of their times. */
  readonly #timers: Timer[] = []
  #wake: (() => void) | undefined
  /** Jobs run so far: where it stands still nothing happens. */
  done = 0

  constructor(startAt: number) {
    this.#wall = startAt
  }

  now(): number {
    return this.#wall
  }

  monotonic(): number {
    return this.#time + this.#spent
  }

  /** The time that timers go by: that of the monotonic clock, without what work has taken. */
  get time(): number {
    return this.#time
  }

  push(job: () => void): void {
    this.#jobs.push(job)
    this.#wake?.()
  }

  /** The timers of somebody who may be dead by the time they are due. */
  timers(alive: () => boolean): Timers {
    return {
      after: (delayMs, call) => this.#after(delayMs, () => (alive() ? call() : undefined)),
      soon: (call) => this.push(() => (alive() ? call() : undefined)),
    }
  }

  /**
   * Resolves when all that follows from what has happened is done, but for what time alone brings. `outside`: something
   * is waited for that is none of this loop's, a function of the application; what it brings is waited for too. `wait`: how,
   * given what resolves when a job has come.
   */
  async settle(outside: () => boolean, wait: (woken: Promise<void>) => Promise<void>): Promise<void> {
    for (;;) {
      // As between two turns of the platform's loop: every promise that can settle has done so.
      await new Promise((resolve) => immediately(resolve))
      if (this.#jobs.length > 0) {
        this.#turn()
        continue
      }
      if (!outside()) return
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await wait(promise)
      this.#wake = undefined
    }
  }

  /** When the next timer is due; `long`: of those alone that are no housekeeping. */
  nextTimer(long = false): number {
    const found = long ? this.#timers.find((timer) => timer.isLong) : this.#timers[0]
    return found?.at ?? Number.POSITIVE_INFINITY
  }

  /** Moves both clocks to this time, and has due timers called. */
  moveTo(at: number): void {
    const ms = Math.max(0, at - this.#time)
    this.#wall += ms
    this.#pass(ms)
  }

  /** Moves the monotonic clock alone to the next timer. False: there is none. */
  skip(): boolean {
    const at = this.nextTimer()
    if (at === Number.POSITIVE_INFINITY) return false
    this.#pass(Math.max(0, at - this.#time))
    return true
  }

  /** Work has taken this long, for who measures it: no timer comes up by it. */
  spend(ms: number): void {
    this.#spent += ms
  }

  #pass(ms: number): void {
    this.#time += ms
    for (let timer = this.#due(); timer; timer = this.#due()) timer.call()
  }

  #due(): Timer | undefined {
    return (this.#timers[0]?.at ?? Number.POSITIVE_INFINITY) <= this.#time ? this.#timers.shift() : undefined
  }

  /** Does what is waiting; what comes of it waits for the next turn. */
  #turn(): void {
    const jobs = this.#jobs
    this.#jobs = []
    this.done += jobs.length
    for (const job of jobs) job()
  }

  #after(delayMs: number, call: () => void): () => void {
    const timer = { at: this.#time + delayMs, isLong: delayMs > longMs, call }
    let at = this.#timers.length
    while (at > 0 && (this.#timers[at - 1] as Timer).at > timer.at) at--
    this.#timers.splice(at, 0, timer)
    return () => {
      const found = this.#timers.indexOf(timer)
      if (found >= 0) this.#timers.splice(found, 1)
    }
  }
}
