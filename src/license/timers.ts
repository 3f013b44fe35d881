import { longestDelayMs } from '../base/timers.ts'

/** Where waiting comes from, so that a test can let a year pass at once. */
export interface Timers {
  /** Runs once after the delay; the result cancels it. */
  after(delayMs: number, run: () => void): () => void
}

/** The platform's timers. They do not keep the process alive. */
export const systemTimers: Timers = {
  after(delayMs, run) {
    const timer = setTimeout(run, Math.min(Math.max(delayMs, 0), longestDelayMs))
    timer.unref()
    return () => clearTimeout(timer)
  },
}
