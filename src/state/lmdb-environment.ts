/**
 * One LMDB environment for each changelog partition, one named database in it for each store: a commit costs one
 * file's flush however many stores there are, and the files do not know how many lanes read them.
 *
 * Commits are visible, atomic and in the kernel's hands when they return; the flush to disk follows behind
 * (`overlappingSync`). A killed process loses nothing; a machine that loses power comes back at an earlier commit,
 * whole and with its checkpoint, and the changelog brings the rest.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type Database, open, type RootDatabase } from 'lmdb'
import type { Clock } from '../base/clock.ts'
import { EngineError, messageOf } from '../errors.ts'
import { writeKeyString } from './bytes.ts'

export type Bytes = Database<Uint8Array, Uint8Array>
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
  /** Address space to begin with, in bytes; grows as the data does. */
  readonly mapSize: number
  /** Most stores one environment can hold. */
  readonly maxStores: number
  readonly clock: Clock
  /** Told of a folder that was set aside, with the reason. */
  readonly onQuarantine: (folder: string, reason: string) => void
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

const formatKey = Buffer.from('format')
/** Raised when rows are laid out differently: data of another format is rebuilt from the changelog. */
const format = '2'
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

  get checkpoints(): Bytes {
    return this.#loaded.checkpoints
  }

  store(name: string): Rows {
    const { stores, root } = this.#loaded
    let store = stores.get(name)
    if (store === undefined) {
      store = root.openDB<Uint8Array, RowKey>(`store/${name}`, rows)
      stores.set(name, store)
    }
    return store
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
    void this.#loaded.root.close()
    quarantine(this.#options, reason)
    this.#loaded = openGuarded(this.#options)
    this.incarnation++
    this.undone++
  }

  /** Resolves when all that was committed lies on the disk. */
  async flushed(): Promise<void> {
    await this.#loaded.root.flushed
  }

  close(): void {
    void this.#loaded.root.close()
  }
}

interface Loaded {
  readonly root: RootDatabase<Uint8Array, Uint8Array>
  readonly checkpoints: Bytes
  readonly stores: Map<string, Rows>
}

function openGuarded(options: EnvironmentOptions): Loaded {
  const { folder } = options
  const sentinel = `${folder}.opening`
  const attempts = attemptsIn(sentinel)
  if (attempts >= openAttempts) quarantine(options, `${attempts} attempts to open it ended in a crash`)
  try {
    mkdirSync(folder, { recursive: true })
    writeFileSync(sentinel, String(attemptsIn(sentinel) + 1))
  } catch (cause) {
    throw new EngineError('CONFIG_INVALID', `The state folder ${folder} cannot be written: ${messageOf(cause)}.`, {
      cause,
    })
  }
  const opened = openOrReason(options)
  if (typeof opened !== 'string') {
    rmSync(sentinel, { force: true })
    return opened
  }
  quarantine(options, opened)
  mkdirSync(folder, { recursive: true })
  const fresh = openOrReason(options)
  if (typeof fresh !== 'string') return fresh
  throw new EngineError('STORE_CORRUPT', `No store can be made in the state folder ${folder}: ${fresh}.`)
}

function openOrReason(options: EnvironmentOptions): Loaded | string {
  try {
    const fault = headerFault(join(options.folder, 'data.mdb'))
    if (fault !== undefined) return fault
    const root = open<Uint8Array, Uint8Array>({
      path: options.folder,
      ...binary,
      mapSize: options.mapSize,
      maxDbs: options.maxStores + 2,
      overlappingSync: true,
    })
    const checkpoints = root.openDB<Uint8Array, Uint8Array>('checkpoints', binary)
    const reason = faultIn(root, checkpoints)
    if (reason === undefined) return { root, checkpoints, stores: new Map() }
    void root.close()
    return reason
  } catch (error) {
    return messageOf(error)
  }
}

/** Reads what every store is opened by, and the ends of its data. */
function faultIn(root: RootDatabase<Uint8Array, Uint8Array>, checkpoints: Bytes): string | undefined {
  const found = checkpoints.get(formatKey)
  if (found === undefined) inTransaction(root, () => void checkpoints.put(formatKey, Buffer.from(format)))
  else if (Buffer.from(found).toString() !== format) return `its format is ${Buffer.from(found)}, not ${format}`
  for (const { key, value } of checkpoints.getRange({})) {
    const name = Buffer.from(key).toString()
    if (!name.startsWith('store/')) continue
    JSON.parse(Buffer.from(value).toString())
    const store = root.openDB<Uint8Array, Uint8Array>(name, binary)
    for (const reverse of [false, true]) void [...store.getRange({ limit: 1, reverse })]
  }
  return undefined
}

function inTransaction(root: RootDatabase<Uint8Array, Uint8Array>, write: () => void): void {
  // Flags: 1 may be aborted, 2 committed on return, 0x10000 the flush may follow. The types know no flags here.
  const run = root.transactionSync as (this: typeof root, action: () => void, flags: number) => void
  run.call(root, write, 0x10003)
}

function attemptsIn(sentinel: string): number {
  return existsSync(sentinel) ? Number(readFileSync(sentinel, 'utf8')) || 1 : 0
}

const magic = 0xbeefc0de
/** Where the two header pages keep what is looked at. */
const metaAt = { magic: 0x18, pageSize: 0x30, lastPage: 0x90, transaction: 0x98 } as const

/**
 * Looks at a data file before LMDB does, which ends the process where the file is not one of its own. A file shorter
 * than its header says is made as long again, for touching a mapped page behind its end would end the process as well;
 * the pages of zeros that appear are refused with an error. Gives the fault, if any.
 */
function headerFault(file: string): string | undefined {
  if (!existsSync(file)) return undefined
  const handle = openSync(file, 'r+')
  try {
    const size = fstatSync(handle).size
    if (size === 0) return undefined
    const first = readMeta(handle, 0)
    const second = first && readMeta(handle, first.pageSize)
    if (first === undefined || second === undefined) return 'its data file does not begin as it should'
    const newest = second.transaction > first.transaction ? second : first
    const end = (newest.lastPage + 1) * newest.pageSize
    if (size < end) ftruncateSync(handle, end)
    return undefined
  } finally {
    closeSync(handle)
  }
}

function readMeta(
  handle: number,
  at: number,
): { readonly pageSize: number; readonly lastPage: number; readonly transaction: bigint } | undefined {
  const head = new DataView(new ArrayBuffer(0x100))
  const read = readSync(handle, head, 0, head.byteLength, at)
  if (read < head.byteLength || head.getUint32(metaAt.magic, true) !== magic) return undefined
  return {
    pageSize: head.getUint32(metaAt.pageSize, true),
    lastPage: Number(head.getBigUint64(metaAt.lastPage, true)),
    transaction: head.getBigUint64(metaAt.transaction, true),
  }
}

function quarantine(options: EnvironmentOptions, reason: string): void {
  const aside = `${options.folder}.corrupt-${options.clock.now()}`
  if (existsSync(options.folder)) renameSync(options.folder, aside)
  rmSync(`${options.folder}.opening`, { force: true })
  options.onQuarantine(aside, reason)
}
