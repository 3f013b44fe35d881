/**
 * The rows of a key-value store in blocks, each of which has those whose keys' hashes lie in one range. To find a row is
 * one look into the database, for the range follows from the hash: there are 2^level ranges of the same length, and the
 * first `next` of them are halved already. So the ranges grow in number with the rows, one at a time.
 */
import { BlockWriter, eachRow, splitAt, valueIn } from './block.ts'
import type { HashedRows } from '../contract.ts'
import { checkedLength, checksum } from './checksum.ts'
import { DamagedRow } from './lmdb-notes.ts'
import { blockPrefix, type LmdbEnvironment, type RowKey, type Rows, type WrittenKey } from './lmdb-environment.ts'

/** Bytes of a block, on average; LMDB has room for three or four on a page. */
const blockBytes = 1024
/** Beyond it ranges of hashes would have no length. */
const maxLevel = 28
/** Blocks read by one look into the database. */
const blocksPerRead = 256

/** Before the key of every row, and behind all blocks. */
const firstRow = new Uint8Array(0)

interface Block {
  readonly start: number
  readonly value: Uint8Array
}

export interface BlockLayout {
  level: number
  next: number
  rows: number
  bytes: number
}

export class LmdbBlocks {
  readonly #environment: LmdbEnvironment
  readonly #store: string
  readonly #layoutName: string
  /** What the checksum of each block begins with; the range's first hash follows. */
  readonly #sum: number
  readonly #start = new Uint8Array(4)
  readonly #key = new BlockKey()
  readonly #writer = new BlockWriter()
  #layout: BlockLayout | undefined
  #knownAt = -1

  constructor(environment: LmdbEnvironment, store: string) {
    this.#environment = environment
    this.#store = store
    this.#layoutName = `blocks/${store}`
    this.#sum = checksum(environment.checksumOf(store), Uint8Array.of(blockPrefix))
  }

  /** How the blocks lie; undefined: there are none. */
  get layout(): BlockLayout | undefined {
    const { undone, notes } = this.#environment
    if (this.#knownAt !== undone) {
      const found = notes.get(this.#layoutName)
      this.#layout = found === undefined ? undefined : (JSON.parse(found) as BlockLayout)
      this.#knownAt = undone
    }
    return this.#layout
  }

  /** Begins with as many blocks as these will need. Within a transaction. */
  begin(bytes: number): void {
    const layout = { level: 0, next: 0, rows: 0, bytes: 0 }
    while (layout.level < maxLevel && blockBytes * 2 ** (layout.level + 1) <= bytes) layout.level++
    this.#keep(layout)
  }

  get(layout: BlockLayout, hash: number, key: string): Uint8Array | undefined {
    // The buffer is LMDB's own and longer than the value; only its `length` tells.
    const start = startOf(layout, hash)
    const block = this.#rows.getBinaryFast(this.#at(start))
    return block && valueIn(block, this.#lengthOf(start, block, block.length), hash, key)
  }

  /** Within a transaction. */
  apply(layout: BlockLayout, rows: HashedRows, first: number, behind: number): void {
    const store = this.#rows
    const writer = this.#writer
    const { hashes } = rows
    for (let from = first; from < behind; ) {
      const start = startOf(layout, hashes[from] as number)
      const end = start + lengthOf(layout, start)
      let to = from + 1
      while (to < behind && (hashes[to] as number) < end) to++
      rows.touch(from, to)
      const key = this.#at(start)
      const block = store.getBinaryFast(key)
      const before = block === undefined ? 0 : this.#lengthOf(start, block, block.length)
      writer.merge(block, before, rows, from, to)
      layout.rows += writer.added
      layout.bytes += writer.length - before
      if (writer.length > 0) void store.put(key, this.#checked(start))
      else if (before > 0) void store.remove(key)
      from = to
    }
    while (layout.bytes > blockBytes * (2 ** layout.level + layout.next) && layout.level < maxLevel) this.#split(layout)
    this.#keep(layout)
  }

  /** Shows all rows, in no order that says anything; key and value are valid until the next. */
  each(visit: (key: Uint8Array, value: Uint8Array) => void): void {
    for (const blocks of this.#reads()) {
      for (const { start, value } of blocks) eachRow(value, this.#lengthOf(start, value, value.length), visit)
    }
  }

  /** There are no blocks from now on. Within a transaction. */
  forget(): void {
    this.#environment.notes.remove(this.#layoutName)
    this.#layout = undefined
    this.#knownAt = this.#environment.undone
  }

  /** Removes what is left of blocks that were forgotten. */
  sweep(): void {
    for (const blocks of this.#reads()) {
      this.#environment.transaction(() => {
        for (const { start } of blocks) void this.#rows.remove(this.#at(start))
      })
    }
  }

  *#reads(): IterableIterator<readonly Block[]> {
    const [from, end] = [new BlockKey(), firstRow]
    for (let exclusiveStart = false; ; exclusiveStart = true) {
      const options = { start: from as unknown as RowKey, end, exclusiveStart, limit: blocksPerRead }
      const blocks = Array.from(this.#rows.getRange(options), ({ key, value }) => ({
        start: startIn(key as Uint8Array),
        value,
      }))
      yield blocks
      const last = blocks.at(-1)
      if (last === undefined || blocks.length < blocksPerRead) return
      from.start = last.start
    }
  }

  /** Halves the range whose turn it is. */
  #split(layout: BlockLayout): void {
    const store = this.#rows
    const range = 2 ** (32 - layout.level)
    const start = layout.next * range
    const middle = start + range / 2
    const key = this.#at(start)
    const block = store.getBinaryFast(key)
    if (block !== undefined) {
      const length = this.#lengthOf(start, block, block.length)
      const at = splitAt(block, length, middle)
      if (at < length) {
        this.#writer.part(block, at, length)
        void store.put(this.#at(middle), this.#checked(middle))
        this.#at(start)
        this.#writer.part(block, 0, at)
        if (at === 0) void store.remove(key)
        else void store.put(key, this.#checked(start))
      }
    }
    layout.next++
    if (layout.next < 2 ** layout.level) return
    layout.level++
    layout.next = 0
  }

  #keep(layout: BlockLayout): void {
    this.#environment.notes.put(this.#layoutName, JSON.stringify(layout))
    this.#layout = layout
    this.#knownAt = this.#environment.undone
  }

  /** The block that was just made, before its checksum. */
  #checked(start: number): Uint8Array {
    return this.#writer.withChecksum(this.#sumOf(start))
  }

  /** The length of the rows in a block that was read. */
  #lengthOf(start: number, block: Uint8Array, length: number): number {
    const rows = checkedLength(this.#sumOf(start), block, 0, length)
    if (rows < 0) throw new DamagedRow(`the block of rows ${start.toString(16)}`)
    return rows
  }

  #sumOf(start: number): number {
    writeStart(start, this.#start, 0)
    return checksum(this.#sum, this.#start)
  }

  get #rows(): Rows {
    return this.#environment.store(this.#store)
  }

  #at(start: number): RowKey {
    this.#key.start = start
    // It goes to our own encoder as it is, of which the types know nothing.
    return this.#key as unknown as RowKey
  }
}

/** The first hash of the range in which this one lies. */
function startOf({ level, next }: BlockLayout, hash: number): number {
  const length = 2 ** (32 - level)
  const range = Math.floor(hash / length)
  const start = range * length
  return range < next && hash >= start + length / 2 ? start + length / 2 : start
}

function lengthOf({ level, next }: BlockLayout, start: number): number {
  const length = 2 ** (32 - level)
  return Math.floor(start / length) < next ? length / 2 : length
}

function startIn(key: Uint8Array): number {
  const [a = 0, b = 0, c = 0, d = 0] = key
  return ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
}

class BlockKey implements WrittenKey {
  readonly prefix = blockPrefix
  start = 0

  write(target: Uint8Array, at: number): number {
    return writeStart(this.start, target, at)
  }
}

function writeStart(start: number, target: Uint8Array, at: number): number {
  target[at] = start >>> 24
  target[at + 1] = start >>> 16
  target[at + 2] = start >>> 8
  target[at + 3] = start
  return at + 4
}
