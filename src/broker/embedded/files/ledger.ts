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
  /** Makes the file what it was taken for at start. */
  settle(): void
}

export class Ledger {
  readonly known = new KnownSegments()
  readonly #journal: JournalFile
  readonly #files: OpenFiles
  /** Written to since the last entry. */
  readonly #changed = new Set<Kept>()
  /** Of segments that are replaced or gone, where the journal had no room for it. */
  #untold: SegmentRow[] = []
  /** False until the folder was read back: up to then nothing is written to the journal. */
  #ready = false

  constructor(journal: JournalFile, files: OpenFiles) {
    this.#journal = journal
    this.#files = files
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
    if (decides) this.#files.syncAllBut(this.#journal.path)
    this.#append(entry, !this.#files.syncs || decides)
    // What follows these must not be on the disk before they are: a transaction's markers, a feed's records, a topic's files
    // that are gone.
    if (decides || entry.kind === 'feed' || entry.kind === 'topic-deleted') this.#journal.sync()
  }

  /** What was written is about to be acknowledged: with `fsync` it is forced to the disk first, and the journal tells of it. */
  written(): void {
    this.#files.syncAllBut(this.#journal.path)
    this.#confirm()
    this.#journal.sync()
  }

  /** Something about segments is to be known before it is done. `rows` are what will be there then. */
  announce(entry: FilesEntry, rows: readonly SegmentRow[]): void {
    this.#tell(entry, rows)
    if (this.#ready) this.#journal.sync()
  }

  /** As `announce`, of what is done already; where the journal has no room for it, a later entry tells it. */
  announceLate(rows: readonly SegmentRow[]): void {
    try {
      this.#tell({ kind: 'segments' }, rows)
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
      this.#untold.push(...rows)
    }
  }

  replaceJournal(entries: readonly JournalEntry[]): void {
    for (const segment of this.#changed) segment.settle()
    this.#files.syncAllBut(this.#journal.path)
    for (const row of this.#untold) this.known.set(row)
    for (const segment of this.#changed) this.known.set(segment.row())
    this.#journal.replace(entries, this.known.rows())
    this.#changed.clear()
    this.#untold = []
    this.#ready = true
  }

  close(): void {
    if (this.#files.syncs && this.#ready && !this.#files.hasFailed) this.written()
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

  #tell(entry: FilesEntry, rows: readonly SegmentRow[]): void {
    if (this.#ready) this.#journal.append(entry, rows)
    for (const row of rows) this.known.set(row)
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
