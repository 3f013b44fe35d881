/**
 * A lane without its thread: takes messages, runs tasks, gives back messages. No clock, socket or timer of its own, so
 * the same code runs in a worker, in the test driver and in the simulator.
 * What comes in is worked off by `lane-input.ts`; how an epoch is closed is in `lane-barrier.ts`.
 */
import { laneIndex } from '../base/counters.ts'
import { EngineError, toWireError } from '../errors.ts'
import type { Rec } from '../operators/contract.ts'
import { Affinity } from './affinity.ts'
import { Crowding } from './crowding.ts'
import { policyFor } from './error-policy.ts'
import { GlobalState } from './global-state.ts'
import { Handoffs } from './handoffs.ts'
import { Intake } from './intake.ts'
import { LaneBarrier } from './lane-barrier.ts'
import { LaneCounters } from './lane-counters.ts'
import { LaneInput } from './lane-input.ts'
import type { LaneOptions } from './lane-options.ts'
import { LaneTimings } from './lane-timings.ts'
import { LevelState } from './level-state.ts'
import { Outputs } from './outputs.ts'
import type { LaneAnswer, LaneQuery, LaneToLane, ToLane } from './protocol.ts'
import { ScheduleRuns } from './schedule-run.ts'
import { queryStores } from './store-query.ts'
import { TaskHostPort } from './task-host.ts'
import { TaskRunner } from './task-runner.ts'
import type { TaskSlot } from './task-slot.ts'
import { TaskSet } from './task-set.ts'

export type { LaneOptions } from './lane-options.ts'

export class LaneCore {
  readonly #options: LaneOptions
  readonly #levels: LevelState[]
  readonly #outputs: Outputs
  readonly #handoffs: Handoffs
  readonly #runner: TaskRunner
  readonly #tasks: TaskSet
  readonly #globals: GlobalState
  readonly counters: LaneCounters
  readonly #timings: LaneTimings
  readonly #schedules: ScheduleRuns
  readonly #intake: Intake
  readonly #barrier: LaneBarrier
  readonly #input: LaneInput
  #affinity: Affinity | undefined
  #run = 0
  #fencingToken = 0
  #faulted = false
  /** The tasks are complete: queries may be answered. */
  #started = false
  #commitAsked = false
  readonly #crowding: Crowding
  /** Since the last commit this was asked for because of rows that are to be forgotten. */
  #forgetAsked = false
  /** Event time may have passed without a record that brings a commit: stores may have become old by it. */
  #timePassed = false

  constructor(options: LaneOptions) {
    this.#options = options
    const { topology, lane, lanes } = options
    this.#levels = Array.from({ length: topology.levels }, (_, level) => new LevelState(level, level === 0 ? 1 : lanes))
    this.counters = new LaneCounters(options.layout, options.counters)
    this.#timings = new LaneTimings(options.layout, options.counters, options.clock)
    this.#outputs = new Outputs((topic) => options.toEngine({ type: 'resolve-topics', lane, topics: [topic] }, []))
    this.#handoffs = new Handoffs(lane, lanes, topology.levels, (to, message, transfer) => {
      if (message.type === 'handoff') this.counters.add(laneIndex.handedOverBytes, message.length)
      if (to === lane) this.receiveFromLane(message)
      else options.toLane(to, message, transfer)
    })
    this.#runner = new TaskRunner(
      {
        failed: (slot, rec, error) => this.#failed(slot, rec, error),
        settled: (slot) => this.#settled(slot),
        alive: (slot) => !this.#faulted && this.#tasks.has(slot),
      },
      options.maxInFlight,
    )
    const host = new TaskHostPort({
      topology,
      applicationId: options.applicationId,
      outputs: this.#outputs,
      handoffs: this.#handoffs,
      counters: this.counters,
      clock: options.clock,
      policies: options.policies,
      affinity: () => this.#affinity as Affinity,
      alive: (slot) => !this.#faulted && this.#tasks.has(slot),
      originTopic: (name) => this.#originTopic(name),
      requestCommit: () => this.#requestCommit(),
      fencingToken: () => this.#fencingToken,
    })
    this.#schedules = new ScheduleRuns(options, this.counters, {
      run: () => this.#run,
      failed: (error) => this.#fault(error),
    })
    this.#crowding = new Crowding(2 * options.uncommittedMaxBytes, (crowded) =>
      options.toEngine({ type: 'crowded', lane, run: this.#run, crowded }, []),
    )
    this.#globals = new GlobalState(topology, options.clock, options.applicationId)
    this.#tasks = new TaskSet(options, host, this.#globals, this.#levels)
    const parts = { tasks: this.#tasks, runner: this.#runner, counters: this.counters }
    this.#intake = new Intake(options, { ...parts, failed: (slot, rec, error) => this.#failed(slot, rec, error) })
    const places = { levels: this.#levels, runner: this.#runner, tasks: this.#tasks, timings: this.#timings }
    this.#barrier = new LaneBarrier(
      options,
      { ...places, outputs: this.#outputs, handoffs: this.#handoffs },
      { run: () => this.#run, faulted: () => this.#faulted },
    )
    this.#input = new LaneInput(
      options,
      { ...places, counters: this.counters, intake: this.#intake, barrier: this.#barrier },
      { faulted: () => this.#faulted },
    )
  }

  /** Handles a message of the engine; `run` does the work that records bring. */
  receive(message: ToLane): void {
    if ('run' in message && message.type !== 'configure' && message.type !== 'reset' && message.run !== this.#run)
      return
    try {
      this.#receive(message)
    } catch (error) {
      this.#fault(error)
    }
  }

  receiveFromLane(message: LaneToLane): void {
    if (message.run !== this.#run) return
    if (message.type === 'hand-watermark') this.#timePassed = true
    this.#input.fromLane(message)
    this.#options.wake()
  }

  /** Works until nothing is left to do or the budget of records is used; true: call again. */
  run(budget = 1024): boolean {
    let left = budget
    try {
      while (!this.#faulted && left > 0) {
        const done = this.#input.step()
        if (done < 0) break
        left -= done
      }
      if (this.#timePassed && left > 0 && !this.#faulted) this.#askToForget()
      if (!this.#faulted && this.#tasks.writer.step(this.#options.clock.now())) left = 0
    } catch (error) {
      this.#fault(error)
    }
    this.#giveBack()
    this.#afterRun()
    return left <= 0 && !this.#faulted
  }

  #giveBack(): void {
    const taken = this.#faulted ? undefined : this.#input.takeCredits()
    const { toEngine, lane } = this.#options
    if (taken) toEngine({ type: 'consumed', lane, run: this.#run, ...taken }, [])
  }

  /** Earliest wall-clock instant at which a timer is due, or a store is to be written; Infinity: none. */
  nextWallClock(): number {
    // Nothing is done before the reset, which is followed by another look.
    if (this.#faulted) return Number.POSITIVE_INFINITY
    let next = this.#tasks.writer.nextAt
    for (const slot of this.#tasks.all()) if (slot.task.nextWallClock < next) next = slot.task.nextWallClock
    return next
  }

  /** Fires wall-clock timers that are due; what is to be written, `run` writes. */
  tick(now: number): void {
    if (this.#faulted) return
    try {
      let fired = false
      for (const slot of [...this.#tasks.all()]) {
        if (slot.task.nextWallClock > now) continue
        fired = true
        this.#runner.wallClock(slot, now)
      }
      if (fired) this.#requestCommit(false)
    } catch (error) {
      this.#fault(error)
    }
    this.#afterRun()
  }

  /** Records received and not yet done, for tests and the simulator's bounds. */
  get backlog(): { inFlight: number; parked: number } {
    return { inFlight: this.#runner.inFlight, parked: this.#runner.parked }
  }

  /** The stores of this lane's tasks by name and partition, for the test driver and interactive queries. */
  get tasks(): TaskSet {
    return this.#tasks
  }

  /** Answers from committed rows, whatever waits to be processed. */
  query({ id, store, query, limit }: LaneQuery): LaneAnswer {
    try {
      if (!this.#started) {
        throw new EngineError(
          'STORE_UNAVAILABLE',
          `the store ${store} is not complete yet: its state is being restored`,
        )
      }
      return { type: 'answer', id, ...queryStores(this.#tasks.queried(store), query, limit) }
    } catch (error) {
      return { type: 'answer', id, rows: [], count: 0, error: toWireError(error) }
    }
  }

  close(): void {
    this.#tasks.close()
    this.#options.backends.close()
  }

  #receive(message: ToLane): void {
    const { toEngine, lane } = this.#options
    switch (message.type) {
      case 'configure':
        this.#run = message.run
        this.#affinity = Affinity.from(message.affinity)
        this.#setOrigins(message.originTopics)
        this.#tasks.affinity = this.#affinity
        return
      case 'origins':
        this.#setOrigins(message.originTopics)
        return
      case 'topics':
        for (const { topic, partitions } of message.topics) this.#outputs.setPartitions(topic, partitions)
        this.#barrier.topicsResolved()
        return
      case 'open':
        toEngine({ type: 'opened', lane, run: this.#run, stores: this.#tasks.open(message.tasks) }, [])
        return
      case 'restore': {
        const records = this.#tasks.restore(message)
        const { store, partition } = message
        toEngine({ type: 'restored', lane, run: this.#run, store, partition, records }, [])
        return
      }
      case 'global':
        this.#globals.load(message)
        toEngine({ type: 'loaded', lane, run: this.#run, source: message.source }, [])
        return
      case 'start':
        this.#start(message)
        return
      case 'data':
      case 'watermark':
      case 'mark':
        if (message.type === 'mark') this.#tasks.sealsUpTo = message.watermark
        if (message.type === 'watermark') this.#timePassed = true
        this.#input.fromEngine(message)
        this.#options.wake()
        return
      case 'result':
        this.#tasks.applied(message.epoch, message.checkpoints)
        this.#commitAsked = false
        this.#forgetAsked = false
        this.#checkRoom()
        this.#askToForget()
        toEngine({ type: 'applied', lane, run: this.#run, epoch: message.epoch }, [])
        return
      case 'tick':
        this.#schedules.tick(message)
        return
      case 'close':
        this.#tasks.closeTasks(message.tasks)
        toEngine({ type: 'closed', lane, run: this.#run, tasks: message.tasks }, [])
        return
      case 'reset':
        this.#reset(message.run)
        toEngine({ type: 'reset-done', lane, run: message.run }, [])
        return
      case 'stop':
        this.close()
    }
  }

  #start(message: Extract<ToLane, { type: 'start' }>): void {
    const { toEngine, lane } = this.#options
    const first = this.#tasks.size === 0
    this.#fencingToken = message.fencingToken ?? 0
    if (first) {
      this.#barrier.begin(message.epoch)
      this.#input.begin(message.epoch)
      this.#handoffs.reset(this.#run, message.epoch)
      for (const level of this.#levels) level.reset(message.watermark)
    }
    this.#tasks.start(message.tasks, this.#barrier.epoch, message.watermark)
    this.#started = true
    this.#timePassed = true
    toEngine({ type: 'started', lane, run: this.#run }, [])
    this.#options.wake()
  }

  #reset(run: number): void {
    this.#run = run
    this.#started = false
    this.#faulted = false
    this.#barrier.reset()
    this.#input.reset()
    this.#crowding.reset()
    this.#commitAsked = false
    this.#forgetAsked = false
    this.#tasks.discard()
    this.#runner.reset()
    this.#outputs.discard()
    this.#handoffs.reset(run, 1)
    for (const level of this.#levels) level.reset(Number.NEGATIVE_INFINITY)
    this.counters.reset()
  }

  #settled(slot: TaskSlot): void {
    const level = this.#levels[slot.level] as LevelState
    if (level.aligning !== 0) {
      try {
        this.#barrier.seal(level)
      } catch (error) {
        this.#fault(error)
      }
    }
    this.#timePassed = true
    this.#options.wake()
  }

  /** Lets out what the work brought: hand-offs, watermarks, full output batches. */
  #afterRun(): void {
    if (this.#faulted) return
    this.#barrier.letOut()
    this.counters.progress(this.#runner, this.#options.clock)
    const { oldest } = this.#runner
    if (oldest !== undefined && oldest.offset >= 0) {
      this.counters.waitsFor(this.#originTopic(oldest.topic), oldest.partition, oldest.offset)
    }
    this.#checkRoom()
  }

  /** More than a lane may hold is committed early; where that does not help in time, nothing is let in any more. */
  #checkRoom(): void {
    const uncommitted = this.#tasks.uncommittedBytes()
    this.counters.set(laneIndex.uncommittedBytes, uncommitted)
    if (uncommitted > this.#options.uncommittedMaxBytes) this.#requestCommit()
    this.#crowding.check({ uncommitted, parked: this.#levels.length > 1 && this.#runner.crowded })
  }

  #setOrigins(topics: readonly string[]): void {
    this.#intake.originTopics = topics
    this.#timings.origins(topics)
  }

  #originTopic(name: string): number {
    return this.#intake.originTopics.indexOf(name)
  }

  #requestCommit(urgent = true): void {
    if (this.#commitAsked) return
    this.#commitAsked = urgent
    this.#options.toEngine({ type: 'commit-wanted', lane: this.#options.lane, run: this.#run, urgent }, [])
  }

  /** A commit takes so many rows out of a store; where some are left, another one has to come, input or not. */
  #askToForget(): void {
    this.#timePassed = false
    if (this.#forgetAsked || !this.#tasks.isForgetting()) return
    this.#forgetAsked = true
    const { toEngine, lane } = this.#options
    toEngine({ type: 'commit-wanted', lane, run: this.#run, urgent: false, forgets: true }, [])
  }

  #failed(slot: TaskSlot, rec: Rec | undefined, error: unknown): void {
    const policy = rec === undefined ? 'fail' : policyFor(error, this.#options.policies)
    if (policy === 'fail' || rec === undefined) {
      this.#fault(error)
      return
    }
    const reason = EngineError.is(error) && error.code === 'DECODE_FAILED' ? 'deserialize' : 'handler'
    this.#tasks.host.rejected(slot, rec, error, reason, policy === 'dead-letter')
  }

  #fault(error: unknown): void {
    if (this.#faulted) return
    this.#faulted = true
    this.counters.add(laneIndex.failures, 1)
    this.#options.toEngine({ type: 'fault', lane: this.#options.lane, run: this.#run, error: toWireError(error) }, [])
  }
}
