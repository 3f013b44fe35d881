/** Short byte arrays to be used again: what is in one is valid until the next of its length is asked for. */
const longest = 256

export class Scratch {
  readonly #arrays: Array<Uint8Array | undefined> = []

  of(length: number): Uint8Array {
    if (length > longest) return new Uint8Array(length)
    let bytes = this.#arrays[length]
    if (bytes === undefined) {
      bytes = new Uint8Array(length)
      this.#arrays[length] = bytes
    }
    return bytes
  }
}

/** As `Scratch`, and all its arrays lie at the beginning of one buffer: the next one asked for takes its place. */
export class OneScratch {
  readonly #buffer = new ArrayBuffer(4096)
  readonly #arrays: Array<Uint8Array | undefined> = []

  of(length: number): Uint8Array {
    if (length > this.#buffer.byteLength) return new Uint8Array(length)
    let bytes = this.#arrays[length]
    if (bytes === undefined) {
      bytes = new Uint8Array(this.#buffer, 0, length)
      this.#arrays[length] = bytes
    }
    return bytes
  }
}
