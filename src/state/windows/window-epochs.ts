/** The epochs of a window store that are not committed: which rows each of them changed, and how they end. */
import { assert } from '../../base/assert.ts'
import type { CommitEpoch } from '../../base/ids.ts'
import { absent, deletion } from '../table/cell-record.ts'
import { UndoLog } from '../table/undo-log.ts'
import type { WindowBuffer } from './window-buffer.ts'
import { unpublished, type SegmentTable } from './segment-table.ts'
import type { WindowGeneration } from './window-sealed.ts'
import type { Segment, WindowTable } from './window-table.ts'

/** Logs kept for use again, at most. */
const mostSpareLogs = 8

/** Where rows lie once they are committed: in the table for good, in it until they are written, or in the backend. */
export type CommittedPlace = 'memory' | 'write-behind' | 'backend'

export class WindowEpochs {
  /** That of the open epoch. */
  generation = 1
  committedGeneration = 0
  /** Rows that the open epoch changed. */
  changes = 0
  readonly #table: WindowTable
  readonly #committedPlace: CommittedPlace
  readonly #buffer: WindowBuffer | undefined
  /** Those with changes of the open epoch. */
  #open: SegmentTable[] = []
  #sealed: WindowGeneration[] = []
  readonly #spare: UndoLog[] = []

  constructor(table: WindowTable, committedPlace: CommittedPlace, buffer: WindowBuffer | undefined) {
    assert(
      (buffer !== undefined) === (committedPlace === 'write-behind'),
      'what is written behind stands in a write buffer',
    )
    this.#table = table
    this.#committedPlace = committedPlace
    this.#buffer = buffer
  }

  /** What the open epoch has changed so far. */
  get open(): Pick<WindowGeneration, 'generation' | 'places'> {
    return { generation: this.generation, places: this.#open }
  }

  /** The log of what the open epoch changes in a place. */
  logOf(place: SegmentTable): UndoLog {
    const { logs } = place
    const last = logs[logs.length - 1]
    if (last !== undefined && last.generation === this.generation) return last
    const log = this.#spare.pop() ?? new UndoLog()
    log.reset(this.generation)
    logs.push(log)
    this.#open.push(place)
    // It was to leave with what it had.
    place.segment.leavesWith = Number.POSITIVE_INFINITY
    return log
  }

  /** The row is about to be changed for the first time in the open epoch. */
  change(place: SegmentTable, cell: number): void {
    place.change(cell, this.logOf(place))
    this.changes++
  }

  /** The open epoch's changes; null when there are none. The next epoch is open from now on. */
  seal(epoch: CommitEpoch): WindowGeneration | null {
    const last = this.#sealed[this.#sealed.length - 1]
    assert(last === undefined || last.epoch < epoch, `epoch ${epoch} is sealed after epoch ${last?.epoch}`)
    const places = this.#open
    this.#open = []
    if (this.changes === 0) {
      // What came and went leaves nothing but its traces.
      for (const place of places) this.#spareLog(place.takeLog(this.generation))
      return null
    }
    const sealed = { epoch, generation: this.generation++, count: this.changes, places }
    this.#sealed.push(sealed)
    this.changes = 0
    return sealed
  }

  /** What was sealed under this epoch; undefined where that was nothing. */
  sealedAs(epoch: CommitEpoch): WindowGeneration | undefined {
    const oldest = this.#sealed[0]
    if (oldest === undefined || oldest.epoch > epoch) return undefined
    assert(oldest.epoch === epoch, `epoch ${epoch} is applied before epoch ${oldest.epoch}`)
    return oldest
  }

  /** The oldest sealed epoch's rows are the committed ones from now on. */
  settleOldest(): void {
    const oldest = this.#sealed.shift()
    assert(oldest !== undefined, 'an epoch is committed that nobody sealed')
    this.#settle(oldest)
  }

  settleAll(): void {
    while (this.#sealed.length > 0) this.settleOldest()
  }

  /** Takes all changes back that are not committed, the newest first. */
  discard(): void {
    const generations = [...this.#sealed, { generation: this.generation, places: this.#open }].reverse()
    for (const { generation, places } of generations) {
      for (const place of places) this.#takeBack(place, place.takeLog(generation))
    }
    this.#table.keepAll()
    this.clear()
  }

  /** Nothing is uncommitted any more. */
  clear(): void {
    this.#open = []
    this.changes = 0
    this.#sealed = []
  }

  /** All that is in the segment came with the open epoch. */
  isBorn({ places }: Segment): boolean {
    return places.every(({ firstGeneration }) => firstGeneration === this.generation)
  }

  /** Takes such a segment out; the open epoch knows nothing of it any more. */
  dropBorn(segment: Segment): void {
    for (const { logs } of segment.places) {
      for (const log of logs.splice(0)) {
        assert(log.generation === this.generation, 'a segment that came with the open epoch has changes of another one')
        this.changes -= log.count
        this.#spareLog(log)
      }
    }
    assert(this.changes >= 0, `the open epoch has ${this.changes} changes`)
    this.#table.detach(segment)
  }

  /** Takes a row out that came with the open epoch: it is never told. False where the row is older. */
  dropBornRow(place: SegmentTable, cell: number): boolean {
    if (place.generation(cell) !== this.generation) return false
    if (!place.forgetBirth(cell, this.logOf(place))) return false
    this.#table.remove(place, cell)
    this.changes--
    return true
  }

  /** Segments were taken out: what they changed in the open epoch is not looked at again. */
  leaveDetached(): void {
    this.#open = this.#open.filter(({ segment }) => segment.isAttached)
  }

  #settle({ generation, places }: WindowGeneration): void {
    assert(generation > this.committedGeneration, `generation ${generation} is committed twice`)
    this.committedGeneration = generation
    const buffer = this.#buffer
    for (const place of places) {
      const log = place.takeLog(generation)
      const { segment } = place
      if (segment.isAttached) {
        if (segment.leavesWith <= generation && (buffer?.isAllNew(segment) ?? true)) this.#drop(segment)
        else if (buffer !== undefined) buffer.settle(place, log)
        else if (this.#committedPlace === 'backend') this.#release(place, log)
        else if (log.hasDeletions) this.#removeDeleted(place, log)
        if (segment.size === 0) this.#table.detach(segment)
      }
      this.#spareLog(log)
    }
  }

  #drop(segment: Segment): void {
    if (this.#buffer !== undefined) this.#buffer.drop(segment)
    else this.#table.detach(segment)
  }

  #removeDeleted(place: SegmentTable, log: UndoLog): void {
    for (let at = 0; at < log.count; at++) {
      const cell = log.cell(at)
      if (log.form(at) === unpublished) continue
      // A cell that was put again in a newer epoch goes back to a committed deletion: that is to nothing.
      if (place.form(cell) === deletion && place.generation(cell) === log.generation) this.#table.remove(place, cell)
    }
  }

  /** The generation's rows lie in the backend from now on. */
  #release(place: SegmentTable, log: UndoLog): void {
    for (let at = 0; at < log.count; at++) {
      if (log.form(at) === unpublished) continue
      const cell = log.cell(at)
      if (place.generation(cell) <= log.generation) this.#table.remove(place, cell)
      else place.replaceCommitted(cell, log.generation, absent, undefined)
    }
  }

  #takeBack(place: SegmentTable, log: UndoLog): void {
    for (let at = log.count - 1; at >= 0; at--) {
      if (log.form(at) === unpublished) continue
      const cell = log.cell(at)
      const form = place.takeBack(log, at)
      const isNothing =
        form === deletion && place.generation(cell) <= this.committedGeneration && !this.#buffer?.holds(place, cell)
      if (form !== absent && !isNothing) continue
      this.#buffer?.removed(place, cell)
      this.#table.remove(place, cell)
    }
    this.#spareLog(log)
    if (place.segment.size === 0) this.#table.detach(place.segment)
  }

  #spareLog(log: UndoLog): void {
    log.reset(0)
    if (this.#spare.length < mostSpareLogs) this.#spare.push(log)
  }
}
