/** The journal on disk, with the file beside it that says how far it went. */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { JournalEntry } from './core/storage.ts'
import { JournalEnd, type LastEntry } from './files/journal-end.ts'
import {
  type FilesEntry,
  frameOf,
  type JournalRecord,
  journalVersion,
  type SegmentRow,
} from './files/journal-frames.ts'
import { type JudgedJournal, judgeJournal } from './files/journal-judge.ts'
import { appendWhole, type OpenFiles, storageError } from './open-files.ts'

/** A journal is replaced by a snapshot once it is both this long and several times the last snapshot. */
const longFrom = 4 * 2 ** 20
const timesTheSnapshot = 4

export class JournalFile {
  readonly path: string
  readonly #files: OpenFiles
  readonly #end: JournalEnd
  #size = 0
  #snapshotSize = 0
  #last: LastEntry = { n: 0, crc: 0 }

  constructor(path: string, files: OpenFiles) {
    this.path = path
    this.#files = files
    this.#end = new JournalEnd(`${path}.end`)
  }

  get isLong(): boolean {
    return this.#size > Math.max(longFrom, this.#snapshotSize * timesTheSnapshot)
  }

  /** Reads and judges it; changes nothing. `used`: whether the folder holds anything else that was written. */
  read(used: boolean): JudgedJournal {
    const bytes = existsSync(this.path) ? readFileSync(this.path) : undefined
    const last = this.#end.read()
    const judged = judgeJournal({ bytes, last, used: used || this.#end.exists })
    this.#last = { n: Math.max(judged.frames.at(-1)?.record.n ?? 0, last?.n ?? 0), crc: 0 }
    // What is done about it must not be on the disk before it is: the process before this one may have been killed.
    if (bytes !== undefined) this.#files.written(this.path)
    this.#files.syncFile(this.path)
    return judged
  }

  append(entry: JournalEntry | FilesEntry, segments: readonly SegmentRow[]): void {
    const n = this.#last.n + 1
    const { bytes, crc } = frameOf(segments.length === 0 ? { ...entry, n } : { ...entry, n, segments })
    appendWhole(this.#files, this.path, this.#size, bytes)
    this.#size += bytes.length
    this.#last = { n, crc }
    // What is not forced to the disk may be lost there, and then nobody is to expect it.
    if (!this.#files.syncs) this.#end.write(this.#last)
  }

  /** With `fsync` forces all of it to the disk: from then on somebody expects it. */
  sync(): void {
    if (!this.#files.syncs) return
    this.#files.syncFile(this.path)
    this.#end.write(this.#last)
  }

  /** Puts the entries in the place of all there are, in one step. */
  replace(entries: readonly JournalEntry[], segments: readonly SegmentRow[]): void {
    const records: Array<JournalEntry | FilesEntry> = [this.#format(), ...entries]
    let { n, crc } = this.#last
    const frames = records.map((entry, i) => {
      const record: JournalRecord = { ...entry, n: ++n, ...(i === 0 && { segments }) }
      const frame = frameOf(record)
      crc = frame.crc
      return frame.bytes
    })
    const content = Buffer.concat(frames)
    const next = `${this.path}.new`
    // Should this fail, the next attempt comes when the journal has grown by as much again.
    this.#snapshotSize = this.#size
    writeNew(next, content, this.#files.syncs)
    this.#files.forget(this.path)
    renameSync(next, this.path)
    this.#size = content.length
    this.#snapshotSize = content.length
    this.#last = { n, crc }
    this.#files.syncFolder(dirname(this.path))
    this.#end.write(this.#last)
    if (this.#files.syncs) this.#end.sync()
  }

  #format(): FilesEntry {
    const format = { kind: 'format', version: journalVersion } as const
    return this.#files.syncs ? { ...format, forced: true } : format
  }

  close(): void {
    this.#end.close()
  }
}

/** Writes a file that will take the place of another one; where the disk is full it leaves nothing. */
export function writeNew(path: string, content: Uint8Array, fsync: boolean): void {
  try {
    writeFileSync(path, content, { flush: fsync })
  } catch (error) {
    rmSync(path, { force: true })
    throw storageError(path, error instanceof Error ? error.message : String(error), error)
  }
}
