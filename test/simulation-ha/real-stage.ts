/** The real engine with its lanes, as each pod of a world runs it; input, application and judgement of `../simulation`. */
import type { Random } from '../../src/base/random.ts'
import type { EmbeddedCluster } from '../../src/broker/embedded/core/cluster.ts'
import { directClient } from '../../src/broker/embedded/direct-client.ts'
import type { HaCommandToEngine } from '../../src/engine/ha-contract.ts'
import { counterLayout } from '../../src/runtime/settings.ts'
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { checkRun } from '../simulation/checkers.ts'
import { DiskBackend, DurableBackends } from '../simulation/durable-backends.ts'
import { type DiskFaults, FailingDisk } from '../simulation/failing-disk.ts'
import { SimulatedProcess } from '../simulation/process.ts'
import { application, type Input } from '../simulation/workload.ts'
import { settingsFor } from '../simulation/derived.ts'
import { partitionOf } from '../simulation/world.ts'
import type { Derived } from './derived.ts'
import { type EngineOrder, type InputRecord, inputIsCommitted, type SimEngine, type Stage } from './stage.ts'

/** The disks of a third of the seeds fail until then. */
const disksFailMs = 5500
const diskFaults = { full: 0.03, fullMs: 500, fails: 0.02, synced: 0.4, powerCuts: 0, torn: 0 }
/** Written late, at any time: also by a pod that waits for the coordinator. */
const disk = { bytes: 600, intervalMs: 200, rowsPerStep: 3 }

const compile = () => application({ next: () => undefined }).compile()

export class RealStage implements Stage {
  readonly applicationId = 'sim'
  readonly inputTopic = 'in'
  readonly disksFail: boolean
  readonly #partitions: number
  readonly #lanes: number
  /** Where commits come seldom, something waits for one when a pod is cut off. */
  readonly #commitMs: number
  readonly #inputs: Input[] = []
  readonly #stores = new Map<number, DurableBackends>()
  /** By pod: ends its newest process in order, with everything written. */
  readonly #ends = new Map<number, () => void>()
  #time = 1_000_000

  constructor(seed: number) {
    this.#partitions = 1 + (seed % 3)
    this.#lanes = 1 + (seed % 2)
    this.disksFail = seed % 3 === 2
    this.#commitMs = seed % 3 === 1 ? 600 : 20
  }

  async prepare(cluster: EmbeddedCluster): Promise<void> {
    await directClient(cluster).createTopics([{ topic: this.inputTopic, partitions: this.#partitions }])
  }

  feed(random: Random, derived: Derived): InputRecord {
    const value = this.#inputs.length
    // The last records, one for each partition, come later than all others by event time: they close the windows.
    const closing = value - (derived.records - this.#partitions)
    this.#time += closing === 0 ? 5000 : random.int(40)
    const timestamp = this.#time - (closing < 0 ? random.int(90) : 0)
    const key = closing < 0 ? `k${random.int(derived.keys)}` : this.#keyIn(closing)
    const partition = partitionOf(key, this.#partitions)
    this.#inputs.push({ key, value, timestamp, partition })
    const builder = new RecordBatchBuilder()
    builder.append(timestamp, Buffer.from(key), Buffer.from(JSON.stringify(value)), noHeaders)
    return { partition, records: builder.finish() }
  }

  #keyIn(partition: number): string {
    let i = 0
    while (partitionOf(`k${i}`, this.#partitions) !== partition) i++
    return `k${i}`
  }

  engine(order: EngineOrder): SimEngine {
    const stores = (this.#stores.get(order.pod) ?? this.#newStores(order)).survivors()
    this.#stores.set(order.pod, stores)
    const topology = compile()
    const shape = { lanes: this.#lanes, partitions: this.#partitions }
    const engine = new RealEngine(
      order,
      (scheduler) =>
        new SimulatedProcess({
          scheduler,
          owner: order.owner,
          broker: order.broker,
          settings: {
            ...settingsFor(shape, topology),
            commitIntervalMs: this.#commitMs,
            commitIdleIntervalMs: this.#commitMs,
            ha: { podId: order.podId, groupMode: 'join' },
          },
          compile,
          backends: () => stores.factory(),
          layout: counterLayout(topology),
          ...(this.disksFail && { writeBehind: disk }),
          messageMs: order.messageMs,
          slowLane: -1,
          tamper: {},
          fact: order.fact,
        }),
    )
    this.#ends.set(order.pod, () => {
      engine.close()
      order.scheduler.kill(order.owner)
    })
    return engine
  }

  #newStores({ scheduler }: EngineOrder): DurableBackends {
    if (!this.disksFail) return new DurableBackends()
    return new DurableBackends(() => new DiskBackend(), new DiskOfPod(diskFaults, scheduler))
  }

  loseStore(pod: number): void {
    this.#stores.delete(pod)
  }

  settled(cluster: EmbeddedCluster): boolean {
    return inputIsCommitted(cluster, this.applicationId, this.inputTopic)
  }

  /** The stores of every pod, active or standing by, are the fold of the changelogs. */
  async check(cluster: EmbeddedCluster, violate: (what: string) => void): Promise<void> {
    const specs = compile().stores
    if (this.disksFail) for (const end of this.#ends.values()) end()
    for (const [pod, stores] of this.#stores) {
      await checkRun({ cluster, inputs: this.#inputs, stores, specs, violate: (what) => violate(`p${pod}: ${what}`) })
    }
  }
}

class DiskOfPod extends FailingDisk {
  readonly #now: () => number

  constructor(faults: DiskFaults, scheduler: EngineOrder['scheduler']) {
    super(faults, scheduler)
    this.#now = () => scheduler.now
  }

  override check(): void {
    if (this.#now() < disksFailMs) super.check()
  }
}

type ProcessScheduler = ConstructorParameters<typeof SimulatedProcess>[0]['scheduler']

class RealEngine implements SimEngine {
  readonly #process: SimulatedProcess
  readonly #trouble: (ms: number) => void
  #pauses = 0
  paused = false

  constructor(order: EngineOrder, make: (scheduler: ProcessScheduler) => SimulatedProcess) {
    const { scheduler, owner, clockRate } = order
    this.#trouble = order.trouble
    // The other simulator's processes know one clock; here every process has its own.
    const own = {
      random: scheduler.random,
      clock: scheduler.clockOf(clockRate, owner * 1_000_000),
      at: scheduler.at.bind(scheduler),
      timers: () => scheduler.timers(owner, clockRate),
      kill: () => undefined,
      get now() {
        return scheduler.now
      },
    }
    this.#process = make(own as unknown as ProcessScheduler)
  }

  start(): void {
    this.#process.start()
  }

  command(command: HaCommandToEngine): void {
    if (command.type === 'ha-promote') this.paused = command.paused
    this.#process.engine.haCommand(command)
  }

  setPaused(paused: boolean): void {
    this.paused = paused
    if (paused) this.#process.engine.pause(++this.#pauses)
    else this.#process.engine.unpause()
  }

  close(): void {
    for (const lane of this.#process.lanes) lane.close()
  }

  disturb(ms: number): void {
    this.#trouble(ms)
  }
}
