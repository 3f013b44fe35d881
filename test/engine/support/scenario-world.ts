/** One scenario on the real engine and lanes in virtual time: the simulator's process, without its faults. */
import { VirtualClock } from '../../../src/base/clock.ts'
import { Random } from '../../../src/base/random.ts'
import type { BrokerPort } from '../../../src/broker/port.ts'
import type { EngineSettings } from '../../../src/engine/settings.ts'
import type { Application } from '../../../src/index.ts'
import { counterLayout, sinkTopics } from '../../../src/runtime/settings.ts'
import type { CompiledTopology } from '../../../src/topology/compiled.ts'
import { planOf } from '../../../src/topology/plan.ts'
import { SimulatedCluster } from '../../simulation/cluster.ts'
import { DurableBackends } from '../../simulation/durable-backends.ts'
import { faultyBroker } from '../../simulation/faulty-broker.ts'
import { SimulatedProcess } from '../../simulation/process.ts'
import { Scheduler } from '../../simulation/scheduler.ts'

const idlenessMs = 20

export class ScenarioWorld {
  readonly topology: CompiledTopology
  readonly broker: BrokerPort
  readonly problems: string[] = []
  readonly #scheduler: Scheduler
  readonly #process: SimulatedProcess
  /** So many steps of the scheduler at most until something is done. */
  patience = 200_000
  /** Stands at zero until it is told to move, as a scenario's does. */
  readonly #wallClock = new VirtualClock()

  constructor(
    application: Application,
    lanes: number,
    optimize: boolean,
    seed: number,
    other: Partial<EngineSettings> = {},
  ) {
    this.#scheduler = new Scheduler(new Random(seed))
    const cluster = new SimulatedCluster(this.#scheduler, seed + 1, 1)
    this.broker = cluster.client()
    const compile = (): CompiledTopology => application.compile({ optimize })
    this.topology = compile()
    const stores = new DurableBackends()
    this.#process = new SimulatedProcess({
      scheduler: this.#scheduler,
      owner: 1,
      broker: faultyBroker(
        cluster.cluster,
        this.#scheduler,
        1,
        () => ({ slowestMs: 1, lostAnswer: 0, lostRequest: 0 }),
        () => cluster.wake(),
        undefined,
      ),
      settings: { ...settingsFor(application.applicationId, lanes, this.topology), ...other },
      compile,
      backends: () => stores.factory(),
      layout: counterLayout(this.topology),
      laneClock: this.#wallClock,
      messageMs: 0.1,
      slowLane: -1,
      tamper: {},
      fact: (fact) => {
        if (fact.type === 'failed' || fact.type === 'restarting') this.problems.push(JSON.stringify(fact))
      },
    })
  }

  start(): void {
    this.#process.start()
  }

  /** Lets virtual time go on until the promise has settled. */
  async drive<T>(promise: Promise<T>): Promise<T> {
    let settled = false
    const done = promise.finally(() => {
      settled = true
    })
    const limit = this.#scheduler.steps + this.patience
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve))
      if (settled) return done
      if (this.#scheduler.steps > limit) throw new RangeError(`no end in sight: ${this.problems.join('; ')}`)
      await this.#scheduler.step()
    }
  }

  /** Until everything is done, and no topic that had something holds the watermark back any more. */
  async idle(): Promise<void> {
    await this.drive(this.#process.engine.untilIdle())
    await this.drive(new Promise<void>((resolve) => this.#scheduler.at(3 * idlenessMs, 0, () => resolve())))
    await this.drive(this.#process.engine.untilIdle())
  }

  async advanceWallClock(durationMs: number): Promise<void> {
    this.#wallClock.jump(durationMs)
    for (const lane of this.#process.lanes) lane.tick(this.#wallClock.now())
    await this.idle()
  }
}

function settingsFor(applicationId: string, lanes: number, topology: CompiledTopology): EngineSettings {
  return {
    applicationId,
    instanceId: 'main',
    groupInstanceId: `${applicationId}-main`,
    lanes,
    split: 'in-process',
    guarantee: 'exactly-once',
    durableStores: false,
    lostChangelogs: 'refuse',
    idlenessMs,
    maxTaskIdleMs: 0,
    bufferedRecordsPerPartition: 1000,
    maxPollRecords: 1000,
    fetchMaxWaitMs: 5,
    fetchMaxBytes: 1 << 20,
    partitionFetchMaxBytes: 1 << 20,
    bufferedMaxBytes: 1 << 22,
    laneQueueBytes: 1 << 20,
    uncommittedMaxBytes: 1 << 20,
    maxDirtyRows: 1_000_000,
    commitIntervalMs: 20,
    commitIdleIntervalMs: 10,
    barrierTimeoutMs: 30_000,
    maxRestarts: 0,
    restartWindowMs: 60_000,
    resolveTimeoutMs: 60_000,
    transactionTimeoutMs: 60_000,
    sessionTimeoutMs: 60_000,
    rebalanceTimeoutMs: 60_000,
    heartbeatIntervalMs: 10_000,
    metadataMaxAgeMs: 30_000,
    defaultPartitions: 1,
    offsetsReset: 'earliest',
    sourceReset: 'fail',
    sinkTopics: sinkTopics(topology),
    deadLetterTopic: null,
    plan: planOf(topology),
  }
}
