/**
 * Changes that the broker has not committed, laid over the rows that it has: one open epoch, and sealed ones, oldest
 * first. Reads see open → sealed → committed.
 */
import { assert } from '../base/assert.ts'
import type { CommitEpoch } from '../base/ids.ts'
import type { CommittedRows } from './committed.ts'
import type { Checkpoint } from './contract.ts'
import { Keyed } from './keyed.ts'
import type { Row, RowCodec } from './row.ts'

/** Null: deleted. */
type Cell = Row | null

interface SealedEpoch {
  readonly epoch: CommitEpoch
  readonly cells: Keyed<Cell>
}

export class Overlay {
  readonly committed: CommittedRows
  readonly codec: RowCodec
  /** Bytes of the open epoch's keys and values, about. */
  bytes = 0
  #open = new Keyed<Cell>()
  #sealed: SealedEpoch[] = []

  constructor(committed: CommittedRows, codec: RowCodec) {
    this.committed = committed
    this.codec = codec
  }

  get(key: string): Row | undefined {
    const cell = this.#open.map.get(key)
    if (cell !== undefined) return cell === null ? undefined : cell
    return this.#below(key)
  }

  put(key: string, value: unknown, timestamp: number): void {
    const before = this.#open.map.get(key)
    if (before) {
      const weight = this.codec.weight(before)
      if (this.codec.replace(before, value, timestamp)) this.bytes += this.codec.weight(before) - weight
      else this.#set(key, this.codec.encode(value, timestamp), before)
    } else {
      this.#set(key, this.codec.encode(value, timestamp), before)
    }
  }

  putRow(key: string, row: Row): void {
    this.#set(key, row, this.#open.map.get(key))
  }

  delete(key: string): void {
    const before = this.#open.map.get(key)
    if (before) this.bytes -= this.codec.weight(before)
    if (this.#below(key) !== undefined) {
      if (before === undefined) this.bytes += key.length
      this.#open.set(key, null)
    } else if (before !== undefined) {
      // Nobody else has heard of the row: the epoch ends as if it had never been.
      this.bytes -= key.length
      this.#open.delete(key)
    }
  }

  /**
   * Rows in [from, to). The uncommitted keys are those of the moment of the call; a row deleted since is left out,
   * a row put since is given with its newest value where its key was there.
   */
  range(from: string | undefined, to: string | undefined, reverse = false): IterableIterator<[string, Row]> {
    return this.#merge(this.#uncommittedKeys(from, to, reverse), this.committed.range(from, to, reverse), reverse)
  }

  *#merge(
    keys: readonly string[],
    committed: IterableIterator<[string, Row]>,
    reverse: boolean,
  ): IterableIterator<[string, Row]> {
    let i = 0
    let below = committed.next()
    for (;;) {
      const own = keys[i]
      const under = below.done ? undefined : below.value[0]
      if (own === undefined && under === undefined) return
      let key: string
      let row: Row | undefined
      if (under !== undefined && (own === undefined || (reverse ? under > own : under < own))) {
        key = under
        row = this.#cell(key) === undefined ? (below.value as [string, Row])[1] : this.get(key)
        below = committed.next()
      } else {
        key = own as string
        if (under === key) below = committed.next()
        row = this.get(key)
        i++
      }
      if (row !== undefined) yield [key, row]
    }
  }

  /** The open epoch's cells, last one wins; null when there are none. The next epoch is open from now on. */
  seal(epoch: CommitEpoch): ReadonlyMap<string, Row | null> | null {
    const last = this.#sealed[this.#sealed.length - 1]
    assert(last === undefined || last.epoch < epoch, `epoch ${epoch} is sealed after epoch ${last?.epoch}`)
    if (this.#open.size === 0) return null
    const cells = this.#open
    this.#sealed.push({ epoch, cells })
    this.#open = new Keyed<Cell>(cells.ordered)
    this.bytes = 0
    return cells.map
  }

  applied(epoch: CommitEpoch, dropped: readonly string[], checkpoint: Checkpoint): void {
    const oldest = this.#sealed[0]
    if (oldest === undefined || oldest.epoch > epoch) {
      this.committed.apply(noCells, dropped, checkpoint)
      return
    }
    assert(oldest.epoch === epoch, `epoch ${epoch} is applied before epoch ${oldest.epoch}`)
    this.committed.apply(oldest.cells.map, dropped, checkpoint)
    this.#sealed.shift()
  }

  discard(): void {
    this.#open = new Keyed<Cell>(this.#open.ordered)
    this.#sealed = []
    this.bytes = 0
  }

  /** True where neither the open nor a sealed epoch says anything of the key. */
  isCommitted(key: string): boolean {
    return this.#cell(key) === undefined
  }

  #set(key: string, row: Row, before: Cell | undefined): void {
    if (before === undefined) this.bytes += key.length
    else if (before !== null) this.bytes -= this.codec.weight(before)
    this.bytes += this.codec.weight(row)
    this.#open.set(key, row)
  }

  #cell(key: string): Cell | undefined {
    const cell = this.#open.map.get(key)
    if (cell !== undefined) return cell
    for (let i = this.#sealed.length - 1; i >= 0; i--) {
      const sealed = (this.#sealed[i] as SealedEpoch).cells.map.get(key)
      if (sealed !== undefined) return sealed
    }
    return undefined
  }

  #below(key: string): Row | undefined {
    for (let i = this.#sealed.length - 1; i >= 0; i--) {
      const cell = (this.#sealed[i] as SealedEpoch).cells.map.get(key)
      if (cell !== undefined) return cell === null ? undefined : cell
    }
    return this.committed.get(key)
  }

  #uncommittedKeys(from: string | undefined, to: string | undefined, reverse: boolean): readonly string[] {
    const keys = [...this.#open.keys(from, to)]
    let mixed = false
    for (const { cells } of this.#sealed) {
      const before = keys.length
      for (const key of cells.keys(from, to)) if (this.#open.map.get(key) === undefined) keys.push(key)
      mixed ||= keys.length > before && before > 0
    }
    if (mixed) keys.sort()
    if (this.#sealed.length > 1) return reverse ? [...new Set(keys)].reverse() : [...new Set(keys)]
    return reverse ? keys.reverse() : keys
  }
}

const noCells: ReadonlyMap<string, Cell> = new Map()
