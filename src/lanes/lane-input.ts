/** What comes into a lane, from the engine and from other lanes: queued by level, worked off the deepest level first. */
import { laneIndex } from '../base/counters.ts'
import type { CommitEpoch } from '../base/ids.ts'
import { Credits } from './credits.ts'
import type { Intake } from './intake.ts'
import type { LaneBarrier } from './lane-barrier.ts'
import type { LaneCounters } from './lane-counters.ts'
import type { LaneOptions } from './lane-options.ts'
import type { LaneTimings } from './lane-timings.ts'
import { isWork, type LevelState, type Work } from './level-state.ts'
import type { LaneToLane, ToLane } from './protocol.ts'
import type { TaskRunner } from './task-runner.ts'
import { TransferReader } from './transfer.ts'

/** Records worked off before deeper levels and other channels are looked at again. */
const slice = 256

export interface InputParts {
  readonly levels: readonly LevelState[]
  readonly runner: TaskRunner
  readonly timings: LaneTimings
  readonly counters: LaneCounters
  readonly intake: Intake
  readonly barrier: LaneBarrier
}

export interface InputHost {
  /** The lane has failed: what is left is not worked off. */
  faulted(): boolean
}

export class LaneInput {
  readonly #options: LaneOptions
  readonly #levels: readonly LevelState[]
  readonly #runner: TaskRunner
  readonly #timings: LaneTimings
  readonly #counters: LaneCounters
  readonly #intake: Intake
  readonly #barrier: LaneBarrier
  readonly #host: InputHost
  readonly #credits = new Credits()
  /** Epoch of the records that come next from the engine. */
  #epoch: CommitEpoch = 1

  constructor(options: LaneOptions, parts: InputParts, host: InputHost) {
    this.#options = options
    this.#levels = parts.levels
    this.#runner = parts.runner
    this.#timings = parts.timings
    this.#counters = parts.counters
    this.#intake = parts.intake
    this.#barrier = parts.barrier
    this.#host = host
  }

  begin(epoch: CommitEpoch): void {
    this.#epoch = epoch
  }

  reset(): void {
    this.#credits.reset()
  }

  /** What the engine may send anew, for all that was worked off since the last call; undefined: nothing was. */
  takeCredits(): { readonly bytes: number; readonly records: number } | undefined {
    return this.#credits.take()
  }

  fromLane(message: LaneToLane): void {
    const level = this.#levels[message.level] as LevelState
    if (message.type === 'handoff') {
      const { buffer, length, records, epoch, watermark, from } = message
      level.push(from, { reader: new TransferReader(buffer, length), epoch, watermark, bytes: length, records, from })
    } else {
      level.push(message.from, message)
    }
  }

  /** What comes from the engine goes into the one queue of the shallowest level, in its order. */
  fromEngine(message: Extract<ToLane, { type: 'data' | 'watermark' | 'mark' }>): void {
    const level = this.#levels[0] as LevelState
    const { watermark } = message
    if (message.type === 'data') {
      const { buffer, length: bytes, records } = message
      const reader = new TransferReader(buffer, bytes)
      level.push(0, { reader, epoch: this.#epoch, watermark, bytes, records, from: 0 })
      this.#counters.queued(records)
    } else if (message.type === 'watermark') {
      level.push(0, { type: 'hand-watermark', run: message.run, from: 0, level: 0, watermark })
    } else {
      const { run, epoch } = message
      this.#epoch = epoch + 1
      level.push(0, { type: 'hand-mark', run, from: 0, level: 0, epoch, watermark, sent: -1 })
    }
  }

  /** One slice of work, deepest level first; the number of records done, or -1 when there is nothing to do. */
  step(): number {
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
        if (l === 0 || level.mark(channel, input.epoch, input.sent)) this.#barrier.aligned(level, input.epoch)
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
    while (done < slice && !(level.level === 0 && this.#runner.throttled) && !this.#host.faulted()) {
      if (reader.isLevel && this.#intake.looksAhead) this.#intake.lookAhead(reader)
      if (!reader.next()) {
        this.#workedOff(level, channel, work)
        ended = 1
        break
      }
      done++
      this.#intake.take(reader, work.epoch)
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
      this.#counters.consumed(work.records)
      this.#credits.add(work.bytes, work.records)
    } else {
      this.#counters.add(laneIndex.takenOverBytes, work.bytes)
      level.received(channel, work.records, work.epoch)
    }
    this.#advance(level, channel, work.watermark)
  }

  #advance(level: LevelState, channel: number, watermark: number): void {
    if (!level.advance(channel, watermark)) return
    for (const slot of level.slots) if (slot.level === level.level) this.#runner.advance(slot, level.watermark)
  }
}
