/**
 * Whether a lane has so much to keep that nobody should be let in any more, at any lane: uncommitted changes grow until
 * the broker has answered, and records wait for asynchronous functions. Told when it changes; what is under way between
 * lanes goes on, so that the crowd always ends.
 */
export interface Crowd {
  /** Bytes of uncommitted changes. */
  readonly uncommitted: number
  /** Records of deeper levels wait for asynchronous functions, as many as may. */
  readonly parked: boolean
}

export class Backpressure {
  readonly #mostUncommitted: number
  readonly #tell: (overloaded: boolean) => void
  #overloaded = false

  constructor(mostUncommitted: number, tell: (overloaded: boolean) => void) {
    this.#mostUncommitted = mostUncommitted
    this.#tell = tell
  }

  check({ uncommitted, parked }: Crowd): void {
    const overloaded = uncommitted > this.#mostUncommitted || parked
    if (overloaded === this.#overloaded) return
    this.#overloaded = overloaded
    this.#tell(overloaded)
  }

  /** The run is over, and with it whoever was told. */
  reset(): void {
    this.#overloaded = false
  }
}
