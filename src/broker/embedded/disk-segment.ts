import { ftruncateSync, readSync, truncateSync, writeSync } from 'node:fs'
import { BrokerError } from '../port.ts'
import type { SegmentFile } from './core/storage.ts'
import type { OpenFiles } from './open-files.ts'

/** A file that only grows at its end, save for being cut. */
export class DiskSegment implements SegmentFile {
  readonly baseOffset: number
  readonly path: string
  size: number
  readonly #files: OpenFiles

  constructor(baseOffset: number, path: string, size: number, files: OpenFiles) {
    this.baseOffset = baseOffset
    this.path = path
    this.size = size
    this.#files = files
  }

  append(bytes: Uint8Array): void {
    appendWhole(this.#files, this.path, this.size, bytes)
    this.size += bytes.length
  }

  copy(position: number, target: Uint8Array, at: number, length: number): void {
    const descriptor = this.#files.descriptor(this.path)
    for (let done = 0; done < length; ) {
      const count = readSync(descriptor, target, at + done, length - done, position + done)
      if (count === 0) throw storageError(this.path, 'it is shorter than what was written to it', undefined)
      done += count
    }
  }

  truncate(size: number): void {
    this.#files.close(this.path)
    truncateSync(this.path, size)
    this.size = size
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
