/** Big-endian integers in byte arrays, without a view object per read. */

export function readInt16(bytes: Uint8Array, at: number): number {
  return (((bytes[at] as number) << 24) >> 16) | (bytes[at + 1] as number)
}

export function readInt32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  )
}

/** An int64 as a double: exact up to ±2^53. */
export function readInt64(bytes: Uint8Array, at: number): number {
  return readInt32(bytes, at) * 4_294_967_296 + (readInt32(bytes, at + 4) >>> 0)
}

export function readBigInt64(bytes: Uint8Array, at: number): bigint {
  return (BigInt(readInt32(bytes, at)) << 32n) | BigInt(readInt32(bytes, at + 4) >>> 0)
}

export function writeInt16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >> 8
  bytes[at + 1] = value
}

export function writeInt32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >> 24
  bytes[at + 1] = value >> 16
  bytes[at + 2] = value >> 8
  bytes[at + 3] = value
}

export function writeInt64(bytes: Uint8Array, at: number, value: number): void {
  writeInt32(bytes, at, Math.floor(value / 4_294_967_296))
  writeInt32(bytes, at + 4, value)
}

export function writeBigInt64(bytes: Uint8Array, at: number, value: bigint): void {
  writeInt32(bytes, at, Number(BigInt.asIntN(32, value >> 32n)))
  writeInt32(bytes, at + 4, Number(BigInt.asIntN(32, value)))
}
