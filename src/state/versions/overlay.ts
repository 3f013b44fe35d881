/**
 * The rows of a store of sessions or versions with those changes that the broker has not committed: of one open epoch and of sealed ones, each a
 * generation. Reads see open → sealed → committed.
 *
 * Over a memory backend the nodes are the backend's own and hold everything. Over one that is written behind they hold
 * what is not committed and what is not written yet, over any other what is not committed; the backend is asked for the
 * rest.
 */
import { assert } from '../../base/assert.ts'
import type { CommitEpoch } from '../../base/ids.ts'
import { EngineError } from '../../base/errors.ts'
import { ByteRows } from '../rows/byte-rows.ts'
import type { Checkpoint, StoreBackend } from '../contract.ts'
import { MemoryBackend } from '../backends/memory-backend.ts'
import { bornAnew, isAnother, isYounger, type Layers, mergedRows } from '../rows/merged-rows.ts'
import type { Generation, Node } from './node.ts'
import { NodeBuffer } from './node-buffer.ts'
import { NodeRows } from './node-rows.ts'
import { PlainTable } from './node-table.ts'
import { committedGeneration, Row, type RowCodec } from '../rows/row.ts'
import { RowChanges } from '../rows/row-changes.ts'
import type { RowLayer } from '../rows/row-layer.ts'
import { WriteBehind } from '../backends/write-behind.ts'

/** Rows kept for use again, at most. */
const mostSpare = 16_384
/** Nodes that are gone and stay on the list of what was changed, at most, unless the others are more. */
const mostGone = 64

export class Overlay implements RowLayer {
  readonly codec: RowCodec
  /** Bytes of the open epoch's keys and values, about. */
  bytes = 0
  readonly #table = new PlainTable()
  readonly #memory: MemoryBackend | undefined
  readonly #behind: WriteBehind | undefined
  readonly #buffer: NodeBuffer | undefined
  /** The committed rows, where the nodes do not hold them. */
  readonly #below: ByteRows | undefined
  /** Moves with every change of what lies below. */
  #writes = 0
  /** What the open epoch has changed, with nodes that are gone. */
  #open: Node[] = []
  /** How many of them are gone. */
  #gone = 0
  #generation = 1
  #sealed: Generation[] = []
  #born = 0
  /** Rows that a newer committed row has replaced: they are used again, which spares the garbage collector two moves. */
  readonly #spare: Row[] = []
  /** What was looked up last: an operator reads a row and then writes it. */
  #lastKey: string | undefined
  #lastNode: Node | undefined
  /** Whether a row of it lies below; undefined while nobody has looked. */
  #lastIsBelow: boolean | undefined
  #readOnly: boolean

  constructor(backend: StoreBackend, codec: RowCodec, readOnly = false) {
    this.codec = codec
    this.#readOnly = readOnly
    if (backend instanceof MemoryBackend) {
      backend.attach(new NodeRows(codec, this.#table))
      this.#memory = backend
    } else {
      codec.keepsBytes = true
      this.#behind = backend instanceof WriteBehind ? backend : undefined
      this.#below = new ByteRows(this.#behind?.backend ?? backend, codec)
      if (this.#behind !== undefined) {
        // What was looked up last is written on no further: it may be a node that nobody would find again.
        const left = (): void => {
          this.#lastKey = undefined
        }
        this.#buffer = new NodeBuffer(codec, this.#table, left, (key) => this.#isBelow(key))
        this.#behind.attach(this.#buffer)
      }
    }
  }

  /** The open epoch has changes. */
  get isChanged(): boolean {
    return this.changedRows > 0
  }

  get changedRows(): number {
    return this.#open.length - this.#gone
  }

  changes(): RowChanges {
    const nodes = this.#changed()
    return new RowChanges(nodes.length, (at, into) => this.#showChange(nodes[at] as Node, into))
  }

  #showChange(node: Node, into: RowChanges): boolean {
    const { key, top } = node
    const before = top.below ?? (node.isNew === true ? undefined : this.#below?.get(key))
    into.key = key
    into.isThere = !top.isDeleted
    into.wasThere = before !== undefined && !before.isDeleted
    into.now = top
    if (before !== undefined) into.before = before
    return true
  }

  get(key: string): Row | undefined {
    const node = this.#find(key)
    if (node !== undefined) return node.top.isDeleted ? undefined : node.top
    return this.#belowAt(key)
  }

  put(key: string, value: unknown, timestamp: number): void {
    const node = this.#find(key)
    if (node?.top.isDeleted) node.born = bornAnew(++this.#born)
    if (node !== undefined && node.top.generation === this.#generation) {
      this.#replace(node.top, value, timestamp)
      return
    }
    const row = this.#row(value, timestamp)
    if (node !== undefined) this.#lay(node, row)
    else this.#begin(this.#table.add(key, row, ++this.#born), key)
  }

  /** Puts the tombstone of a versioned store. */
  putTombstone(key: string, timestamp: number): void {
    const node = this.#find(key)
    this.#checkWritable()
    const row = this.codec.tombstone(timestamp)
    if (node === undefined) {
      this.#begin(this.#table.add(key, row, ++this.#born), key)
    } else if (node.top.generation === this.#generation) {
      row.generation = this.#generation
      row.below = node.top.below
      node.top = row
    } else {
      this.#lay(node, row)
    }
  }

  delete(key: string): void {
    const node = this.#find(key)
    if (node !== undefined) {
      this.#delete(node)
    } else if (this.#belowAt(key) !== undefined) {
      this.#checkWritable()
      const row = Row.deletion()
      this.#begin(this.#table.add(key, row, ++this.#born), key)
    }
  }

  /** Rows in [from, to), without keys that came after the call. A row is given as it is when its turn comes. */
  range(from: string | undefined, to: string | undefined, reverse = false): IterableIterator<[string, Row]> {
    const isAllHere = this.#below === undefined || (from !== undefined && !this.#reaches(from))
    if (this.#below === undefined || isAllHere) return this.#walk(from, to, reverse, this.#born)
    return mergedRows(this.#layers(this.#below, newest), from, to, reverse)
  }

  /** Committed rows of which no uncommitted change speaks, from `from` on. */
  *settled(from: string | undefined): IterableIterator<[string, Row]> {
    if (this.#below !== undefined) {
      yield* mergedRows(this.#layers(this.#below, settledOrHidden), from, undefined, false)
      return
    }
    for (const key of this.#table.rows(from, undefined)) {
      const row = this.#table.get(key)?.top
      if (row?.generation === committedGeneration) yield [key, row]
    }
  }

  /** The open epoch's changes; null when there are none. The next epoch is open from now on. */
  seal(epoch: CommitEpoch): Generation | null {
    const last = this.#sealed[this.#sealed.length - 1]
    assert(last === undefined || last.epoch < epoch, `epoch ${epoch} is sealed after epoch ${last?.epoch}`)
    this.#lastKey = undefined
    const nodes = this.#changed()
    if (nodes.length === 0) return null
    assert(
      this.#sealed.every(({ generation }) => generation < this.#generation),
      'generations are sealed in their order',
    )
    const sealed = { epoch, generation: this.#generation++, nodes }
    this.#sealed.push(sealed)
    this.#open = []
    this.bytes = 0
    return sealed
  }

  /** All sealed epochs are committed: for a store in memory that has no changelog and hence no checkpoint. */
  settleAll(): void {
    if (this.#memory === undefined) return
    for (const sealed of this.#sealed) this.#settle(sealed)
    this.#sealed = []
  }

  /** Also removes rows that the changelog need not hear of. */
  applied(epoch: CommitEpoch, dropped: readonly string[], checkpoint: Checkpoint): void {
    let oldest = this.#sealed[0]
    if (oldest !== undefined && oldest.epoch > epoch) oldest = undefined
    assert(oldest === undefined || oldest.epoch === epoch, `epoch ${epoch} is applied before epoch ${oldest?.epoch}`)
    if (this.#memory !== undefined) {
      if (oldest !== undefined) this.#settle(oldest)
      for (const key of dropped) {
        const node = this.#table.get(key)
        if (node?.top.generation === committedGeneration) this.#table.remove(node)
      }
      this.#memory.advance(checkpoint)
    } else if (this.#behind !== undefined) {
      if (oldest !== undefined) this.#buffer?.settle(oldest.nodes, oldest.generation, this.#takeSpare)
      this.#behind.advance(checkpoint, dropped)
    } else {
      this.#below?.apply(oldest, dropped, checkpoint)
      if (oldest !== undefined) this.#release(oldest)
      this.#writes++
    }
    if (oldest !== undefined) this.#sealed.shift()
    this.#lastKey = undefined
  }

  discard(): void {
    for (const nodes of [this.#changed(), ...this.#sealed.map((sealed) => sealed.nodes)]) {
      for (const node of nodes) {
        const committed = node.at(committedGeneration)
        if (committed === undefined) this.#table.remove(node)
        else node.top = committed
      }
    }
    this.#lastKey = undefined
    this.#open = []
    this.#sealed = []
    this.bytes = 0
  }

  /** No further change: a function that comes back after its run has ended must not write into the next one. */
  freeze(): void {
    this.#readOnly = true
  }

  /** The backend was changed by somebody else. */
  changedBelow(): void {
    this.#lastKey = undefined
    this.#writes++
  }

  #layers(below: ByteRows, shown: (node: Node) => Row | null): Layers<Row> {
    const youngest = this.#born
    return {
      keys: (from, to, reverse) => this.#table.rows(from, to, reverse),
      at: (key) => {
        const node = this.#table.get(key)
        if (node !== undefined && isAnother(node.born, youngest)) return null
        return node && shown(node)
      },
      isOld: (key) => !isYounger(this.#table.get(key)?.born ?? 0, youngest),
      below: (from, to, reverse) => below.range(from, to, reverse),
      writes: () => this.#writes + (this.#behind?.writes ?? 0),
    }
  }

  /** Whether rows with this key or a greater one may lie below. */
  #reaches(row: string): boolean {
    return this.#behind?.reaches(row) ?? this.#below !== undefined
  }

  /** The row that was looked for last, and has no node. */
  #belowAt(row: string): Row | undefined {
    const found = this.#below?.get(row)
    this.#lastIsBelow = found !== undefined
    return found
  }

  #find(key: string): Node | undefined {
    if (key !== this.#lastKey) {
      this.#lastNode = this.#table.get(key)
      this.#lastKey = key
      this.#lastIsBelow = undefined
    }
    return this.#lastNode
  }

  #checkWritable(): void {
    if (!this.#readOnly) return
    throw new EngineError('USAGE', 'A view of a store is for reading; write through the store itself.')
  }

  #row(value: unknown, timestamp: number): Row {
    this.#checkWritable()
    const row = this.#spare.pop() ?? new Row(undefined, undefined, 0)
    this.codec.replace(row, value, timestamp)
    return row
  }

  #replace(row: Row, value: unknown, timestamp: number): void {
    this.bytes -= this.codec.weight(row)
    this.codec.replace(row, value, timestamp)
    this.bytes += this.codec.weight(row)
  }

  #delete(node: Node): void {
    const { top } = node
    if (top.generation === this.#generation) {
      this.bytes -= this.codec.weight(top)
      top.delete()
      this.bytes += this.codec.weight(top)
      if (top.below === undefined) this.#takeBack(node)
    } else if (!top.isDeleted) {
      this.#checkWritable()
      // Its deletion need not be kept for a backend that never had it.
      this.#learn(node)
      this.#lay(node, Row.deletion())
    }
  }

  /**
   * What came and went within the epoch leaves nothing behind where nothing lies below. A session that grows with each record
   * deletes as many rows as there are records: to find it must not take a walk over all of them.
   */
  #takeBack(node: Node): void {
    this.#learn(node)
    if (this.#below !== undefined && node.isNew !== true) return
    this.bytes -= node.key.length + this.codec.weight(node.top)
    this.#table.remove(node)
    node.isGone = true
    this.#gone++
    this.#lastKey = undefined
    if (this.#gone > mostGone && 2 * this.#gone > this.#open.length) this.#changed()
  }

  /** The nodes that the open epoch has changed. */
  #changed(): Node[] {
    if (this.#gone > 0) {
      // Another list: a walk over the changes may go on with the one that it has.
      this.#open = this.#open.filter(({ isGone }) => !isGone)
      this.#gone = 0
    }
    return this.#open
  }

  /** Finds out whether the backend has a row of the node's key. */
  #learn(node: Node): void {
    if (this.#buffer !== undefined) this.#buffer.learn(node)
    else if (this.#below !== undefined) node.isNew ??= !this.#isBelow(node.key)
  }

  #isBelow(key: string): boolean {
    return this.#reaches(key) && this.#below?.get(key) !== undefined
  }

  /** Puts a row of the open epoch above those of older ones. */
  #lay(node: Node, row: Row): void {
    row.generation = this.#generation
    row.below = node.top
    node.top = row
    this.bytes += node.key.length + this.codec.weight(row)
    this.#open.push(node)
  }

  /** A node that the open epoch has made. */
  #begin(node: Node, key: string): void {
    const { top } = node
    node.isNew = this.#lastIsBelow === undefined ? undefined : !this.#lastIsBelow
    top.generation = this.#generation
    this.bytes += node.key.length + this.codec.weight(top)
    this.#open.push(node)
    if (key === this.#lastKey) this.#lastNode = node
  }

  /** The generation's rows are the committed ones from now on. */
  #settle({ generation, nodes }: Generation): void {
    for (const node of nodes) {
      const row = node.at(generation) as Row
      row.generation = committedGeneration
      const { below } = row
      row.below = undefined
      if (below !== undefined) this.#spareRow(below)
      if (!row.isDeleted) continue
      if (node.top === row) this.#table.remove(node)
      else (node.above(committedGeneration) as Row).below = undefined
    }
  }

  readonly #takeSpare = (row: Row): void => this.#spareRow(row)

  #spareRow(row: Row): void {
    if (this.#spare.length >= mostSpare) return
    row.value = undefined
    row.bytes = undefined
    row.below = undefined
    this.#spare.push(row)
  }

  /** The generation's rows lie in the backend from now on. */
  #release({ generation, nodes }: Generation): void {
    for (const node of nodes) {
      const above = node.above(generation)
      if (above === undefined) {
        this.#table.remove(node)
        this.#spareRow(node.top)
      } else {
        const { below } = above
        above.below = undefined
        if (below === undefined) continue
        node.isNew = below.isDeleted
        this.#spareRow(below)
      }
    }
  }

  *#walk(
    from: string | undefined,
    to: string | undefined,
    reverse: boolean,
    youngest: number,
  ): IterableIterator<[string, Row]> {
    for (const key of this.#table.rows(from, to, reverse)) {
      const node = this.#table.get(key)
      if (node !== undefined && !isYounger(node.born, youngest) && !node.top.isDeleted) yield [key, node.top]
    }
  }
}

const newest = ({ top }: Node): Row | null => (top.isDeleted ? null : top)
/** A row of which an uncommitted change speaks is hidden. */
const settledOrHidden = (node: Node): Row | null => (node.top.generation === committedGeneration ? newest(node) : null)
