import { closeSync, fdatasyncSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { BrokerError } from '../port.ts'

/** More files than this are not held open at once; those longest unused are closed. */
const most = 256

/** File descriptors by path, opened at first use. */
export class OpenFiles {
  readonly #open = new Map<string, number>()
  readonly #dirty = new Set<string>()
  readonly #syncs: boolean

  /** `syncs`: whether what was written is to be forced to the disk, by `sync` and before a file is closed. */
  constructor(syncs: boolean) {
    this.#syncs = syncs
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
    // Read and write, made if missing, positions as given.
    const descriptor = openSync(path, 'a+')
    this.#open.set(path, descriptor)
    return descriptor
  }

  written(path: string): void {
    if (this.#syncs) this.#dirty.add(path)
  }

  /** Forces what was written to the disk. */
  sync(): void {
    for (const path of this.#dirty) fdatasyncSync(this.descriptor(path))
    this.#dirty.clear()
  }

  close(path: string): void {
    const descriptor = this.#open.get(path)
    if (descriptor === undefined) return
    if (this.#dirty.delete(path)) fdatasyncSync(descriptor)
    this.#open.delete(path)
    closeSync(descriptor)
  }

  /** Closes a file that is about to be deleted. */
  forget(path: string): void {
    this.#dirty.delete(path)
    this.close(path)
  }

  closeAll(): void {
    for (const path of [...this.#open.keys()]) this.close(path)
  }
}

/** Appends all of the bytes or, where the disk is full, none. */
export function appendWhole(files: OpenFiles, path: string, size: number, bytes: Uint8Array): void {
  const descriptor = files.descriptor(path)
  try {
    for (let done = 0; done < bytes.length; ) done += writeSync(descriptor, bytes, done, bytes.length - done)
  } catch (error) {
    ftruncateSync(descriptor, size)
    throw storageError(path, error instanceof Error ? error.message : String(error), error)
  }
  files.written(path)
}

export function storageError(path: string, why: string, cause: unknown): BrokerError {
  return new BrokerError(
    'KAFKA_STORAGE_ERROR',
    `The embedded broker cannot use ${path}: ${why}. Look at the disk and its free space.`,
    undefined,
    cause,
  )
}
