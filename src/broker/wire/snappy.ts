/** Snappy, raw and in the framing of the Java producer (xerial), for reading. */
import { ByteSink } from './byte-sink.ts'
import { CorruptBatchError } from './corrupt.ts'
import { readInt32 } from './integers.ts'

const xerialMagic = [0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]
const xerialHeader = 16

export function decompressSnappy(bytes: Uint8Array, limit: number): Uint8Array {
  if (!xerialMagic.every((byte, i) => bytes[i] === byte)) {
    const sink = new ByteSink(bytes.length * 4, limit)
    decompressBlock(bytes, sink)
    return sink.result()
  }
  const sink = new ByteSink(bytes.length * 4, limit)
  for (let at = xerialHeader; at < bytes.length; ) {
    const size = at + 4 <= bytes.length ? readInt32(bytes, at) : -1
    at += 4
    if (size < 0 || at + size > bytes.length) throw new CorruptBatchError('Snappy-compressed records are cut off.')
    decompressBlock(bytes.subarray(at, at + size), sink)
    at += size
  }
  return sink.result()
}

function decompressBlock(bytes: Uint8Array, sink: ByteSink): void {
  let at = 0
  let expected = 0
  let scale = 1
  for (;;) {
    const byte = bytes[at++]
    if (byte === undefined || at > 5) throw new CorruptBatchError('Snappy-compressed records have no length.')
    expected += (byte & 0x7f) * scale
    if (byte < 0x80) break
    scale *= 128
  }
  const end = sink.length + expected
  while (at < bytes.length) {
    const tag = bytes[at++] as number
    if ((tag & 3) === 0) {
      let length = (tag >> 2) + 1
      if (length > 60) {
        const extra = length - 60
        length = littleEndian(bytes, at, extra) + 1
        at += extra
      }
      sink.append(bytes, at, length)
      at += length
    } else {
      const width = (tag & 3) === 1 ? 1 : (tag & 3) === 2 ? 2 : 4
      const low = littleEndian(bytes, at, width)
      at += width
      if (width === 1) sink.repeat(((tag & 0xe0) << 3) | low, ((tag >> 2) & 7) + 4)
      else sink.repeat(low, (tag >> 2) + 1)
    }
    if (sink.length > end) break
  }
  if (sink.length !== end) {
    throw new CorruptBatchError('Snappy-compressed records do not have the length they announce.')
  }
}

function littleEndian(bytes: Uint8Array, at: number, width: number): number {
  if (at + width > bytes.length) throw new CorruptBatchError('Snappy-compressed records are cut off.')
  let value = 0
  for (let i = width - 1; i >= 0; i--) value = value * 256 + (bytes[at + i] as number)
  return value
}
