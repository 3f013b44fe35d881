/**
 * A lane without its thread: takes messages, runs tasks, gives back messages. No clock, socket or timer of its own, so
 * the same code runs in a worker, in the test driver and in the simulator.
 * What comes in is worked off by `lane-input.ts`; how an epoch is closed is in `lane-barrier.ts`.
 */
import { assert } from '../base/assert.ts'
import { laneIndex } from '../base/counters.ts'
import { toWireError } from '../base/errors.ts'
import type { Rec } from '../operators/contract.ts'
import { Affinity } from '../topology/affinity.ts'
import { CommitRequests } from './levels/commit-requests.ts'
import { Backpressure } from './backpressure.ts'
import { DiskRoom } from './stores/disk-room.ts'
import { GlobalState } from './global-state.ts'
import { Handoffs } from './levels/handoffs.ts'
import { Intake } from './levels/intake.ts'
import { LaneBarrier } from './levels/lane-barrier.ts'
import { LaneCounters } from './lane-counters.ts'
import { LaneInput } from './levels/lane-input.ts'
import type { LaneOptions } from './lane-options.ts'
import { LaneTimings } from './lane-timings.ts'
import { Deferred } from './levels/deferred.ts'
import { LevelState } from './levels/level-state.ts'
import { Outputs } from './outputs.ts'
import type { LaneAnswer, LaneQuery, LaneToLane, OriginTopics, ToLane } from './protocol.ts'
import { CallGates } from './tasks/call-gates.ts'
import { Calls, showLongestChain } from './tasks/calls.ts'
import { ScheduleRuns } from './schedule-run.ts'
import { answerOf } from './stores/store-answer.ts'
import { answerStores } from './stores/store-messages.ts'
import { TaskHostPort } from './tasks/task-host.ts'
import { TaskRunner } from './tasks/task-runner.ts'
import type { TaskSlot } from './tasks/task-slot.ts'
import { TaskSet } from './tasks/task-set.ts'

/** The lane hears what it is told meanwhile after this long, or after one function that takes longer. */
const turnMs = 10

export class LaneCore {
  readonly #options: LaneOptions
  readonly #levels: LevelState[]
  readonly #outputs: Outputs
  readonly #handoffs: Handoffs
  readonly #calls: Calls
  readonly #gates: CallGates
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
  readonly #deferred = new Deferred((stage, partition) => this.#tasks.get(stage, partition))
  /** The tasks are complete: queries may be answered. */
  #started = false
  readonly #commits: CommitRequests
  readonly #backpressure: Backpressure
  /** Event time may have passed without a record that brings a commit: stores may have become old by it. */
  #timePassed = false
  readonly #room: DiskRoom

  constructor(options: LaneOptions) {
    this.#options = options
    const { topology, lane, lanes } = options
    this.#commits = new CommitRequests(options, { run: () => this.#run, barrier: () => this.#barrier })
    this.#levels = Array.from({ length: topology.levels }, (_, level) => new LevelState(level))
    this.counters = new LaneCounters(options.layout, options.counters, options.clock, options.wake)
    this.#timings = new LaneTimings(options.layout, options.counters, options.clock)
    this.#outputs = new Outputs(
      (topic) => options.toEngine({ type: 'resolve-topics', lane, topics: [topic] }, []),
      options.sizes,
      options.clock,
    )
    this.#handoffs = new Handoffs(lane, lanes, topology.levels, this.#handOver.bind(this), options.sizes)
    this.#calls = new Calls(options.clock, topology, () => this.counters.probe.currentNode)
    this.#gates = new CallGates(options, this.#calls)
    this.#runner = new TaskRunner(
      {
        failed: (slot, rec, error) => this.#failed(slot, rec, error),
        settled: (slot) => this.#settled(slot),
        alive: (slot) => !this.#faulted && this.#tasks.has(slot),
        decode: (slot, source, rec) => this.#intake.decode(slot, source, rec),
      },
      this.#calls,
      options.maxInFlight,
    )
    this.#schedules = new ScheduleRuns(options, this.counters, {
      run: () => this.#run,
      failed: (error) => this.fault(error),
    })
    this.#backpressure = new Backpressure(2 * options.uncommittedMaxBytes, (overloaded) =>
      options.toEngine({ type: 'overloaded', lane, run: this.#run, overloaded }, []),
    )
    this.#room = this.#makeRoom()
    this.#globals = new GlobalState(options, this.counters)
    this.#tasks = new TaskSet(options, this.#makeHost(), this.#globals, this.#levels)
    this.#intake = this.#makeIntake()
    const places = { levels: this.#levels, runner: this.#runner, tasks: this.#tasks, timings: this.#timings }
    this.#barrier = new LaneBarrier(
      options,
      { ...places, outputs: this.#outputs, handoffs: this.#handoffs },
      { run: () => this.#run, faulted: () => this.#faulted },
    )
    this.#input = new LaneInput(
      options,
      {
        ...places,
        counters: this.counters,
        intake: this.#intake,
        barrier: this.#barrier,
        handoffs: this.#handoffs,
        calls: this.#calls,
      },
      { faulted: () => this.#faulted, goesByTask: () => this.#affinity?.split === 'repartition-topics' },
    )
  }

  #makeIntake(): Intake {
    return new Intake(this.#options, {
      tasks: this.#tasks,
      runner: this.#runner,
      counters: this.counters,
      calls: this.#calls,
      deferred: this.#deferred,
      failed: (slot, rec, error) => this.#failed(slot, rec, error),
    })
  }

  #handOver(to: number, message: LaneToLane, transfer: ArrayBuffer[]): void {
    if (message.type === 'handoff') {
      this.counters.add(laneIndex.handedOverBytes, message.length)
      this.counters.add(laneIndex.givenRecords, message.records)
    }
    if (to === this.#options.lane) this.receiveFromLane(message)
    else this.#options.toLane(to, message, transfer)
  }

  /** What tasks reach of the lane. */
  #makeHost(): TaskHostPort {
    const { topology, applicationId, clock, policies, log, tracing, dropped: told } = this.#options
    return new TaskHostPort({
      ...{ topology, applicationId, clock, policies, log, tracing, told, about: this.#options },
      outputs: this.#outputs,
      handoffs: this.#handoffs,
      deferred: this.#deferred,
      counters: this.counters,
      affinity: () => this.#affinity as Affinity,
      alive: (slot) => !this.#faulted && this.#tasks.has(slot),
      originTopic: (name) => this.#intake.numberOf(name),
      requestCommit: () => this.#commits.request(),
      fencingToken: () => this.#fencingToken,
      failed: (slot, rec, error) => this.#failed(slot, rec, error),
      gate: (node) => this.#gates.of(node),
      returned: (slot, origin) => {
        // A turn of the lane shows it.
        if (this.#calls.returned(origin, slot.timerCall)) this.#options.wake()
      },
      called: (slot, origin, node) => this.#calls.called(origin, slot.timerCall, node),
    })
  }

  #makeRoom(): DiskRoom {
    return new DiskRoom(this.#options, {
      full: () => this.#tasks.writer.full,
      receive: (message) => this.#receive(message),
    })
  }

  /** Handles a message of the engine; `run` does the work that records bring. */
  receive(message: ToLane): void {
    if ('run' in message && message.type !== 'configure' && message.type !== 'reset' && message.run !== this.#run)
      return
    try {
      if (!this.#room.holds(message)) this.#receive(message)
    } catch (error) {
      this.fault(error)
    }
    this.#room.check()
  }

  receiveFromLane(message: LaneToLane): void {
    if (message.run !== this.#run) return
    this.#timePassed = true // Also with records: time may have brought them about in the other lane.
    try {
      this.#input.fromLane(message)
    } catch (error) {
      this.fault(error)
    }
    this.#options.wake()
  }

  /** Works until nothing is left to do or the budget of records is used; true: call again. */
  run(budget = 1024): boolean {
    const { clock } = this.#options
    let left = budget
    this.counters.turnBegins(clock.now())
    const began = this.#calls.occupation.begins()
    try {
      this.#room.resume()
      while (!this.#faulted && left > 0) {
        const done = this.#input.step()
        if (done < 0) break
        left = clock.monotonic() - began > turnMs ? 0 : left - done
      }
      if (this.#timePassed && left > 0 && !this.#faulted) {
        this.#timePassed = false
        // What time has brought about is committed, records or not. It may still be waiting for its turn: a turn asks again.
        this.#commits.requestFor(this.#tasks, this.#outputs)
      }
      if (!this.#faulted && this.#tasks.writer.step(this.#options.clock.now())) left = 0
    } catch (error) {
      this.fault(error)
    }
    this.#room.check()
    this.#giveBack()
    this.#afterRun(left <= 0)
    const more = left <= 0 && !this.#faulted
    this.counters.turnEnds(clock.now(), more)
    return more
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
    return Math.min(this.#tasks.writer.nextAt, this.#room.nextAt, this.#tasks.nextWallClock)
  }

  /** Fires wall-clock timers that are due; what is to be written, `run` writes. */
  tick(now: number): void {
    if (this.#faulted) return
    this.counters.turnBegins(now)
    this.#calls.occupation.begins()
    try {
      if (this.#tasks.wallClock(now, this.#runner)) this.#commits.request(false)
    } catch (error) {
      this.fault(error)
    }
    this.#afterRun(false)
    this.counters.turnEnds(this.#options.clock.now(), false)
  }

  /** Records received and not yet done, and whom they wait for: for tests and the simulator's bounds. */
  get backlog(): { inFlight: number; parked: number; calls: Calls } {
    return { inFlight: this.#runner.inFlight, parked: this.#runner.parked, calls: this.#calls }
  }

  /** The stores of this lane's tasks by name and partition, for the test driver and interactive queries. */
  get tasks(): TaskSet {
    return this.#tasks
  }

  /** Answers from committed rows, whatever waits to be processed. */
  query(asked: LaneQuery): LaneAnswer {
    return answerOf(this.#started ? this.#tasks : undefined, asked)
  }

  close(): void {
    this.#tasks.close()
    this.#options.backends.close()
  }

  #loadGlobal(message: Extract<ToLane, { type: 'global' }>): void {
    const { toEngine, lane } = this.#options
    const { run, source } = message
    this.#globals.take(
      message,
      () => toEngine({ type: 'loaded', lane, run, source }, []),
      (error) => this.fault(error),
    )
  }

  #receive(message: ToLane): void {
    const { toEngine, lane } = this.#options
    switch (message.type) {
      case 'configure':
        assert(message.run >= this.#run, `run ${message.run} begins behind run ${this.#run}`)
        this.#run = message.run
        this.#affinity = Affinity.from(message.affinity)
        this.#setOrigins(message.origins)
        this.#tasks.affinity = this.#affinity
        return
      case 'origins':
        this.#setOrigins(message.origins)
        return
      case 'topics':
        for (const topic of message.topics) this.#outputs.setTopic(topic)
        this.#barrier.topicsResolved()
        return
      case 'open':
      case 'restore':
      case 'dump':
      case 'close':
        answerStores(this.#tasks, message, this.#options, this.#run)
        return
      case 'global':
        this.#loadGlobal(message)
        return
      case 'start':
        this.#start(message)
        return
      case 'begin':
      case 'pause':
        if (message.type === 'begin') this.#tasks.haveBegun = true
        else this.#tasks.paused = message.paused
        this.#options.wake()
        return
      case 'data':
      case 'watermark':
      case 'task-watermarks':
      case 'barrier':
        if (message.type === 'barrier') this.#tasks.sealsUpTo = message.watermark
        if (message.type === 'watermark' || message.type === 'task-watermarks') this.#timePassed = true
        this.#input.fromEngine(message)
        this.#options.wake()
        return
      case 'result':
        this.#tasks.applied(message.epoch, message.checkpoints, message.commitId)
        this.#commits.reset()
        this.#checkRoom()
        this.#commits.requestFor(this.#tasks, this.#outputs)
        toEngine({ type: 'applied', lane, run: this.#run, epoch: message.epoch }, [])
        return
      case 'tick':
        this.#schedules.tick(message)
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
    assert(this.#affinity !== undefined, 'tasks start before the lane knows which lane runs which task')
    this.#fencingToken = message.fencingToken ?? 0
    if (first) {
      this.#barrier.begin(message.epoch)
      this.#input.begin(message.epoch, message.watermark)
      this.#handoffs.reset(this.#run, message.epoch)
      for (const level of this.#levels) level.reset(message.watermark)
    }
    this.#tasks.start(message.tasks, this.#barrier.epoch, message.watermark)
    this.#started = true
    this.#room.tell()
    this.#timePassed = true
    toEngine({ type: 'started', lane, run: this.#run, held: this.#barrier.held }, [])
    this.#options.wake()
  }

  #reset(run: number): void {
    this.#run = run
    this.#room.reset()
    this.#started = false
    this.#faulted = false
    this.#barrier.reset()
    this.#input.reset()
    this.#backpressure.reset()
    this.#commits.reset()
    this.#tasks.discard()
    this.#deferred.reset()
    this.#runner.reset()
    this.#gates.reset()
    this.#outputs.discard()
    this.#handoffs.reset(run, 1)
    for (const level of this.#levels) level.reset(Number.NEGATIVE_INFINITY)
    this.counters.reset()
  }

  #settled(slot: TaskSlot): void {
    try {
      // A task that is fed at several levels may have been all that one of the shallower ones waited for.
      for (const level of this.#levels) {
        if (level.aligning !== 0 && level.slots.includes(slot)) this.#barrier.seal(level)
      }
    } catch (error) {
      this.fault(error)
    }
    this.#timePassed = true
    this.#options.wake()
  }

  /** Lets out what the work brought: hand-offs, watermarks, full output batches. `more`: there is more to do at once. */
  #afterRun(more: boolean): void {
    if (this.#faulted) return
    this.#barrier.letOut(!more && this.#input.caughtUp)
    this.counters.set(laneIndex.occupiedMs, this.#calls.occupation.ends(more || this.#runner.inFlight > 0))
    this.counters.progress(this.#runner, this.#options.clock)
    this.#showCalls()
    this.#checkRoom()
  }

  /** How far the lane has come, and what it waits for: what is let in follows from it. */
  #showCalls(): void {
    const { toEngine, lane, counters } = this.#options
    this.counters.finished(this.#calls.finishedOf)
    this.#calls.show(counters, (name) => this.#intake.numberOf(name))
    if (this.#runner.parked === 0) this.counters.set(laneIndex.longestChain, 0)
    else showLongestChain(this.#tasks.all(), counters, (name) => this.#intake.numberOf(name))
    const keys = this.#calls.takeKeys()
    if (keys !== undefined) toEngine({ type: 'finished', lane, run: this.#run, keys }, [])
  }

  /** More than a lane may hold is committed early; where that does not help in time, nothing is let in any more. */
  #checkRoom(): void {
    const uncommitted = this.#tasks.uncommittedBytes()
    this.counters.set(laneIndex.uncommittedBytes, uncommitted)
    const { uncommittedMaxBytes, maxDirtyRows } = this.#options
    if (uncommitted > uncommittedMaxBytes) this.#commits.request()
    else if (maxDirtyRows !== undefined && this.#tasks.dirtyRows() > maxDirtyRows) this.#commits.request()
    this.#backpressure.check({ uncommitted, parked: this.#levels.length > 1 && this.#runner.overloaded })
  }

  #setOrigins({ names, topicIds }: OriginTopics): void {
    this.#intake.originTopics = names
    this.#timings.origins(names)
    this.#tasks.host.topicIds = new Map(names.map((name, i) => [name, topicIds[i] ?? '']))
  }

  #failed(slot: TaskSlot, rec: Rec | undefined, error: unknown): void {
    if (rec === undefined || !this.#tasks.host.isPassedOver(slot, rec, error)) this.fault(error)
  }

  /** The run has failed here: the engine begins another one. */
  fault(error: unknown): void {
    if (this.#faulted) return
    this.#faulted = true
    this.counters.add(laneIndex.failures, 1)
    this.#options.toEngine({ type: 'fault', lane: this.#options.lane, run: this.#run, error: toWireError(error) }, [])
  }
}
