/** Has all lanes drop what is not committed, and waits until they have: a lane that does not answer is stuck. */
import type { Timers } from '../base/timers.ts'
import type { ToLane } from '../lanes/protocol.ts'

/** A lane that does not give up its work within this time has to be ended with its process. */
const resetDeadlineMs = 5_000

export interface LaneResetHost {
  readonly lanes: number
  readonly timers: Timers
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
  async reset(run: number): Promise<void> {
    this.#underWay?.done()
    const { lanes, timers, toLanes, stuck } = this.#host
    const waiting = new Set(Array.from({ length: lanes }, (_, lane) => lane))
    await new Promise<void>((resolve) => {
      const cancel = timers.after(resetDeadlineMs, () => {
        const [lane = 0] = waiting
        stuck(lane)
        resolve()
      })
      const done = (): void => {
        cancel()
        if (this.#underWay?.waiting === waiting) this.#underWay = undefined
        resolve()
      }
      this.#underWay = { waiting, done }
      toLanes({ type: 'reset', run })
    })
  }

  laneDone(lane: number): void {
    this.#underWay?.waiting.delete(lane)
    if (this.#underWay?.waiting.size === 0) this.#underWay.done()
  }
}
