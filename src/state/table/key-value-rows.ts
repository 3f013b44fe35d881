/**
 * The rows of a key-value store, committed and not: one `RowTable`. Over a memory backend these are all of its rows, over one that
 * is written behind those that it does not have yet, and perhaps some that it has: it is asked for the rest. What was committed
 * needs no further touch, since a row is committed when its generation is.
 */
import { assert } from '../../base/assert.ts'
import type { CommitEpoch } from '../../base/ids.ts'
import { EngineError } from '../../base/errors.ts'
import { ByteRows } from '../rows/byte-rows.ts'
import type { Checkpoint } from '../contract.ts'
import { RowPrefetch } from './prefetch.ts'
import type { MemoryBackend } from '../backends/memory-backend.ts'
import { EmptySpans, type SpanWalk } from '../rows/empty-spans.ts'
import { bornAnew, isAnother, isYounger, type Layers, mergedRows } from '../rows/merged-rows.ts'
import { Row, type RowCodec } from '../rows/row.ts'
import { RowChanges } from '../rows/row-changes.ts'
import type { RowLayer } from '../rows/row-layer.ts'
import { absent, decoded, deletion, encoded } from './cell-record.ts'
import { RowTable } from './row-table.ts'
import { type BufferedKeyValues, KeyValueBuffer } from './key-value-buffer.ts'
import { SealedEpoch } from './sealed-epoch.ts'
import { KeyValuesInMemory } from './key-value-memory.ts'
import { KeyValueChanges } from './key-value-changes.ts'
import { CellTable } from './cell-table.ts'
import { SortedKeys } from '../rows/sorted-keys.ts'
import { UndoLog } from './undo-log.ts'
import { WriteBehind } from '../backends/write-behind.ts'

const noRows: ReadonlyArray<[string, Row]> = []

interface Sealed {
  readonly epoch: CommitEpoch
  readonly generation: number
}

export class KeyValueRows implements RowLayer, BufferedKeyValues {
  readonly codec: RowCodec
  readonly rows = new RowTable(new CellTable())
  /** Bytes of the open epoch's keys and values, about. */
  bytes = 0
  committedGeneration = 0
  readonly #backend: MemoryBackend | WriteBehind
  /** Those that the backend does not have, where it is written behind; and what it has. */
  readonly #buffer: KeyValueBuffer | undefined
  readonly #below: ByteRows | undefined
  readonly ahead = new RowPrefetch(this.rows.table, this.rows.values)
  readonly #shown: KeyValueChanges
  /** Counts the rows that came. */
  #lastBorn = 0
  #order: SortedKeys | undefined
  readonly #spans = new EmptySpans()
  /** The last of the table's logs. */
  #open = new UndoLog()
  #generation = 1
  #sealed: Sealed[] = []
  readonly #spare: UndoLog[] = []
  /** What was looked up last: an operator reads a row and then writes it. */
  #lastKey: string | undefined
  #lastCell = -1
  #lastHash = 0
  /** Whether a row of it lies below; undefined while nobody has looked. */
  #lastIsBelow: boolean | undefined
  /** The row that `get` gives, valid until the next call. */
  readonly #row = new Row(undefined, undefined, 0)
  /** The row was given out as these bytes of this cell: its reader may decode it. */
  #given: Uint8Array | undefined
  #givenCell = -1
  #readOnly: boolean

  constructor(backend: MemoryBackend | WriteBehind, codec: RowCodec, readOnly = false) {
    this.codec = codec
    this.#backend = backend
    this.#readOnly = readOnly
    this.#shown = new KeyValueChanges(this)
    this.#begin(this.#open)
    if (backend instanceof WriteBehind) {
      this.#below = new ByteRows(backend.backend, codec)
      this.#buffer = new KeyValueBuffer(this)
      backend.attach(this.#buffer)
    } else {
      backend.attach(new KeyValuesInMemory(this))
    }
  }

  get isChanged(): boolean {
    return this.#open.count > 0
  }

  get changedRows(): number {
    return this.#open.count
  }

  changes(): RowChanges {
    const log = this.#open
    const { rows } = this
    return new RowChanges(log.count, (at, into) => {
      const cell = log.cell(at)
      into.key = rows.table.keyOf(cell)
      rows.showChange(log, at, this.codec, into)
      if (log.form(at) === absent && this.#buffer?.mayBeBelow(rows.table.hashAt(cell)) === true)
        into.showBefore(this.#below?.get(into.key))
      return true
    })
  }

  /** The row is valid until the next call. */
  get(key: string): Row | undefined {
    if (this.#given !== undefined) this.#keepDecoded()
    const cell = this.#find(key)
    if (cell < 0) return this.#below && this.#belowAt(this.#below, key)
    const { rows } = this
    const form = rows.form(cell)
    if (form < decoded) return undefined
    const row = this.#row
    rows.fill(row, cell, this.codec)
    if (form === encoded) {
      this.#given = rows.values[cell] as Uint8Array
      this.#givenCell = cell
    }
    return row
  }

  put(key: string, value: unknown, timestamp: number): void {
    this.#checkWritable()
    if (this.#given !== undefined) this.#keepDecoded()
    const row = this.#row
    this.codec.replace(row, value, timestamp)
    let cell = this.#find(key)
    if (cell < 0) cell = this.#come(key)
    else if (this.rows.form(cell) === deletion) {
      this.#spans.cut(key)
      this.rows.setBorn(cell, bornAnew(++this.#lastBorn))
    }
    this.#change(cell, key.length)
    this.rows.set(cell, row)
    this.bytes += this.codec.weight(row)
  }

  delete(key: string): void {
    let cell = this.#find(key)
    if (cell < 0 && (this.#below === undefined || this.#belowAt(this.#below, key) === undefined)) return
    if (cell >= 0 && this.rows.form(cell) === deletion) return
    this.#checkWritable()
    if (cell < 0) cell = this.add(key)
    this.#change(cell, key.length)
    this.rows.delete(cell)
    this.#open.hasDeletions = true
  }

  /** Rows in [from, to), without keys that came after the call. A row is given as it is when its turn comes. */
  range(from: string | undefined, to: string | undefined, reverse = false): IterableIterator<[string, Row]> {
    const walk = this.#spans.walk(from, to, reverse)
    if (walk.isEmpty) return noRows[Symbol.iterator]()
    return this.#walk(walk.from, walk.to, reverse, Number.POSITIVE_INFINITY, walk)
  }

  /** Committed rows of which no uncommitted change speaks, from `from` on. */
  settled(from: string | undefined): IterableIterator<[string, Row]> {
    return this.#walk(from, undefined, false, this.committedGeneration)
  }

  seal(epoch: CommitEpoch): SealedEpoch | null {
    const last = this.#sealed[this.#sealed.length - 1]
    assert(last === undefined || last.epoch < epoch, `epoch ${epoch} is sealed after epoch ${last?.epoch}`)
    this.#lastKey = undefined
    if (this.#open.count === 0) return null
    const log = this.#open
    this.#sealed.push({ epoch, generation: this.#generation++ })
    this.#begin(this.#spare.pop() ?? new UndoLog())
    this.bytes = 0
    return new SealedEpoch(epoch, log.count, (now, show) => this.#shown.each(log, now, show))
  }

  settleAll(): void {
    for (const sealed of this.#sealed) this.#settle(sealed)
    this.#sealed = []
  }

  applied(epoch: CommitEpoch, dropped: readonly string[], checkpoint: Checkpoint): void {
    const oldest = this.#sealed[0]
    if (oldest !== undefined && oldest.epoch <= epoch) {
      assert(oldest.epoch === epoch, `epoch ${epoch} is applied before epoch ${oldest.epoch}`)
      this.#settle(oldest)
      this.#sealed.shift()
    }
    this.#lastKey = undefined
    if (this.#backend instanceof WriteBehind) {
      this.#backend.advance(checkpoint, dropped)
      return
    }
    for (const key of dropped) {
      const cell = this.rows.table.find(key)
      if (cell >= 0 && this.rows.generation(cell) <= this.committedGeneration) this.remove(cell)
    }
    this.#backend.advance(checkpoint)
  }

  discard(): void {
    const { logs } = this.rows
    assert(logs.at(-1) === this.#open, 'the open epoch is the newest')
    for (const log of logs.splice(0).reverse()) {
      for (let at = log.count - 1; at >= 0; at--) this.#takeBack(log, at)
      this.#spareLog(log)
    }
    this.#sealed = []
    this.#begin(this.#spare.pop() as UndoLog)
    this.#lastKey = undefined
    this.#spans.clear()
    this.bytes = 0
  }

  freeze(): void {
    this.#readOnly = true
  }

  changedBelow(): void {
    this.changedHere()
  }

  /** A cell for a key that has none. */
  add(key: string, born = ++this.#lastBorn): number {
    const { rows } = this
    const cell = key === this.#lastKey ? rows.add(key, born, this.#lastHash) : rows.add(key, born)
    this.#order?.add(key)
    this.#buffer?.added(cell, key === this.#lastKey ? this.#lastIsBelow : undefined)
    this.#lastKey = key
    this.#lastHash = rows.table.hashAt(cell)
    this.#lastCell = cell
    return cell
  }

  remove(cell: number): void {
    if (this.#order !== undefined) this.#order.delete(this.rows.table.keyOf(cell))
    this.rows.remove(cell)
    this.#lastKey = undefined
  }

  keys(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<string> {
    const { table } = this.rows
    this.#order ??= new SortedKeys([...table.taken()].map((cell) => table.keyOf(cell)))
    return this.#order.range(from, to, reverse)
  }

  changedHere(): void {
    this.#lastKey = undefined
    this.#spans.clear()
  }

  clear(): void {
    this.rows.clear()
    this.rows.logs.length = 0
    this.#order = undefined
    this.#sealed = []
    this.#begin(this.#open)
    this.changedHere()
    this.bytes = 0
  }

  /** A cell for a key that comes. */
  #come(key: string): number {
    this.#spans.cut(key)
    return this.add(key)
  }

  #find(key: string): number {
    if (key !== this.#lastKey) {
      const { table } = this.rows
      this.#lastCell = table.find(key)
      this.#lastHash = table.lastHash
      this.#lastKey = key
      this.#lastIsBelow = undefined
    }
    return this.#lastCell
  }

  /** The row below of the key that was looked for last, and is not here. */
  #belowAt(below: ByteRows, key: string): Row | undefined {
    const row = this.#buffer?.mayBeBelow(this.#lastHash) === false ? undefined : below.get(key)
    this.#lastIsBelow = row !== undefined
    return row
  }

  /** Rows in [from, to), as far as they are of the generation `newest` or older. */
  #walk(
    from: string | undefined,
    to: string | undefined,
    reverse: boolean,
    newest: number,
    spans?: SpanWalk,
  ): IterableIterator<[string, Row]> {
    if (this.#below !== undefined) return mergedRows(this.#layers(this.#below, newest), from, to, reverse, spans)
    return this.#walkHere(this.keys(from, to, reverse), this.#lastBorn, newest, spans)
  }

  *#walkHere(
    keys: IterableIterator<string>,
    youngest: number,
    newest: number,
    spans: SpanWalk | undefined,
  ): IterableIterator<[string, Row]> {
    const { rows } = this
    for (const key of keys) {
      const cell = rows.table.find(key)
      if (cell < 0 || isYounger(rows.bornAt(cell), youngest) || rows.generation(cell) > newest) continue
      const row = rows.rowAt(cell, this.codec)
      if (row === undefined) {
        spans?.gone()
        continue
      }
      spans?.found(key)
      yield [key, row]
    }
    spans?.ended()
  }

  /** Rows with those below; of younger generations than `newest` there is none. */
  #layers(below: ByteRows, newest: number): Layers<Row> {
    const youngest = this.#lastBorn
    const { rows } = this
    return {
      keys: (from, to, reverse) => this.keys(from, to, reverse),
      at: (key) => {
        const cell = rows.table.find(key)
        if (cell < 0) return undefined
        if (rows.generation(cell) > newest || isAnother(rows.bornAt(cell), youngest)) return null
        return rows.rowAt(cell, this.codec) ?? null
      },
      isOld: (key) => {
        const cell = rows.table.find(key)
        return cell < 0 || !isYounger(rows.bornAt(cell), youngest)
      },
      below: (from, to, reverse) => below.range(from, to, reverse),
      writes: () => (this.#backend as WriteBehind).writes,
    }
  }

  /** The row is about to be changed in the open epoch. */
  #change(cell: number, keyLength: number): void {
    if (this.rows.generation(cell) === this.#generation) {
      this.bytes -= this.rows.weight(cell)
      return
    }
    this.rows.change(cell, this.#open)
    this.bytes += keyLength
  }

  /** Whoever got the row as bytes has decoded it, as far as a decoded value may be kept. */
  #keepDecoded(): void {
    const row = this.#row
    const cell = this.#givenCell
    if (row.bytes === undefined && this.rows.values[cell] === this.#given) this.rows.set(cell, row)
    this.#given = undefined
  }

  #takeBack(log: UndoLog, at: number): void {
    const form = this.rows.takeBack(log, at)
    const cell = log.cell(at)
    const isCommitted = this.rows.generation(cell) <= this.committedGeneration
    const isNothing = this.#buffer === undefined && form === deletion && isCommitted
    if (form === absent || isNothing) this.remove(cell)
  }

  /** The generation's rows are the committed ones from now on. */
  #settle({ generation }: Sealed): void {
    const log = this.rows.takeLog(generation)
    assert(generation > this.committedGeneration, `generation ${generation} is committed twice`)
    this.committedGeneration = generation
    if (this.#buffer !== undefined) this.#buffer.settle(log)
    else if (log.hasDeletions) {
      for (let at = 0; at < log.count; at++) {
        const cell = log.cell(at)
        // A cell that was put again in a newer epoch goes back to a committed deletion: that is to nothing.
        if (this.rows.form(cell) === deletion && this.rows.generation(cell) === generation) this.remove(cell)
      }
    }
    this.#spareLog(log)
  }

  /** The open epoch's changes are undone by this log. */
  #begin(log: UndoLog): void {
    const { logs } = this.rows
    assert(
      logs.length === this.#sealed.length,
      `${logs.length} undo logs stand for ${this.#sealed.length} sealed epochs`,
    )
    log.reset(this.#generation)
    logs.push(log)
    this.#open = log
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
