/**
 * Records that leave a lane's level for a deeper one, packed by receiving lane and level. Those of the next epoch are
 * kept back until the mark of this one has gone out, so that on every channel a mark separates the epochs.
 */
import type { CommitEpoch } from '../base/ids.ts'
import type { LaneToLane } from './protocol.ts'
import { TransferWriter } from './transfer.ts'

const bufferBytes = 32 * 1024

export class Handoffs {
  readonly #lane: number
  readonly #lanes: number
  readonly #levels: number
  /** By parity of the epoch, then level, then lane. */
  readonly #writers: Array<TransferWriter | undefined>
  /** Records sent since the last mark, by level and lane. */
  readonly #sent: Float64Array
  /** Largest epoch that may be sent to each level. */
  readonly #open: Float64Array
  readonly #send: (lane: number, message: LaneToLane, transfer: ArrayBuffer[]) => void
  run = 0
  /** Records handed over, by parity of the epoch. */
  readonly total: [number, number] = [0, 0]

  constructor(
    lane: number,
    lanes: number,
    levels: number,
    send: (lane: number, message: LaneToLane, transfer: ArrayBuffer[]) => void,
  ) {
    this.#lane = lane
    this.#lanes = lanes
    this.#levels = levels
    this.#writers = new Array(2 * levels * lanes)
    this.#sent = new Float64Array(levels * lanes)
    this.#open = new Float64Array(levels)
    this.#send = send
  }

  reset(run: number, epoch: CommitEpoch): void {
    this.run = run
    this.#writers.fill(undefined)
    this.#sent.fill(0)
    this.total.fill(0)
    this.#open.fill(epoch)
  }

  /** The writer for one more record to this lane and level. */
  writer(epoch: CommitEpoch, level: number, lane: number): TransferWriter {
    const at = ((epoch & 1) * this.#levels + level) * this.#lanes + lane
    let writer = this.#writers[at]
    if (writer === undefined) {
      writer = new TransferWriter(bufferBytes)
      this.#writers[at] = writer
    }
    return writer
  }

  /** To be called after each record: sends a full buffer. */
  written(epoch: CommitEpoch, level: number, lane: number, watermark: number): void {
    this.total[epoch & 1]!++
    const writer = this.writer(epoch, level, lane)
    if (writer.length >= bufferBytes - 2048 && epoch <= (this.#open[level] as number))
      this.#flush(writer, epoch, level, lane, watermark)
  }

  /** Sends what may be sent to this level. */
  flush(epoch: CommitEpoch, level: number, watermark: number): void {
    if (epoch > (this.#open[level] as number)) return
    for (let lane = 0; lane < this.#lanes; lane++) {
      const writer = this.#writers[((epoch & 1) * this.#levels + level) * this.#lanes + lane]
      if (writer && writer.records > 0) this.#flush(writer, epoch, level, lane, watermark)
    }
  }

  /** True while records for this level or a deeper one wait for the epoch's mark: no watermark may overtake them. */
  holds(fromLevel: number): boolean {
    for (let level = fromLevel; level < this.#levels; level++) {
      const parity = ((this.#open[level] as number) + 1) & 1
      const first = (parity * this.#levels + level) * this.#lanes
      for (let at = first; at < first + this.#lanes; at++) {
        if ((this.#writers[at]?.records ?? 0) > 0) return true
      }
    }
    return false
  }

  /** Tells every lane's level how far this lane's shallower levels have been advanced. */
  watermark(level: number, watermark: number): void {
    for (let lane = 0; lane < this.#lanes; lane++) {
      this.#send(lane, { type: 'hand-watermark', run: this.run, from: this.#lane, level, watermark }, [])
    }
  }

  /** Ends the epoch on all channels to this level; records of the next one may follow. */
  mark(epoch: CommitEpoch, level: number, watermark: number): void {
    this.flush(epoch, level, watermark)
    for (let lane = 0; lane < this.#lanes; lane++) {
      const at = level * this.#lanes + lane
      this.#send(
        lane,
        { type: 'hand-mark', run: this.run, from: this.#lane, level, epoch, watermark, sent: this.#sent[at] as number },
        [],
      )
      this.#sent[at] = 0
    }
    this.#open[level] = epoch + 1
    this.flush(epoch + 1, level, watermark)
  }

  #flush(writer: TransferWriter, epoch: CommitEpoch, level: number, lane: number, watermark: number): void {
    const { length, records } = writer
    const buffer = writer.take()
    const at = level * this.#lanes + lane
    this.#sent[at] = (this.#sent[at] as number) + records
    this.#send(
      lane,
      { type: 'handoff', run: this.run, from: this.#lane, level, epoch, buffer, length, records, watermark },
      [buffer],
    )
  }
}
