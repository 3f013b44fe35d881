/** The embedded broker on a scheduler: its own deadlines (long polls, sessions, transactions) come up as events. */
import { Random } from '../../src/base/random.ts'
import { EmbeddedCluster } from '../../src/broker/embedded/core/cluster.ts'
import { MemoryStorage } from '../../src/broker/embedded/core/memory-storage.ts'
import { directClient } from '../../src/broker/embedded/direct-client.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import type { Scheduler } from './scheduler.ts'

export class SimulatedCluster {
  readonly cluster: EmbeddedCluster
  readonly #scheduler: Scheduler
  #cancel: (() => void) | undefined
  #tickAt = Number.POSITIVE_INFINITY

  constructor(scheduler: Scheduler, seed: number, partitions: number) {
    this.#scheduler = scheduler
    const { clock } = scheduler
    this.cluster = new EmbeddedCluster({ clock, random: new Random(seed), storage: new MemoryStorage(), partitions })
  }

  /** A connection without faults. */
  client(): BrokerPort {
    return directClient(this.cluster, { afterCall: () => this.wake() })
  }

  /** To be called when something has changed in the cluster. */
  wake(): void {
    const deadline = this.cluster.nextDeadline()
    if (deadline >= this.#tickAt) return
    this.#cancel?.()
    this.#tickAt = deadline
    const event = this.#scheduler.at(Math.max(0, deadline - this.#scheduler.now) + 0.01, 0, () => {
      this.#cancel = undefined
      this.#tickAt = Number.POSITIVE_INFINITY
      this.cluster.tick()
      this.wake()
    })
    this.#cancel = () => this.#scheduler.cancel(event)
  }
}
