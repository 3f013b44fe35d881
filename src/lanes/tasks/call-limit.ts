/**
 * How many calls of a function a lane makes at once. More are tried as long as more come through by it: a service that
 * answers twenty calls in the time of one is asked twenty at a time, and not a thousand. Judged by calls that came through in a
 * time, not by how long each took: calls of one function need not resemble one another.
 */

const first = 32
const least = 4
/** Calls that tell something, as many of the limit. */
const roundsPerWindow = 2
/** Of what more calls could bring at most, so much has to come. */
const worthwhile = 0.3
/** While it is below this part of what it was, the service is slower than it was. */
const slower = 0.6
/** How far it is raised later on, and lowered: what comes through by fewer calls just as well needs no more of them. */
const later = 1.5
const lower = 0.75
const asWell = 0.95
/** Windows without another try. */
const restWindows = 4
/** Windows in a row that have to speak against a limit: a single one tells more of a busy machine than of the service. */
const doubts = 3

export class CallLimit {
  readonly #most: number
  readonly #isFixed: boolean
  limit: number
  #factor = 2
  /** What was reached before the limit was last raised. */
  #known: { readonly limit: number; readonly rate: number } | undefined
  #rest = 0
  #doubts = 0
  /** The last try was with fewer. */
  #lowers = false
  #beganMs = Number.NaN
  #succeeded = 0
  #failed = 0
  #isFull = false

  /** `fixed`: what the application asked for; undefined: found out, up to `most`. */
  constructor(most: number, fixed?: number) {
    this.#most = most
    this.#isFixed = fixed !== undefined
    this.limit = fixed ?? Math.min(first, most)
  }

  /** A call had to wait, or was the last that need not. */
  full(): void {
    this.#isFull = true
  }

  ended(ok: boolean, now: number): void {
    if (this.#isFixed) return
    if (ok) this.#succeeded++
    else this.#failed++
    if (Number.isNaN(this.#beganMs)) {
      this.#begin(now)
      return
    }
    if (this.#succeeded + this.#failed < roundsPerWindow * this.limit || now <= this.#beganMs) return
    this.#judge(this.#succeeded / (now - this.#beganMs))
    this.#begin(now)
  }

  #begin(now: number): void {
    this.#beganMs = now
    this.#succeeded = 0
    this.#failed = 0
    this.#isFull = false
  }

  #judge(rate: number): void {
    const known = this.#known
    if (this.#failed > this.#succeeded / 10) {
      this.#set(this.limit / 2, rate)
      return
    }
    // What nobody waited for says nothing of the limit.
    if (!this.#isFull) return
    if (known !== undefined && this.limit !== known.limit) {
      const up = this.limit > known.limit
      const worth = up ? 1 + worthwhile * (this.limit / known.limit - 1) : asWell
      const isWorthIt = rate >= worth * known.rate
      if (up && !isWorthIt && ++this.#doubts < doubts) return
      this.#doubts = 0
      if (isWorthIt) this.#known = { limit: this.limit, rate }
      else this.limit = known.limit
      if (up && this.limit > known.limit) {
        this.#raise()
        return
      }
      this.#rest = restWindows
      this.#factor = later
      return
    }
    if (known !== undefined && rate < slower * known.rate) {
      if (++this.#doubts >= doubts) this.#set(this.limit * 0.7, rate)
      return
    }
    this.#doubts = 0
    this.#known = { limit: this.limit, rate: known === undefined ? rate : known.rate + (rate - known.rate) / 4 }
    if (--this.#rest > 0) return
    this.#lowers = !this.#lowers && known !== undefined
    if (this.#lowers) this.limit = Math.max(least, Math.floor(this.limit * lower))
    else this.#raise()
  }

  #raise(): void {
    this.limit = Math.min(this.#most, Math.ceil(this.limit * this.#factor))
  }

  #set(limit: number, rate: number): void {
    this.limit = Math.min(this.#most, Math.max(least, Math.floor(limit)))
    this.#known = { limit: this.limit, rate }
    this.#doubts = 0
    this.#rest = restWindows
    this.#factor = later
  }
}
