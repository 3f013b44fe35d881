/**
 * The barrier's way through a lane (aligned, level by level): a mark on all channels of a level closes the epoch there.
 * A task with state is sealed as soon as none of its records of that epoch is outstanding; only then may records of the
 * next epoch enter it. So it is with a task that has schedules: what they put out carries the epoch that it works in. Any
 * other task needs no such wait: its outputs carry their epoch. When all tasks of the level are done, marks go to the next
 * level; after the last level the epoch is acknowledged.
 */
import { assert } from '../../base/assert.ts'
import type { CommitEpoch } from '../../base/ids.ts'
import { BatchPacker, buffersOf } from '../../broker/wire/batch-pack.ts'
import type { Handoffs } from './handoffs.ts'
import type { LaneOptions } from '../lane-options.ts'
import type { LaneTimings } from '../lane-timings.ts'
import type { LevelState } from './level-state.ts'
import type { Frontier } from './place.ts'
import type { Outputs } from '../outputs.ts'
import type { Held } from '../protocol.ts'
import { heldByTasks } from '../tasks/held-tasks.ts'
import type { TaskRunner } from '../tasks/task-runner.ts'
import type { TaskSet } from '../tasks/task-set.ts'
import type { TaskSlot } from '../tasks/task-slot.ts'

export interface BarrierParts {
  readonly levels: readonly LevelState[]
  readonly outputs: Outputs
  readonly handoffs: Handoffs
  readonly runner: TaskRunner
  readonly tasks: TaskSet
  readonly timings: LaneTimings
}

export interface BarrierHost {
  run(): number
  /** The lane has failed: nothing is sealed or sent any more. */
  faulted(): boolean
}

export class LaneBarrier {
  readonly #options: LaneOptions
  readonly #parts: BarrierParts
  readonly #host: BarrierHost
  #epoch: CommitEpoch = 1
  /** Epoch that is aligned on all levels and waits for topics to be resolved; 0: none. */
  #acknowledging: CommitEpoch = 0
  #changelogs = new BatchPacker()

  constructor(options: LaneOptions, parts: BarrierParts, host: BarrierHost) {
    this.#options = options
    this.#parts = parts
    this.#host = host
  }

  /** The oldest epoch that is not acknowledged. */
  get epoch(): CommitEpoch {
    return this.#epoch
  }

  /** What tasks held back when they were sealed, or where they began; undefined: nobody asks. */
  get held(): Held[] | undefined {
    return heldByTasks(this.#parts.tasks.all())
  }

  /** Records of the oldest epoch that is not acknowledged have come from the engine. */
  get hasInput(): boolean {
    return (this.#parts.levels[0]?.received[this.#epoch & 1] as number) > 0
  }

  begin(epoch: CommitEpoch): void {
    assert(this.#acknowledging === 0, `epoch ${epoch} begins while ${this.#acknowledging} is not acknowledged`)
    this.#epoch = epoch
  }

  reset(): void {
    this.#acknowledging = 0
    this.#changelogs = new BatchPacker()
  }

  /** Every channel of the level has passed the mark of this epoch. */
  aligned(level: LevelState, epoch: CommitEpoch): void {
    assert(level.aligning === 0, `level ${level.level} closes epoch ${epoch} while ${level.aligning} is not sealed`)
    assert(epoch === this.#epoch, `level ${level.level} closes epoch ${epoch}, and ${this.#epoch} is open`)
    level.close(epoch)
    for (const slot of level.slots) {
      if (slot.level > level.level) slot.straddling = true
      else if (!slot.keepsEpochsApart) slot.epoch = epoch + 1
      else if (slot.epoch === epoch) slot.epochEndsAt = slot.sealsUpTo ?? level.watermark
    }
    this.seal(level)
  }

  /** Seals the tasks that are ready; when all are, the barrier moves on. */
  seal(level: LevelState): void {
    const epoch = level.aligning
    let waiting = false
    for (const slot of [...level.slots]) {
      if (slot.outstandingOf(epoch) > 0) waiting = true
      else if (slot.level === level.level && slot.epoch === epoch) {
        if (slot.stateful && this.#parts.runner.tell(slot)) waiting = true
        else this.#sealTask(slot, epoch)
      }
    }
    if (waiting || this.#host.faulted() || level.aligning !== epoch) return
    level.aligning = 0
    const next = level.level + 1
    const { levels, handoffs } = this.#parts
    if (next < levels.length) {
      // Records of the next epoch that were kept back come behind the mark: they do not lessen what it tells.
      this.#reportFrom(level, level.closing)
      handoffs.mark(epoch, next, level.reported)
    } else {
      this.#acknowledge(epoch)
    }
  }

  /** An epoch that waited for topics may be acknowledged by now. */
  topicsResolved(): void {
    if (this.#acknowledging !== 0) this.#acknowledge(this.#acknowledging)
  }

  /** Lets out what the work brought: hand-offs, watermarks, full output batches, or `all` outputs. */
  letOut(all: boolean): void {
    const { levels, handoffs, outputs } = this.#parts
    for (let l = 0; l < levels.length; l++) {
      const level = levels[l] as LevelState
      const next = l + 1
      if (next < levels.length) {
        const rose = this.#report(level)
        // A level may be fed by any of those above it: what is told is how far the last of them has come.
        handoffs.letOut(this.#epoch, next, level.reported, rose)
      }
    }
    for (const epoch of [this.#epoch, this.#epoch + 1]) {
      if (all || outputs.isFull(epoch)) this.#sendOutputs(epoch)
    }
  }

  #sealTask(slot: TaskSlot, epoch: CommitEpoch): void {
    const { tasks, runner } = this.#parts
    if (slot.stateful) {
      tasks.seal(slot, epoch, this.#changelogs)
      slot.task.sealed()
    }
    slot.task.held?.mark()
    slot.epoch = epoch + 1
    slot.epochEndsAt = Number.POSITIVE_INFINITY
    slot.straddling = false
    runner.unpark(slot)
    runner.advance(slot, slot.target)
  }

  #acknowledge(epoch: CommitEpoch): void {
    const { outputs, levels, handoffs } = this.#parts
    assert(epoch === this.#epoch, `epoch ${epoch} is acknowledged, and ${this.#epoch} is the oldest that is not`)
    this.#acknowledging = epoch
    if (outputs.unresolved(epoch)) return
    this.#acknowledging = 0
    const { toEngine, lane } = this.#options
    this.#sendOutputs(epoch)
    const changelogs = this.#changelogs.take()
    this.#epoch = epoch + 1
    const parity = epoch & 1
    const taken = levels[0]?.received[parity] as number
    let received = 0
    for (const level of levels) {
      if (level.level > 0) received += level.received[parity] as number
      this.#account(level, parity)
    }
    const sent = handoffs.total[parity] as number
    handoffs.total[parity] = 0
    const counts = { taken, sent, received }
    const ack = { type: 'ack', lane, run: this.#host.run(), epoch, changelogs, ...counts, held: this.held } as const
    toEngine(ack, buffersOf(changelogs))
  }

  /** What came in was given to tasks or dropped with a reason, and the tasks are done with it: nothing stays behind. */
  #account(level: LevelState, parity: number): void {
    assert(level.aligning === 0, `level ${level.level} is accounted for while it waits for tasks`)
    const received = level.received[parity] as number
    const given = level.given[parity] as number
    assert(given === received, `level ${level.level}: ${received} records came in, ${given} were given to tasks`)
    for (const slot of level.slots) {
      const left = slot.outstandingByParity[parity] as number
      assert(left === 0, `level ${level.level}: task ${slot.subtopology}_${slot.partition} is sealed with ${left} left`)
    }
    level.received[parity] = 0
    level.given[parity] = 0
  }

  #sendOutputs(epoch: CommitEpoch): void {
    const { outputs, timings } = this.#parts
    const packs = outputs.take(epoch)
    if (packs.length === 0) return
    timings.sent(packs)
    const { toEngine, lane } = this.#options
    toEngine({ type: 'out', lane, run: this.#host.run(), epoch, packs }, buffersOf(packs))
  }

  /** How far all tasks of the level have done what was to do; true when that is further than before. */
  #report(level: LevelState): boolean {
    return this.#parts.handoffs.holds(level.level + 1) ? false : this.#reportFrom(level, level)
  }

  /** The same of what has come this far. */
  #reportFrom(level: LevelState, come: Frontier): boolean {
    let { watermark, seq } = come
    for (const slot of level.slots) {
      // A task that is fed at a deeper level too is advanced down there; here only what waits in it counts.
      if (slot.level === level.level && slot.watermark < watermark) watermark = slot.watermark
      const { waiting, task } = slot
      const { heldBelow } = task.emissions
      if (heldBelow < watermark) watermark = heldBelow
      if (waiting.oldestAt < watermark) watermark = waiting.oldestAt
      if (waiting.oldestSeq <= seq) seq = waiting.oldestSeq - 1
    }
    return level.report(watermark, seq)
  }
}
