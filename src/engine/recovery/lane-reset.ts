/**
 * Has all lanes drop what is not committed, and waits until they have: a lane that does not answer is stuck. One whose
 * thread has ended has nothing to drop; a new thread is asked for in its place, and the reset is over when that is there.
 */
import { assert } from '../../base/assert.ts'
import type { EngineOptions } from '../engine-options.ts'
import type { Run } from '../run.ts'

/** How often it is looked how the lanes are getting on, and how long each has at least. */
const resetDeadlineMs = 5_000

export interface LaneResetHost {
  /** For how long the lane has been in one function, or has done nothing since it was told to reset so long ago. */
  stillMs(lane: number, toldMs: number): number
  stuck(lane: number): void
}

interface UnderWay {
  readonly run: Run
  readonly waiting: Set<number>
  readonly done: () => void
}

export class LaneReset {
  readonly #o: Pick<EngineOptions, 'settings' | 'timers' | 'send' | 'fact'>
  readonly #host: LaneResetHost
  #underWay: UnderWay | undefined
  /** Lanes whose thread has ended, until a new one answers: it loads the application first, which is nobody's function. */
  readonly #gone = new Map<number, 'lost' | 'wanted'>()

  constructor(options: Pick<EngineOptions, 'settings' | 'timers' | 'send' | 'fact'>, host: LaneResetHost) {
    this.#o = options
    this.#host = host
  }

  /** A reset that is asked for meanwhile takes the place of this one, which then counts as done. */
  async reset(run: Run): Promise<void> {
    const { settings, timers, send } = this.#o
    assert(settings.lanes > 0, 'there is no lane to reset')
    this.#underWay?.done()
    const { stillMs, stuck } = this.#host
    // A lane that has been in one function for this long does not come back: it has to be ended with its process.
    const patienceMs = Math.max(settings.barrierTimeoutMs, resetDeadlineMs)
    const waiting = new Set(Array.from({ length: settings.lanes }, (_, lane) => lane))
    await new Promise<void>((resolve) => {
      let cancel: (() => void) | undefined
      let toldMs = 0
      const look = (): void => {
        cancel = timers.after(resetDeadlineMs, () => {
          toldMs += resetDeadlineMs
          const late = [...waiting].find((lane) => !this.#gone.has(lane) && stillMs(lane, toldMs) >= patienceMs)
          // A function that is slow comes back in time, and its lane with it.
          if (late === undefined) return look()
          stuck(late)
          resolve()
        })
      }
      look()
      const done = (): void => {
        cancel?.()
        if (this.#underWay?.waiting === waiting) this.#underWay = undefined
        resolve()
      }
      this.#underWay = { run, waiting, done }
      for (const lane of waiting) send(lane, { type: 'reset', run: run.number }, [])
      for (const [lane, is] of this.#gone) if (is === 'lost') this.#want(lane)
    })
  }

  #want(lane: number): void {
    this.#gone.set(lane, 'wanted')
    this.#o.fact({ type: 'lane-wanted', lane })
  }

  /** The lane's thread has ended. Where it was waited for, whoever reset it hears of the failure, and resets once more. */
  lost(lane: number): void {
    this.#gone.set(lane, 'lost')
    this.#done(lane)
  }

  /** A new thread is there, and hears what it is told; what its predecessor was told, it was not. */
  made(lane: number): void {
    if (this.#underWay?.waiting.has(lane)) this.#o.send(lane, { type: 'reset', run: this.#underWay.run.number }, [])
  }

  /** The engine ends: its lanes end as well, and answer no more. */
  end(): void {
    this.#underWay?.done()
  }

  laneDone(lane: number): void {
    this.#gone.delete(lane)
    this.#done(lane)
  }

  #done(lane: number): void {
    this.#underWay?.waiting.delete(lane)
    if (this.#underWay?.waiting.size === 0) this.#underWay.done()
  }
}
