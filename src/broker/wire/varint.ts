/**
 * Kafka's variable-length integers: zigzag, seven bits a byte, lowest first. Numbers are doubles, exact up to ±2^53. So
 * the sign is kept apart from the number: twice a number of that size would lose it.
 */

/** How many bytes `value` takes as a zigzag varint. */
export function varintSize(value: number): number {
  if (value >= -64 && value < 64) return 1
  if (value >= -8192 && value < 8192) return 2
  if (value >= -1_048_576 && value < 1_048_576) return 3
  if (value >= -134_217_728 && value < 134_217_728) return 4
  let rest = Math.floor((value < 0 ? -value - 1 : value) / 64)
  let size = 2
  while (rest >= 128) {
    rest = Math.floor(rest / 128)
    size++
  }
  return size
}

/** Writes `value` at `at`; the position after it. */
export function writeVarint(bytes: Uint8Array, at: number, value: number): number {
  let p = at
  if (value >= -134_217_728 && value < 134_217_728) {
    let rest = (value << 1) ^ (value >> 31)
    while (rest > 0x7f) {
      bytes[p++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    bytes[p++] = rest
    return p
  }
  const sign = value < 0 ? 1 : 0
  const size = sign === 1 ? -value - 1 : value
  bytes[p++] = ((size % 64) << 1) | sign | 0x80
  let rest = Math.floor(size / 64)
  while (rest >= 128) {
    bytes[p++] = (rest % 128) | 0x80
    rest = Math.floor(rest / 128)
  }
  bytes[p++] = rest
  return p
}

/** Reads varints one after the other; `at` is the position of the next one. Reads past `end` give `NaN`. */
export class VarintReader {
  bytes: Uint8Array
  at: number
  end: number

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  next(): number {
    const bytes = this.bytes
    let p = this.at
    if (p >= this.end) return Number.NaN
    let byte = bytes[p++] as number
    if (byte < 0x80) {
      this.at = p
      return (byte >>> 1) ^ -(byte & 1)
    }
    let low = byte & 0x7f
    for (let shift = 7; shift < 28; shift += 7) {
      if (p >= this.end) return Number.NaN
      byte = bytes[p++] as number
      low |= (byte & 0x7f) << shift
      if (byte < 0x80) {
        this.at = p
        return (low >>> 1) ^ -(low & 1)
      }
    }
    return this.#long(p, low)
  }

  #long(from: number, low: number): number {
    let p = from
    let value = low >>> 1
    let scale = 134_217_728
    for (let i = 4; i < 10; i++) {
      if (p >= this.end) return Number.NaN
      const byte = this.bytes[p++] as number
      value += (byte & 0x7f) * scale
      scale *= 128
      if (byte < 0x80) {
        this.at = p
        return low & 1 ? -value - 1 : value
      }
    }
    return Number.NaN
  }
}
