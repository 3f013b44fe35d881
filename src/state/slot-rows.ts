/**
 * The rows of a key-value store, committed and not: numbers in columns instead of an object a row (see `slot-table.ts`).
 * Over a memory backend these are all of its rows, over one that is written behind those that it does not have yet, and
 * perhaps some that it has: it is asked for the rest. A row as it was before an epoch changed it stands in that epoch's
 * undo log; what was committed needs no further touch, since a row is committed when its generation is.
 */
import { assert } from '../base/assert.ts'
import type { CommitEpoch } from '../base/ids.ts'
import { EngineError } from '../errors.ts'
import { ByteRows } from './byte-rows.ts'
import type { Checkpoint } from './contract.ts'
import { mostAhead, RowsAhead } from './look-ahead.ts'
import type { CommittedRows, MemoryBackend } from './memory-backend.ts'
import { type Layers, mergedRows } from './merged-rows.ts'
import { Row, type RowCodec } from './row.ts'
import type { RowLayer } from './row-layer.ts'
import { Scratch } from './scratch.ts'
import {
  absent,
  decoded,
  deletion,
  encoded,
  formInt,
  generationInt,
  numberDouble,
  plainNumber,
  timestampDouble,
  undoInt,
} from './slot-record.ts'
import { SlotColumns } from './slot-columns.ts'
import { type FrontSlots, SlotFront } from './slot-front.ts'
import { type ShowChange, SlotGeneration } from './slot-generation.ts'
import { recordDoubles, recordInts, type SlotTable } from './slot-table.ts'
import { SortedKeys } from './sorted-keys.ts'
import { UndoLog } from './undo-log.ts'
import { WriteBehind } from './write-behind.ts'

interface SealedLog {
  readonly epoch: CommitEpoch
  readonly log: UndoLog
}

export class SlotRows extends SlotColumns implements RowLayer, CommittedRows, FrontSlots {
  /** Bytes of the open epoch's keys and values, about. */
  bytes = 0
  /** What was read ahead has to be of use, or the compiler leaves the reads out. */
  seen = 0
  readonly #backend: MemoryBackend | WriteBehind
  /** Those that the backend does not have, where it is written behind; and what it has. */
  readonly #front: SlotFront | undefined
  readonly #below: ByteRows | undefined
  readonly ahead = new RowsAhead(this.table, this.values)
  /** Counts the rows that came: a walk leaves out those younger than itself. */
  #born = new Float64Array(this.table.capacity)
  #lastBorn = 0
  #order: SortedKeys | undefined
  #open = new UndoLog()
  #generation = 1
  #committed = 0
  #sealed: SealedLog[] = []
  readonly #spare: UndoLog[] = []
  /** What was looked up last: an operator reads a row and then writes it. */
  #lastKey: string | undefined
  #lastSlot = -1
  #lastHash = 0
  /** Whether a row of it lies below; undefined while nobody has looked. */
  #lastIsBelow: boolean | undefined
  /** The row that `get` gives, valid until the next call; and one for all other uses. */
  readonly #row = new Row(undefined, undefined, 0)
  readonly #other = new Row(undefined, undefined, 0)
  /** The row was given out as these bytes of this slot: its reader may decode it. */
  #given: Uint8Array | undefined
  #givenSlot = -1
  #readOnly: boolean

  constructor(backend: MemoryBackend | WriteBehind, codec: RowCodec, readOnly = false) {
    super(codec)
    this.#backend = backend
    this.#readOnly = readOnly
    this.#open.reset(this.#generation)
    if (backend instanceof WriteBehind) {
      this.#below = new ByteRows(backend.backend, codec)
      this.#front = new SlotFront(this)
      backend.attach(this.#front)
    } else {
      backend.attach(this)
    }
  }

  get isChanged(): boolean {
    return this.#open.count > 0
  }

  /** The row is valid until the next call. */
  get(key: string): Row | undefined {
    if (this.#given !== undefined) this.#keepDecoded()
    const slot = this.#find(key)
    if (slot < 0) return this.#below && this.#belowAt(this.#below, key)
    const form = this.ints[slot * recordInts + formInt] as number
    if (form < decoded) return undefined
    const row = this.#row
    const value = this.valueAt(slot)
    this.fill(row, form, value, this.doubles[slot * recordDoubles + timestampDouble] as number)
    if (form === encoded) {
      this.#given = value as Uint8Array
      this.#givenSlot = slot
    }
    return row
  }

  put(key: string, value: unknown, timestamp: number): void {
    this.#checkWritable()
    if (this.#given !== undefined) this.#keepDecoded()
    const row = this.#row
    this.codec.replace(row, value, timestamp)
    let slot = this.#find(key)
    if (slot < 0) slot = this.#add(key)
    const i = slot * recordInts
    if (this.ints[i + generationInt] === this.#generation) this.bytes -= this.weightAt(slot)
    else this.#change(slot, key.length)
    this.set(slot, row)
    this.bytes += this.codec.weight(row)
  }

  delete(key: string): void {
    let slot = this.#find(key)
    if (slot < 0 && (this.#below === undefined || this.#belowAt(this.#below, key) === undefined)) return
    if (slot >= 0 && this.ints[slot * recordInts + formInt] === deletion) return
    this.#checkWritable()
    if (slot < 0) slot = this.#add(key)
    const i = slot * recordInts
    if (this.ints[i + generationInt] === this.#generation) this.bytes -= this.weightAt(slot)
    else this.#change(slot, key.length)
    this.ints[i + formInt] = deletion
    this.keep(slot, undefined)
    this.#open.hasDeletions = true
  }

  /** Rows in [from, to), without keys that came after the call. A row is given as it is when its turn comes. */
  *range(from: string | undefined, to: string | undefined, reverse = false): IterableIterator<[string, Row]> {
    if (this.#below !== undefined) {
      yield* mergedRows(this.#layers(this.#below, Number.POSITIVE_INFINITY), from, to, reverse)
      return
    }
    const youngest = this.#lastBorn
    for (const key of this.#ordered().range(from, to, reverse)) {
      const slot = this.table.find(key)
      if (slot < 0 || (this.#born[slot] as number) > youngest) continue
      const row = this.rowAt(slot)
      if (row !== undefined) yield [key, row]
    }
  }

  /** Committed rows of which no uncommitted change speaks, from `from` on. */
  *settled(from: string | undefined): IterableIterator<[string, Row]> {
    if (this.#below !== undefined) {
      yield* mergedRows(this.#layers(this.#below, this.#committed), from, undefined, false)
      return
    }
    for (const key of this.#ordered().range(from, undefined)) {
      const slot = this.table.find(key)
      if (slot < 0 || (this.ints[slot * recordInts + generationInt] as number) > this.#committed) continue
      const row = this.rowAt(slot)
      if (row !== undefined) yield [key, row]
    }
  }

  seal(epoch: CommitEpoch): SlotGeneration | null {
    const last = this.#sealed[this.#sealed.length - 1]
    assert(last === undefined || last.epoch < epoch, `epoch ${epoch} is sealed after epoch ${last?.epoch}`)
    this.#lastKey = undefined
    if (this.#open.count === 0) return null
    const log = this.#open
    this.#sealed.push({ epoch, log })
    this.#open = this.#spare.pop() ?? new UndoLog()
    this.#open.reset(++this.#generation)
    this.bytes = 0
    return new SlotGeneration(epoch, log.count, (now, show) => this.#each(log, now, show))
  }

  settleAll(): void {
    for (const { log } of this.#sealed) this.#settle(log)
    this.#sealed = []
  }

  applied(epoch: CommitEpoch, dropped: readonly string[], checkpoint: Checkpoint): void {
    const oldest = this.#sealed[0]
    if (oldest !== undefined && oldest.epoch <= epoch) {
      assert(oldest.epoch === epoch, `epoch ${epoch} is applied before epoch ${oldest.epoch}`)
      this.#settle(oldest.log)
      this.#sealed.shift()
    }
    this.#lastKey = undefined
    if (this.#backend instanceof WriteBehind) {
      this.#backend.advance(checkpoint, dropped)
      return
    }
    for (const key of dropped) {
      const slot = this.table.find(key)
      if (slot >= 0 && (this.ints[slot * recordInts + generationInt] as number) <= this.#committed) this.#remove(slot)
    }
    this.#backend.advance(checkpoint)
  }

  discard(): void {
    for (const log of [...this.#sealed.map((sealed) => sealed.log), this.#open].reverse()) {
      for (let at = log.count - 1; at >= 0; at--) this.#takeBack(log, at)
      if (log !== this.#open) this.#spareLog(log)
    }
    this.#sealed = []
    this.#open.reset(this.#generation)
    this.#lastKey = undefined
    this.bytes = 0
  }

  freeze(): void {
    this.#readOnly = true
  }

  changedBelow(): void {
    this.#lastKey = undefined
  }

  // What the backend asks: committed rows, as bytes.

  get size(): number {
    return this.table.size
  }

  getBytes(key: string): Uint8Array | undefined {
    return this.committed(key) ?? undefined
  }

  *rangeBytes(
    from: string | undefined,
    to: string | undefined,
    reverse: boolean,
  ): IterableIterator<readonly [string, Uint8Array]> {
    for (const key of this.#ordered().range(from, to, reverse)) {
      const value = this.getBytes(key)
      if (value !== undefined) yield [key, value]
    }
  }

  *allBytes(): IterableIterator<readonly [string, Uint8Array]> {
    for (const slot of this.table.taken()) {
      if (this.#load(slot, this.#committed) < decoded) continue
      const value = this.codec.toBackend(this.#other)
      if (value !== null) yield [this.table.keyOf(slot), value]
    }
  }

  /** A row of the changelog; null: it goes. */
  commit(key: string, value: Uint8Array | null): void {
    this.#lastKey = undefined
    const slot = this.table.find(key)
    const row = value === null ? undefined : this.codec.fromBackend(value)
    if (slot >= 0 && (this.ints[slot * recordInts + generationInt] as number) > this.#committed) {
      const [log, at] = this.#oldestEntry(slot)
      log.replace(at, row === undefined ? absent : encoded, row?.bytes, row?.timestamp ?? 0)
    } else if (row === undefined) {
      if (slot >= 0) this.#remove(slot)
    } else {
      const into = slot >= 0 ? slot : this.#add(key, 0)
      this.ints[into * recordInts + generationInt] = 0
      this.set(into, row)
    }
  }

  // What it takes to write rows behind.

  taken(): IterableIterator<number> {
    return this.table.taken()
  }

  keyOf(slot: number): string {
    return this.table.keyOf(slot)
  }

  keys(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<string> {
    return this.#ordered().range(from, to, reverse)
  }

  committed(key: string): Uint8Array | null | undefined {
    const slot = this.table.find(key)
    const form = slot < 0 ? absent : this.#load(slot, this.#committed)
    if (form === absent) return undefined
    return form === deletion ? null : this.codec.toBackend(this.#other)
  }

  committedAt(slot: number): Uint8Array | null {
    if (this.#isSettled(slot) && this.ints[slot * recordInts + formInt] === plainNumber) {
      const d = slot * recordDoubles
      const timestamp = this.doubles[d + timestampDouble] as number
      const bytes = this.codec.numberToBackend(this.doubles[d + numberDouble] as number, timestamp)
      if (bytes !== undefined) return bytes
    }
    return this.#load(slot, this.#committed) < decoded ? null : this.codec.toBackendBriefly(this.#other)
  }

  get keyBytes(): SlotTable {
    return this.table
  }

  touchSlots(slots: Int32Array, from: number, to: number): number {
    return this.table.touchSlots(slots, from, to)
  }

  writeKey(slot: number, target: Uint8Array, at: number): number {
    return this.table.copyKey(slot, target, at)
  }

  hashAt(slot: number): number {
    return this.table.hashAt(slot)
  }

  weightOf(slot: number): number {
    const isThere = (this.ints[slot * recordInts + formInt] as number) >= decoded
    return this.table.keyLength(slot) + (isThere ? 2 * this.weightAt(slot) : 0)
  }

  hold(key: string, value: Uint8Array | null): void {
    this.#lastKey = undefined
    const row = value === null ? undefined : this.codec.fromBackend(value)
    const found = this.table.find(key)
    const wasThere = found >= 0 && this.#load(found, this.#committed) >= decoded
    const slot = found < 0 ? this.#add(key, 0) : found
    if ((this.ints[slot * recordInts + generationInt] as number) > this.#committed) {
      const [log, at] = this.#oldestEntry(slot)
      log.replace(at, row === undefined ? deletion : encoded, row?.bytes, row?.timestamp ?? 0)
    } else if (row !== undefined) {
      this.set(slot, row)
    } else {
      this.ints[slot * recordInts + formInt] = deletion
      this.keep(slot, undefined)
    }
    this.#front?.took(slot, wasThere, row !== undefined)
  }

  forget(slot: number): void {
    if ((this.ints[slot * recordInts + generationInt] as number) <= this.#committed) {
      this.#remove(slot)
      return
    }
    const [log, at] = this.#oldestEntry(slot)
    log.replace(at, absent, undefined, 0)
  }

  clear(): void {
    this.clearColumns()
    this.#born = new Float64Array(this.table.capacity)
    this.#order = undefined
    this.#sealed = []
    this.#open.reset(this.#generation)
    this.#lastKey = undefined
    this.bytes = 0
  }

  #find(key: string): number {
    if (key !== this.#lastKey) {
      this.#lastSlot = this.table.find(key)
      this.#lastHash = this.table.lastHash
      this.#lastKey = key
      this.#lastIsBelow = undefined
    }
    return this.#lastSlot
  }

  /** The row below of the key that was looked for last, and is not here. */
  #belowAt(below: ByteRows, key: string): Row | undefined {
    const row = this.#front?.mayBeBelow(this.#lastHash) === false ? undefined : below.get(key)
    this.#lastIsBelow = row !== undefined
    return row
  }

  /** Rows with those below; of younger generations than `newest` there is none. */
  #layers(below: ByteRows, newest: number): Layers<Row> {
    const youngest = this.#lastBorn
    return {
      keys: (from, to, reverse) => this.keys(from, to, reverse),
      at: (key) => {
        const slot = this.table.find(key)
        if (slot < 0) return undefined
        const isHidden = (this.ints[slot * recordInts + generationInt] as number) > newest
        return isHidden ? null : (this.rowAt(slot) ?? null)
      },
      isOld: (key) => {
        const slot = this.table.find(key)
        return slot < 0 || (this.#born[slot] as number) <= youngest
      },
      below: (from, to, reverse) => below.range(from, to, reverse),
      writes: () => (this.#backend as WriteBehind).writes,
    }
  }

  #add(key: string, born = ++this.#lastBorn): number {
    const slot = key === this.#lastKey ? this.table.add(key, this.#lastHash) : this.table.add(key)
    if (slot >= this.#born.length) this.#grow()
    this.#order?.add(key)
    this.#born[slot] = born
    this.#front?.added(slot, key === this.#lastKey ? this.#lastIsBelow : undefined)
    this.#lastKey = key
    this.#lastHash = this.table.hashAt(slot)
    this.#lastSlot = slot
    return slot
  }

  #remove(slot: number): void {
    if (this.#order !== undefined) this.#order.delete(this.table.keyOf(slot))
    this.ints[slot * recordInts + formInt] = absent
    this.keep(slot, undefined)
    this.table.remove(slot)
    this.#lastKey = undefined
  }

  #grow(): void {
    const born = new Float64Array(this.table.capacity)
    born.set(this.#born)
    this.#born = born
    this.moved()
  }

  #ordered(): SortedKeys {
    this.#order ??= new SortedKeys([...this.table.taken()].map((slot) => this.table.keyOf(slot)))
    return this.#order
  }

  /** The row is about to be changed for the first time in the open epoch. */
  #change(slot: number, keyLength: number): void {
    const i = slot * recordInts
    const ints = this.ints
    const d = slot * recordDoubles
    const timestamp = this.doubles[d + timestampDouble] as number
    const form = ints[i + formInt] as number
    const generation = ints[i + generationInt] as number
    const undo = ints[i + undoInt] as number
    const at =
      form === plainNumber
        ? this.#open.pushNumber(slot, this.doubles[d + numberDouble] as number, timestamp, generation, undo)
        : this.#open.push(slot, form, this.values[slot], timestamp, generation, undo)
    ints[i + generationInt] = this.#generation
    ints[i + undoInt] = at
    this.bytes += keyLength
  }

  /** Whoever got the row as bytes has decoded it, as far as a decoded value may be kept. */
  #keepDecoded(): void {
    const row = this.#row
    const slot = this.#givenSlot
    if (row.bytes === undefined && this.values[slot] === this.#given) this.set(slot, row)
    this.#given = undefined
  }

  /** Shows each row of a generation. */
  #each(log: UndoLog, now: number, show: ShowChange): void {
    for (let at = 0; at < log.count; at++) {
      if (at % mostAhead === 0) this.#touch(log, at)
      const slot = log.slot(at)
      const key = scratch.of(this.table.keyLength(slot))
      this.table.copyKey(slot, key, 0)
      const i = slot * recordInts
      if (this.ints[i + formInt] === plainNumber && (this.ints[i + generationInt] as number) <= log.generation) {
        const d = slot * recordDoubles
        const bytes = this.codec.numberBytes(this.doubles[d + numberDouble] as number)
        if (bytes !== undefined) {
          show(key, bytes, this.doubles[d + timestampDouble] as number)
          continue
        }
      }
      const isThere = this.#load(slot, log.generation) >= decoded
      if (isThere) show(key, this.codec.bytes(this.#other, true), this.#other.timestamp)
      else show(key, null, now)
    }
  }

  /** Brings the next rows near, for they lie in no cache where there are many: waits for memory overlap. */
  #touch(log: UndoLog, from: number): void {
    const ints = this.ints
    const end = Math.min(log.count, from + mostAhead)
    let seen = 0
    for (let at = from; at < end; at++) {
      const i = log.slot(at) * recordInts
      seen ^= (ints[i + formInt] as number) ^ (ints[i + recordInts - 1] as number)
    }
    if (this.values.length > 0) for (let at = from; at < end; at++) seen ^= this.ahead.touchValue(log.slot(at))
    this.seen = seen
  }

  /** The row is the committed one. */
  #isSettled(slot: number): boolean {
    return (this.ints[slot * recordInts + generationInt] as number) <= this.#committed
  }

  /** Fills the row as it was in a generation; gives its form. */
  #load(slot: number, generation: number): number {
    const i = slot * recordInts
    let of = this.ints[i + generationInt] as number
    let undo = this.ints[i + undoInt] as number
    let form = this.ints[i + formInt] as number
    let value = this.valueAt(slot)
    let timestamp = this.doubles[slot * recordDoubles + timestampDouble] as number
    while (of > generation && of > this.#committed) {
      const log = this.#logOf(of)
      form = log.form(undo)
      value = log.value(undo)
      timestamp = log.timestamp(undo)
      of = log.generationAt(undo)
      undo = log.undo(undo)
    }
    this.fill(this.#other, form, value, timestamp)
    return form
  }

  #logOf(generation: number): UndoLog {
    if (this.#open.generation === generation) return this.#open
    const sealed = this.#sealed.find(({ log }) => log.generation === generation)
    assert(sealed !== undefined, `a row belongs to generation ${generation}, of which nothing is known`)
    return sealed.log
  }

  /** The entry that goes back to the committed row. */
  #oldestEntry(slot: number): [log: UndoLog, at: number] {
    let log = this.#logOf(this.ints[slot * recordInts + generationInt] as number)
    let at = this.ints[slot * recordInts + undoInt] as number
    while (log.generationAt(at) > this.#committed) {
      const before = log.undo(at)
      log = this.#logOf(log.generationAt(at))
      at = before
    }
    return [log, at]
  }

  #takeBack(log: UndoLog, at: number): void {
    const slot = log.slot(at)
    const i = slot * recordInts
    const form = log.form(at)
    const generation = log.generationAt(at)
    const isNothing = this.#front === undefined && form === deletion && generation <= this.#committed
    if (form === absent || isNothing) {
      this.#remove(slot)
      return
    }
    this.ints[i + formInt] = form
    this.ints[i + generationInt] = generation
    this.ints[i + undoInt] = log.undo(at)
    const value = log.value(at)
    if (form === plainNumber) this.doubles[slot * recordDoubles + numberDouble] = value as number
    this.keep(slot, form === plainNumber ? undefined : value)
    this.doubles[slot * recordDoubles + timestampDouble] = log.timestamp(at)
  }

  /** The generation's rows are the committed ones from now on. */
  #settle(log: UndoLog): void {
    this.#committed = log.generation
    if (this.#front !== undefined) {
      for (let at = 0; at < log.count; at++) {
        const slot = log.slot(at)
        // What was only put is there: the row itself, one of very many, need not be looked at.
        const isThere = !log.hasDeletions || this.#load(slot, log.generation) >= decoded
        this.#front.took(slot, log.form(at) >= decoded, isThere)
      }
    } else if (log.hasDeletions) {
      for (let at = 0; at < log.count; at++) {
        const slot = log.slot(at)
        const i = slot * recordInts
        // A slot that was put again in a newer epoch goes back to a committed deletion: that is to nothing.
        if (this.ints[i + formInt] === deletion && this.ints[i + generationInt] === log.generation) this.#remove(slot)
      }
    }
    this.#spareLog(log)
  }

  #spareLog(log: UndoLog): void {
    log.reset(0)
    this.#spare.push(log)
  }

  #checkWritable(): void {
    if (!this.#readOnly) return
    throw new EngineError('USAGE', 'A view of a store is for reading; write through the store itself.')
  }
}

const scratch = new Scratch()
