/** One simulated process: the real engine and the real lanes, on the world's scheduler. */
import type { Clock } from '../../src/base/clock.ts'
import type { Failpoint } from '../../src/base/failpoint.ts'
import { type CounterLayout, engineBlockLength, laneBlockLength, newBlock } from '../../src/base/counters.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { EngineCore } from '../../src/engine/engine-core.ts'
import type { EngineFact } from '../../src/engine/protocol.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import { extractorsOf } from '../../src/lanes/extraction.ts'
import { LaneCore } from '../../src/lanes/lane-core.ts'
import type { FromLane, LaneToLane, ToLane } from '../../src/lanes/protocol.ts'
import type { ErrorPolicies } from '../../src/lanes/tasks/error-policy.ts'
import type { WriteBehindOptions } from '../../src/lanes/stores/store-writer.ts'
import type { StoreBackendFactory } from '../../src/state/contract.ts'
import type { CompiledTopology } from '../../src/topology/compiled.ts'
import { splitTopology } from '../../src/topology/split.ts'
import { Channel } from './links.ts'
import type { Scheduler } from './scheduler.ts'

/** Protocol changes on the messages between engine and lanes, for the test of the checkers. */
export interface MessageTamper {
  toLane?(message: ToLane, send: (message: ToLane) => void): void
  fromLane?(message: FromLane, send: (message: FromLane) => void): void
  laneToLane?(message: LaneToLane, send: (message: LaneToLane) => void, to: number): void
}

export interface ProcessOptions {
  readonly scheduler: Scheduler
  readonly owner: number
  readonly broker: BrokerPort
  readonly settings: EngineSettings
  readonly compile: () => CompiledTopology
  readonly backends: () => StoreBackendFactory
  readonly layout: CounterLayout
  readonly messageMs: number
  readonly tamper: MessageTamper
  readonly fact: (fact: EngineFact) => void
  /** Told of every step that a commit takes. */
  readonly passed?: Failpoint
  /** A lane with this number works slowly. */
  readonly slowLane: number
  /** When durable stores are written, where it is not with every commit. */
  readonly writeBehind?: WriteBehindOptions
  /** Where they are not to fail at everything. */
  readonly policies?: Partial<ErrorPolicies>
  readonly tamperCounters?: (block: Float64Array) => void
  /** The lanes' clock, where it is not the world's. */
  readonly laneClock?: Clock
}

const beatMs = 25

export class SimulatedProcess {
  readonly engine: EngineCore
  readonly lanes: LaneCore[] = []
  readonly laneCounters: Float64Array[]
  readonly layout: CounterLayout
  readonly #o: ProcessOptions
  /** Lanes whose next wall-clock timer is planned. */
  readonly #ticking = new Set<number>()
  #dead = false

  constructor(options: ProcessOptions) {
    this.#o = options
    const { scheduler, owner, settings, layout, tamper } = options
    const timers = scheduler.timers(owner)
    this.layout = layout
    this.laneCounters = Array.from({ length: settings.lanes }, () => newBlock(laneBlockLength(layout)))
    const latency = (): number => scheduler.random.next() * options.messageMs
    const toEngine = Array.from(
      { length: settings.lanes },
      () => new Channel<FromLane>(scheduler, owner, (message) => this.engine.laneMessage(message), latency),
    )
    const toLane = Array.from(
      { length: settings.lanes },
      (_, lane) => new Channel<ToLane>(scheduler, owner, (message) => this.#receive(lane, message), latency),
    )
    const peers = Array.from({ length: settings.lanes }, () =>
      Array.from(
        { length: settings.lanes },
        (_, to) =>
          new Channel<LaneToLane>(scheduler, owner, (message) => this.lanes[to]?.receiveFromLane(message), latency),
      ),
    )
    for (let lane = 0; lane < settings.lanes; lane++) {
      const speed = lane === options.slowLane ? 20 : 1
      let scheduled = false
      const wake = (): void => {
        if (scheduled || this.#dead) return
        scheduled = true
        scheduler.at(scheduler.random.next() * 0.2 * speed, owner, () => {
          scheduled = false
          const more = this.lanes[lane]?.run(1 + scheduler.random.int(20))
          options.tamperCounters?.(this.laneCounters[lane] as Float64Array)
          if (more) wake()
          this.#tick(lane, wake)
        })
      }
      this.lanes.push(
        new LaneCore({
          lane,
          lanes: settings.lanes,
          applicationId: settings.applicationId,
          topology: splitTopology(options.compile(), settings.split),
          clock: options.laneClock ?? scheduler.clock,
          backends: options.backends(),
          policies: {
            decoding: 'fail',
            processing: 'fail',
            producing: 'fail',
            dropped: 'count',
            deadLetterTopic: 'dead',
            ...options.policies,
          },
          maxInFlight: 8,
          uncommittedMaxBytes: settings.uncommittedMaxBytes,
          maxDirtyRows: settings.maxDirtyRows,
          ...(settings.sizes && { sizes: settings.sizes }),
          ...(options.writeBehind && { writeBehind: options.writeBehind }),
          layout,
          counters: this.laneCounters[lane] as Float64Array,
          tellsInput: true,
          toEngine: (message) => {
            const send = (m: FromLane): void => (toEngine[lane] as Channel<FromLane>).send(m)
            if (tamper.fromLane) tamper.fromLane(message, send)
            else send(message)
          },
          toLane: (to, message) => {
            const send = (m: LaneToLane): void =>
              ((peers[lane] as Channel<LaneToLane>[])[to] as Channel<LaneToLane>).send(m)
            if (tamper.laneToLane) tamper.laneToLane(message, send, to)
            else send(message)
          },
          wake,
        }),
      )
      if (options.writeBehind) this.#beat(wake)
    }
    this.engine = new EngineCore({
      settings,
      broker: options.broker,
      clock: scheduler.clock,
      timers,
      layout,
      counters: newBlock(engineBlockLength(layout)),
      laneCounters: this.laneCounters,
      nodeNames: [],
      extractors: extractorsOf(options.compile().sources),
      ...(options.passed && { failpoint: options.passed }),
      send: (lane, message) => {
        const send = (m: ToLane): void => (toLane[lane] as Channel<ToLane>).send(m)
        if (tamper.toLane) tamper.toLane(message, send)
        else send(message)
      },
      fact: (fact) => {
        if (!this.#dead) options.fact(fact)
      },
    })
  }

  start(): void {
    void this.engine.start()
  }

  /** As `kill -9`: nothing that was planned happens. */
  kill(): void {
    this.#dead = true
    this.#o.scheduler.kill(this.#o.owner)
  }

  /** Calls a lane when its next wall-clock timer is due, where it has one. Who moves a clock of the lanes' own calls them. */
  #tick(lane: number, wake: () => void): void {
    const { scheduler, owner, laneClock } = this.#o
    if (laneClock !== undefined) return
    const core = this.lanes[lane] as LaneCore
    const dueAt = core.tasks.nextWallClock
    if (dueAt === Number.POSITIVE_INFINITY || this.#ticking.has(lane)) return
    this.#ticking.add(lane)
    scheduler.at(Math.max(0, dueAt - scheduler.clock.now()), owner, () => {
      this.#ticking.delete(lane)
      core.tick(scheduler.clock.now())
      wake()
    })
  }

  /** Wakes a lane now and then, as its timer does when stores are to be written. */
  #beat(wake: () => void): void {
    this.#o.scheduler.at(beatMs, this.#o.owner, () => {
      wake()
      this.#beat(wake)
    })
  }

  #receive(lane: number, message: ToLane): void {
    this.lanes[lane]?.receive(message)
  }
}
