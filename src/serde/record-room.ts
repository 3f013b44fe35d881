/** Room for the bytes of records: kept ones share large pieces, brief ones lie in the same bytes each time. */

const poolBytes = 8192
/** Room that must be left in the pool before a value is written to it. */
const usualBytes = 512

/** Where the record ends, or, negative, how many bytes were missing. */
export type WriteRecord<T> = (value: T, bytes: Buffer, at: number) => number

export class RecordRoom<T> {
  readonly #write: WriteRecord<T>
  #pool = Buffer.alloc(0)
  #poolAt = 0
  #brief = Buffer.alloc(usualBytes)
  /** The beginnings of the brief buffer by their length: made once, so that brief bytes cost no object. */
  #beginnings: Uint8Array[] = []

  constructor(write: WriteRecord<T>) {
    this.#write = write
  }

  /** Bytes that the caller may keep. */
  kept(value: T): Uint8Array {
    if (this.#pool.length - this.#poolAt < usualBytes) {
      this.#pool = Buffer.allocUnsafeSlow(poolBytes)
      this.#poolAt = 0
    }
    const start = this.#poolAt
    const end = this.#write(value, this.#pool, start)
    if (end < 0) {
      const own = Buffer.allocUnsafeSlow(this.#pool.length - start - end)
      return own.subarray(0, this.#write(value, own, 0))
    }
    this.#poolAt = end
    return this.#pool.subarray(start, end)
  }

  /** Bytes that are valid until the next call. */
  brief(value: T): Uint8Array {
    let end = this.#write(value, this.#brief, 0)
    if (end < 0) {
      this.#brief = Buffer.allocUnsafeSlow(2 * (this.#brief.length - end))
      this.#beginnings = []
      end = this.#write(value, this.#brief, 0)
    }
    const known = this.#beginnings[end]
    if (known !== undefined) return known
    const bytes = this.#brief.subarray(0, end)
    this.#beginnings[end] = bytes
    return bytes
  }
}
