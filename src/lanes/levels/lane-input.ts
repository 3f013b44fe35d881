/** What comes into a lane, from the engine and from other lanes: queued by level, worked off the deepest level first. */
import { assert } from '../../base/assert.ts'
import { laneIndex } from '../../base/counters.ts'
import type { CommitEpoch } from '../../base/ids.ts'
import { Credits } from '../credits.ts'
import type { Intake } from './intake.ts'
import type { LaneBarrier } from './lane-barrier.ts'
import type { LaneCounters } from '../lane-counters.ts'
import type { LaneOptions } from '../lane-options.ts'
import type { LaneTimings } from '../lane-timings.ts'
import { FirstInput } from './first-input.ts'
import type { Handoffs } from './handoffs.ts'
import type { LevelState, Work } from './level-state.ts'
import { OrderedInput } from './ordered-input.ts'
import { type Frontier, isAhead } from './place.ts'
import type { LaneToLane, ToLane } from '../protocol.ts'
import type { Calls } from '../tasks/calls.ts'
import type { TaskRunner } from '../tasks/task-runner.ts'
import type { TaskSet } from '../tasks/task-set.ts'
import { stagesOf } from '../../topology/levels/stages.ts'
import { TransferReader } from '../transfer.ts'

/** Records worked off before deeper levels and other channels are looked at again, unless they take longer than this. */
const slice = 256
const sliceMs = 5
/** The clock is looked at after so many records: after each, where records take as long as this. */
const betweenLooks = 16
const slowMs = 0.5

export interface InputParts {
  readonly levels: readonly LevelState[]
  readonly runner: TaskRunner
  readonly timings: LaneTimings
  readonly counters: LaneCounters
  readonly intake: Intake
  readonly barrier: LaneBarrier
  readonly handoffs: Handoffs
  readonly calls: Calls
  readonly tasks: TaskSet
}

export interface InputHost {
  /** The lane has failed: what is left is not worked off. */
  faulted(): boolean
  /** Each task is told how far it has come, and goes by nothing else. */
  goesByTask(): boolean
}

export class LaneInput {
  readonly #options: LaneOptions
  readonly #parts: InputParts
  readonly #host: InputHost
  readonly #credits = new Credits()
  readonly #first = new FirstInput()
  /** By level; none for the shallowest one. */
  readonly #ordered: ReadonlyArray<OrderedInput | undefined>
  /** By source: the level at which its records are taken, where it is not the one they come in at. */
  readonly #relayed: readonly number[]
  readonly #relays: boolean
  /** Epoch of the records that come next from the engine. */
  #epoch: CommitEpoch = 1
  #lastReader: TransferReader | undefined
  #lastEpoch: CommitEpoch = 0
  /** The records of the last slice took long: the clock is looked at after each. */
  #isSlow = false
  #sliceBegan = 0
  #untilLook = 0
  /** What the engine said last: outputs may leave once nothing is left to do here, for no more comes for now. */
  caughtUp = false

  constructor(options: LaneOptions, parts: InputParts, host: InputHost) {
    this.#options = options
    this.#parts = parts
    this.#host = host
    this.#relayed = options.topology.sources.map((source) => (source.kind === 'boundary' ? 0 : source.level))
    this.#relays = this.#relayed.some((level) => level > 0)
    this.#ordered = parts.levels.map(({ level }) => {
      const state = parts.levels[level] as LevelState
      const received = ({ epoch, records }: Work): void => {
        state.received[epoch & 1]! += records
      }
      return level === 0 ? undefined : new OrderedInput(level, options.lanes, received)
    })
  }

  begin(epoch: CommitEpoch, watermark: number): void {
    assert(epoch > 0, `epochs are counted from 1, not from ${epoch}`)
    this.#epoch = epoch
    for (const input of this.#ordered) input?.reset(watermark)
  }

  reset(): void {
    this.caughtUp = false
    this.#credits.reset()
    this.#first.reset()
    for (const input of this.#ordered) input?.reset(Number.NEGATIVE_INFINITY)
  }

  /** What the engine may send anew, for all that was worked off since the last call; undefined: nothing was. */
  takeCredits(): { readonly bytes: number; readonly records: number } | undefined {
    return this.#credits.take()
  }

  fromLane(message: LaneToLane): void {
    const input = this.#ordered[message.level]
    assert(
      input !== undefined,
      `lane ${message.from} handed records to level ${message.level}, which is none of the deeper ones`,
    )
    const { from, watermark, seq } = message
    if (message.type === 'handoff') {
      const { buffer, length, records, epoch, isInOrder, isOrdered, last } = message
      this.#parts.counters.add(laneIndex.arrivedRecords, records)
      const work = { reader: new TransferReader(buffer, length), epoch, watermark, seq, bytes: length, records }
      input.push(from, { type: 'work', work, isInOrder, isOrdered, last })
    } else if (message.type === 'hand-watermark') {
      input.push(from, { type: 'progress', watermark, seq })
    } else {
      input.push(from, { type: 'barrier', epoch: message.epoch, sent: message.sent, watermark, seq })
    }
  }

  /** What comes from the engine goes into the one queue of the shallowest level, in its order. */
  fromEngine(message: Extract<ToLane, { type: 'data' | 'watermark' | 'task-watermarks' | 'barrier' }>): void {
    if (message.type === 'task-watermarks') {
      this.#first.push({ watermark: Number.NEGATIVE_INFINITY, seq: 0, closes: 0, tasks: message.tasks })
      return
    }
    const { watermark, seq } = message
    if (message.type !== 'barrier') this.caughtUp = message.caughtUp === true
    if (message.type === 'data') {
      const { buffer, head, length: bytes, records } = message
      const reader = new TransferReader(buffer, bytes, head)
      const epoch = this.#epoch
      this.#first.push({ reader, epoch, watermark, seq, bytes, records })
      ;(this.#parts.levels[0] as LevelState).received[epoch & 1]! += records
      this.#parts.counters.queued(records)
    } else if (message.type === 'watermark') {
      this.#first.push({ watermark, seq, closes: 0 })
    } else {
      assert(message.epoch === this.#epoch, `the barrier of epoch ${message.epoch} came, and ${this.#epoch} is open`)
      this.#epoch = message.epoch + 1
      this.#first.push({ watermark, seq, closes: message.epoch })
    }
  }

  /** One slice of work, deepest level first; the number of records done, or -1 when there is nothing to do. */
  step(): number {
    const { levels } = this.#parts
    for (let l = levels.length - 1; l > 0; l--) {
      const done = this.#deeper(levels[l] as LevelState, this.#ordered[l] as OrderedInput)
      if (done > 0) return done
    }
    return this.#shallowest(levels[0] as LevelState)
  }

  // ── what other lanes hand over ──────────────────────────────────────────────────────────────────────────────────

  #deeper(level: LevelState, input: OrderedInput): number {
    this.#begin()
    let done = input.drain(slice, this.#take, this.#lookAhead, this.#handedOver, this.#stops)
    if (done > 0) {
      // A level works on one epoch at a time.
      level.given[this.#lastEpoch & 1]! += done
      this.#time(done, false)
    }
    if (this.#host.faulted()) return Math.max(done, 1)
    const { doneUpTo } = input
    if (isAhead(doneUpTo.watermark, doneUpTo.seq, level)) {
      done++
      this.#advance(level, doneUpTo)
    }
    const { closing } = input
    if (closing === 0) return done
    input.open()
    this.#parts.barrier.aligned(level, closing)
    return done + 1
  }

  readonly #take = (work: Work): void => {
    this.#lastReader = work.reader
    this.#lastEpoch = work.epoch
    this.#parts.intake.take(work.reader, work.epoch)
  }

  readonly #lookAhead = (reader: TransferReader): void => {
    if (reader.isLevel && this.#parts.intake.looksAhead) this.#parts.intake.lookAhead(reader)
  }

  readonly #handedOver = (work: Work): void => {
    this.#parts.counters.add(laneIndex.takenOverBytes, work.bytes)
  }

  readonly #stops = (): boolean => this.#host.faulted() || this.#isOver()

  // ── what the engine sends ───────────────────────────────────────────────────────────────────────────────────────

  #shallowest(level: LevelState): number {
    const input = this.#first.head
    if (input === undefined) return -1
    if ('reader' in input) {
      // Only the way in is held back: what is under way between lanes must be able to finish.
      return this.#parts.runner.throttled ? -1 : this.#work(level, input)
    }
    this.#first.shift()
    this.#advance(level, input)
    for (const task of input.tasks ?? []) this.#parts.tasks.advance(task, this.#parts.runner)
    if (input.closes !== 0) {
      if (this.#host.goesByTask()) for (const slot of level.slots) slot.sealsUpTo = slot.target
      this.#parts.barrier.aligned(level, input.closes)
    }
    return 1
  }

  #work(level: LevelState, work: Work): number {
    const { intake, runner } = this.#parts
    const { reader } = work
    this.#begin()
    let done = 0
    let ended = 0
    while (done < slice && !runner.throttled && !this.#stops()) {
      if (reader.isLevel && intake.looksAhead) intake.lookAhead(reader)
      if (!reader.next()) {
        ended = 1
        break
      }
      done++
      if (this.#relays && (this.#relayed[reader.source] as number) > 0) this.#relay(reader, work.epoch)
      else intake.take(reader, work.epoch)
    }
    level.given[work.epoch & 1]! += done
    if (done > 0) {
      this.#lastReader = reader
      this.#time(done, true)
    }
    if (ended === 1) this.#workedOff(level, work)
    else if (done > 0) this.#advance(level, { watermark: reader.at, seq: reader.seq })
    return Math.max(done + ended, 1)
  }

  /** A record of a task that is fed by other tasks too goes the way that theirs go: there all are put in order. */
  #relay(reader: TransferReader, epoch: CommitEpoch): void {
    const { sources, subtopologies } = this.#options.topology
    const order = subtopologies[sources[reader.source]?.subtopology ?? 0]?.order
    this.#parts.handoffs.relay(reader, epoch, this.#relayed[reader.source] as number, order !== 'arrival')
    this.#parts.calls.finished++
  }

  #workedOff(level: LevelState, work: Work): void {
    this.#first.shift()
    this.#parts.counters.consumed(work.records)
    this.#credits.add(work.bytes, work.records)
    this.#advance(level, work)
  }

  // ── time ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #begin(): void {
    this.#sliceBegan = this.#options.clock.monotonic()
    // It is asked twice before the first record: a slice without one would be taken for the end of the work.
    this.#untilLook = this.#isSlow ? 2 : betweenLooks
  }

  /** True once the slice has taken its time; to be asked before each record. */
  #isOver(): boolean {
    if (this.#untilLook-- > 0) return false
    this.#untilLook = this.#isSlow ? 0 : betweenLooks - 1
    return this.#options.clock.monotonic() - this.#sliceBegan > sliceMs
  }

  #time(done: number, fromBroker: boolean): void {
    const reader = this.#lastReader as TransferReader
    const began = this.#sliceBegan
    const subtopology = this.#subtopologyOf(reader.source)
    const now = this.#options.clock.monotonic()
    this.#isSlow = now - began > slowMs * done
    if (this.#isSlow) this.#parts.calls.took((now - began) / done, now)
    this.#parts.timings.batch(began, done, subtopology, reader, fromBroker)
  }

  /** Also of a record that was passed on within its task. */
  #subtopologyOf(source: number): number {
    const { topology } = this.#options
    const own = topology.sources[source]
    if (own !== undefined) return own.subtopology
    const way = stagesOf(topology).deferrals[source - topology.sources.length]
    return stagesOf(topology).all[way?.stage ?? 0]?.subtopology ?? 0
  }

  #advance(level: LevelState, to: Frontier): void {
    // What is sent along is the application's watermark, or that of the task to which a record went.
    if (this.#host.goesByTask() || !level.advance(to)) return
    for (const slot of level.slots) if (slot.level === level.level) this.#parts.runner.advance(slot, level.watermark)
  }
}
