/**
 * Records that leave a lane's level for a deeper one, packed by receiving lane and level. Those of the next epoch are
 * kept back until the mark of this one has gone out, so that on every channel a mark separates the epochs.
 */
import { assert } from '../../base/assert.ts'
import type { CommitEpoch } from '../../base/ids.ts'
import { type Sizes, usualSizes } from '../../base/sizes.ts'
import type { LaneToLane } from '../protocol.ts'
import { type TransferReader, TransferWriter } from '../transfer.ts'
import type { Frontier } from './place.ts'

/** Room behind the size at which a buffer leaves, for the record that reaches it. */
const spareBytes = 2048

/** Nothing is told of how far the sender has come. */
const untold: Frontier = { watermark: Number.NEGATIVE_INFINITY, seq: 0 }

export class Handoffs {
  readonly #lane: number
  readonly #lanes: number
  readonly #levels: number
  /** By parity of the epoch, then level, then lane, then whether tasks take the records as they arrive. */
  readonly #writers: Array<TransferWriter | undefined>
  /** Records sent since the last mark, by level and lane. */
  readonly #sent: Float64Array
  /** Largest epoch that may be sent to each level. */
  readonly #open: Float64Array
  /** Lanes that the last flush has told how far this one has come. */
  readonly #told: Uint8Array
  readonly #send: (lane: number, message: LaneToLane, transfer: ArrayBuffer[]) => void
  readonly #leaveBytes: number
  run = 0
  /** Records handed over, by parity of the epoch. */
  readonly total: [number, number] = [0, 0]

  constructor(
    lane: number,
    lanes: number,
    levels: number,
    send: (lane: number, message: LaneToLane, transfer: ArrayBuffer[]) => void,
    { handOffBytes }: Sizes = usualSizes,
  ) {
    this.#leaveBytes = handOffBytes
    this.#lane = lane
    this.#lanes = lanes
    this.#levels = levels
    this.#writers = new Array(4 * levels * lanes)
    this.#sent = new Float64Array(levels * lanes)
    this.#open = new Float64Array(levels)
    this.#told = new Uint8Array(lanes)
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
  writer(epoch: CommitEpoch, level: number, lane: number, isOrdered: boolean): TransferWriter {
    const at = this.#place(epoch, level, lane, isOrdered)
    let writer = this.#writers[at]
    if (writer === undefined) {
      writer = new TransferWriter(this.#leaveBytes + spareBytes)
      this.#writers[at] = writer
    }
    return writer
  }

  #place(epoch: CommitEpoch, level: number, lane: number, isOrdered: boolean): number {
    return (((epoch & 1) * this.#levels + level) * this.#lanes + lane) * 2 + (isOrdered ? 0 : 1)
  }

  /** To be called after each record: sends a full buffer. */
  written(writer: TransferWriter, epoch: CommitEpoch, level: number, lane: number, isOrdered: boolean): void {
    this.total[epoch & 1]!++
    if (writer.length >= this.#leaveBytes && epoch <= (this.#open[level] as number))
      this.#flush(writer, epoch, level, lane, isOrdered, untold)
  }

  /** Passes the record at which the reader stands on to a deeper level of this lane. */
  relay(reader: TransferReader, epoch: CommitEpoch, level: number, isOrdered: boolean): void {
    const { bytes, keyStart, keyEnd, valueStart, valueEnd, headersStart, headersEnd } = reader
    const writer = this.writer(epoch, level, this.#lane, isOrdered)
    writer.append(
      reader.source,
      reader.task,
      reader.originTopic,
      reader.originPartition,
      reader.offset,
      reader.timestamp,
      reader.watermark,
      bytes,
      keyStart,
      keyEnd,
      bytes,
      valueStart,
      valueEnd,
      bytes,
      headersStart,
      headersEnd,
      reader.at,
      reader.seq,
      reader.sub,
    )
    this.written(writer, epoch, level, this.#lane, isOrdered)
  }

  /** Sends what may be sent to this level, and with it how far those have come that feed it. */
  flush(epoch: CommitEpoch, level: number, reached: Frontier): void {
    if (epoch > (this.#open[level] as number)) return
    for (let lane = 0; lane < this.#lanes; lane++) {
      for (const isOrdered of [true, false]) {
        const writer = this.#writers[this.#place(epoch, level, lane, isOrdered)]
        if (writer && writer.records > 0) {
          this.#flush(writer, epoch, level, lane, isOrdered, reached)
          this.#told[lane] = 1
        }
      }
    }
  }

  /** True while records for this level or a deeper one wait for the epoch's mark: no watermark may overtake them. */
  holds(fromLevel: number): boolean {
    for (let level = fromLevel; level < this.#levels; level++) {
      const first = this.#place((this.#open[level] as number) + 1, level, 0, true)
      for (let at = first; at < first + 2 * this.#lanes; at++) {
        if ((this.#writers[at]?.records ?? 0) > 0) return true
      }
    }
    return false
  }

  /** Sends what may be sent of this epoch and the next one, and tells how far this lane has come where records do not take it along. */
  letOut(epoch: CommitEpoch, level: number, reached: Frontier, rose: boolean): void {
    this.#told.fill(0)
    this.flush(epoch, level, reached)
    this.flush(epoch + 1, level, reached)
    if (rose) this.#progress(level, reached)
  }

  #progress(level: number, { watermark, seq }: Frontier): void {
    for (let lane = 0; lane < this.#lanes; lane++) {
      if (this.#told[lane] === 1) continue
      this.#send(lane, { type: 'hand-watermark', run: this.run, from: this.#lane, level, watermark, seq }, [])
    }
  }

  /** Ends the epoch on all channels to this level; records of the next one may follow. */
  mark(epoch: CommitEpoch, level: number, reached: Frontier): void {
    const open = this.#open[level] as number
    assert(epoch === open, `the barrier of epoch ${epoch} goes to level ${level}, where ${open} is open`)
    this.flush(epoch, level, untold)
    const { watermark, seq } = reached
    for (let lane = 0; lane < this.#lanes; lane++) {
      const at = level * this.#lanes + lane
      const sent = this.#sent[at] as number
      const mark = {
        type: 'hand-barrier',
        run: this.run,
        from: this.#lane,
        level,
        epoch,
        watermark,
        seq,
        sent,
      } as const
      this.#send(lane, mark, [])
      this.#sent[at] = 0
    }
    this.#open[level] = epoch + 1
    this.flush(epoch + 1, level, untold)
  }

  #flush(
    writer: TransferWriter,
    epoch: CommitEpoch,
    level: number,
    lane: number,
    isOrdered: boolean,
    { watermark, seq }: Frontier,
  ): void {
    const { length, records, isInOrder } = writer
    assert(records > 0, `a buffer without records goes to level ${level} of lane ${lane}`)
    assert(epoch <= (this.#open[level] as number), `records of epoch ${epoch} overtake the barrier before them`)
    const last = { at: writer.at, seq: writer.seq, sub: writer.sub }
    const buffer = writer.take()
    const at = level * this.#lanes + lane
    this.#sent[at] = (this.#sent[at] as number) + records
    const { run } = this
    const what = { type: 'handoff', run, from: this.#lane, level, epoch, buffer, length, records } as const
    this.#send(lane, { ...what, watermark, seq, isInOrder, isOrdered, last }, [buffer])
  }
}
