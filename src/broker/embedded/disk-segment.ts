import { closeSync, openSync, readFileSync, readSync, truncateSync, writeSync } from 'node:fs'
import type { BrokerError } from '../port.ts'
import { chainBehindAll, type SegmentFacts } from './core/segment-scan.ts'
import type { SegmentFile } from './core/storage.ts'
import { damagedFile } from './files/damage.ts'
import type { SegmentRow } from './files/journal-frames.ts'
import type { Kept, Ledger } from './files/ledger.ts'
import { appendWhole, type OpenFiles, storageError } from './open-files.ts'

/** Where a partition's segments lie, and who keeps account of them. */
export interface SegmentHome {
  /** The broker's folder. */
  readonly root: string
  readonly topicId: string
  readonly partition: number
  /** Whether the process before this one forced what it acknowledged to the disk. */
  readonly isForced: boolean
  readonly files: OpenFiles
  readonly ledger: Ledger
}

/** A file that only grows at its end, save for being cut. */
export class DiskSegment implements SegmentFile, Kept {
  readonly baseOffset: number
  readonly path: string
  readonly facts: SegmentFacts | undefined
  size: number
  #chain: number
  /** Behind `size` lies a write that was cut short. It goes once all of the folder was read, and nothing refused. */
  #isTorn = false
  /** From here on it may be in memory alone, and look as if it were on the disk. */
  #doubtedFrom = Number.POSITIVE_INFINITY
  readonly #home: SegmentHome

  /** `facts`: what the journal says that it holds, where it was not written just now. */
  constructor(baseOffset: number, path: string, size: number, home: SegmentHome, facts?: SegmentFacts) {
    this.baseOffset = baseOffset
    this.path = path
    this.size = size
    this.#home = home
    this.facts = facts
    this.#chain = 0
  }

  get topicId(): string {
    return this.#home.topicId
  }

  row(): SegmentRow {
    const { topicId, partition } = this.#home
    return [topicId, partition, this.baseOffset, this.size, this.#chain]
  }

  append(bytes: Uint8Array): void {
    this.settle()
    appendWhole(this.#home.files, this.path, this.size, bytes)
    this.#chain = chainBehindAll(this.#chain, bytes)
    this.size += bytes.length
    this.#home.ledger.changed(this)
  }

  copy(position: number, target: Uint8Array, at: number, length: number): void {
    const descriptor = this.#home.files.descriptor(this.path)
    for (let done = 0; done < length; ) {
      const count = readSync(descriptor, target, at + done, length - done, position + done)
      if (count === 0) throw storageError(this.path, 'it is shorter than what was written to it', undefined)
      done += count
    }
  }

  truncate(size: number): void {
    const { files, ledger, topicId, partition } = this.#home
    files.forget(this.path)
    const chain = chainBehindAll(0, readFileSync(this.path).subarray(0, size))
    const known = ledger.known.of(topicId, partition).segments.get(this.baseOffset)
    if (known !== undefined && known.size > size) {
      ledger.announce({ kind: 'segments' }, [[topicId, partition, this.baseOffset, size, chain]])
    }
    truncateSync(this.path, size)
    files.written(this.path)
    this.#isTorn = false
    this.size = size
    this.#chain = chain
    ledger.changed(this)
  }

  settle(): void {
    const { files } = this.#home
    if (this.#isTorn) {
      files.forget(this.path)
      truncateSync(this.path, this.size)
      files.written(this.path)
    }
    this.#isTorn = false
    if (this.#doubtedFrom < this.size) this.#writeAgain(this.#doubtedFrom)
    this.#doubtedFrom = Number.POSITIVE_INFINITY
  }

  recovered({ size, chain }: SegmentFacts): void {
    const { files, ledger, isForced } = this.#home
    this.#isTorn = size < this.size
    this.size = size
    this.#chain = chain
    if (files.syncs && isForced) this.#doubtedFrom = this.facts?.size ?? 0
    else files.written(this.path)
    ledger.changed(this)
  }

  /** What a disk failed to take before is taken for written: only if it is written anew it gets there. */
  #writeAgain(from: number): void {
    const bytes = new Uint8Array(this.size - from)
    this.copy(from, bytes, 0, bytes.length)
    const descriptor = openSync(this.path, 'r+')
    try {
      for (let done = 0; done < bytes.length; ) {
        done += writeSync(descriptor, bytes, done, bytes.length - done, from + done)
      }
    } finally {
      closeSync(descriptor)
    }
    this.#home.files.written(this.path)
  }

  /** It was written as a whole, and ends with this chain. */
  written(chain: number): this {
    this.#chain = chain
    return this
  }

  damaged(at: number, why: string): BrokerError {
    return damagedFile(this.#home.root, { path: this.path, at, why })
  }
}
