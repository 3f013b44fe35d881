/**
 * One LMDB environment for each changelog partition, one named database in it for each store: a commit costs one
 * file's flush however many stores there are, and the files do not know how many lanes read them.
 *
 * Commits are visible, atomic and in the kernel's hands when they return; the flush to disk follows behind
 * (`overlappingSync`). A killed process loses nothing; a machine that loses power comes back at an earlier commit,
 * whole and with its checkpoint, and the changelog brings the rest.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Database, open, type RootDatabase } from 'lmdb'
import type { Clock } from '../../base/clock.ts'
import { EngineError, messageOf } from '../../base/errors.ts'
import { refuseTooManyFiles } from '../../base/named-file.ts'
import { writeKeyString } from '../rows/bytes.ts'
import { checksum } from './checksum.ts'
import { checkFile } from './lmdb-check.ts'
import { FileContents, LmdbNotes, notesName, storeName } from './lmdb-notes.ts'
import { diskFull, isDiskFull, refuseWithoutRoom } from './lmdb-room.ts'

/** A store's rows, by key bytes or key string. */
export type Rows = Database<Uint8Array, RowKey>
export type RowKey = Uint8Array | string

/** A key that is written where it is wanted, from wherever it lies. */
export interface WrittenKey {
  /** The byte before it. */
  readonly prefix: number
  write(target: Uint8Array, at: number): number
}

export interface EnvironmentOptions {
  readonly folder: string
  readonly applicationId: string
  readonly partition: number
  /** Address space to begin with, in bytes; grows as the data does. */
  readonly mapSize: number
  /** Most stores one environment can hold. */
  readonly maxStores: number
  readonly clock: Clock
  /** Told of a folder that was set aside, with the reason. */
  readonly onQuarantine: (folder: string, reason: string) => void
  /** Told when the files of stores that are open were set aside: who works with them has to begin anew. */
  readonly onLost: (error: EngineError) => void
  /** The files are somebody else's by now. */
  readonly isAbandoned: () => boolean
}

const binary = { encoding: 'binary', keyEncoding: 'binary' } as const
/** The byte before the key of a block of rows (`lmdb-blocks.ts`), and before that of a row. */
export const blockPrefix = 0
export const rowPrefix = 1
/** Behind every key. */
export const pastLastKey = new Uint8Array(0)

/**
 * A byte stands before every key, for LMDB takes no empty one. Keys are written where LMDB wants to have them: key
 * strings need no bytes of their own.
 */
const rowKeys = {
  writeKey(key: RowKey | WrittenKey, target: Uint8Array, at: number): number {
    const from = at + 1
    target[at] = rowPrefix
    if (typeof key === 'string') return writeKeyString(key, target, from)
    if (!(key instanceof Uint8Array)) {
      target[at] = key.prefix
      return key.write(target, from)
    }
    if (key === pastLastKey) target[at] = rowPrefix + 1
    target.set(key, from)
    return from + key.length
  },
  readKey: (source: Uint8Array, from: number, to: number): Uint8Array =>
    Uint8Array.prototype.slice.call(source, from + 1, to),
}
const rows = { encoding: 'binary', keyEncoder: rowKeys } as const

/** As many openings may end in a crash before the files are held to be the cause. */
const openAttempts = 2

export class LmdbEnvironment {
  readonly #options: EnvironmentOptions
  #loaded: Loaded
  /** How often the files were begun anew since they were opened. */
  incarnation = 0

  /** Opens the environment; what cannot be read is set aside and begun anew. */
  constructor(options: EnvironmentOptions) {
    this.#options = options
    this.#loaded = openGuarded(options)
  }

  /** What stands beside the rows: checkpoints, and how the rows lie. */
  get notes(): LmdbNotes {
    return this.#loaded.notes
  }

  /** What the checksum of each of the store's values begins with. */
  checksumOf(store: string): number {
    return checksum(this.notes.identity, Buffer.from(storeName(store)))
  }

  store(name: string): Rows {
    const { stores, root } = this.#loaded
    let store = stores.get(name)
    if (store === undefined) {
      store = root.openDB<Uint8Array, RowKey>(storeName(name), rows)
      stores.set(name, store)
    }
    return store
  }

  now(): number {
    return this.#options.clock.now()
  }

  /** Folder and files, for messages. */
  get folder(): string {
    return this.#options.folder
  }

  /** True while a transaction is under way. */
  get busy(): boolean {
    return this.#busy
  }

  #busy = false

  /** Moves when what was written is undone, or the files are begun anew. */
  undone = 0

  /** All that `write` does, or nothing; within another transaction it becomes a part of that. */
  transaction(write: () => void): void {
    if (this.#busy) {
      write()
      return
    }
    this.#refuseIfAbandoned()
    this.#busy = true
    try {
      inTransaction(this.#loaded.root, write)
    } catch (error) {
      this.undone++
      throw error
    } finally {
      this.#busy = false
    }
  }

  /** Sets the files aside and goes on with empty ones: every store of this partition is then without a checkpoint. */
  replace(reason: string): void {
    this.#refuseIfAbandoned()
    void this.#loaded.root.close()
    quarantine(this.#options, reason)
    this.#loaded = openGuarded(this.#options)
    this.incarnation++
    this.undone++
  }

  /** Whoever found it may keep the error to himself. */
  lost(error: EngineError): void {
    this.#options.onLost(error)
  }

  /** Resolves when all that was committed lies on the disk. */
  async flushed(): Promise<void> {
    await this.#loaded.root.flushed
  }

  close(): void {
    void this.#loaded.root.close()
  }

  /** A lane that could not be ended goes on with what it has: a later runtime of this process has the files by then. */
  #refuseIfAbandoned(): void {
    const { folder, isAbandoned } = this.#options
    if (isAbandoned())
      throw new EngineError(
        'STORE_LOCKED',
        `The runtime that had the stores in ${folder} open has ended; start another one.`,
      )
  }
}

interface Loaded {
  readonly root: RootDatabase<Uint8Array, Uint8Array>
  readonly notes: LmdbNotes
  readonly stores: Map<string, Rows>
}

function openGuarded(options: EnvironmentOptions): Loaded {
  const { folder } = options
  const sentinel = `${folder}.opening`
  const attempts = attemptsIn(sentinel)
  if (attempts >= openAttempts) quarantine(options, `${attempts} attempts to open it ended in a crash`)
  try {
    mkdirSync(folder, { recursive: true })
    refuseWithoutRoom(`of partition ${options.partition}`, folder)
    writeFileSync(sentinel, String(attemptsIn(sentinel) + 1))
  } catch (cause) {
    if (EngineError.is(cause)) throw cause
    rmSync(sentinel, { force: true })
    if (isDiskFull(cause, dirname(folder))) throw diskFull(`of partition ${options.partition}`, folder, cause)
    refuseTooManyFiles(cause, folder)
    throw new EngineError('CONFIG_INVALID', `The state folder ${folder} cannot be written: ${messageOf(cause)}.`, {
      cause,
    })
  }
  try {
    const opened = openOrReason(options)
    if (typeof opened !== 'string') return opened
    quarantine(options, opened)
    mkdirSync(folder, { recursive: true })
    const fresh = openOrReason(options)
    if (typeof fresh !== 'string') return fresh
    throw new EngineError('STORE_CORRUPT', `No store can be made in the state folder ${folder}: ${fresh}.`)
  } finally {
    rmSync(sentinel, { force: true })
  }
}

/** What is read is only what was written: a file that has been damaged, or is another one's, is not opened at all. */
function openOrReason(options: EnvironmentOptions): Loaded | string {
  const { folder, applicationId, partition } = options
  try {
    const contents = new FileContents({ applicationId, partition })
    const { fault, transaction } = checkFile(join(folder, 'data.mdb'), contents)
    if (fault !== undefined) return fault
    const root = open<Uint8Array, Uint8Array>({
      path: folder,
      ...binary,
      mapSize: options.mapSize,
      maxDbs: options.maxStores + 2,
      overlappingSync: true,
    })
    const opened = (root.getStats() as { readonly lastTxnId: number }).lastTxnId
    // Where it chose another snapshot than the one that was looked at, nobody knows what it has.
    if (transaction > 0 && opened !== transaction) {
      void root.close()
      return `its transaction ${opened} was opened where ${transaction} is the last`
    }
    const notes = new LmdbNotes(root.openDB<Uint8Array, Uint8Array>(notesName, binary), { applicationId, partition })
    if (!contents.isMarked) inTransaction(root, () => notes.mark())
    return { root, notes, stores: new Map() }
  } catch (error) {
    if (isDiskFull(error, folder)) throw diskFull(`of partition ${partition}`, folder, error)
    return messageOf(error)
  }
}

function inTransaction(root: RootDatabase<Uint8Array, Uint8Array>, write: () => void): void {
  // Flags: 1 may be aborted, 2 committed on return, 0x10000 the flush may follow. The types know no flags here.
  const run = root.transactionSync as (this: typeof root, action: () => void, flags: number) => void
  run.call(root, write, 0x10003)
}

function attemptsIn(sentinel: string): number {
  return existsSync(sentinel) ? Number(readFileSync(sentinel, 'utf8')) || 1 : 0
}

function quarantine(options: EnvironmentOptions, reason: string): void {
  const aside = `${options.folder}.corrupt-${options.clock.now()}`
  if (existsSync(options.folder)) renameSync(options.folder, aside)
  rmSync(`${options.folder}.opening`, { force: true })
  options.onQuarantine(aside, reason)
}
