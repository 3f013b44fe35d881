import type { JournalEntry, PartitionFiles, SegmentFile, Storage } from './storage.ts'

/** Smaller appends share a chunk of this size: a buffer of its own for each would cost more than its content. */
const largestSlab = 64 * 1024
const ownChunkFrom = 8 * 1024

class MemorySegment implements SegmentFile {
  readonly baseOffset: number
  size = 0
  readonly #chunks: Uint8Array[] = []
  readonly #starts: number[] = []
  /** The last chunk, while there is room in it. */
  #slab: Uint8Array | undefined
  #slabUsed = 0
  /** Of the next slab. The first ones are small: there may be hundreds of partitions with little in each. */
  #slabBytes = ownChunkFrom

  constructor(baseOffset: number) {
    this.baseOffset = baseOffset
  }

  append(bytes: Uint8Array): void {
    if (bytes.length >= ownChunkFrom) {
      // A part of a larger buffer would keep all of it.
      this.#add(bytes.length * 2 >= bytes.buffer.byteLength ? bytes : bytes.slice())
      this.#slab = undefined
    } else {
      if (this.#slab === undefined || this.#slabUsed + bytes.length > this.#slab.length) {
        this.#slab = new Uint8Array(this.#slabBytes)
        this.#slabUsed = 0
        this.#slabBytes = Math.min(largestSlab, this.#slabBytes * 2)
        this.#add(this.#slab)
      }
      this.#slab.set(bytes, this.#slabUsed)
      this.#slabUsed += bytes.length
    }
    this.size += bytes.length
  }

  copy(position: number, target: Uint8Array, at: number, length: number): void {
    let chunk = this.#chunkAt(position)
    let from = position - (this.#starts[chunk] as number)
    let done = 0
    while (done < length) {
      const bytes = this.#chunks[chunk++] as Uint8Array
      const count = Math.min(length - done, (this.#starts[chunk] ?? this.size) - position - done)
      target.set(bytes.subarray(from, from + count), at + done)
      done += count
      from = 0
    }
  }

  chunks(): Uint8Array[] {
    return this.#chunks.map((chunk, i) => {
      const length = (this.#starts[i + 1] ?? this.size) - (this.#starts[i] as number)
      return length === chunk.length ? chunk : chunk.subarray(0, length)
    })
  }

  truncate(size: number): void {
    while (this.#starts.length > 0 && (this.#starts.at(-1) as number) >= size) {
      this.#starts.pop()
      this.#chunks.pop()
    }
    const last = this.#chunks.length - 1
    if (last >= 0)
      this.#chunks[last] = (this.#chunks[last] as Uint8Array).slice(0, size - (this.#starts[last] as number))
    this.#slab = undefined
    this.size = size
  }

  recovered(): void {
    // Memory is not read back.
  }

  damaged(at: number, why: string): Error {
    return new Error(`The segment from offset ${this.baseOffset} on is damaged at byte ${at}: ${why}.`)
  }

  #add(bytes: Uint8Array): void {
    this.#starts.push(this.size)
    this.#chunks.push(bytes)
  }

  #chunkAt(position: number): number {
    let low = 0
    let high = this.#starts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#starts[middle] as number) <= position) low = middle
      else high = middle - 1
    }
    return low
  }
}

class MemoryPartition implements PartitionFiles {
  readonly isComplete = true
  readonly isForced = false

  list(): SegmentFile[] {
    return []
  }

  create(baseOffset: number): SegmentFile {
    return new MemorySegment(baseOffset)
  }

  replace(old: readonly SegmentFile[], content: readonly Uint8Array[]): SegmentFile {
    const segment = new MemorySegment(old[0]?.baseOffset ?? 0)
    for (const bytes of content) segment.append(bytes)
    return segment
  }

  remove(): void {
    // The segment is gone with the last reference to it.
  }
}

/** Keeps everything in memory; gone with the process, so that nothing needs to be journalled. */
export class MemoryStorage implements Storage {
  readonly endsUnknown = false
  readonly #files = new MemoryPartition()

  journal(): void {
    // Nobody will read it back.
  }

  journalEntries(): JournalEntry[] {
    return []
  }

  journalIsLong(): boolean {
    return false
  }

  replaceJournal(): void {
    // As above.
  }

  partition(): PartitionFiles {
    return this.#files
  }

  removeTopic(): void {
    // As for segments.
  }

  written(): void {
    // There is nothing that could know less than the segments.
  }

  lost(topicId: string, partition: number, end: number, why: string): Error {
    return new Error(`The partition ${partition} of ${topicId} ends at ${end}: ${why}.`)
  }

  close(): void {
    // Nothing is held.
  }
}
