/** One level of a lane: its tasks, how far it has been done, and where the barrier stands in it. */
import type { CommitEpoch } from '../../base/ids.ts'
import type { TaskSlot } from '../tasks/task-slot.ts'
import type { TransferReader } from '../transfer.ts'
import { type Frontier, isAhead } from './place.ts'

/** A message with records, perhaps half worked off. */
export interface Work {
  readonly reader: TransferReader
  readonly epoch: CommitEpoch
  /** How far everything has come with it. */
  readonly watermark: number
  readonly seq: number
  /** What the sender counts: to be given back to the engine when it is done, where it came from there. */
  readonly bytes: number
  readonly records: number
}

export class LevelState implements Frontier {
  readonly level: number
  readonly slots: TaskSlot[] = []
  /** Everything up to here was given to the tasks, and they were advanced to it. */
  watermark = Number.NEGATIVE_INFINITY
  seq = 0
  /** How far all that this level's tasks had to do is done: what deeper levels were told last. */
  readonly reported = { watermark: Number.NEGATIVE_INFINITY, seq: 0 }
  /** Epoch of which everything has come in but whose tasks are not all done; 0: none. */
  aligning: CommitEpoch = 0
  /** How far that epoch goes. */
  readonly closing = { watermark: Number.NEGATIVE_INFINITY, seq: 0 }
  /** Records that came in, and those that were given to tasks or passed on, by parity of the epoch. */
  readonly received: [number, number] = [0, 0]
  readonly given: [number, number] = [0, 0]

  constructor(level: number) {
    this.level = level
  }

  /** Returns true when the level's watermark rose. */
  advance({ watermark, seq }: Frontier): boolean {
    if (!isAhead(watermark, seq, this)) return false
    const rose = watermark > this.watermark
    this.watermark = watermark
    this.seq = seq
    return rose
  }

  /** All of the epoch has come in. */
  close(epoch: CommitEpoch): void {
    this.aligning = epoch
    this.closing.watermark = this.watermark
    this.closing.seq = this.seq
  }

  /** True when there is more to report than last time. */
  report(watermark: number, seq: number): boolean {
    const { reported } = this
    if (!isAhead(watermark, seq, reported)) return false
    reported.watermark = watermark
    reported.seq = seq
    return true
  }

  reset(watermark: number): void {
    this.watermark = watermark
    this.seq = 0
    this.reported.watermark = watermark
    this.reported.seq = 0
    this.aligning = 0
    this.slots.length = 0
    this.received.fill(0)
    this.given.fill(0)
  }
}
