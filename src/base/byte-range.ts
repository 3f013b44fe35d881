/**
 * Bytes that lie among those of other records. A view of them costs more than to read a key or to copy a value, so one is
 * made only for who cannot do with the range.
 */
export class ByteRange {
  readonly buffer: Uint8Array
  readonly start: number
  readonly end: number

  constructor(buffer: Uint8Array, start: number, end: number) {
    this.buffer = buffer
    this.start = start
    this.end = end
  }

  /** All of these bytes. */
  static of(bytes: Uint8Array): ByteRange {
    return new ByteRange(bytes, 0, bytes.length)
  }

  view(): Uint8Array {
    return this.start === 0 && this.end === this.buffer.length
      ? this.buffer
      : this.buffer.subarray(this.start, this.end)
  }
}
