/** What a slot's row is, read and written in its columns: the record of `slot-table.ts`, and a list for values that are no numbers. */
import { Row, type RowCodec, weightOf } from './row.ts'
import { decoded, encoded, formInt, numberDouble, plainNumber, timestampDouble } from './slot-record.ts'
import { recordDoubles, recordInts, SlotTable } from './slot-table.ts'

export class SlotColumns {
  readonly codec: RowCodec
  protected readonly table = new SlotTable()
  /** The table's, at hand. */
  protected doubles = this.table.doubles
  protected ints = this.table.ints
  /** By slot; as long as the last one needs whose value is no number. */
  protected readonly values: unknown[] = []

  constructor(codec: RowCodec) {
    this.codec = codec
  }

  /** The table has grown. */
  protected moved(): void {
    this.doubles = this.table.doubles
    this.ints = this.table.ints
  }

  protected clearColumns(): void {
    this.table.clear()
    this.moved()
    this.values.length = 0
  }

  protected set(slot: number, row: Row): void {
    const { value, bytes } = row
    const i = slot * recordInts + formInt
    const d = slot * recordDoubles
    this.doubles[d + timestampDouble] = row.timestamp
    if (bytes !== undefined) {
      this.ints[i] = encoded
      this.keep(slot, bytes)
    } else if (typeof value === 'number') {
      if (this.ints[i] !== plainNumber) this.keep(slot, undefined)
      this.ints[i] = plainNumber
      this.doubles[d + numberDouble] = value
    } else {
      this.ints[i] = decoded
      this.keep(slot, value)
    }
  }

  /** A value that is no number. A store of numbers needs no array at all. */
  protected keep(slot: number, value: unknown): void {
    const values = this.values
    if (slot < values.length) values[slot] = value
    else if (value !== undefined) {
      while (values.length < slot) values.push(undefined)
      values.push(value)
    }
  }

  /** What the slot holds; not to be asked of a deletion. */
  protected valueAt(slot: number): unknown {
    const isNumber = this.ints[slot * recordInts + formInt] === plainNumber
    return isNumber ? this.doubles[slot * recordDoubles + numberDouble] : this.values[slot]
  }

  protected weightAt(slot: number): number {
    const value = this.valueAt(slot)
    const isEncoded = this.ints[slot * recordInts + formInt] === encoded
    return isEncoded ? (value as Uint8Array).length : weightOf(value)
  }

  protected fill(row: Row, form: number, value: unknown, timestamp: number): void {
    if (form === encoded) this.codec.fill(row, value as Uint8Array, timestamp)
    else {
      row.value = value
      row.bytes = undefined
      row.timestamp = timestamp
    }
  }

  /** A row of its own, for walks. */
  protected rowAt(slot: number): Row | undefined {
    const form = this.ints[slot * recordInts + formInt] as number
    if (form < decoded) return undefined
    const row = new Row(undefined, undefined, 0)
    this.fill(row, form, this.valueAt(slot), this.doubles[slot * recordDoubles + timestampDouble] as number)
    return row
  }
}
