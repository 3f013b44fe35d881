/** The records of a batch as ranges of bytes, without an object for any of them. */
import { decompress } from '../../../wire/compression.ts'
import { type BatchHeader, batchHeaderSize } from '../../../wire/record-batch.ts'
import { VarintReader } from '../../../wire/varint.ts'

/** Integers of a record: where it starts and ends, its offset in the batch, where its key starts, its length, what it is. */
const recordInts = 6
const [startInt, endInt, offsetInt, keyInt, keyLengthInt, kindInt] = [0, 1, 2, 3, 4, 5] as const
const value = 0
const tombstone = 1
const dropped = 2

const none = new Uint8Array(0)

export class BatchRecords {
  /** Where the ranges lie: the batch's own bytes behind its head, or its decompressed ones. */
  bytes: Uint8Array = none
  count = 0
  readonly #reader = new VarintReader(none)
  #ints = new Int32Array(256 * recordInts)

  open(batch: Uint8Array, { compression, recordCount }: BatchHeader): void {
    const body = batch.subarray(batchHeaderSize)
    this.bytes = compression === 'none' ? body : decompress(compression, body)
    this.count = recordCount
    if (recordCount * recordInts > this.#ints.length) this.#ints = new Int32Array(2 * recordCount * recordInts)
    const ints = this.#ints
    const reader = this.#reader
    reader.bytes = this.bytes
    reader.at = 0
    reader.end = this.bytes.length
    for (let i = 0; i < recordCount * recordInts; i += recordInts) {
      ints[i + startInt] = reader.at
      const length = reader.next()
      const end = reader.at + length
      ints[i + endInt] = end
      reader.at++
      reader.next()
      ints[i + offsetInt] = reader.next()
      const keyLength = reader.next()
      ints[i + keyInt] = reader.at
      ints[i + keyLengthInt] = keyLength
      reader.at += Math.max(keyLength, 0)
      ints[i + kindInt] = reader.next() < 0 ? tombstone : value
      reader.at = end
    }
    reader.bytes = none
  }

  clear(): void {
    this.bytes = none
    this.count = 0
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
    this.#ints[i * recordInts + kindInt] = dropped
  }

  leftBytes(): number {
    let bytes = 0
    for (let i = 0; i < this.count; i++) if (this.#isLeft(i)) bytes += this.#at(i, endInt) - this.#at(i, startInt)
    return bytes
  }

  /** Neighbours are copied together. */
  copyLeft(target: Uint8Array, at: number): void {
    let into = at
    for (let i = 0; i < this.count; i++) {
      if (!this.#isLeft(i)) continue
      const from = this.#at(i, startInt)
      while (i + 1 < this.count && this.#isLeft(i + 1)) i++
      const part = this.bytes.subarray(from, this.#at(i, endInt))
      target.set(part, into)
      into += part.length
    }
  }

  #isLeft(i: number): boolean {
    return this.#at(i, kindInt) !== dropped
  }

  #at(i: number, field: number): number {
    return this.#ints[i * recordInts + field] as number
  }
}
