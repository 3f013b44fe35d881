/** Decompression of record batches. The platform brings gzip and zstd; Snappy and LZ4 are read by hand. */
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import type { Compression } from './batch-header.ts'
import { CorruptBatchError } from './corrupt.ts'
import { decompressLz4 } from './lz4.ts'
import { decompressSnappy } from './snappy.ts'

/** A batch that claims to hold more than this is taken for damaged rather than filling the memory. */
export const maxDecompressedBytes = 512 * 1024 * 1024

export function decompress(compression: Exclude<Compression, 'none'>, bytes: Uint8Array): Uint8Array {
  try {
    switch (compression) {
      case 'gzip':
        return plain(gunzipSync(bytes, { maxOutputLength: maxDecompressedBytes }))
      case 'zstd':
        return plain(zstdDecompressSync(bytes, { maxOutputLength: maxDecompressedBytes }))
      case 'snappy':
        return decompressSnappy(bytes, maxDecompressedBytes)
      case 'lz4':
        return decompressLz4(bytes, maxDecompressedBytes)
    }
  } catch (error) {
    if (error instanceof CorruptBatchError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new CorruptBatchError(
      `A record batch cannot be decompressed (${compression}): ${reason}.`,
      'CORRUPT_MESSAGE',
      error,
    )
  }
}

/** A `Buffer` has a `slice` that does not copy: nobody who reads records should have to know. */
function plain(buffer: Buffer): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length)
}
