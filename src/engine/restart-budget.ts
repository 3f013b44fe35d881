/** How often the engine may restart in place: so many times within a sliding window. */
export class RestartBudget {
  readonly #max: number
  readonly #windowMs: number
  #used: Array<{ at: number; cause: string }> = []

  constructor(max: number, windowMs: number) {
    this.#max = max
    this.#windowMs = windowMs
  }

  /** Takes one restart; false when the budget is spent. */
  take(cause: string, now: number): boolean {
    this.#expire(now)
    this.#used.push({ at: now, cause })
    return this.#used.length <= this.#max
  }

  /** Wait before the next attempt: none, then 1 s, then 4 s. */
  backoffMs(): number {
    return this.#used.length <= 1 ? 0 : 4 ** (this.#used.length - 2) * 1000
  }

  snapshot(now: number): { used: number; max: number; windowMs: number; causes: string[] } {
    this.#expire(now)
    return { used: this.#used.length, max: this.#max, windowMs: this.#windowMs, causes: this.#used.map((u) => u.cause) }
  }

  #expire(now: number): void {
    this.#used = this.#used.filter((u) => now - u.at < this.#windowMs)
  }
}
