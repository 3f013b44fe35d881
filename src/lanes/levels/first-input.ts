/** What the engine sends a lane: one queue, worked off in its order. */
import type { CommitEpoch } from '../../base/ids.ts'
import type { Work } from './level-state.ts'
import type { Frontier } from './place.ts'
import type { TaskWatermark } from '../protocol.ts'

/** How far dispatch has come, and perhaps that an epoch is over. */
export interface Announcement extends Frontier {
  /** 0: the epoch goes on. */
  readonly closes: CommitEpoch
  /** Tasks that have come further by their own watermarks. */
  readonly tasks?: readonly TaskWatermark[]
}

export class FirstInput {
  readonly #queue: Array<Work | Announcement> = []
  #head = 0

  push(input: Work | Announcement): void {
    this.#queue.push(input)
  }

  get head(): Work | Announcement | undefined {
    return this.#queue[this.#head]
  }

  shift(): void {
    const head = this.#head + 1
    if (head === this.#queue.length) {
      this.#queue.length = 0
      this.#head = 0
    } else if (head > 256) {
      this.#queue.splice(0, head)
      this.#head = 0
    } else {
      this.#head = head
    }
  }

  reset(): void {
    this.#queue.length = 0
    this.#head = 0
  }
}
