/** What lies in fetched record batches, told from their headers alone. */
import type { AbortedTransaction, Isolation } from '../../broker/port.ts'
import { attributeBits, batchField, batchSize } from '../../broker/wire/batch-header.ts'
import { readBigInt64, readInt16, readInt32, readInt64 } from '../../broker/wire/integers.ts'
import { controlType } from '../../broker/wire/record-cursor.ts'

const abort = 0

export interface Survey {
  /** Records that a reader from the asked offset on will see; too many only where compaction took some away. */
  readonly count: number
  /** The offset after the last whole batch. */
  readonly end: number
}

/** `records` are what a fetch at `from` brought. */
export function surveyBatches(
  records: Uint8Array,
  from: number,
  aborted: readonly AbortedTransaction[],
  isolation: Isolation,
): Survey {
  const skip = new AbortedProducers(isolation === 'read_committed' ? aborted : [])
  let count = 0
  let end = from
  for (let at = 0; at < records.length; ) {
    const size = batchSize(records, at)
    if (size < 0) break
    const baseOffset = readInt64(records, at + batchField.baseOffset)
    const last = baseOffset + readInt32(records, at + batchField.lastOffsetDelta)
    const attributes = readInt16(records, at + batchField.attributes)
    const skipped = (attributes & attributeBits.transactional) !== 0 && skip.covers(records, at, size, last, attributes)
    if (!skipped && (attributes & attributeBits.control) === 0 && last >= from) {
      const inBatch = readInt32(records, at + batchField.recordCount)
      count += baseOffset >= from ? inBatch : Math.min(inBatch, last - from + 1)
    }
    end = Math.max(end, last + 1)
    at += size
  }
  return { count, end }
}

class AbortedProducers {
  readonly #left: AbortedTransaction[]
  readonly #open = new Set<bigint>()

  constructor(aborted: readonly AbortedTransaction[]) {
    this.#left = aborted.length === 0 ? [] : [...aborted].sort((a, b) => b.firstOffset - a.firstOffset)
  }

  covers(records: Uint8Array, at: number, size: number, last: number, attributes: number): boolean {
    for (let next = this.#left.at(-1); next && next.firstOffset <= last; next = this.#left.at(-1)) {
      this.#open.add(next.producerId)
      this.#left.pop()
    }
    if (this.#open.size === 0) return false
    const producerId = readBigInt64(records, at + batchField.producerId)
    if (!this.#open.has(producerId)) return false
    if ((attributes & attributeBits.control) !== 0 && controlType(records, at, size) === abort) {
      this.#open.delete(producerId)
    }
    return true
  }
}
