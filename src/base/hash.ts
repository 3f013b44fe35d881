/** MurmurHash2 with Kafka's seed, over `bytes[start, end)`; the signed 32-bit result. */
export function murmur2(bytes: Uint8Array, start = 0, end = bytes.length): number {
  const length = end - start
  const m = 0x5bd1e995
  let h = 0x9747b28c ^ length
  let i = start
  const aligned = start + (length & ~3)
  while (i < aligned) {
    let k =
      (bytes[i] as number) |
      ((bytes[i + 1] as number) << 8) |
      ((bytes[i + 2] as number) << 16) |
      ((bytes[i + 3] as number) << 24)
    k = Math.imul(k, m)
    k ^= k >>> 24
    h = Math.imul(h, m) ^ Math.imul(k, m)
    i += 4
  }
  const tail = length & 3
  if (tail > 2) h ^= (bytes[i + 2] as number) << 16
  if (tail > 1) h ^= (bytes[i + 1] as number) << 8
  if (tail > 0) h = Math.imul(h ^ (bytes[i] as number), m)
  h ^= h >>> 13
  h = Math.imul(h, m)
  return h ^ (h >>> 15)
}

/** The slot of a key: a non-negative 31-bit integer. `slot % partitions` is Kafka's default partition of the key. */
export function keySlot(key: Uint8Array, start = 0, end = key.length): number {
  return murmur2(key, start, end) & 0x7fffffff
}
