/** The real engine and lanes over a simulated broker in virtual time, with calls that a test answers as it likes. */
import assert from 'node:assert/strict'
import { Random } from '../../../src/base/random.ts'
import type { BrokerPort } from '../../../src/broker/port.ts'
import type { HaCommandToEngine } from '../../../src/engine/ha-contract.ts'
import type { EngineFact, EngineSnapshot } from '../../../src/engine/protocol.ts'
import type { EngineSettings } from '../../../src/engine/settings.ts'
import type { ErrorPolicies } from '../../../src/lanes/tasks/error-policy.ts'
import { counterLayout } from '../../../src/runtime/settings.ts'
import type { CompiledTopology } from '../../../src/topology/compiled.ts'
import { SimulatedCluster } from '../../simulation/cluster.ts'
import { DurableBackends } from '../../simulation/durable-backends.ts'
import { faultyBroker, type Tamper } from '../../simulation/faulty-broker.ts'
import { SimulatedProcess } from '../../simulation/process.ts'
import { Scheduler } from '../../simulation/scheduler.ts'
import { settingsFor } from '../../simulation/derived.ts'
import { consume, type In, type Out, produce } from './engine.ts'

export interface VirtualEngineOptions {
  readonly compile: () => CompiledTopology
  readonly settings?: Partial<EngineSettings>
  readonly policies?: Partial<ErrorPolicies>
  /** Stands between the engine and the broker. */
  readonly tamper?: Tamper
  /** What is in the topics before the engine starts. */
  readonly before?: Readonly<Record<string, readonly In[]>>
  /** The next process finds the stores on disk of the one before. */
  readonly keepsStores?: boolean
}

const partitions = 2

export class VirtualEngine {
  readonly scheduler = new Scheduler(new Random(11))
  readonly facts: EngineFact[] = []
  snapshot: EngineSnapshot | undefined
  readonly #cluster = new SimulatedCluster(this.scheduler, 12, partitions)
  readonly #o: VirtualEngineOptions
  #process: SimulatedProcess | undefined
  #owner = 0
  #stores = new DurableBackends()

  constructor(options: VirtualEngineOptions) {
    this.#o = options
  }

  get broker(): BrokerPort {
    return this.#cluster.client()
  }

  /** Starts a process with stores of its own: whatever ran before is killed. */
  async start(): Promise<void> {
    const { compile, settings, policies, tamper, before } = this.#o
    if (!this.#process) for (const [topic, records] of Object.entries(before ?? {})) await this.put(topic, records)
    this.kill()
    this.facts.length = 0
    const owner = ++this.#owner
    if (!this.#o.keepsStores) this.#stores = new DurableBackends()
    const stores = this.#stores
    const faults = { slowestMs: 1, lostAnswer: 0, lostRequest: 0 }
    const wake = (): void => this.#cluster.wake()
    const topology = compile()
    this.#process = new SimulatedProcess({
      scheduler: this.scheduler,
      owner,
      broker: faultyBroker(this.#cluster.cluster, this.scheduler, owner, () => faults, wake, tamper),
      settings: { ...settingsFor({ lanes: 2, partitions }, topology), ...settings },
      compile,
      backends: () => stores.factory(),
      layout: counterLayout(topology),
      messageMs: 0.1,
      slowLane: -1,
      ...(policies !== undefined && { policies }),
      tamper: {},
      fact: (fact) => {
        if (fact.type === 'snapshot') this.snapshot = fact.snapshot
        else this.facts.push(fact)
      },
    })
    this.#process.start()
  }

  kill(): void {
    this.#process?.kill()
  }

  pause(id: number): void {
    this.#process?.engine.pause(id)
  }

  unpause(): void {
    this.#process?.engine.unpause()
  }

  stop(): void {
    void this.#process?.engine.stop()
  }

  /** As the coordinator of high availability does. */
  command(message: HaCommandToEngine): void {
    this.#process?.engine.haCommand(message)
  }

  async runs(): Promise<void> {
    await this.until('it runs', () => this.count('running') > 0)
  }

  async until(what: string, holds: () => boolean): Promise<void> {
    for (let step = 0; !holds(); step++) {
      assert.ok(step < 200_000, `in vain: ${what}; ${this.facts.map((fact) => fact.type).join()}`)
      assert.ok(await this.scheduler.step(), `nothing is planned any more: ${what}`)
    }
  }

  async passes(ms: number): Promise<void> {
    const end = this.scheduler.now + ms
    await this.until(`${ms} ms pass`, () => this.scheduler.now >= end)
  }

  put(topic: string, records: readonly In[]): Promise<void> {
    return produce(this.broker, topic, records, partitions)
  }

  read(topic: string): Promise<Out[]> {
    return consume(this.broker, topic)
  }

  async settled(): Promise<void> {
    let idle = false
    void this.#process?.engine.untilIdle().then(() => {
      idle = true
    })
    await this.until('all is processed', () => idle)
  }

  count(type: EngineFact['type']): number {
    return this.facts.filter((fact) => fact.type === type).length
  }

  /** What was logged as a warning. */
  get warnings(): string[] {
    return this.facts.flatMap((fact) => (fact.type === 'log' && fact.level === 'warn' ? [fact.message] : []))
  }
}
