import type { Clock } from '../../base/clock.ts'
import { BrokerError } from '../port.ts'
import type { EmbeddedCluster } from './core/cluster.ts'

/** Calls the cluster's `tick` when something is due; sleeps without a timer while nothing is. */
export class ClusterTimer {
  readonly #cluster: EmbeddedCluster
  readonly #clock: Clock
  #timer: NodeJS.Timeout | undefined
  #due = Number.POSITIVE_INFINITY

  constructor(cluster: EmbeddedCluster, clock: Clock) {
    this.#cluster = cluster
    this.#clock = clock
  }

  /** To be called after every call to the cluster. */
  arm(): void {
    const deadline = this.#cluster.nextDeadline()
    // A timer that is set too early costs one look; setting it anew at every call would cost more.
    if (deadline >= this.#due) return
    clearTimeout(this.#timer)
    this.#due = deadline
    const delay = Math.min(Math.max(Math.ceil(deadline - this.#clock.monotonic()), 0), 2 ** 31 - 1)
    this.#timer = setTimeout(() => {
      this.#fire()
    }, delay)
    // The cluster lives as long as its clients do, not as long as it has something to wait for.
    this.#timer.unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #fire(): void {
    this.#due = Number.POSITIVE_INFINITY
    try {
      this.#cluster.tick()
    } catch (error) {
      // A broker whose disk fails has stopped; its callers learn of it from their next call.
      if (!(error instanceof BrokerError)) throw error
    }
    this.arm()
  }
}
