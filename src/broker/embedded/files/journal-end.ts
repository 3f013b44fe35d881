/**
 * How far the journal went, in a file of its own: an entry that was written and is not there any more would otherwise look
 * as if it had never been. It is written behind each entry, so that it may know of one less, but never of one more.
 */
import {
  closeSync,
  constants,
  existsSync,
  fdatasyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeSync,
} from 'node:fs'
import { crc32c } from '../../wire/crc32c.ts'
import { readInt32, readInt64, writeInt32, writeInt64 } from '../../wire/integers.ts'

export interface LastEntry {
  readonly n: number
  readonly crc: number
}

const length = 16

export class JournalEnd {
  readonly #path: string
  readonly #bytes = new Uint8Array(length)
  #descriptor: number | undefined

  constructor(path: string) {
    this.#path = path
  }

  get exists(): boolean {
    return existsSync(this.#path)
  }

  /** Undefined where there is none, or none that can be read: then it tells nothing. */
  read(): LastEntry | undefined {
    if (!this.exists) return undefined
    const bytes = readFileSync(this.#path)
    if (bytes.length !== length || readInt32(bytes, 12) >>> 0 !== crc32c(bytes, 0, 12)) return undefined
    return { n: readInt64(bytes, 0), crc: readInt32(bytes, 8) >>> 0 }
  }

  write({ n, crc }: LastEntry): void {
    const bytes = this.#bytes
    writeInt64(bytes, 0, n)
    writeInt32(bytes, 8, crc)
    writeInt32(bytes, 12, crc32c(bytes, 0, 12))
    if (this.#descriptor === undefined) {
      // What it told before stays until it is overwritten.
      this.#descriptor = openSync(this.#path, constants.O_WRONLY | constants.O_CREAT)
      ftruncateSync(this.#descriptor, length)
    }
    writeSync(this.#descriptor, bytes, 0, length, 0)
  }

  sync(): void {
    if (this.#descriptor !== undefined) fdatasyncSync(this.#descriptor)
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor)
    this.#descriptor = undefined
  }
}
