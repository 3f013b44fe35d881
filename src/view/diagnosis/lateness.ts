/** How long this thread was kept from looking when it was due: by a pause of the process, or for want of a processor. */

/** What was missed is remembered for so long. */
const rememberedMs = 60_000
/** Who comes so late was not short of a processor: the process, or its machine, stood still. */
const stoodStillMs = 2000

export class Lateness {
  readonly #everyMs: number
  readonly #most: number
  readonly #late: number[] = []
  readonly #missed: Array<{ readonly atMs: number; readonly lateMs: number }> = []
  #lookedAt: number | undefined

  /** It looks every `everyMs`, by a clock that only goes forward; the mean is that of the last `most` looks. */
  constructor(everyMs: number, most: number) {
    this.#everyMs = everyMs
    this.#most = most
  }

  /** Answers for how long the process stood still before this look; 0: it did not. */
  look(now: number): number {
    const lateMs = this.#overdueMs(now)
    this.#lookedAt = now
    this.#late.push(lateMs)
    if (this.#late.length > this.#most) this.#late.shift()
    if (lateMs > 0) this.#missed.push({ atMs: now, lateMs })
    if (now - (this.#missed[0]?.atMs ?? now) > rememberedMs) this.#missed.shift()
    return lateMs >= stoodStillMs ? lateMs : 0
  }

  /** When it last went on after it had stood still; undefined: it did not, as far as it remembers. */
  wokeAt(now: number): number | undefined {
    if (this.#overdueMs(now) >= stoodStillMs) return now
    return this.#missed.findLast(({ lateMs }) => lateMs >= stoodStillMs)?.atMs
  }

  #overdueMs(now: number): number {
    return this.#lookedAt === undefined ? 0 : Math.max(0, now - this.#lookedAt - this.#everyMs)
  }

  /** The mean: one pause alone is no shortage. */
  get meanMs(): number {
    const sum = this.#late.reduce((all, lateMs) => all + lateMs, 0)
    return sum / Math.max(1, this.#late.length)
  }

  /** How much of the time since then it was kept from looking, as far as it remembers; a look that is due by now included. */
  missedMs(sinceMs: number, now: number): number {
    const missed = [...this.#missed, { atMs: now, lateMs: this.#overdueMs(now) }]
    return missed.reduce((all, { atMs, lateMs }) => all + Math.max(0, Math.min(lateMs, atMs - sinceMs)), 0)
  }
}
