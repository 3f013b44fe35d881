/**
 * Record batches of many topics and partitions in a few buffers. A message between threads pays for every object and
 * every buffer in it: packed, hundreds of small batches cost about as much as one.
 */
import type { RecordBatchBuilder } from './record-batch-builder.ts'

export interface BatchPack {
  /** Topics, or stores whose changelogs the batches are for. */
  readonly names: readonly string[]
  /** Four numbers a batch: its name's place in the list, its partition, its records, and where its bytes end. */
  readonly index: Int32Array<ArrayBuffer>
  /** The batches one after the other, as `index` lists them. */
  readonly bytes: Uint8Array<ArrayBuffer>
}

const perBatch = 4
/** What is not known to be more is packed into buffers of this size. */
const usualBytes = 256 * 1024

/** Fills packs. The buffers are made for their receiver and may be handed over. */
export class BatchPacker {
  #done: BatchPack[] = []
  #names: string[] = []
  #index: number[] = []
  #bytes: Uint8Array<ArrayBuffer> | undefined
  #length = 0
  #lastName = 0

  /** Batches added since the last `take`, those without bytes included. */
  get isEmpty(): boolean {
    return this.#done.length === 0 && this.#index.length === 0
  }

  /** So many bytes are about to be added: they go into one buffer, which is no larger. */
  expect(bytes: number): void {
    if (bytes > (this.#bytes?.length ?? 0) - this.#length) this.#close()
    this.#bytes ??= blank(bytes)
  }

  /** Finishes the builder's batch. */
  add(name: string, partition: number, builder: RecordBatchBuilder): void {
    const { bytes: size, count } = builder
    if (this.#bytes !== undefined && this.#length + size > this.#bytes.length) this.#close()
    this.#bytes ??= blank(Math.max(size, usualBytes))
    builder.finishInto(this.#bytes, this.#length)
    this.#length += size
    this.#note(name, partition, count)
  }

  /** Takes over a copy of a finished batch. */
  addCopy(name: string, partition: number, count: number, batch: Uint8Array): void {
    if (this.#bytes !== undefined && this.#length + batch.length > this.#bytes.length) this.#close()
    this.#bytes ??= blank(Math.max(batch.length, usualBytes))
    this.#bytes.set(batch, this.#length)
    this.#length += batch.length
    this.#note(name, partition, count)
  }

  /** A partition of which there is something to tell, but no batch. */
  addEmpty(name: string, partition: number, count: number): void {
    this.#note(name, partition, count)
  }

  take(): BatchPack[] {
    this.#close()
    const done = this.#done
    this.#done = []
    return done
  }

  #note(name: string, partition: number, count: number): void {
    if (this.#names[this.#lastName] !== name) {
      const known = this.#names.indexOf(name)
      this.#lastName = known >= 0 ? known : this.#names.push(name) - 1
    }
    this.#index.push(this.#lastName, partition, count, this.#length)
  }

  #close(): void {
    if (this.#index.length > 0) {
      const bytes = this.#bytes?.subarray(0, this.#length) ?? new Uint8Array(0)
      this.#done.push({ names: this.#names, index: Int32Array.from(this.#index), bytes })
    }
    this.#names = []
    this.#index = []
    this.#bytes = undefined
    this.#length = 0
  }
}

/** Calls `visit` for every batch, in order; `records` is a view of the pack, empty for what was added without a batch. */
export function eachBatch(
  { names, index, bytes }: BatchPack,
  visit: (name: string, partition: number, count: number, records: Uint8Array<ArrayBuffer>) => void,
): void {
  let from = 0
  for (let at = 0; at < index.length; at += perBatch) {
    const end = index[at + 3] as number
    visit(
      names[index[at] as number] as string,
      index[at + 1] as number,
      index[at + 2] as number,
      bytes.subarray(from, end),
    )
    from = end
  }
}

/**
 * Counts the batches of a pack that somebody still needs, and frees its memory with the last one. Left to the collector it
 * would have become old by then: it waits for the broker's answer, and only a collection of everything finds what is old.
 */
export class PackUse {
  readonly #buffer: ArrayBuffer
  #left = 0

  constructor({ bytes }: BatchPack) {
    this.#buffer = bytes.buffer
  }

  /** One more batch is needed. */
  add(): this {
    this.#left++
    return this
  }

  /** A batch is not needed any more: nobody reads it, or any view of it, from now on. */
  done(): void {
    if (--this.#left === 0) this.#buffer.transfer(0)
  }
}

/** The buffers to hand over with a message that holds these packs. */
export function buffersOf(packs: readonly BatchPack[]): ArrayBuffer[] {
  return packs.flatMap(({ bytes }) => (bytes.length === 0 ? [] : [bytes.buffer]))
}

/** Memory of its own, as it comes: all of it is written before it is read. */
function blank(bytes: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.allocUnsafeSlow(bytes).buffer)
}
