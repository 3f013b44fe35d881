/**
 * Reads an answer that lies in the chunks in which the socket delivered it. Sequential, so that a large fetch is
 * neither joined into one piece first nor searched from its beginning for every field; record bytes are copied once,
 * into memory of their own that the receiver may transfer to another thread.
 */
const scratch = Buffer.allocUnsafeSlow(8)

/** Fields of an answer reach beyond its end: no broker sends that, so the connection is not to be trusted. */
class AnswerCutShort extends Error {
  override readonly name = 'AnswerCutShort'
}

export class ChunkReader {
  readonly #chunks: readonly Buffer[]
  #index = 0
  #chunk: Buffer
  #at: number

  constructor(chunks: readonly Buffer[], position: number) {
    this.#chunks = chunks
    this.#chunk = chunks[0] ?? Buffer.alloc(0)
    this.#at = 0
    this.skip(position)
  }

  skip(length: number): void {
    let left = length
    while (left > this.#chunk.length - this.#at) {
      left -= this.#chunk.length - this.#at
      this.#next()
    }
    this.#at += left
  }

  int16(): number {
    return this.#fixed(2).readInt16BE(this.#read)
  }

  int32(): number {
    return this.#fixed(4).readInt32BE(this.#read)
  }

  bigInt64(): bigint {
    return this.#fixed(8).readBigInt64BE(this.#read)
  }

  /** Offsets stay far below 2^53. */
  int64(): number {
    const chunk = this.#fixed(8)
    return chunk.readInt32BE(this.#read) * 0x1_0000_0000 + chunk.readUInt32BE(this.#read + 4)
  }

  unsignedVarInt(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#fixed(1)[this.#read] as number
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) break
    }
    return value
  }

  uuid(): string {
    const hex = Buffer.from(this.copy(16).buffer).toString('hex')
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
  }

  copy(length: number): Uint8Array<ArrayBuffer> {
    const into = Buffer.allocUnsafeSlow(length)
    let written = 0
    while (written < length) {
      if (this.#at === this.#chunk.length) this.#next()
      const part = Math.min(length - written, this.#chunk.length - this.#at)
      this.#chunk.copy(into, written, this.#at, this.#at + part)
      written += part
      this.#at += part
    }
    return new Uint8Array(into.buffer, 0, length)
  }

  taggedFields(): void {
    for (let left = this.unsignedVarInt(); left > 0; left--) {
      this.unsignedVarInt()
      this.skip(this.unsignedVarInt())
    }
  }

  /** Where in the buffer that `#fixed` answered the value begins. */
  #read = 0

  /** A buffer that holds the next `length` bytes in one piece, and moves behind them. */
  #fixed(length: number): Buffer {
    while (this.#at === this.#chunk.length) this.#next()
    if (this.#chunk.length - this.#at >= length) {
      this.#read = this.#at
      this.#at += length
      return this.#chunk
    }
    for (let i = 0; i < length; i++) {
      while (this.#at === this.#chunk.length) this.#next()
      scratch[i] = this.#chunk[this.#at++] as number
    }
    this.#read = 0
    return scratch
  }

  #next(): void {
    const next = this.#chunks[++this.#index]
    if (next === undefined) throw new AnswerCutShort('the answer of the broker ends too early')
    this.#chunk = next
    this.#at = 0
  }
}
