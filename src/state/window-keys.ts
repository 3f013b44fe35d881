/**
 * The rows of a segment by key, for stores in which each key has windows of many starts: a join, or a sliding window, reads those
 * of one key with every record. Made when they are first read so.
 */
import type { ValueAndTimestamp } from './contract.ts'
import { windowSuffix } from './layout.ts'
import { Row, type RowCodec } from './row.ts'
import { decoded } from './slot-record.ts'
import type { WindowPlace } from './window-place.ts'
import type { Segment } from './window-table.ts'

/** A row that was found by its key, as it is when it is read. */
export class KeyRow {
  readonly start: number
  readonly sequence: number
  readonly #place: WindowPlace
  readonly #slot: number
  readonly #youngest: number

  constructor(place: WindowPlace, slot: number, start: number, sequence: number, youngest: number) {
    this.start = start
    this.sequence = sequence
    this.#place = place
    this.#slot = slot
    this.#youngest = youngest
  }

  /** Undefined: it has gone meanwhile. */
  read(codec: RowCodec): ValueAndTimestamp<unknown> | undefined {
    const place = this.#place
    const slot = this.#slot
    if (!(place.form(slot) >= decoded) || place.bornAt(slot) > this.#youngest) return undefined
    return { value: place.read(slot, codec, scratch), timestamp: place.timestamp(slot) }
  }
}

const scratch = new Row(undefined, undefined, 0)

export class KeyIndex {
  readonly #segment: Segment
  /**
   * Slots in the order of start and sequence number, those of the segment's other windows as their complement; most keys have
   * a single one.
   */
  readonly #slots = new Map<string, number | number[]>()

  constructor(segment: Segment) {
    this.#segment = segment
    for (const place of segment.places) {
      for (const slot of place.table.taken()) this.add(this.#keyOf(place, slot), place, slot)
    }
  }

  /** `key`: that of the application, without start and sequence number. */
  add(key: string, place: WindowPlace, slot: number): void {
    const code = this.#codeOf(place, slot)
    const slots = this.#slots.get(key)
    if (slots === undefined) {
      this.#slots.set(key, code)
    } else if (typeof slots === 'number') {
      this.#slots.set(key, this.#compare(slots, code) < 0 ? [slots, code] : [code, slots])
    } else {
      let i = slots.length
      while (i > 0 && this.#compare(slots[i - 1] as number, code) > 0) i--
      if (i === slots.length) slots.push(code)
      else slots.splice(i, 0, code)
    }
  }

  delete(place: WindowPlace, slot: number): void {
    const key = this.#keyOf(place, slot)
    const slots = this.#slots.get(key)
    if (typeof slots !== 'object') {
      this.#slots.delete(key)
      return
    }
    const i = slots.indexOf(this.#codeOf(place, slot))
    if (i >= 0) slots.splice(i, 1)
    if (slots.length === 0) this.#slots.delete(key)
  }

  /** Rows of this key that start in [first, last], in order. Rows that are younger are not shown. */
  find(key: string, first: number, last: number, youngest: number): KeyRow[] {
    const found: KeyRow[] = []
    const slots = this.#slots.get(key)
    if (typeof slots === 'number') this.#take(slots, first, last, youngest, found)
    else if (slots !== undefined) for (const code of slots) this.#take(code, first, last, youngest, found)
    return found
  }

  #take(code: number, first: number, last: number, youngest: number, into: KeyRow[]): void {
    const start = this.#startOf(code)
    if (start < first || start > last) return
    const { common, others } = this.#segment
    if (code >= 0) into.push(new KeyRow(common, code, start, 0, youngest))
    else into.push(new KeyRow(others as WindowPlace, ~code, start, this.#sequenceOf(code), youngest))
  }

  #codeOf(place: WindowPlace, slot: number): number {
    return place === this.#segment.common ? slot : ~slot
  }

  #keyOf(place: WindowPlace, slot: number): string {
    const key = place.table.keyOf(slot)
    return place === this.#segment.common ? key : key.slice(0, -windowSuffix)
  }

  #startOf(code: number): number {
    if (code >= 0) return this.#segment.commonStart
    const { table } = this.#segment.others as WindowPlace
    const at = table.keyLength(~code) - windowSuffix
    return table.numberAt(~code, at, 4) * 4294967296 + table.numberAt(~code, at + 4, 4)
  }

  #sequenceOf(code: number): number {
    if (code >= 0) return 0
    const { table } = this.#segment.others as WindowPlace
    return table.numberAt(~code, table.keyLength(~code) - 4, 4)
  }

  #compare(a: number, b: number): number {
    return this.#startOf(a) - this.#startOf(b) || this.#sequenceOf(a) - this.#sequenceOf(b)
  }
}
