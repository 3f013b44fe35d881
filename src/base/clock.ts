/** Where time comes from. The pure folders take a `Clock`; nobody there asks the platform. */
export interface Clock {
  /** Wall-clock time in epoch milliseconds: for display and for wall-clock timers. */
  now(): number
  /** Monotonic milliseconds: for durations. Never compared across processes. */
  monotonic(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}

/** A clock that moves only when told to. */
export class VirtualClock implements Clock {
  #now: number
  #monotonic = 0

  constructor(startAtMs = 0) {
    this.#now = startAtMs
  }

  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#monotonic
  }

  /** Moves both the wall clock and the monotonic clock. */
  advance(durationMs: number): void {
    this.#now += durationMs
    this.#monotonic += durationMs
  }

  /** Moves the wall clock alone, as an operator or a time daemon does. */
  jump(durationMs: number): void {
    this.#now += durationMs
  }
}
