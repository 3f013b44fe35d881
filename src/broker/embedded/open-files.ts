import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname, resolve, sep } from 'node:path'
import { BrokerError } from '../port.ts'
import { NoRoomError } from './core/storage.ts'

/** More files than this are not held open at once; those longest unused are closed. */
const most = 256

/** File descriptors by path, opened at first use, and what of the files is not on the disk yet. */
export class OpenFiles {
  /** Whether what was written is to be forced to the disk, by `sync` and before a file is closed. */
  readonly syncs: boolean
  readonly #open = new Map<string, number>()
  readonly #dirty = new Set<string>()
  /** Folders in which files or folders came or went. */
  readonly #folders = new Set<string>()
  #failure: BrokerError | undefined

  constructor(syncs: boolean) {
    this.syncs = syncs
  }

  /** Whether the disk refused to take something: then nothing is acknowledged any more. */
  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  descriptor(path: string): number {
    const open = this.#open.get(path)
    if (open !== undefined) {
      // The order of the map is that of the last use; moving an entry is only worth it when room runs out.
      if (this.#open.size > most / 2) {
        this.#open.delete(path)
        this.#open.set(path, open)
      }
      return open
    }
    if (this.#open.size >= most) this.close(this.#open.keys().next().value as string)
    if (this.syncs && !existsSync(path)) this.folderChanged(dirname(path))
    // Read and write, made if missing, positions as given.
    const descriptor = orNoRoom(path, () => openSync(path, 'a+'))
    this.#open.set(path, descriptor)
    return descriptor
  }

  written(path: string): void {
    if (this.syncs) this.#dirty.add(path)
  }

  /** Files came into the folder, or went: it is to be forced to the disk as well. */
  folderChanged(folder: string): void {
    if (this.syncs) this.#folders.add(folder)
  }

  /** Makes the folder, and those that it lies in. */
  makeFolder(folder: string): void {
    if (existsSync(folder)) return
    const parent = dirname(resolve(folder))
    // One at a time: where there is room for some of them alone, these are forced to the disk with the others later.
    this.makeFolder(parent)
    orNoRoom(folder, () => mkdirSync(folder))
    this.folderChanged(parent)
  }

  /** Makes the file end where it ended before a write that failed. A file that does not is written to no more. */
  cutBack(path: string, size: number): void {
    this.#orFail(path, () => ftruncateSync(this.descriptor(path), size), 'cut back to what it held before')
  }

  /** Throws where the disk refused before what has to be there. */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Forces everything that was written to the disk, but for one file. */
  syncAllBut(path: string): void {
    if (!this.syncs) return
    for (const each of this.#dirty) if (each !== path) this.#force(each)
    for (const folder of this.#folders) this.syncFolder(folder)
  }

  /** Forces what was written to the file to the disk. */
  syncFile(path: string): void {
    if (this.#dirty.has(path)) this.#force(path)
    else this.check()
  }

  /** Forces what was written to the files of a folder to the disk. */
  syncFilesIn(folder: string): void {
    for (const path of this.#dirty) if (dirname(path) === folder) this.#force(path)
    if (this.#folders.has(folder)) this.syncFolder(folder)
  }

  /** Makes last which files are in the folder, and under which names. */
  syncFolder(folder: string): void {
    if (!this.syncs) return
    this.#orFail(folder, () => {
      const descriptor = openSync(folder, 'r')
      try {
        fsyncSync(descriptor)
      } finally {
        closeSync(descriptor)
      }
    })
    this.#folders.delete(folder)
  }

  close(path: string): void {
    const descriptor = this.#open.get(path)
    if (descriptor === undefined) return
    if (this.#dirty.has(path) && !this.hasFailed) this.#force(path)
    this.#open.delete(path)
    closeSync(descriptor)
  }

  /** Closes a file whose content does not matter any more. */
  forget(path: string): void {
    this.#dirty.delete(path)
    this.close(path)
  }

  /** Deletes the file. */
  remove(path: string): void {
    this.forget(path)
    rmSync(path, { force: true })
    this.folderChanged(dirname(path))
  }

  /** Deletes the folder with all that is in it. */
  removeFolder(folder: string): void {
    const isWithin = (path: string): boolean => path === folder || path.startsWith(folder + sep)
    for (const path of [...this.#open.keys(), ...this.#dirty]) if (isWithin(path)) this.forget(path)
    for (const each of this.#folders) if (isWithin(each)) this.#folders.delete(each)
    rmSync(folder, { recursive: true, force: true })
    this.folderChanged(dirname(folder))
  }

  closeAll(): void {
    for (const path of [...this.#open.keys()]) this.close(path)
  }

  #force(path: string): void {
    this.#orFail(path, () => fdatasyncSync(this.descriptor(path)))
    this.#dirty.delete(path)
  }

  /**
   * After a failure nobody knows what is on the disk: Linux takes what it could not write there for written. To try again
   * would succeed and mean nothing.
   */
  #orFail(path: string, step: () => void, what = 'forced to the disk'): void {
    this.check()
    try {
      step()
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      this.#failure = new BrokerError(
        'KAFKA_STORAGE_ERROR',
        `The embedded broker stopped, because ${path} could not be ${what}: ${why}. What was written there last may be lost, and nobody was told that it is stored. Look at the disk, then start the process again.`,
        'config',
        cause,
      )
      throw this.#failure
    }
  }
}

/** Appends all of the bytes or, where the disk is full, none. */
export function appendWhole(files: OpenFiles, path: string, size: number, bytes: Uint8Array): void {
  files.check()
  const descriptor = files.descriptor(path)
  try {
    for (let done = 0; done < bytes.length; ) done += writeSync(descriptor, bytes, done, bytes.length - done)
  } catch (error) {
    files.cutBack(path, size)
    if (isNoRoom(error)) throw new NoRoomError(path, error)
    throw storageError(path, error instanceof Error ? error.message : String(error), error)
  }
  files.written(path)
}

function isNoRoom(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOSPC' || code === 'EDQUOT'
}

function orNoRoom<T>(path: string, step: () => T): T {
  try {
    return step()
  } catch (error) {
    throw isNoRoom(error) ? new NoRoomError(path, error) : error
  }
}

export function storageError(path: string, why: string, cause: unknown): BrokerError {
  return new BrokerError(
    'KAFKA_STORAGE_ERROR',
    `The embedded broker cannot use ${path}: ${why}. Look at the disk and its free space.`,
    undefined,
    cause,
  )
}
