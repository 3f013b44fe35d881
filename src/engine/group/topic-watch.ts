/** Looks again and again for topics and partitions that have come, for whoever takes all of them, whatever a group says. */
import { EngineError } from '../../base/errors.ts'
import type { Timers } from '../../base/timers.ts'
import { BrokerError } from '../../broker/port.ts'
import { MadeAnew } from './made-anew.ts'
import { RunOver } from '../run.ts'

export interface TopicWatchOptions {
  readonly timers: Timers
  readonly everyMs: number
  readonly lookUp: () => Promise<unknown>
  /** Told each time, also where nothing came: what could not be taken in at that moment is taken in the next time. */
  readonly looked: () => void
  readonly failed: (error: unknown) => void
}

export class TopicWatch {
  readonly #o: TopicWatchOptions
  #closed = false
  #cancel: (() => void) | undefined

  /** The first look is at once. */
  constructor(options: TopicWatchOptions) {
    this.#o = options
    void this.#look()
  }

  close(): void {
    this.#closed = true
    this.#cancel?.()
  }

  async #look(): Promise<void> {
    const { timers, everyMs, lookUp, looked, failed } = this.#o
    try {
      await lookUp()
      if (!this.#closed) looked()
    } catch (error) {
      if (this.#closed || error instanceof RunOver) return
      if (!isPassing(error)) {
        failed(error)
        return
      }
    }
    if (!this.#closed) this.#cancel = timers.after(everyMs, () => void this.#look())
  }
}

/** Not so partitions that a store cannot take in, nor a topic that was made anew: to go on would mean to leave out what lies in them, without a word. */
function isPassing(error: unknown): boolean {
  return (
    error instanceof BrokerError ||
    (EngineError.is(error) && error.code !== 'PARTITIONS_CHANGED' && !(error instanceof MadeAnew))
  )
}
