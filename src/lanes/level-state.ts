/** One level of a lane: its input channels, how far each has been advanced, and where the barrier stands in it. */
import { assert } from '../base/assert.ts'
import type { CommitEpoch } from '../base/ids.ts'
import type { LaneToLane } from './protocol.ts'
import type { TaskSlot } from './task-slot.ts'
import type { TransferReader } from './transfer.ts'

/** A message with records, perhaps half worked off. */
export interface Work {
  readonly reader: TransferReader
  readonly epoch: CommitEpoch
  readonly watermark: number
  /** What the sender counts: to be given back to the engine when it is done, where it came from there. */
  readonly bytes: number
  readonly records: number
  readonly from: number
}

export type LevelInput = Work | Exclude<LaneToLane, { type: 'handoff' }>

export function isWork(input: LevelInput): input is Work {
  return 'reader' in input
}

export class LevelState {
  readonly level: number
  readonly slots: TaskSlot[] = []
  /** One queue a channel: level 0 has the engine's alone, the others one for every lane. */
  readonly queues: LevelInput[][]
  readonly #heads: number[]
  readonly #watermarks: number[]
  readonly #marked: boolean[]
  readonly #received: number[]
  #markedCount = 0
  #turn = 0
  /** What all channels have been advanced to. */
  watermark = Number.NEGATIVE_INFINITY
  /** What this level's tasks were last reported advanced to. */
  reported = Number.NEGATIVE_INFINITY
  /** Epoch whose marks have all come in but whose tasks are not all done; 0: none. */
  aligning: CommitEpoch = 0
  /** Records received, by parity of the epoch. */
  readonly receivedTotal: [number, number] = [0, 0]

  constructor(level: number, channels: number) {
    this.level = level
    this.queues = Array.from({ length: channels }, () => [])
    this.#heads = new Array(channels).fill(0)
    this.#watermarks = new Array(channels).fill(Number.NEGATIVE_INFINITY)
    this.#marked = new Array(channels).fill(false)
    this.#received = new Array(channels).fill(0)
  }

  push(channel: number, input: LevelInput): void {
    ;(this.queues[channel] as LevelInput[]).push(input)
  }

  /** Channel with something to do that no mark holds back, or -1; channels take turns. */
  nextChannel(): number {
    const n = this.queues.length
    for (let i = 0; i < n; i++) {
      const channel = (this.#turn + i) % n
      if (!this.#marked[channel] && (this.#heads[channel] as number) < (this.queues[channel] as LevelInput[]).length) {
        this.#turn = channel + 1
        return channel
      }
    }
    return -1
  }

  peek(channel: number): LevelInput {
    return (this.queues[channel] as LevelInput[])[this.#heads[channel] as number] as LevelInput
  }

  shift(channel: number): void {
    const queue = this.queues[channel] as LevelInput[]
    const head = (this.#heads[channel] as number) + 1
    if (head === queue.length) {
      queue.length = 0
      this.#heads[channel] = 0
    } else if (head > 256) {
      queue.splice(0, head)
      this.#heads[channel] = 0
    } else {
      this.#heads[channel] = head
    }
  }

  /** Returns true when the level's watermark rose. */
  advance(channel: number, watermark: number): boolean {
    if (watermark <= (this.#watermarks[channel] as number)) return false
    this.#watermarks[channel] = watermark
    let least = Number.POSITIVE_INFINITY
    for (const w of this.#watermarks) if (w < least) least = w
    if (least <= this.watermark) return false
    this.watermark = least
    return true
  }

  received(channel: number, records: number, epoch: CommitEpoch): void {
    this.#received[channel] = (this.#received[channel] as number) + records
    this.receivedTotal[epoch & 1] = (this.receivedTotal[epoch & 1] as number) + records
  }

  /** A mark came in; true when it was the last one awaited. */
  mark(channel: number, epoch: CommitEpoch, sent: number): boolean {
    assert(
      this.#received[channel] === sent,
      `level ${this.level}: ${sent} records were sent, ${this.#received[channel]} came`,
    )
    assert(!this.#marked[channel], `level ${this.level}: a second mark from channel ${channel}`)
    this.#marked[channel] = true
    this.#received[channel] = 0
    if (++this.#markedCount < this.queues.length) return false
    this.#marked.fill(false)
    this.#markedCount = 0
    this.aligning = epoch
    return true
  }

  reset(watermark: number): void {
    for (let i = 0; i < this.queues.length; i++) {
      ;(this.queues[i] as LevelInput[]).length = 0
      this.#heads[i] = 0
      this.#watermarks[i] = watermark
      this.#marked[i] = false
      this.#received[i] = 0
    }
    this.#markedCount = 0
    this.watermark = watermark
    this.reported = watermark
    this.aligning = 0
    this.slots.length = 0
    this.receivedTotal.fill(0)
  }
}
