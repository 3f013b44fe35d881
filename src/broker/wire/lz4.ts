/** LZ4 frames, for reading. Their own checksums are not looked at: the batch's covers the same bytes. */
import { ByteSink } from './byte-sink.ts'
import { CorruptBatchError } from './corrupt.ts'

const frameMagic = 0x184d2204
const flags = { contentChecksum: 0x04, contentSize: 0x08, blockChecksum: 0x10, dictionary: 0x01 } as const

export function decompressLz4(bytes: Uint8Array, limit: number): Uint8Array {
  const sink = new ByteSink(bytes.length * 4, limit)
  let at = 0
  while (at < bytes.length) at = decompressFrame(bytes, at, sink)
  return sink.result()
}

function decompressFrame(bytes: Uint8Array, start: number, sink: ByteSink): number {
  if (word(bytes, start) !== frameMagic) throw new CorruptBatchError('LZ4-compressed records do not begin as a frame.')
  const flag = bytes[start + 4] ?? 0
  if (flag >> 6 !== 1) throw new CorruptBatchError(`LZ4 frames of version ${flag >> 6} cannot be read.`)
  let at = start + 7 + (flag & flags.contentSize ? 8 : 0) + (flag & flags.dictionary ? 4 : 0)
  for (;;) {
    const size = word(bytes, at)
    at += 4
    if (size === 0) break
    const length = size & 0x7fffffff
    if (at + length > bytes.length) throw cutOff()
    if (size >>> 31) sink.append(bytes, at, length)
    else decompressBlock(bytes, at, at + length, sink)
    at += length + (flag & flags.blockChecksum ? 4 : 0)
  }
  return at + (flag & flags.contentChecksum ? 4 : 0)
}

function decompressBlock(bytes: Uint8Array, start: number, end: number, sink: ByteSink): void {
  let at = start
  const extended = (nibble: number): number => {
    let length = nibble
    if (nibble === 15) {
      let byte: number
      do {
        if (at >= end) throw cutOff()
        byte = bytes[at++] as number
        length += byte
      } while (byte === 255)
    }
    return length
  }
  while (at < end) {
    const token = bytes[at++] as number
    const literals = extended(token >> 4)
    if (at + literals > end) throw cutOff()
    sink.append(bytes, at, literals)
    at += literals
    if (at >= end) return
    if (at + 2 > end) throw cutOff()
    const distance = (bytes[at] as number) | ((bytes[at + 1] as number) << 8)
    at += 2
    sink.repeat(distance, extended(token & 15) + 4)
  }
}

function word(bytes: Uint8Array, at: number): number {
  if (at + 4 > bytes.length) throw cutOff()
  return (
    ((bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)) >>>
    0
  )
}

function cutOff(): CorruptBatchError {
  return new CorruptBatchError('LZ4-compressed records are cut off.')
}
