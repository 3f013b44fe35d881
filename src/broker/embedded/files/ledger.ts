/**
 * Tells the journal what the segments hold. Each entry takes with it what was written to segments since the one before, so
 * that bytes which are missing or changed later are missed by somebody, at no cost for a record.
 */
import { BrokerError } from '../../port.ts'
import type { JournalEntry } from '../core/storage.ts'
import type { JournalFile } from '../journal-file.ts'
import type { OpenFiles } from '../open-files.ts'
import type { FilesEntry, SegmentRow } from './journal-frames.ts'
import { KnownSegments } from './known-segments.ts'

/** A segment as far as the ledger needs it. */
export interface Kept {
  readonly topicId: string
  readonly baseOffset: number
  row(): SegmentRow
  /** Cuts off what was found behind its end at start. */
  cutTorn(): void
}

export class Ledger {
  readonly known = new KnownSegments()
  readonly #journal: JournalFile
  readonly #files: OpenFiles
  readonly #fsync: boolean
  /** Written to since the last entry. */
  readonly #changed = new Set<Kept>()
  /** Of segments that are replaced or gone, where the journal had no room for it. */
  #untold: SegmentRow[] = []
  /** False until the folder was read back: up to then nothing is written to the journal. */
  #ready = false

  constructor(journal: JournalFile, files: OpenFiles, fsync: boolean) {
    this.#journal = journal
    this.#files = files
    this.#fsync = fsync
  }

  changed(segment: Kept): void {
    this.#changed.add(segment)
  }

  forget(segment: Kept): void {
    this.#changed.delete(segment)
  }

  forgetTopic(topicId: string): void {
    this.known.dropTopic(topicId)
    for (const segment of this.#changed) if (segment.topicId === topicId) this.#changed.delete(segment)
  }

  entry(entry: JournalEntry): void {
    // The data of a transaction is on the disk before the decision is: the journal vouches for it from then on.
    const decides = entry.kind === 'producer' && entry.ended !== null
    if (this.#fsync && decides) this.#files.sync()
    this.#append(entry, !this.#fsync || decides)
  }

  /** What was written is about to be acknowledged: with `fsync` it is forced to the disk first, and counts from then on. */
  written(): void {
    if (this.#fsync) {
      this.#files.sync()
      this.#journal.synced()
    }
    this.#confirm()
  }

  /** Something about segments is to be known before it is done. `rows` are what will be there then. */
  announce(entry: FilesEntry, rows: readonly SegmentRow[]): void {
    if (this.#ready) this.#journal.append(entry, rows)
    for (const row of rows) this.known.set(row)
  }

  /** As `announce`, of what is done already; where the journal has no room for it, a later entry tells it. */
  announceLate(rows: readonly SegmentRow[]): void {
    try {
      this.announce({ kind: 'segments' }, rows)
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
      this.#untold.push(...rows)
    }
  }

  replaceJournal(entries: readonly JournalEntry[]): void {
    if (this.#fsync) this.#files.sync()
    for (const row of this.#untold) this.known.set(row)
    for (const segment of this.#changed) {
      segment.cutTorn()
      this.known.set(segment.row())
    }
    this.#journal.replace(entries, this.known.rows())
    this.#changed.clear()
    this.#untold = []
    this.#ready = true
  }

  close(): void {
    if (this.#fsync && this.#ready) this.written()
    this.#journal.close()
  }

  /** The data is where it should be, journal or not: where that has no room, the next entry tells it. */
  #confirm(): void {
    if (this.#changed.size === 0) return
    try {
      this.#append({ kind: 'segments' }, true)
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
    }
  }

  #append(entry: JournalEntry | FilesEntry, tells: boolean): void {
    const rows = tells ? [...this.#untold, ...Array.from(this.#changed, (segment) => segment.row())] : []
    this.#journal.append(entry, rows)
    for (const row of rows) this.known.set(row)
    if (!tells) return
    this.#changed.clear()
    this.#untold = []
  }
}
