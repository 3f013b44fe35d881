/** Keys as text, in the order of their bytes. */

export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const latin1Slice = Buffer.prototype.latin1Slice

/** Bytes as a string of equal order, to be the key of a map: one code unit a byte. */
export function bytesText(bytes: Uint8Array): string {
  return latin1Slice.call(bytes, 0, bytes.length)
}
