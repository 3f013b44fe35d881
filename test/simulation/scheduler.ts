/** Virtual time and the order of events: everything that happens in a simulated run is picked here, by a seed. */
import { type Clock, VirtualClock } from '../../src/base/clock.ts'
import type { Random } from '../../src/base/random.ts'
import type { Timers } from '../../src/base/timers.ts'

interface Event {
  readonly at: number
  /** Breaks ties by chance. */
  readonly rank: number
  readonly run: () => void
  /** Process that the event belongs to: it dies with it. 0: the world's own. */
  readonly owner: number
}

export class Scheduler {
  readonly random: Random
  readonly clock = new VirtualClock(1_700_000_000_000)
  readonly #events: Event[] = []
  #steps = 0

  constructor(random: Random) {
    this.random = random
  }

  get steps(): number {
    return this.#steps
  }

  get now(): number {
    return this.clock.monotonic()
  }

  at(delayMs: number, owner: number, run: () => void): Event {
    const event: Event = { at: this.now + delayMs, rank: this.random.next(), run, owner }
    this.#push(event)
    return event
  }

  cancel(event: Event): void {
    const i = this.#events.indexOf(event)
    if (i >= 0) this.#events.splice(i, 1)
  }

  /** All that a process had planned is gone. */
  kill(owner: number): void {
    for (let i = this.#events.length - 1; i >= 0; i--) if (this.#events[i]?.owner === owner) this.#events.splice(i, 1)
  }

  /** Runs the next event and everything that its promises bring; false when there is none. */
  async step(): Promise<boolean> {
    const event = this.#events.shift()
    if (!event) return false
    this.#steps++
    if (event.at > this.now) this.clock.advance(event.at - this.now)
    event.run()
    await settle()
    return true
  }

  timers(owner: number): Timers {
    return {
      after: (delayMs, call) => {
        const event = this.at(delayMs, owner, call)
        return () => this.cancel(event)
      },
      soon: (call) => {
        this.at(this.random.next() * 0.05, owner, call)
      },
    }
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

/** Lets every promise that can settle do so. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

export type { Clock }
