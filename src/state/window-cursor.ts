/** All windows of one start, one after the other in the order of their keys, without an object for any of them. */
import { Row, type RowCodec } from './row.ts'
import { sortedSlots } from './window-order.ts'
import { decoded } from './slot-record.ts'
import type { WindowPlace } from './window-place.ts'

export class WindowCursor {
  readonly #place: WindowPlace | undefined
  readonly #codec: RowCodec
  /** Rows that came later are not shown. */
  readonly #youngest: number
  readonly #slots: readonly number[]
  readonly #row = new Row(undefined, undefined, 0)
  #next = 0
  #slot = -1

  constructor(place: WindowPlace | undefined, codec: RowCodec, youngest: number) {
    this.#place = place
    this.#codec = codec
    this.#youngest = youngest
    const slots: number[] = []
    if (place !== undefined) {
      const { used } = place.table
      for (let slot = 0; slot < used; slot++) if (place.form(slot) >= decoded) slots.push(slot)
      this.#slots = sortedSlots(place.table, slots)
    } else {
      this.#slots = slots
    }
  }

  /** Goes to the next row; false: there is none. A row is shown as it is when its turn comes. */
  next(): boolean {
    const place = this.#place
    if (place === undefined) return false
    while (this.#next < this.#slots.length) {
      const slot = this.#slots[this.#next++] as number
      if (place.form(slot) >= decoded && place.bornAt(slot) <= this.#youngest) {
        this.#slot = slot
        return true
      }
    }
    return false
  }

  /** The key string. */
  get key(): string {
    return (this.#place as WindowPlace).table.keyOf(this.#slot)
  }

  get value(): unknown {
    return (this.#place as WindowPlace).read(this.#slot, this.#codec, this.#row)
  }

  get timestamp(): number {
    return (this.#place as WindowPlace).timestamp(this.#slot)
  }
}
