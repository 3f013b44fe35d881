/**
 * How often the engine may restart in place: so many times within a sliding window, and never more often than that in a
 * row without a commit in between. The second rule ends what the first cannot see: a record at which every run ends in
 * the same way, but slowly.
 */
import { assert } from '../../base/assert.ts'

/** However often an application lets itself be restarted: nobody is to wait for longer than this for the next attempt. */
const longestBackoffMs = 10_000

export class RestartBudget {
  readonly #max: number
  readonly #windowMs: number
  #used: Array<{ at: number; cause: string; code: string }> = []
  /** Those that count for nothing are told with the others. */
  #all: Array<{ at: number; cause: string; code: string }> = []
  #commits = Number.NaN
  #fruitless = 0

  constructor(max: number, windowMs: number) {
    assert(max >= 0 && windowMs > 0, 'a budget of restarts has a number and a window')
    this.#max = max
    this.#windowMs = windowMs
  }

  /** Takes one restart; false when the budget is spent. `commits`: how many the engine has made so far. */
  take(cause: string, now: number, commits: number, code = 'OTHER'): boolean {
    this.#expire(now)
    this.#used.push({ at: now, cause, code })
    this.#all.push({ at: now, cause, code })
    assert(Number.isNaN(this.#commits) || commits >= this.#commits, 'commits are counted over all runs')
    this.#fruitless = commits === this.#commits ? this.#fruitless + 1 : 1
    this.#commits = commits
    return this.#used.length <= this.#max && !this.fruitless
  }

  /** One that takes nothing of the budget. */
  note(cause: string, now: number, code: string): void {
    this.#expire(now)
    this.#all.push({ at: now, cause, code })
  }

  /** The last restarts brought nothing: not one commit lies between them. */
  get fruitless(): boolean {
    return this.#fruitless > this.#max
  }

  /** Wait before the next attempt: none, then 1 s, 4 s, and 10 s from then on. */
  backoffMs(): number {
    return this.#used.length <= 1 ? 0 : Math.min(4 ** (this.#used.length - 2) * 1000, longestBackoffMs)
  }

  /** Causes with the newest first. */
  snapshot(now: number): { used: number; max: number; windowMs: number; causes: string[]; codes: string[] } {
    this.#expire(now)
    const newestFirst = this.#all.toReversed()
    const causes = newestFirst.map(({ cause }) => cause)
    const codes = newestFirst.map(({ code }) => code)
    return { used: this.#used.length, max: this.#max, windowMs: this.#windowMs, causes, codes }
  }

  #expire(now: number): void {
    const isWithin = ({ at }: { readonly at: number }): boolean => now - at < this.#windowMs
    this.#used = this.#used.filter(isWithin)
    this.#all = this.#all.filter(isWithin)
  }
}
