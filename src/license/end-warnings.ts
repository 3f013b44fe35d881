import { dayMs } from './view.ts'

/** Days before the end at which the log warns. */
const warningDays = [30, 14, 7, 1] as const

/** Remembers which warnings of a license's end were given, so that each is given once. */
export class EndWarnings {
  #givenAtDays = Number.POSITIVE_INFINITY

  /** The sentence to log now, if there is one. After a late start that is the nearest threshold's alone. */
  at(nowMs: number, expiresAtMs: number): string | undefined {
    if (nowMs >= expiresAtMs) return undefined
    const days = (expiresAtMs - nowMs) / dayMs
    const threshold = warningDays.findLast((limit) => days <= limit) ?? Number.POSITIVE_INFINITY
    const isNew = threshold < this.#givenAtDays
    // A renewed license raises the threshold again, and its warnings begin anew.
    this.#givenAtDays = threshold
    if (!isNew) return undefined
    const left = Math.max(1, Math.ceil(days))
    return `The license expires in ${left} day${left === 1 ? '' : 's'}, at ${new Date(expiresAtMs).toISOString()}.`
  }
}
