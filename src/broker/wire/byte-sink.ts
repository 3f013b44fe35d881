import { CorruptBatchError } from './corrupt.ts'

/** Where a decompressor writes: grows as needed up to a limit, and copies from what it has already written. */
export class ByteSink {
  #bytes: Uint8Array
  readonly #limit: number
  length = 0

  constructor(expected: number, limit: number) {
    this.#limit = limit
    this.#bytes = new Uint8Array(Math.min(Math.max(expected, 64), limit))
  }

  append(source: Uint8Array, start: number, length: number): void {
    if (length < 0 || start + length > source.length) throw new CorruptBatchError('Compressed records are cut off.')
    this.#reserve(length)
    const bytes = this.#bytes
    if (length <= 16) for (let i = 0; i < length; i++) bytes[this.length + i] = source[start + i] as number
    else bytes.set(source.subarray(start, start + length), this.length)
    this.length += length
  }

  /** Repeats `length` bytes from `distance` back; the two ranges may overlap, which repeats a pattern. */
  repeat(distance: number, length: number): void {
    if (distance <= 0 || distance > this.length) {
      throw new CorruptBatchError('Compressed records refer to bytes before their beginning.')
    }
    this.#reserve(length)
    const bytes = this.#bytes
    const at = this.length
    if (distance >= length && length > 32) bytes.copyWithin(at, at - distance, at - distance + length)
    else for (let i = 0; i < length; i++) bytes[at + i] = bytes[at - distance + i] as number
    this.length += length
  }

  result(): Uint8Array {
    return this.#bytes.subarray(0, this.length)
  }

  #reserve(more: number): void {
    const needed = this.length + more
    if (needed <= this.#bytes.length) return
    if (needed > this.#limit) throw new CorruptBatchError(`Compressed records grow beyond ${this.#limit} bytes.`)
    const bytes = new Uint8Array(Math.min(this.#limit, Math.max(needed, this.#bytes.length * 2)))
    bytes.set(this.#bytes.subarray(0, this.length))
    this.#bytes = bytes
  }
}
