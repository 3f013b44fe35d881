/**
 * What a lane does while the disk has no room for its stores: it tells so, and nothing that would have to be written is taken
 * meanwhile. When there is room it goes on where it was. Rows whose serde waits for a schema wait here in the same way.
 */
import { EngineError } from '../../base/errors.ts'
import { SerdeWaits } from '../../serde/serde.ts'
import type { LaneOptions } from '../lane-options.ts'
import type { ToLane } from '../protocol.ts'

const retryMs = 500

export interface DiskRoomHost {
  /** Stores that are open wait for room. */
  full(): EngineError | undefined
  receive(message: ToLane): void
}

export class DiskRoom {
  readonly #options: Pick<LaneOptions, 'lane' | 'toEngine' | 'clock' | 'wake'>
  readonly #host: DiskRoomHost
  /** What would open or fill stores, in order. */
  #waiting: ToLane[] = []
  #refused: EngineError | undefined
  #nextMs = Number.POSITIVE_INFINITY
  /** What the oldest of them needs, other than room. */
  #missing: Promise<void> | undefined
  #told = false

  constructor(options: Pick<LaneOptions, 'lane' | 'toEngine' | 'clock' | 'wake'>, host: DiskRoomHost) {
    this.#options = options
    this.#host = host
  }

  /** When it is tried again, by the clock. */
  get nextAt(): number {
    return this.#nextMs
  }

  /** True: the message waits for room, or for one before it that does. */
  holds(message: ToLane): boolean {
    if (message.type !== 'open' && message.type !== 'restore') return false
    if (this.#waiting.length === 0 && this.#host.full() === undefined && this.#take(message)) return true
    this.#waiting.push(message)
    this.#later()
    return true
  }

  /** Takes what has waited, if there is room. */
  resume(): void {
    if (this.#waiting.length === 0 || this.#missing !== undefined) return
    const now = this.#options.clock.now()
    if (now < this.#nextMs && this.#nextMs <= now + retryMs) return
    while (this.#waiting.length > 0) {
      if (this.#host.full() !== undefined || !this.#take(this.#waiting[0] as ToLane)) {
        this.#later()
        return
      }
      this.#waiting.shift()
    }
    this.#nextMs = Number.POSITIVE_INFINITY
  }

  /** Tells when something has changed. */
  check(): void {
    const isFull = (this.#host.full() ?? this.#refused) !== undefined
    if (isFull !== this.#told) this.tell()
  }

  /** Tells how it is. */
  tell(): void {
    const full = this.#host.full() ?? this.#refused
    if (full === undefined && !this.#told) return
    this.#told = full !== undefined
    const { toEngine, lane } = this.#options
    toEngine({ type: 'disk-full', lane, sentence: full?.message ?? null }, [])
  }

  reset(): void {
    this.#waiting = []
    this.#refused = undefined
    this.#missing = undefined
    this.#nextMs = Number.POSITIVE_INFINITY
  }

  #take(message: ToLane): boolean {
    try {
      this.#host.receive(message)
      this.#refused = undefined
      return true
    } catch (error) {
      if (error instanceof SerdeWaits) {
        this.#await(error.ready)
        return false
      }
      if (!EngineError.is(error) || error.code !== 'STORE_DISK_FULL') throw error
      this.#refused = error
      return false
    }
  }

  #await(ready: Promise<void>): void {
    this.#missing = ready
    void ready.then(() => {
      // Another run may wait for something else by now.
      if (this.#missing !== ready) return
      this.#missing = undefined
      this.#nextMs = this.#options.clock.now()
      this.#options.wake()
    })
  }

  #later(): void {
    const isTimed = this.#missing === undefined
    this.#nextMs = isTimed ? this.#options.clock.now() + retryMs : Number.POSITIVE_INFINITY
  }
}
