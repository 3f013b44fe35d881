/** What a lane asks the engine for between two commits: another one, and each only once. */
import type { LaneOptions } from '../lane-options.ts'

export class CommitRequests {
  readonly #options: LaneOptions
  readonly #run: () => number
  /** One was asked for that is not to wait. */
  #asked = false
  /** One was asked for because of rows that are past their time. */
  #askedToExpire = false

  constructor(options: LaneOptions, run: () => number) {
    this.#options = options
    this.#run = run
  }

  /** `urgent`: it does not wait for the interval. */
  request(urgent = true): void {
    if (this.#asked) return
    this.#asked = urgent
    const { toEngine, lane } = this.#options
    toEngine({ type: 'commit-wanted', lane, run: this.#run(), urgent }, [])
  }

  /** A commit takes so many rows out of a store; where some are left, another one has to come, input or not. */
  requestExpiry(hasExpired: () => boolean): void {
    if (this.#askedToExpire || !hasExpired()) return
    this.#askedToExpire = true
    const { toEngine, lane } = this.#options
    toEngine({ type: 'commit-wanted', lane, run: this.#run(), urgent: false, forgets: true }, [])
  }

  /** A commit was applied, or all that was to be committed is void. */
  reset(): void {
    this.#asked = false
    this.#askedToExpire = false
  }
}
