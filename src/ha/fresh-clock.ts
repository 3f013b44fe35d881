/**
 * A clock that runs only while this pod's view of the log is fresh. After an outage of the broker everybody's heartbeats
 * look old; judged by a plain clock, each outage would end in a failover.
 */
export class FreshClock {
  readonly #mostPerStep: number
  readonly #mostAckAge: number
  #value = 0
  #lastTail: number | undefined
  #lastAck = Number.NEGATIVE_INFINITY

  /**
   * `mostPerStep`: what one look at the log's end counts for at most: time in which the process was stopped, or the
   * broker did not answer, does not count. `mostAckAge`: a pod whose own heartbeats do not come back judges nobody's.
   */
  constructor(mostPerStep: number, mostAckAge: number) {
    this.#mostPerStep = mostPerStep
    this.#mostAckAge = mostAckAge
  }

  get value(): number {
    return this.#value
  }

  /** Age of the last look that reached the log's end. */
  tailAge(now: number): number {
    return this.#lastTail === undefined ? Number.POSITIVE_INFINITY : now - this.#lastTail
  }

  /** Age of the newest own heartbeat that came back, from the moment at which it was sent. */
  ackAge(now: number): number {
    return now - this.#lastAck
  }

  /** The own heartbeat that was sent then has come back. */
  acknowledged(sentAt: number): void {
    this.#lastAck = Math.max(this.#lastAck, sentAt)
  }

  /** The log was read to its end. */
  reachedEnd(now: number): void {
    if (this.#lastTail !== undefined && this.ackAge(now) <= this.#mostAckAge) {
      this.#value += Math.min(now - this.#lastTail, this.#mostPerStep)
    }
    this.#lastTail = now
  }
}
