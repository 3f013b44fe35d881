/**
 * The barrier's way through a lane (aligned, level by level): a mark on all channels of a level closes the epoch there.
 * A task with state is sealed as soon as none of its records of that epoch is outstanding; only then may records of the
 * next epoch enter it. A task without state needs no such wait: its outputs carry their epoch. When all tasks of the
 * level are done, marks go to the next level; after the last level the epoch is acknowledged.
 */
import type { CommitEpoch } from '../base/ids.ts'
import { BatchPacker, buffersOf } from '../wire/batch-pack.ts'
import type { Handoffs } from './handoffs.ts'
import type { LaneOptions } from './lane-options.ts'
import type { LaneTimings } from './lane-timings.ts'
import type { LevelState } from './level-state.ts'
import type { Outputs } from './outputs.ts'
import type { TaskRunner } from './task-runner.ts'
import type { TaskSet } from './task-set.ts'
import type { TaskSlot } from './task-slot.ts'

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

  begin(epoch: CommitEpoch): void {
    this.#epoch = epoch
  }

  reset(): void {
    this.#acknowledging = 0
    this.#changelogs = new BatchPacker()
  }

  /** Every channel of the level has passed the mark of this epoch. */
  aligned(level: LevelState, epoch: CommitEpoch): void {
    level.aligning = epoch
    for (const slot of level.slots) {
      if (slot.level > level.level) slot.straddling = true
      else if (!slot.stateful) slot.epoch = epoch + 1
    }
    this.seal(level)
  }

  /** Seals the tasks that are ready; when all are, the barrier moves on. */
  seal(level: LevelState): void {
    const epoch = level.aligning
    let waiting = false
    for (const slot of [...level.slots]) {
      if (slot.outstandingOf(epoch) > 0) waiting = true
      else if (slot.level === level.level && slot.stateful && slot.epoch === epoch) this.#sealTask(slot, epoch)
    }
    if (waiting || this.#host.faulted() || level.aligning !== epoch) return
    level.aligning = 0
    const next = level.level + 1
    const { levels, handoffs } = this.#parts
    if (next < levels.length) {
      this.#report(level)
      handoffs.mark(epoch, next, level.reported)
    } else {
      this.#acknowledge(epoch)
    }
  }

  /** An epoch that waited for topics may be acknowledged by now. */
  topicsResolved(): void {
    if (this.#acknowledging !== 0) this.#acknowledge(this.#acknowledging)
  }

  /** Lets out what the work brought: hand-offs, watermarks, full output batches. */
  letOut(): void {
    const { levels, handoffs, outputs } = this.#parts
    for (let l = 0; l < levels.length; l++) {
      const level = levels[l] as LevelState
      const next = l + 1
      if (next < levels.length) {
        const rose = this.#report(level)
        for (let deeper = next; deeper < levels.length; deeper++) {
          handoffs.flush(this.#epoch, deeper, level.reported)
          handoffs.flush(this.#epoch + 1, deeper, level.reported)
        }
        if (rose) handoffs.watermark(next, level.reported)
      }
    }
    for (const epoch of [this.#epoch, this.#epoch + 1]) {
      if (outputs.isFull(epoch)) this.#sendOutputs(epoch)
    }
  }

  #sealTask(slot: TaskSlot, epoch: CommitEpoch): void {
    const { tasks, runner } = this.#parts
    tasks.seal(slot, epoch, this.#changelogs)
    slot.epoch = epoch + 1
    slot.straddling = false
    runner.unpark(slot)
    runner.advance(slot, slot.target)
  }

  #acknowledge(epoch: CommitEpoch): void {
    const { outputs, levels, handoffs } = this.#parts
    this.#acknowledging = epoch
    if (outputs.unresolved(epoch)) return
    this.#acknowledging = 0
    const { toEngine, lane } = this.#options
    this.#sendOutputs(epoch)
    const changelogs = this.#changelogs.take()
    this.#epoch = epoch + 1
    const parity = epoch & 1
    let received = 0
    for (const level of levels) {
      received += level.receivedTotal[parity] as number
      level.receivedTotal[parity] = 0
    }
    const sent = handoffs.total[parity] as number
    handoffs.total[parity] = 0
    const ack = { type: 'ack', lane, run: this.#host.run(), epoch, changelogs, sent, received } as const
    toEngine(ack, buffersOf(changelogs))
  }

  #sendOutputs(epoch: CommitEpoch): void {
    const { outputs, timings } = this.#parts
    const packs = outputs.take(epoch)
    if (packs.length === 0) return
    timings.sent(packs)
    const { toEngine, lane } = this.#options
    toEngine({ type: 'out', lane, run: this.#host.run(), epoch, packs }, buffersOf(packs))
  }

  /** What all tasks of the level have been advanced to; true when it rose. */
  #report(level: LevelState): boolean {
    if (this.#parts.handoffs.holds(level.level + 1)) return false
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
}
