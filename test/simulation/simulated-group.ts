/** Processes of one group on one scheduler and one broker, which come and go. */
import type { EngineFact } from '../../src/engine/protocol.ts'
import { counterLayout } from '../../src/runtime/settings.ts'
import type { CompiledTopology } from '../../src/topology/compiled.ts'
import { SimulatedCluster } from './cluster.ts'
import { type DiskBackend, DurableBackends } from './durable-backends.ts'
import { type BrokerFaults, faultyBroker, type Tamper } from './faulty-broker.ts'
import { type ProcessOptions, SimulatedProcess } from './process.ts'
import { Scheduler, settleSome } from './scheduler.ts'
import type { Random } from '../../src/base/random.ts'

interface Size {
  readonly members: number
  readonly partitions: number
  /** Where the stores are on a disk: one of each process, which outlives it. */
  readonly disk?: (() => DiskBackend) | undefined
}

export interface Started extends Pick<ProcessOptions, 'settings' | 'messageMs' | 'slowLane' | 'writeBehind'> {
  readonly topology: CompiledTopology
  readonly faults: () => BrokerFaults
  readonly tamper: Tamper
  readonly fact: (fact: EngineFact) => void
}

export class SimulatedGroup {
  readonly scheduler: Scheduler
  readonly violations: string[] = []
  readonly story: string[] = []
  readonly cluster: SimulatedCluster
  readonly running: Array<SimulatedProcess | undefined> = []
  readonly #stores: DurableBackends[]
  readonly #mostSteps: number
  #owner = 0

  constructor(random: Random, seed: number, mostSteps: number, { members, partitions, disk }: Size) {
    this.scheduler = new Scheduler(random, settleSome)
    this.#mostSteps = mostSteps
    this.#stores = Array.from({ length: members }, () => new DurableBackends(disk))
    this.cluster = new SimulatedCluster(this.scheduler, seed + 1, partitions)
  }

  tell(what: string): void {
    this.story.push(`${Math.round(this.scheduler.now)}: ${what}`)
  }

  /** By number; each of them is an owner of its own to the scheduler. */
  nextOwner(): number {
    return ++this.#owner
  }

  start(n: number, owner: number, started: Started): void {
    const { topology, faults, tamper, fact, ...others } = started
    const { scheduler, cluster } = this
    const stores = (this.#stores[n] as DurableBackends).survivors()
    this.#stores[n] = stores
    const wake = (): void => cluster.wake()
    const process = new SimulatedProcess({
      ...others,
      scheduler,
      owner,
      broker: faultyBroker(cluster.cluster, scheduler, owner, faults, wake, tamper),
      compile: () => topology,
      backends: () => stores.factory(),
      layout: counterLayout(topology),
      tamper: {},
      fact,
    })
    this.tell(`process ${n} starts`)
    this.running[n] = process
    process.start()
  }

  /** Goes on until this holds, or something is wrong. */
  async until(done: () => boolean): Promise<void> {
    const limit = this.scheduler.steps + this.#mostSteps
    while (!done() && this.violations.length === 0) {
      if (this.scheduler.steps > limit) this.violations.push(`not done at ${Math.round(this.scheduler.now)} ms`)
      else if (!(await this.scheduler.step())) this.violations.push('nothing is planned any more')
    }
  }

  /** All have done what there is; then they are gone. */
  async untilIdle(): Promise<void> {
    let idle = 0
    for (const process of this.running) void process?.engine.untilIdle().then(() => idle++)
    await this.until(() => idle === this.#stores.length)
    for (const process of this.running) process?.kill()
  }
}
