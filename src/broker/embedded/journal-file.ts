/** The journal on disk: one entry after the other, each with its length and checksum before it. */
import { existsSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { crc32c } from '../../wire/crc32c.ts'
import { readInt32, writeInt32 } from '../../wire/integers.ts'
import { BrokerError } from '../port.ts'
import { appendWhole, storageError } from './disk-segment.ts'
import type { JournalEntry } from './core/storage.ts'
import type { OpenFiles } from './open-files.ts'

const frameHead = 8
/** A journal is replaced by a snapshot once it is both this long and several times the last snapshot. */
const longFrom = 4 * 2 ** 20
const timesTheSnapshot = 4

export class JournalFile {
  readonly #path: string
  readonly #files: OpenFiles
  #size = 0
  #snapshotSize = 0
  #wasCut = false

  constructor(path: string, files: OpenFiles) {
    this.#path = path
    this.#files = files
  }

  /** True if the last reading found a torn end. */
  get wasCut(): boolean {
    return this.#wasCut
  }

  get isLong(): boolean {
    return this.#size > Math.max(longFrom, this.#snapshotSize * timesTheSnapshot)
  }

  append(entry: JournalEntry): void {
    const frame = frameOf(entry)
    appendWhole(this.#files, this.#path, this.#size, frame)
    this.#size += frame.length
  }

  /** Reads all entries; a torn one at the end is cut off. */
  read(): JournalEntry[] {
    if (!existsSync(this.#path)) return []
    const bytes = readFileSync(this.#path)
    const entries: JournalEntry[] = []
    let at = 0
    for (;;) {
      const length = at + frameHead <= bytes.length ? readInt32(bytes, at) : -1
      const end = at + frameHead + length
      if (length < 0 || end > bytes.length) break
      if (readInt32(bytes, at + 4) >>> 0 !== crc32c(bytes, at + frameHead, end)) {
        // A write that was cut short is the last one: anything behind it says that the disk lost data.
        if (end < bytes.length) throw damaged(this.#path, at)
        break
      }
      entries.push(JSON.parse(bytes.toString('utf8', at + frameHead, end)) as JournalEntry)
      at = end
    }
    this.#wasCut = at < bytes.length
    if (this.#wasCut) truncateSync(this.#path, at)
    this.#size = at
    return entries
  }

  /** Puts the entries in the place of all there are, in one step. */
  replace(entries: readonly JournalEntry[], fsync: boolean): void {
    const content = Buffer.concat(entries.map(frameOf))
    const next = `${this.#path}.new`
    // Should this fail, the next attempt comes when the journal has grown by as much again.
    this.#snapshotSize = this.#size
    writeNew(next, content, fsync)
    this.#files.forget(this.#path)
    renameSync(next, this.#path)
    this.#size = content.length
    this.#snapshotSize = content.length
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

function damaged(path: string, at: number): BrokerError {
  return new BrokerError(
    'KAFKA_STORAGE_ERROR',
    `The embedded broker's journal ${path} is damaged at byte ${at}, before its end: the disk lost data. Restore the folder from a copy, or delete it to begin anew.`,
    'config',
  )
}

function frameOf(entry: JournalEntry): Uint8Array {
  const text = Buffer.from(JSON.stringify(entry))
  const frame = new Uint8Array(frameHead + text.length)
  writeInt32(frame, 0, text.length)
  writeInt32(frame, 4, crc32c(text))
  frame.set(text, frameHead)
  return frame
}
