/** The records of a batch as ranges of bytes, without an object for any of them. */
import { decompress } from '../../wire/compression.ts'
import { damaged } from '../../wire/corrupt.ts'
import { type BatchHeader, batchHeaderSize } from '../../wire/record-batch.ts'
import { VarintReader } from '../../wire/varint.ts'
import { hashOf } from './key-set.ts'

/** Integers of a record: where it starts, its offset in the batch, where its key starts, its length, what it is. */
const recordInts = 5
const [startInt, offsetInt, keyInt, keyLengthInt, kindInt] = [0, 1, 2, 3, 4] as const
const value = 0
const tombstone = 1
const dropped = 2

/** Up to here a copy by hand is cheaper than the call. */
const shortCopy = 64
const none = new Uint8Array(0)

export class BatchRecords {
  /** Where the ranges lie: the batch's own bytes behind its head, or its decompressed ones. */
  bytes: Uint8Array = none
  count = 0
  /** Hashes of the keys; of no meaning where there is none. */
  hashes = new Int32Array(256)
  /** Of the records that were not dropped. */
  leftBytes = 0
  readonly #reader = new VarintReader(none)
  /** One record more than there are: it starts where the last one ends. */
  #ints = new Int32Array(257 * recordInts)

  open(batch: Uint8Array, { compression, recordCount, baseOffset }: BatchHeader): void {
    const body = batch.subarray(batchHeaderSize)
    const bytes = compression === 'none' ? body : decompress(compression, body)
    this.bytes = bytes
    this.count = recordCount
    this.leftBytes = bytes.length
    if (recordCount > this.hashes.length) {
      this.hashes = new Int32Array(2 * recordCount)
      this.#ints = new Int32Array((2 * recordCount + 1) * recordInts)
    }
    const ints = this.#ints
    const hashes = this.hashes
    const reader = this.#reader
    reader.bytes = bytes
    reader.end = bytes.length
    let at = 0
    for (let record = 0, i = 0; record < recordCount; record++, i += recordInts) {
      ints[i + startInt] = at
      reader.at = at
      const length = reader.next()
      const end = reader.at + length
      reader.at++
      reader.next()
      ints[i + offsetInt] = reader.next()
      const keyLength = reader.next()
      const key = reader.at
      ints[i + keyInt] = key
      ints[i + keyLengthInt] = keyLength
      const keyEnd = key + Math.max(keyLength, 0)
      if (!(end > at && end <= bytes.length && keyEnd < end)) throw damaged(baseOffset)
      hashes[record] = hashOf(bytes, key, keyEnd)
      reader.at = keyEnd
      ints[i + kindInt] = reader.next() < 0 ? tombstone : value
      at = end
    }
    ints[recordCount * recordInts + startInt] = at
    reader.bytes = none
  }

  clear(): void {
    this.bytes = none
    this.count = 0
    this.leftBytes = 0
  }

  keyStart(i: number): number {
    return this.#ints[i * recordInts + keyInt] as number
  }

  /** -1: the record has no key. */
  keyLength(i: number): number {
    return this.#ints[i * recordInts + keyLengthInt] as number
  }

  /** Less the batch's first. */
  offset(i: number): number {
    return this.#ints[i * recordInts + offsetInt] as number
  }

  isTombstone(i: number): boolean {
    return this.#ints[i * recordInts + kindInt] === tombstone
  }

  drop(i: number): void {
    const at = i * recordInts
    this.#ints[at + kindInt] = dropped
    this.leftBytes -= (this.#ints[at + recordInts + startInt] as number) - (this.#ints[at + startInt] as number)
  }

  /** Neighbours are copied together. */
  copyLeft(target: Uint8Array, at: number): void {
    const ints = this.#ints
    const bytes = this.bytes
    const end = this.count * recordInts
    let into = at
    for (let i = 0; i < end; i += recordInts) {
      if (ints[i + kindInt] === dropped) continue
      const from = ints[i + startInt] as number
      while (i + recordInts < end && ints[i + recordInts + kindInt] !== dropped) i += recordInts
      const to = ints[i + recordInts + startInt] as number
      if (to - from <= shortCopy) for (let p = from; p < to; p++) target[into++] = bytes[p] as number
      else {
        target.set(bytes.subarray(from, to), into)
        into += to - from
      }
    }
  }
}
