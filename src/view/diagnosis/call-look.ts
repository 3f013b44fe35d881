/**
 * The asynchronous call of a lane that has not answered for longest, from one look to the next. A restart in place gives
 * calls up and makes them anew: that is no end, and who hangs again has hung since the first time.
 */
import { laneIndex } from '../../base/counters.ts'

/** So long after a call is gone a restart may be told that gave it up. */
const toldWithinMs = 2000

interface Call {
  readonly id: number
  /** Record and node, which are the same when the call is made anew. */
  readonly place: string
  readonly beganMs: number
  /** Restarts of the engine when it was first seen. */
  readonly restarts: number
}

export class CallLook {
  readonly #block: Float64Array
  #call: Call | null = null
  /** It is over since then, and it is open whether by itself. */
  #gone: { readonly call: Call; readonly atMs: number } | null = null
  #givenUp: { readonly place: string; readonly sinceMs: number } | null = null
  #longestMs = 0

  constructor(block: Float64Array) {
    this.#block = block
  }

  /** `longestMs`: of those that ended by themselves. */
  take(
    now: number,
    restarts: number,
  ): { call: { readonly sinceMs: number; readonly isAgain: boolean } | null; longestMs: number } {
    const id = this.#block[laneIndex.oldestCall] as number
    if (id !== (this.#call?.id ?? 0)) {
      if (this.#call !== null) {
        this.#settle(now, restarts, true)
        this.#gone = { call: this.#call, atMs: now }
      }
      const beganMs = this.#block[laneIndex.oldestSinceMs] || now
      this.#call = id === 0 ? null : { id, place: this.#place(), beganMs, restarts }
    }
    this.#settle(now, restarts, this.#call !== null)
    if (this.#call === null) return { call: null, longestMs: this.#longestMs }
    const isAgain = this.#call.place === this.#givenUp?.place
    const sinceMs = isAgain ? (this.#givenUp?.sinceMs as number) : this.#call.beganMs
    return { call: { sinceMs, isAgain }, longestMs: this.#longestMs }
  }

  /** `nowOrNever`: another call has come, so that no restart is to be waited for. */
  #settle(now: number, restarts: number, nowOrNever: boolean): void {
    if (this.#gone === null) return
    const { call, atMs } = this.#gone
    const { place, beganMs } = call
    if (restarts !== call.restarts) {
      if (this.#givenUp?.place !== place) this.#givenUp = { place, sinceMs: beganMs }
    } else if (nowOrNever || now - atMs >= toldWithinMs) {
      this.#longestMs = Math.max(this.#longestMs, atMs - beganMs)
      if (this.#givenUp?.place === place) this.#givenUp = null
    } else return
    this.#gone = null
  }

  #place(): string {
    const { oldestNode, oldestTopic, oldestPartition, oldestOffset } = laneIndex
    return [oldestNode, oldestTopic, oldestPartition, oldestOffset].map((slot) => this.#block[slot]).join('/')
  }
}
