/** For how long this thread was kept from looking when it was due: by a pause of the process, or for want of a processor. */
export class Lateness {
  readonly #everyMs: number
  readonly #most: number
  readonly #looks: Array<{ readonly atMs: number; readonly lateMs: number }> = []
  #lookedAt: number | undefined

  /** It looks every `everyMs`; the last `most` looks are remembered. */
  constructor(everyMs: number, most: number) {
    this.#everyMs = everyMs
    this.#most = most
  }

  look(now: number): void {
    const lateMs = this.#lookedAt === undefined ? 0 : Math.max(0, now - this.#lookedAt - this.#everyMs)
    this.#lookedAt = now
    this.#looks.push({ atMs: now, lateMs })
    if (this.#looks.length > this.#most) this.#looks.shift()
  }

  /** The mean: one pause alone is no shortage. */
  get meanMs(): number {
    const sum = this.#looks.reduce((all, { lateMs }) => all + lateMs, 0)
    return sum / Math.max(1, this.#looks.length)
  }

  /** How much of the time since then it was kept from looking, as far as it remembers. */
  missedMs(sinceMs: number): number {
    return this.#looks.reduce((all, { atMs, lateMs }) => all + Math.max(0, Math.min(lateMs, atMs - sinceMs)), 0)
  }
}
