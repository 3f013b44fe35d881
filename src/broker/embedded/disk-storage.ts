/**
 * The embedded broker's data in a folder: a journal, and for every partition its segments of record batches as they were
 * produced. Bytes are written before they are acknowledged, so that they survive the end of the process, however sudden;
 * a write that was cut short is recognised by its checksum at the next start and cut off.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { JournalEntry, PartitionFiles, SegmentFile, Storage } from './core/storage.ts'
import { DiskSegment, storageError } from './disk-segment.ts'
import { lockFolder } from './folder-lock.ts'
import { JournalFile, writeNew } from './journal-file.ts'
import { OpenFiles } from './open-files.ts'

export interface DiskStorageOptions {
  /** Forces the bytes to the disk whenever a transaction ends. */
  readonly fsync: boolean
}

const segmentName = /^(\d{20})\.log$/

class DiskPartition implements PartitionFiles {
  readonly #folder: string
  readonly #files: OpenFiles
  readonly #fsync: boolean

  constructor(folder: string, files: OpenFiles, fsync: boolean) {
    this.#folder = folder
    this.#files = files
    this.#fsync = fsync
  }

  list(): SegmentFile[] {
    if (!existsSync(this.#folder)) return []
    const segments: SegmentFile[] = []
    for (const name of readdirSync(this.#folder).sort()) {
      const path = join(this.#folder, name)
      const match = segmentName.exec(name)
      // Anything else is a compaction that did not get to its end.
      if (match === null) rmSync(path)
      else segments.push(new DiskSegment(Number(match[1]), path, statSync(path).size, this.#files))
    }
    return segments
  }

  create(baseOffset: number): SegmentFile {
    mkdirSync(this.#folder, { recursive: true })
    return new DiskSegment(baseOffset, this.#path(baseOffset), 0, this.#files)
  }

  replace(old: readonly DiskSegment[], content: readonly Uint8Array[]): SegmentFile {
    const baseOffset = old[0]?.baseOffset ?? 0
    const path = this.#path(baseOffset)
    const next = `${path}.new`
    const bytes = Buffer.concat(content)
    writeNew(next, bytes, this.#fsync)
    for (const segment of old) this.#files.forget(segment.path)
    renameSync(next, path)
    // A crash here leaves segments that the new one covers; they are recognised by that at the next start.
    for (const segment of old) if (segment.path !== path) rmSync(segment.path)
    return new DiskSegment(baseOffset, path, bytes.length, this.#files)
  }

  remove(segment: DiskSegment): void {
    this.#files.forget(segment.path)
    rmSync(segment.path, { force: true })
  }

  #path(baseOffset: number): string {
    return join(this.#folder, `${String(baseOffset).padStart(20, '0')}.log`)
  }
}

/** Opens the folder, or makes it. Throws a `BrokerError` where another process holds it. */
export function openDiskStorage(folder: string, { fsync }: DiskStorageOptions): Storage {
  const files = new OpenFiles(fsync)
  const topics = join(folder, 'topics')
  const unlock = prepared(folder, topics)
  const journal = new JournalFile(join(folder, 'journal'), files)
  return {
    journal: (entry) => {
      journal.append(entry)
    },
    journalEntries: () => {
      const entries = journal.read()
      if (!journal.wasCut) removeLeftovers(topics, entries)
      return entries
    },
    journalIsLong: () => journal.isLong,
    replaceJournal: (entries) => {
      journal.replace(entries, fsync)
    },
    partition: (topicId, partition) => new DiskPartition(join(topics, topicId, String(partition)), files, fsync),
    removeTopic: (topicId) => {
      files.closeAll()
      rmSync(join(topics, topicId), { recursive: true, force: true })
    },
    transactionEnded: () => {
      files.sync()
    },
    close: () => {
      files.closeAll()
      unlock()
    },
  }
}

function prepared(folder: string, topics: string): () => void {
  try {
    mkdirSync(topics, { recursive: true })
  } catch (error) {
    throw storageError(folder, error instanceof Error ? error.message : String(error), error)
  }
  return lockFolder(folder)
}

/** Data of topics that were deleted when the process ended. Not looked for when the journal's end was lost. */
function removeLeftovers(topics: string, entries: readonly JournalEntry[]): void {
  const living = new Map<string, string>()
  for (const entry of entries) {
    if (entry.kind === 'topic') living.set(entry.topic, entry.topicId)
    else if (entry.kind === 'topic-deleted') living.delete(entry.topic)
  }
  const ids = new Set(living.values())
  for (const id of readdirSync(topics)) if (!ids.has(id)) rmSync(join(topics, id), { recursive: true, force: true })
}
