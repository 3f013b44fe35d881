/**
 * The embedded broker's data in a folder: a journal, and for every partition its segments of record batches as they were
 * produced. Bytes are written before they are acknowledged, so that they survive the end of the process, however sudden;
 * a write that was cut short is recognised at the next start and cut off. The journal knows what the segments hold: whatever
 * else is missing or changed there is refused, and left as it is.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isOnReadOnlyFileSystem } from '../../base/named-file.ts'
import { BrokerError } from '../port.ts'
import { chainBehindAll } from './core/segment-scan.ts'
import type { JournalEntry, PartitionFiles, SegmentFile, Storage } from './core/storage.ts'
import { DiskSegment, type SegmentHome } from './disk-segment.ts'
import { damagedFile } from './files/damage.ts'
import { brokerEntry, type JournalRecord } from './files/journal-frames.ts'
import { type Promises, promisesOf } from './files/journal-judge.ts'
import { Ledger } from './files/ledger.ts'
import { listSegments, segmentPath } from './files/segment-listing.ts'
import { lockFolder } from './folder-lock.ts'
import { JournalFile, writeNew } from './journal-file.ts'
import { OpenFiles, storageError } from './open-files.ts'

export interface DiskStorageOptions {
  /** Forces the bytes to the disk before a transaction's end, or anything outside of one, is acknowledged. */
  readonly fsync: boolean
}

class DiskPartition implements PartitionFiles {
  readonly isComplete: boolean
  readonly isForced: boolean
  readonly #folder: string
  readonly #home: SegmentHome

  constructor(folder: string, home: SegmentHome, isComplete: boolean) {
    this.#folder = folder
    this.#home = home
    this.isComplete = isComplete
    this.isForced = home.isForced
  }

  list(): SegmentFile[] {
    const { root, topicId, partition, files, ledger } = this.#home
    const known = ledger.known.of(topicId, partition)
    const { segments, leftovers, damages } = listSegments(this.#folder, known, this.isComplete)
    if (damages[0] !== undefined) throw damagedFile(root, damages[0])
    // What took their place is there for good first.
    if (leftovers.length > 0) files.syncFolder(this.#folder)
    for (const path of leftovers) files.remove(path)
    // The process before this one may have been killed before it forced the names of its files to the disk.
    if (segments.some(({ facts }) => facts === undefined || !this.isForced)) {
      for (const folder of foldersOf(this.#folder, root)) files.folderChanged(folder)
    }
    return segments.map(
      ({ baseOffset, path, size, facts }) => new DiskSegment(baseOffset, path, size, this.#home, facts),
    )
  }

  create(baseOffset: number): SegmentFile {
    const { files } = this.#home
    files.makeFolder(this.#folder)
    // No power cut may leave this one, and of those before it only a part.
    files.syncFilesIn(this.#folder)
    return new DiskSegment(baseOffset, this.#path(baseOffset), 0, this.#home)
  }

  replace(old: readonly DiskSegment[], content: readonly Uint8Array[]): SegmentFile {
    const { topicId, partition, files, ledger } = this.#home
    const baseOffset = old[0]?.baseOffset ?? 0
    const path = this.#path(baseOffset)
    const next = `${path}.new`
    const bytes = Buffer.concat(content)
    writeNew(next, bytes, files.syncs)
    const chain = chainBehindAll(0, bytes)
    const oldOnes = old.map((segment) => segment.baseOffset)
    // From here on either may be what is found, in the case of a crash.
    try {
      ledger.announce(
        { kind: 'replacing', old: oldOnes, by: [topicId, partition, baseOffset, bytes.length, chain] },
        [],
      )
    } catch (error) {
      rmSync(next)
      throw error
    }
    for (const segment of old) {
      files.forget(segment.path)
      ledger.forget(segment)
    }
    renameSync(next, path)
    files.syncFolder(this.#folder)
    // A crash here leaves segments that the new one covers; the journal says so.
    for (const segment of old) if (segment.path !== path) files.remove(segment.path)
    const segment = new DiskSegment(baseOffset, path, bytes.length, this.#home).written(chain)
    const gone = oldOnes.filter((base) => base !== baseOffset)
    ledger.announceLate([...gone.map((base) => [topicId, partition, base, -1, 0] as const), segment.row()])
    return segment
  }

  remove(segment: DiskSegment): void {
    const { topicId, partition, files, ledger } = this.#home
    if (ledger.known.of(topicId, partition).segments.has(segment.baseOffset)) {
      ledger.announce({ kind: 'segments' }, [[topicId, partition, segment.baseOffset, -1, 0]])
    }
    ledger.forget(segment)
    files.remove(segment.path)
  }

  #path(baseOffset: number): string {
    return segmentPath(this.#folder, baseOffset)
  }
}

/** Opens the folder, or makes it. Throws a `BrokerError` where another process holds it, or where files are damaged. */
export function openDiskStorage(folder: string, { fsync }: DiskStorageOptions): Storage {
  const topics = join(folder, 'topics')
  return new DiskStorage(folder, topics, prepared(folder, topics), fsync)
}

class DiskStorage implements Storage {
  readonly #folder: string
  readonly #topics: string
  readonly #unlock: () => void
  readonly #files: OpenFiles
  readonly #journal: JournalFile
  readonly #ledger: Ledger
  #promises: Promises = { names: true, forced: false }
  /** What was read, until all of the folder was. */
  #read: readonly JournalRecord[] | undefined

  constructor(folder: string, topics: string, unlock: () => void, fsync: boolean) {
    this.#folder = folder
    this.#topics = topics
    this.#unlock = unlock
    this.#files = new OpenFiles(fsync)
    this.#journal = new JournalFile(join(folder, 'journal'), this.#files)
    this.#ledger = new Ledger(this.#journal, this.#files)
  }

  get endsUnknown(): boolean {
    return !this.#promises.names
  }

  journal(entry: JournalEntry): void {
    this.#ledger.entry(entry)
  }

  journalEntries(): JournalEntry[] {
    const { frames, torn, fault } = this.#journal.read(readdirSync(this.#topics).length > 0)
    if (fault !== undefined) throw damagedFile(this.#folder, { path: this.#journal.path, ...fault })
    const records = frames.map(({ record }) => record)
    if (frames.length > 0) this.#promises = promisesOf(frames)
    for (const record of records) this.#ledger.known.apply(record)
    // Where the end was lost, the deletion of a topic may have been; and where its making was, its folder is empty.
    if (!torn) this.#read = records
    return records.flatMap((record) => brokerEntry(record) ?? [])
  }

  journalIsLong(): boolean {
    return this.#journal.isLong
  }

  replaceJournal(entries: readonly JournalEntry[]): void {
    if (this.#read !== undefined) removeLeftovers(this.#topics, this.#read)
    this.#read = undefined
    this.#ledger.replaceJournal(entries)
  }

  partition(topicId: string, partition: number): PartitionFiles {
    const { names, forced: isForced } = this.#promises
    const home = { root: this.#folder, topicId, partition, isForced, files: this.#files, ledger: this.#ledger }
    return new DiskPartition(join(this.#topics, topicId, String(partition)), home, names)
  }

  removeTopic(topicId: string): void {
    this.#ledger.forgetTopic(topicId)
    this.#files.removeFolder(join(this.#topics, topicId))
  }

  written(): void {
    this.#ledger.written()
  }

  lost(topicId: string, partition: number, end: number, why: string): Error {
    const path = join(this.#topics, topicId, String(partition))
    const last = existsSync(path) ? readdirSync(path).sort().at(-1) : undefined
    const file = last === undefined ? segmentPath(path, end) : join(path, last)
    return damagedFile(this.#folder, { path: file, at: last === undefined ? 0 : statSync(file).size, why })
  }

  close(): void {
    try {
      this.#ledger.close()
      this.#files.closeAll()
    } finally {
      this.#unlock()
    }
  }
}

/** The folder and those that it lies in, up to the outermost. */
function foldersOf(folder: string, outermost: string): string[] {
  return folder.length > outermost.length ? [folder, ...foldersOf(dirname(folder), outermost)] : [outermost]
}

/** What is wrong with the name of a folder, or with who may write there: the same at the next start. */
const wrongPath: ReadonlySet<string> = new Set([
  'ENOTDIR',
  'EEXIST',
  'ENOENT',
  'EACCES',
  'EPERM',
  'EROFS',
  'ELOOP',
  'ENAMETOOLONG',
  'ERR_INVALID_ARG_VALUE',
])

function prepared(folder: string, topics: string): () => void {
  try {
    mkdirSync(topics, { recursive: true })
    return lockFolder(folder)
  } catch (error) {
    if (error instanceof BrokerError) throw error
    if (isOnReadOnlyFileSystem(topics)) throw unusable(folder, 'its file system is read-only', error)
    const why = error instanceof Error ? error.message : String(error)
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined || !wrongPath.has(code)) throw storageError(folder, why, error)
    throw unusable(folder, why, error)
  }
}

function unusable(folder: string, why: string, cause: unknown): BrokerError {
  return new BrokerError(
    'STORAGE_UNUSABLE',
    `The embedded broker cannot have its files in ${folder}: ${why}. Name a folder that can be made and written to.`,
    'config',
    cause,
  )
}

/** Data of topics that were deleted when the process ended. Not looked for when the journal's end was lost. */
function removeLeftovers(topics: string, entries: readonly JournalRecord[]): void {
  const living = new Map<string, string>()
  for (const entry of entries) {
    if (entry.kind === 'topic') living.set(entry.topic, entry.topicId)
    else if (entry.kind === 'topic-deleted') living.delete(entry.topic)
  }
  const ids = new Set(living.values())
  for (const id of readdirSync(topics)) if (!ids.has(id)) rmSync(join(topics, id), { recursive: true, force: true })
}
