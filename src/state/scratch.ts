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
