/**
 * A lane without its thread: takes messages, runs tasks, gives back messages. No clock, socket or timer of its own, so
 * the same code runs in a worker, in the test driver and in the simulator.
 *
 * Barrier (aligned, level by level): a mark on all channels of a level closes the epoch there. A task with state is
 * sealed as soon as none of its records of that epoch is outstanding; only then may records of the next epoch enter it.
 * A task without state needs no such wait: its outputs carry their epoch. When all tasks of the level are done, marks
 * go to the next level; after the last level the epoch is acknowledged.
 */
import { assert } from '../base/assert.ts'
import type { Clock } from '../base/clock.ts'
import { type CounterLayout, laneIndex } from '../base/counters.ts'
import type { Failpoint } from '../base/failpoint.ts'
import type { CommitEpoch } from '../base/ids.ts'
import { EngineError, toWireError } from '../errors.ts'
import { type Origin, Rec } from '../operators/contract.ts'
import { decodeRecord } from '../operators/task.ts'
import type { StoreBackendFactory } from '../state/contract.ts'
import type { CompiledSource, CompiledTopology } from '../topology/compiled.ts'
import { noHeaders } from '../wire/headers.ts'
import { decodeHeaders } from '../wire/record-batch.ts'
import { Affinity } from './affinity.ts'
import { Credits } from './credits.ts'
import { type ErrorPolicies, policyFor } from './error-policy.ts'
import { extractAgain, failedTimestamp } from './extraction.ts'
import { GlobalState } from './global-state.ts'
import { Handoffs } from './handoffs.ts'
import { LaneCounters } from './lane-counters.ts'
import { LaneTimings } from './lane-timings.ts'
import { isWork, LevelState, type Work } from './level-state.ts'
import { Outputs } from './outputs.ts'
import type { ChangelogBatches, FromLane, LaneAnswer, LaneQuery, LaneToLane, ToLane } from './protocol.ts'
import { ScheduleRuns } from './schedule-run.ts'
import { queryStores } from './store-query.ts'
import { TaskHostPort } from './task-host.ts'
import { TaskRunner } from './task-runner.ts'
import type { TaskSlot } from './task-slot.ts'
import { TaskSet } from './task-set.ts'
import { TransferReader } from './transfer.ts'

/** Records worked off before deeper levels and other channels are looked at again. */
const slice = 256
/** Outputs of the open epoch leave for the broker from this size on. */
const outBytes = 512 * 1024

export interface LaneOptions {
  readonly lane: number
  readonly lanes: number
  readonly applicationId: string
  readonly topology: CompiledTopology
  readonly clock: Clock
  readonly backends: StoreBackendFactory
  readonly policies: ErrorPolicies
  readonly maxInFlight: number
  /** Uncommitted state and output from which on the lane asks for a commit. */
  readonly uncommittedMaxBytes: number
  readonly layout: CounterLayout
  readonly counters: Float64Array
  readonly toEngine: (message: FromLane, transfer: ArrayBuffer[]) => void
  readonly toLane: (lane: number, message: LaneToLane, transfer: ArrayBuffer[]) => void
  /** Asks that `run` be called again soon; called when a user function's promise settled. */
  readonly wake: () => void
  readonly failpoint?: Failpoint | undefined
}

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
  #affinity: Affinity | undefined
  #originTopics: readonly string[] = []
  #run = 0
  #epoch: CommitEpoch = 1
  #fencingToken = 0
  #faulted = false
  /** The tasks are complete: queries may be answered. */
  #started = false
  #commitAsked = false
  /** Epoch that is aligned on all levels and waits for topics to be resolved; 0: none. */
  #acknowledging: CommitEpoch = 0
  #changelogs: ChangelogBatches[] = []
  readonly #credits = new Credits()

  constructor(options: LaneOptions) {
    this.#options = options
    const { topology, lane, lanes } = options
    this.#levels = Array.from({ length: topology.levels }, (_, level) => new LevelState(level, level === 0 ? 1 : lanes))
    this.counters = new LaneCounters(options.layout, options.counters)
    this.#timings = new LaneTimings(options.layout, options.counters, options.clock)
    this.#outputs = new Outputs((topic) => options.toEngine({ type: 'resolve-topics', lane, topics: [topic] }, []))
    this.#handoffs = new Handoffs(lane, lanes, topology.levels, (to, message, transfer) => {
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
    this.#globals = new GlobalState(topology, options.clock, options.applicationId)
    this.#tasks = new TaskSet(options, host, this.#globals, this.#levels)
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
    const level = this.#levels[message.level] as LevelState
    if (message.type === 'handoff') {
      const { buffer, length, records, epoch, watermark, from } = message
      level.push(from, { reader: new TransferReader(buffer, length), epoch, watermark, bytes: 0, records, from })
    } else {
      level.push(message.from, message)
    }
    this.#options.wake()
  }

  /** Works until nothing is left to do or the budget of records is used; true: call again. */
  run(budget = 4 * slice): boolean {
    let left = budget
    try {
      while (!this.#faulted && left > 0) {
        const done = this.#step()
        if (done < 0) break
        left -= done
      }
    } catch (error) {
      this.#fault(error)
    }
    this.#giveBack()
    this.#afterRun()
    return left <= 0 && !this.#faulted
  }

  #giveBack(): void {
    const taken = this.#faulted ? undefined : this.#credits.take()
    const { toEngine, lane } = this.#options
    if (taken) toEngine({ type: 'consumed', lane, run: this.#run, ...taken }, [])
  }

  /** Earliest wall-clock instant at which a timer is due; Infinity: none. */
  nextWallClock(): number {
    let next = Number.POSITIVE_INFINITY
    for (const slot of this.#tasks.all()) if (slot.task.nextWallClock < next) next = slot.task.nextWallClock
    return next
  }

  /** Fires wall-clock timers that are due. */
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
        if (this.#acknowledging !== 0) this.#acknowledge(this.#acknowledging)
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
        this.#input(message)
        return
      case 'result':
        this.#tasks.applied(message.epoch, message.checkpoints)
        this.#commitAsked = false
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

  /** Epoch of the records that come next from the engine. */
  #inputEpoch: CommitEpoch = 1

  /** What comes from the engine goes into the one queue of the shallowest level, in its order. */
  #input(message: Extract<ToLane, { type: 'data' | 'watermark' | 'mark' }>): void {
    const level = this.#levels[0] as LevelState
    const { watermark } = message
    if (message.type === 'data') {
      const { buffer, length: bytes, records } = message
      const reader = new TransferReader(buffer, bytes)
      level.push(0, { reader, epoch: this.#inputEpoch, watermark, bytes, records, from: 0 })
      this.counters.queued(records)
    } else if (message.type === 'watermark') {
      level.push(0, { type: 'hand-watermark', run: message.run, from: 0, level: 0, watermark })
    } else {
      const { run, epoch } = message
      this.#inputEpoch = epoch + 1
      level.push(0, { type: 'hand-mark', run, from: 0, level: 0, epoch, watermark, sent: -1 })
    }
    this.#options.wake()
  }

  #start(message: Extract<ToLane, { type: 'start' }>): void {
    const { toEngine, lane } = this.#options
    const first = this.#tasks.size === 0
    this.#fencingToken = message.fencingToken ?? 0
    if (first) {
      this.#epoch = message.epoch
      this.#inputEpoch = message.epoch
      this.#handoffs.reset(this.#run, message.epoch)
      for (const level of this.#levels) level.reset(message.watermark)
    }
    this.#tasks.start(message.tasks, this.#epoch, message.watermark)
    this.#started = true
    toEngine({ type: 'started', lane, run: this.#run }, [])
  }

  #reset(run: number): void {
    this.#run = run
    this.#started = false
    this.#faulted = false
    this.#acknowledging = 0
    this.#changelogs = []
    this.#credits.reset()
    this.#commitAsked = false
    this.#tasks.discard()
    this.#runner.reset()
    this.#outputs.discard()
    this.#handoffs.reset(run, 1)
    for (const level of this.#levels) level.reset(Number.NEGATIVE_INFINITY)
    this.counters.reset()
  }

  /** One slice of work, deepest level first; the number of records done, or -1 when there is nothing to do. */
  #step(): number {
    for (let l = this.#levels.length - 1; l >= 0; l--) {
      const level = this.#levels[l] as LevelState
      const channel = level.nextChannel()
      if (channel < 0) continue
      const input = level.peek(channel)
      if (isWork(input)) {
        // Only the way in is held back: what is under way between lanes must be able to finish.
        if (l === 0 && this.#runner.throttled) continue
        return this.#work(level, channel, input)
      }
      level.shift(channel)
      if (input.type === 'hand-watermark') {
        this.#advance(level, channel, input.watermark)
      } else {
        this.#advance(level, channel, input.watermark)
        if (l === 0 || level.mark(channel, input.epoch, input.sent)) this.#aligned(level, input.epoch)
      }
      return 1
    }
    return -1
  }

  #work(level: LevelState, channel: number, work: Work): number {
    const { reader } = work
    const began = this.#options.clock.monotonic()
    let done = 0
    let ended = 0
    while (done < slice && !(level.level === 0 && this.#runner.throttled) && !this.#faulted) {
      if (!reader.next()) {
        this.#workedOff(level, channel, work)
        ended = 1
        break
      }
      done++
      this.#record(work)
    }
    if (done > 0) {
      const subtopology = this.#options.topology.sources[reader.source]?.subtopology ?? 0
      this.#timings.batch(began, done, subtopology, reader, level.level === 0)
    }
    return Math.max(done + ended, 1)
  }

  #workedOff(level: LevelState, channel: number, work: Work): void {
    level.shift(channel)
    if (level.level === 0) {
      this.counters.consumed(work.records)
      this.#credits.add(work.bytes, work.records)
    } else {
      level.received(channel, work.records, work.epoch)
    }
    this.#advance(level, channel, work.watermark)
  }

  #record(work: Work): void {
    const { reader } = work
    const source = this.#options.topology.sources[reader.source]
    assert(source !== undefined, `no source ${reader.source}`)
    const slot = this.#tasks.get(source.subtopology, reader.task)
    assert(slot !== undefined, `task ${source.subtopology}_${reader.task} is not on this lane`)
    const origin: Origin = {
      topic: this.#originTopics[reader.originTopic] ?? '',
      partition: reader.originPartition,
      offset: reader.offset,
      watermark: reader.watermark,
      epoch: work.epoch,
    }
    this.counters.at(reader.originTopic, reader.originPartition, reader.offset, source.subtopology)
    const { bytes } = reader
    const key = reader.keyStart < 0 ? null : bytes.subarray(reader.keyStart, reader.keyEnd)
    const value = reader.valueStart < 0 ? null : bytes.subarray(reader.valueStart, reader.valueEnd)
    const headers =
      reader.headersEnd > reader.headersStart ? decodeHeaders(bytes, reader.headersStart, reader.headersEnd) : noHeaders
    this.#tasks.host.began(origin, key, value)
    let rec: Rec
    try {
      rec = decodeRecord(source, key, value, reader.timestamp, headers, origin)
      // Only a timestamp function of the application can have made it negative, or a producer without a clock.
      if (rec.timestamp < 0 && !this.#timed(source, slot, rec)) return
    } catch (error) {
      const timestamp = reader.timestamp < 0 ? this.#options.clock.now() : reader.timestamp
      this.#failed(slot, new Rec(undefined, undefined, timestamp, headers, origin, key, value), error)
      return
    }
    this.#runner.submit(slot, reader.source, rec)
  }

  /** False for a record that has no time: it goes no further. */
  #timed(source: CompiledSource, slot: TaskSlot, rec: Rec): boolean {
    if (rec.timestamp === failedTimestamp && source.timestampExtractor !== undefined) extractAgain(source, rec)
    this.#tasks.host.dropped(slot, rec, 'negative_timestamp', source.name)
    return false
  }

  #advance(level: LevelState, channel: number, watermark: number): void {
    if (!level.advance(channel, watermark)) return
    for (const slot of level.slots) if (slot.level === level.level) this.#runner.advance(slot, level.watermark)
  }

  /** Every channel of the level has passed the mark of this epoch. */
  #aligned(level: LevelState, epoch: CommitEpoch): void {
    level.aligning = epoch
    for (const slot of level.slots) {
      if (slot.level > level.level) slot.straddling = true
      else if (!slot.stateful) slot.epoch = epoch + 1
    }
    this.#seal(level)
  }

  /** Seals the tasks that are ready; when all are, the barrier moves on. */
  #seal(level: LevelState): void {
    const epoch = level.aligning
    let waiting = false
    for (const slot of [...level.slots]) {
      if (slot.outstandingOf(epoch) > 0) waiting = true
      else if (slot.level === level.level && slot.stateful && slot.epoch === epoch) this.#sealTask(slot, epoch)
    }
    if (waiting || this.#faulted || level.aligning !== epoch) return
    level.aligning = 0
    const next = level.level + 1
    if (next < this.#levels.length) {
      this.#report(level)
      this.#handoffs.mark(epoch, next, level.reported)
    } else {
      this.#acknowledge(epoch)
    }
  }

  #sealTask(slot: TaskSlot, epoch: CommitEpoch): void {
    for (const batch of this.#tasks.seal(slot, epoch)) this.#changelogs.push(batch)
    slot.epoch = epoch + 1
    slot.straddling = false
    this.#runner.unpark(slot)
    this.#runner.advance(slot, slot.target)
  }

  #acknowledge(epoch: CommitEpoch): void {
    this.#acknowledging = epoch
    if (this.#outputs.unresolved(epoch)) return
    this.#acknowledging = 0
    const { toEngine, lane } = this.#options
    this.#sendOutputs(epoch)
    const changelogs = this.#changelogs
    this.#changelogs = []
    this.#epoch = epoch + 1
    const parity = epoch & 1
    let received = 0
    for (const level of this.#levels) {
      received += level.receivedTotal[parity] as number
      level.receivedTotal[parity] = 0
    }
    const sent = this.#handoffs.total[parity] as number
    this.#handoffs.total[parity] = 0
    const transfer = changelogs.flatMap((c) => c.records.map((r) => r.buffer as ArrayBuffer))
    toEngine({ type: 'ack', lane, run: this.#run, epoch, changelogs, sent, received }, transfer)
  }

  #sendOutputs(epoch: CommitEpoch): void {
    const batches = this.#outputs.take(epoch)
    if (batches.length === 0) return
    this.#timings.sent(batches)
    const { toEngine, lane } = this.#options
    toEngine(
      { type: 'out', lane, run: this.#run, epoch, batches },
      batches.map((b) => b.records.buffer as ArrayBuffer),
    )
  }

  #settled(slot: TaskSlot): void {
    const level = this.#levels[slot.level] as LevelState
    if (level.aligning !== 0) {
      try {
        this.#seal(level)
      } catch (error) {
        this.#fault(error)
      }
    }
    this.#options.wake()
  }

  /** Lets out what the work brought: hand-offs, watermarks, full output batches. */
  #afterRun(): void {
    if (this.#faulted) return
    for (let l = 0; l < this.#levels.length; l++) {
      const level = this.#levels[l] as LevelState
      const next = l + 1
      if (next < this.#levels.length) {
        const rose = this.#report(level)
        for (let deeper = next; deeper < this.#levels.length; deeper++) {
          this.#handoffs.flush(this.#epoch, deeper, level.reported)
          this.#handoffs.flush(this.#epoch + 1, deeper, level.reported)
        }
        if (rose) this.#handoffs.watermark(next, level.reported)
      }
    }
    for (const epoch of [this.#epoch, this.#epoch + 1]) {
      if (this.#outputs.bytes(epoch) >= outBytes) this.#sendOutputs(epoch)
    }
    this.counters.progress(this.#runner, this.#options.clock)
    const { oldest } = this.#runner
    if (oldest !== undefined && oldest.offset >= 0) {
      this.counters.waitsFor(this.#originTopic(oldest.topic), oldest.partition, oldest.offset)
    }
    if (!this.#commitAsked && this.#tasks.uncommittedBytes() > this.#options.uncommittedMaxBytes) this.#requestCommit()
  }

  /** What all tasks of the level have been advanced to; true when it rose. */
  #report(level: LevelState): boolean {
    if (this.#handoffs.holds(level.level + 1)) return false
    let least = level.watermark
    for (const slot of level.slots) {
      // A task with deeper sources still is advanced down there; here only what waits in it counts.
      const reached = slot.level === level.level ? slot.watermark : slot.waiting.oldest
      if (reached < least) least = reached
    }
    if (least <= level.reported) return false
    level.reported = least
    return true
  }

  #setOrigins(topics: readonly string[]): void {
    this.#originTopics = topics
    this.#timings.origins(topics)
  }

  #originTopic(name: string): number {
    return this.#originTopics.indexOf(name)
  }

  #requestCommit(urgent = true): void {
    if (this.#commitAsked) return
    this.#commitAsked = urgent
    this.#options.toEngine({ type: 'commit-wanted', lane: this.#options.lane, run: this.#run, urgent }, [])
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
