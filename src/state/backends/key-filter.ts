/**
 * Remembers keys by their hashes, about: whoever is told of, it knows; of the others it takes one in a hundred or so for
 * one of them. A Bloom filter whose bits of one key lie in one line of the cache. It grows by further ones, each twice as
 * large as the one before.
 */

const firstKeys = 1 << 14
/** Bits a key, and how many of them are set for it. */
const bitsPerKey = 12
/** Integers of a line. */
const lineInts = 16

class Part {
  readonly most: number
  count = 0
  readonly #lines: number
  readonly #bits: Int32Array

  constructor(most: number) {
    this.most = most
    this.#lines = Math.ceil((most * bitsPerKey) / (lineInts * 32))
    this.#bits = new Int32Array(this.#lines * lineInts)
  }

  add(hash: number): void {
    const at = this.#line(hash)
    let bits = spread(hash)
    for (let i = 0; i < 3; i++) {
      const bit = bits & 511
      const word = at + (bit >>> 5)
      this.#bits[word] = (this.#bits[word] as number) | (1 << (bit & 31))
      bits >>>= 9
    }
    const more = (hash ^ (hash >>> 15)) & 511
    const word = at + (more >>> 5)
    this.#bits[word] = (this.#bits[word] as number) | (1 << (more & 31))
    this.count++
  }

  has(hash: number): boolean {
    const at = this.#line(hash)
    let bits = spread(hash)
    for (let i = 0; i < 3; i++) {
      const bit = bits & 511
      if (((this.#bits[at + (bit >>> 5)] as number) & (1 << (bit & 31))) === 0) return false
      bits >>>= 9
    }
    const more = (hash ^ (hash >>> 15)) & 511
    return ((this.#bits[at + (more >>> 5)] as number) & (1 << (more & 31))) !== 0
  }

  #line(hash: number): number {
    return Math.floor(((hash >>> 0) / 4294967296) * this.#lines) * lineInts
  }
}

export class KeyFilter {
  readonly #parts: Part[] = []

  /** A key may be told of several times. */
  add(hash: number): void {
    let part = this.#parts.at(-1)
    if (this.has(hash)) return
    if (part === undefined || part.count === part.most) {
      part = new Part(part === undefined ? firstKeys : 2 * part.most)
      this.#parts.push(part)
    }
    part.add(hash)
  }

  /** False: the key was never told of. */
  has(hash: number): boolean {
    const parts = this.#parts
    for (let i = parts.length - 1; i >= 0; i--) if ((parts[i] as Part).has(hash)) return true
    return false
  }
}

function spread(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 16), 0x7feb352d)
  return (mixed ^ (mixed >>> 15)) >>> 0
}
