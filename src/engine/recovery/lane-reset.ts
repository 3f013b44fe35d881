/** Has all lanes drop what is not committed, and waits until they have: a lane that does not answer is stuck. */
import { assert } from '../../base/assert.ts'
import type { Timers } from '../../base/timers.ts'
import type { ToLane } from '../../lanes/protocol.ts'
import type { Run } from '../run.ts'

/** How often it is looked how the lanes are getting on, and how long each has at least. */
const resetDeadlineMs = 5_000

export interface LaneResetHost {
  readonly lanes: number
  readonly timers: Timers
  /** A lane that has been in one function for this long does not come back: it has to be ended with its process. */
  readonly timeoutMs: number
  /** For how long the lane has been in one function, or has done nothing since it was told to reset so long ago. */
  stillMs(lane: number, toldMs: number): number
  toLanes(message: ToLane): void
  stuck(lane: number): void
}

interface UnderWay {
  readonly waiting: Set<number>
  readonly done: () => void
}

export class LaneReset {
  readonly #host: LaneResetHost
  #underWay: UnderWay | undefined

  constructor(host: LaneResetHost) {
    this.#host = host
  }

  /** A reset that is asked for meanwhile takes the place of this one, which then counts as done. */
  async reset(run: Run): Promise<void> {
    assert(this.#host.lanes > 0, 'there is no lane to reset')
    this.#underWay?.done()
    const { lanes, timers, timeoutMs, stillMs, toLanes, stuck } = this.#host
    const waiting = new Set(Array.from({ length: lanes }, (_, lane) => lane))
    await new Promise<void>((resolve) => {
      let cancel: (() => void) | undefined
      let toldMs = 0
      const look = (): void => {
        cancel = timers.after(resetDeadlineMs, () => {
          toldMs += resetDeadlineMs
          const lost = [...waiting].find((lane) => stillMs(lane, toldMs) >= Math.max(timeoutMs, resetDeadlineMs))
          // A function that is slow comes back in time, and its lane with it.
          if (lost === undefined) return look()
          stuck(lost)
          resolve()
        })
      }
      look()
      const done = (): void => {
        cancel?.()
        if (this.#underWay?.waiting === waiting) this.#underWay = undefined
        resolve()
      }
      this.#underWay = { waiting, done }
      toLanes({ type: 'reset', run: run.number })
    })
  }

  /** The engine ends: its lanes end as well, and answer no more. */
  end(): void {
    this.#underWay?.done()
  }

  laneDone(lane: number): void {
    this.#underWay?.waiting.delete(lane)
    if (this.#underWay?.waiting.size === 0) this.#underWay.done()
  }
}
