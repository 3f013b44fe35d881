/**
 * A store's rows with those changes that the broker has not committed: of one open epoch and of sealed ones, each a
 * generation. Reads see open → sealed → committed.
 *
 * Over a memory backend the nodes are the backend's own and hold everything. Over any other backend they hold what is
 * not committed, and the backend is asked for the rest.
 */
import { assert } from '../base/assert.ts'
import type { CommitEpoch } from '../base/ids.ts'
import { EngineError } from '../errors.ts'
import { ByteRows } from './byte-rows.ts'
import type { Checkpoint, StoreBackend } from './contract.ts'
import { Keyed } from './keyed.ts'
import { MemoryBackend } from './memory-backend.ts'
import { Node } from './node.ts'
import { committedGeneration, Row, type RowCodec } from './row.ts'

export interface Generation {
  readonly epoch: CommitEpoch
  readonly generation: number
  readonly nodes: readonly Node[]
}

export class Overlay {
  readonly codec: RowCodec
  /** Bytes of the open epoch's keys and values, about. */
  bytes = 0
  readonly #nodes: Keyed<Node>
  readonly #memory: MemoryBackend | undefined
  /** The committed rows, where the nodes do not hold them. */
  readonly #below: ByteRows | undefined
  #open: Node[] = []
  #generation = 1
  #sealed: Generation[] = []
  #born = 0

  #readOnly: boolean

  constructor(backend: StoreBackend, codec: RowCodec, readOnly = false) {
    this.codec = codec
    this.#readOnly = readOnly
    if (backend instanceof MemoryBackend) {
      backend.attach(codec)
      this.#memory = backend
      this.#nodes = backend.nodes
    } else {
      this.#below = new ByteRows(backend, codec)
      this.#nodes = new Keyed<Node>()
    }
  }

  /** The open epoch has changes. */
  get isChanged(): boolean {
    return this.#open.length > 0
  }

  /** Rows that the open epoch changed. */
  get changes(): number {
    return this.#open.length
  }

  get(key: string): Row | undefined {
    const node = this.#nodes.map.get(key)
    if (node !== undefined) return node.top.isDeleted ? undefined : node.top
    return this.#below?.get(key)
  }

  put(key: string, value: unknown, timestamp: number): void {
    const node = this.#nodes.map.get(key)
    if (node !== undefined && node.top.generation === this.#generation) {
      const { top } = node
      this.bytes -= this.codec.weight(top)
      this.codec.replace(top, value, timestamp)
      this.bytes += this.codec.weight(top)
    } else {
      this.#lay(key, node, this.codec.encode(value, timestamp))
    }
  }

  /** Puts the tombstone of a versioned store. */
  putTombstone(key: string, timestamp: number): void {
    const node = this.#nodes.map.get(key)
    const row = this.codec.tombstone(timestamp)
    if (node === undefined || node.top.generation !== this.#generation) {
      this.#lay(key, node, row)
      return
    }
    row.generation = this.#generation
    row.below = node.top.below
    node.top = row
  }

  delete(key: string): void {
    const node = this.#nodes.map.get(key)
    if (node === undefined) {
      if (this.#below?.get(key) !== undefined) this.#lay(key, node, Row.deletion())
    } else if (node.top.generation === this.#generation) {
      this.bytes -= this.codec.weight(node.top)
      node.top.delete()
      this.bytes += this.codec.weight(node.top)
    } else if (!node.top.isDeleted) {
      this.#lay(key, node, Row.deletion())
    }
  }

  /** Rows in [from, to), without keys that came after the call. A row is given as it is when its turn comes. */
  range(from: string | undefined, to: string | undefined, reverse = false): IterableIterator<[string, Row]> {
    if (this.#below === undefined) return this.#walk(from, to, reverse, this.#born)
    const keys = [...this.#nodes.keys(from, to, reverse)]
    return this.#merge(keys, this.#below.range(from, to, reverse), reverse)
  }

  /** Committed rows of which no uncommitted change speaks, from `from` on. */
  *settled(from: string | undefined): IterableIterator<[string, Row]> {
    if (this.#below !== undefined) {
      for (const entry of this.#below.range(from, undefined, false)) if (!this.#nodes.map.has(entry[0])) yield entry
      return
    }
    for (const key of this.#nodes.keys(from, undefined)) {
      const row = this.#nodes.map.get(key)?.top
      if (row?.generation === committedGeneration) yield [key, row]
    }
  }

  /** The open epoch's changes; null when there are none. The next epoch is open from now on. */
  seal(epoch: CommitEpoch): Generation | null {
    const last = this.#sealed[this.#sealed.length - 1]
    assert(last === undefined || last.epoch < epoch, `epoch ${epoch} is sealed after epoch ${last?.epoch}`)
    if (this.#open.length === 0) return null
    const sealed = { epoch, generation: this.#generation++, nodes: this.#open }
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
        if (this.#nodes.get(key)?.top.generation === committedGeneration) this.#nodes.delete(key)
      }
      this.#memory.advance(checkpoint)
    } else {
      this.#below?.apply(oldest, dropped, checkpoint)
      if (oldest !== undefined) this.#release(oldest)
    }
    if (oldest !== undefined) this.#sealed.shift()
  }

  discard(): void {
    for (const nodes of [this.#open, ...this.#sealed.map((sealed) => sealed.nodes)]) {
      for (const node of nodes) {
        const committed = node.at(committedGeneration)
        if (committed === undefined) this.#nodes.delete(node.key)
        else node.top = committed
      }
    }
    this.#open = []
    this.#sealed = []
    this.bytes = 0
  }

  /** No further change: a function that comes back after its run has ended must not write into the next one. */
  freeze(): void {
    this.#readOnly = true
  }

  #lay(key: string, node: Node | undefined, row: Row): void {
    if (this.#readOnly)
      throw new EngineError('USAGE', 'A view of a store is for reading; write through the store itself.')
    row.generation = this.#generation
    this.bytes += key.length + this.codec.weight(row)
    if (node === undefined) {
      const fresh = new Node(key, row, ++this.#born)
      this.#nodes.set(key, fresh)
      this.#open.push(fresh)
    } else {
      row.below = node.top
      node.top = row
      this.#open.push(node)
    }
  }

  /** The generation's rows are the committed ones from now on. */
  #settle({ generation, nodes }: Generation): void {
    for (const node of nodes) {
      const row = node.at(generation) as Row
      row.generation = committedGeneration
      row.below = undefined
      if (!row.isDeleted) continue
      if (node.top === row) this.#nodes.delete(node.key)
      else (node.above(committedGeneration) as Row).below = undefined
    }
  }

  /** The generation's rows lie in the backend from now on. */
  #release({ generation, nodes }: Generation): void {
    for (const node of nodes) {
      const above = node.above(generation)
      if (above === undefined) this.#nodes.delete(node.key)
      else above.below = undefined
    }
  }

  *#walk(
    from: string | undefined,
    to: string | undefined,
    reverse: boolean,
    youngest: number,
  ): IterableIterator<[string, Row]> {
    for (const key of this.#nodes.keys(from, to, reverse)) {
      const node = this.#nodes.map.get(key) as Node
      if (node.born <= youngest && !node.top.isDeleted) yield [key, node.top]
    }
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
        row = this.#nodes.map.has(key) ? this.get(key) : (below.value as [string, Row])[1]
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
}
