/**
 * Virtual time and the order of events: everything that happens in a simulated run is picked here, by a seed. A process
 * may be stopped and killed, and have a clock that drifts.
 */
import { type Clock, VirtualClock } from '../../src/base/clock.ts'
import type { Random } from '../../src/base/random.ts'
import type { Timers } from '../../src/base/timers.ts'

interface Event {
  at: number
  /** Breaks ties by chance. */
  readonly rank: number
  readonly run: () => void
  /** Process that the event belongs to: it dies with it. 0: the world's own. */
  readonly owner: number
}

/** Lets every promise that can settle do so. */
export function settleAll(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Rounds of promises that one event may bring; all is on one thread, so the order is the same in every run. */
const settleRounds = 16

/** For worlds in which no event brings more than so many promises in a row: quicker. */
export async function settleSome(): Promise<void> {
  for (let round = 0; round < settleRounds; round++) await undefined
}

export class Scheduler {
  readonly random: Random
  readonly clock = new VirtualClock(1_700_000_000_000)
  readonly #settle: () => Promise<void>
  readonly #events: Event[] = []
  readonly #stopped = new Map<number, Event[]>()
  readonly #dead = new Set<number>()
  #steps = 0

  constructor(random: Random, settle = settleAll) {
    this.random = random
    this.#settle = settle
  }

  get steps(): number {
    return this.#steps
  }

  get now(): number {
    return this.clock.monotonic()
  }

  at(delayMs: number, owner: number, run: () => void): Event {
    const event: Event = { at: this.now + delayMs, rank: this.random.next(), run, owner }
    if (!this.#dead.has(owner)) this.#push(event)
    return event
  }

  cancel(event: Event): void {
    for (const list of [this.#events, this.#stopped.get(event.owner) ?? []]) {
      const i = list.indexOf(event)
      if (i >= 0) list.splice(i, 1)
    }
  }

  /** As `kill -9`: nothing that the process had planned happens. */
  kill(owner: number): void {
    this.#dead.add(owner)
    this.#stopped.delete(owner)
    for (let i = this.#events.length - 1; i >= 0; i--) if (this.#events[i]?.owner === owner) this.#events.splice(i, 1)
  }

  /** As SIGSTOP: what comes up waits until `cont`. */
  stop(owner: number): void {
    if (!this.#dead.has(owner) && !this.#stopped.has(owner)) this.#stopped.set(owner, [])
  }

  isStopped(owner: number): boolean {
    return this.#stopped.has(owner)
  }

  cont(owner: number): void {
    const held = this.#stopped.get(owner)
    this.#stopped.delete(owner)
    // In the order in which they came: of what one thread tells another nothing overtakes anything.
    for (const [place, event] of (held ?? []).entries()) {
      event.at = this.now + place * 1e-6
      this.#push(event)
    }
  }

  /** Runs the next event and everything that its promises bring; false when there is none. */
  async step(): Promise<boolean> {
    const event = this.#events.shift()
    if (!event) return false
    this.#steps++
    if (event.at > this.now) this.clock.advance(event.at - this.now)
    const held = this.#stopped.get(event.owner)
    if (held) {
      held.push(event)
      return true
    }
    event.run()
    await this.#settle()
    return true
  }

  /** Waits for what may need the world to go on, such as the end of a transaction; false: it did not come. */
  async drive(work: Promise<void>, mostSteps = 50_000): Promise<boolean> {
    let done = false
    const finished = work.finally(() => {
      done = true
    })
    for (let steps = 0; !done && steps < mostSteps; steps++) {
      // Without events there is nothing to wait for but promises.
      if (!(await this.step())) await this.#settle()
    }
    if (done) await finished
    return done
  }

  /** Timers of a process whose clock runs at this rate. */
  timers(owner: number, rate = 1): Timers {
    return {
      after: (delayMs, call) => {
        const event = this.at(delayMs / rate, owner, call)
        return () => this.cancel(event)
      },
      soon: (call) => {
        this.at(this.random.next() * 0.05, owner, call)
      },
    }
  }

  clockOf(rate: number, offset: number): Clock {
    return { now: () => this.clock.now() + offset, monotonic: () => this.now * rate + offset }
  }

  #push(event: Event): void {
    let low = 0
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const other = this.#events[middle] as Event
      if (other.at < event.at || (other.at === event.at && other.rank < event.rank)) low = middle + 1
      else high = middle
    }
    this.#events.splice(low, 0, event)
  }
}
