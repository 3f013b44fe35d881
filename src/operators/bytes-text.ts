/** Bytes as a string of equal order, to be the key of a map: one code unit a byte. */
export function bytesText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}
