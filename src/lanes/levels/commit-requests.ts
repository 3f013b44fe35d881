/** What a lane asks the engine for between two commits: another one, and each only once. */
import type { LaneOptions } from '../lane-options.ts'
import type { Outputs } from '../outputs.ts'
import type { LaneBarrier } from './lane-barrier.ts'
import type { TaskSet } from '../tasks/task-set.ts'

interface RequestPlace {
  run(): number
  barrier(): Pick<LaneBarrier, 'epoch' | 'hasInput'>
}

export class CommitRequests {
  readonly #options: LaneOptions
  readonly #at: RequestPlace
  /** One was asked for that is not to wait. */
  #asked = false
  /** One was asked for because of rows that are past their time. */
  #askedToExpire = false
  /** One was asked for because of outputs and changes. */
  #askedForEffects = false

  constructor(options: LaneOptions, at: RequestPlace) {
    this.#options = options
    this.#at = at
  }

  /** `urgent`: it does not wait for the interval. */
  request(urgent = true): void {
    if (this.#asked) return
    this.#asked = urgent
    const { toEngine, lane } = this.#options
    toEngine({ type: 'commit-wanted', lane, run: this.#at.run(), epoch: this.#at.barrier().epoch, urgent }, [])
  }

  /** What event time brought about without a record, such as windows that closed and rows past their time, is committed all the same. */
  requestFor(tasks: Pick<TaskSet, 'hasExpired' | 'hasEffects'>, outputs: Pick<Outputs, 'hasAny'>): void {
    // The commit that was asked for asks again behind itself, for rows as well.
    if (this.#askedForEffects) return
    this.#requestExpiry(tasks)
    // What the engine has sent of this epoch will be committed without being asked for.
    if (this.#at.barrier().hasInput || !(outputs.hasAny || tasks.hasEffects())) return
    this.#askedForEffects = true
    this.request(false)
  }

  /** A commit takes so many rows out of a store; where some are left, another one has to come, input or not. */
  #requestExpiry(tasks: Pick<TaskSet, 'hasExpired'>): void {
    if (this.#askedToExpire || !tasks.hasExpired()) return
    this.#askedToExpire = true
    const { toEngine, lane } = this.#options
    toEngine(
      {
        type: 'commit-wanted',
        lane,
        run: this.#at.run(),
        epoch: this.#at.barrier().epoch,
        urgent: false,
        forgets: true,
      },
      [],
    )
  }

  /** A commit was applied, or all that was to be committed is void. */
  reset(): void {
    this.#asked = false
    this.#askedToExpire = false
    this.#askedForEffects = false
  }
}
