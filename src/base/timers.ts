/** Deferred calls, injected like the clock: a worker's event loop, or a simulator's scheduler. */
export interface Timers {
  /** Calls once after the delay. The result cancels. */
  after(delayMs: number, call: () => void): () => void
  /** Calls once, soon, after what is already waiting. */
  soon(call: () => void): void
}

/** The longest delay of the platform's timers: a longer one would fire at once, and again and again. */
export const longestDelayMs = 2_147_483_647

/** The platform's timers. Those with a delay do not keep the process alive by themselves. */
export const systemTimers: Timers = {
  after(delayMs, call) {
    const timer = setTimeout(call, Math.min(delayMs, longestDelayMs))
    return () => clearTimeout(timer)
  },
  soon(call) {
    setImmediate(call)
  },
}

/** Resolves after the delay. */
export function sleep(timers: Timers, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    timers.after(delayMs, resolve)
  })
}

/** Resolves after what is already waiting. */
export function turn(timers: Timers): Promise<void> {
  return new Promise((resolve) => {
    timers.soon(resolve)
  })
}
