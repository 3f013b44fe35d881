/**
 * Committed rows in front of a durable backend. Commits change them here; many commits later they are written in the
 * order of their keys, each row once, together with the checkpoint of a commit that they contain: a page of the
 * backend is then written once for many rows, instead of once for each. What a crash takes away with this memory is
 * replayed from the changelog, from the checkpoint on.
 *
 * A large part is written in several steps, and commits go on between them. A crash there leaves rows that are newer
 * than the checkpoint; its `ahead` tells how far the changelog has to be replayed until everything fits again.
 */
import { ByteRows } from './byte-rows.ts'
import { keyBytes, keyString } from './bytes.ts'
import type { ByteChange, ByteEntry, Checkpoint, RowWrites, StoreBackend } from './contract.ts'
import { sortByKey } from './key-order.ts'
import { mergedRows } from './merged-rows.ts'
import type { Node } from './node.ts'
import { type NodeTable, PlainTable } from './node-table.ts'
import { bytesCodec, committedGeneration, Row, type RowCodec } from './row.ts'

/** What a row takes beside its key and value: node, row, number, its place in the table. */
const overheadBytes = 280

/** What is under way to the backend. */
interface Writing {
  readonly keys: readonly string[]
  readonly nodes: readonly Node[]
  /** Everything up to here is among the rows, or in the backend already. */
  readonly checkpoint: Checkpoint
  /** Rows that are written. */
  done: number
}

export class WriteBehind implements StoreBackend {
  readonly durable: boolean
  readonly maxKeyBytes?: number
  readonly #backend: StoreBackend
  #codec = bytesCodec
  #table: NodeTable = new PlainTable()
  #below: ByteRows
  /** Nodes whose committed row the backend does not have, but for those that are being written. */
  #held: Node[] = []
  #count = 0
  /** Bytes of a row's value, smoothed. */
  #valueBytes = 0
  /** By how much the number of rows differs from the backend's, as far as that is known. */
  #difference = 0
  /** Nodes of which nobody knows whether the backend has a row. */
  #unknown: Node[] = []
  #writing: Writing | undefined
  #step: { readonly end: number; readonly checkpoint: Checkpoint | undefined } | undefined
  /** What the rows here bring the store to; undefined: all of it is in the backend. */
  #pending: Checkpoint | undefined
  /** What the backend says of itself. */
  #file: Checkpoint | undefined
  #incarnation: number
  #writes = 0
  /** Nodes have left the table. */
  #left: () => void = () => undefined

  constructor(backend: StoreBackend) {
    this.#backend = backend
    this.durable = backend.durable
    if (backend.maxKeyBytes !== undefined) this.maxKeyBytes = backend.maxKeyBytes
    this.#below = new ByteRows(backend, this.#codec, (node) => this.#table.rowOf(node))
    this.#incarnation = backend.incarnation ?? 0
    this.#file = backend.checkpoint()
  }

  /** The backend itself: what it holds is not all that is committed. */
  get backend(): StoreBackend {
    return this.#backend
  }

  /** Moves with every change of the backend. */
  get writes(): number {
    return this.#writes
  }

  /** Memory that the rows take which the backend does not have, about. */
  get heldBytes(): number {
    return Math.round(this.#count * (overheadBytes + this.#valueBytes))
  }

  get isHolding(): boolean {
    return this.#pending !== undefined
  }

  /** From now on rows have the form of this codec and lie in this table. */
  attach(codec: RowCodec, table: NodeTable, left: () => void): void {
    this.#left = left
    const before = this.#table
    this.#held = []
    this.#unknown = []
    this.#count = 0
    this.#difference = 0
    this.#writing = undefined
    this.#codec = codec
    this.#table = table
    this.#below = new ByteRows(this.#backend, codec, (node) => table.rowOf(node))
    for (const node of before.all()) {
      const row = node.at(committedGeneration)
      // A row of its own: whoever still reads the store before this one must not see it changed.
      if (row !== undefined) this.#put(before.rowOf(node), row.copy(), node.isNew)
    }
  }

  get(key: Uint8Array): Uint8Array | undefined {
    const row = this.#table.get(keyString(key))?.at(committedGeneration)
    if (row === undefined) return this.#backend.get(key)
    return this.#codec.toBackend(row) ?? undefined
  }

  *range(from?: Uint8Array, to?: Uint8Array, reverse = false): IterableIterator<ByteEntry> {
    const layers = {
      table: this.#table,
      below: this.#below,
      writes: () => this.#writes,
      shown: (node: Node) => node.at(committedGeneration),
    }
    const rows = mergedRows(layers, from && keyString(from), to && keyString(to), reverse, Number.POSITIVE_INFINITY)
    for (const [key, row] of rows) yield [keyBytes(key), this.#codec.toBackend(row) as Uint8Array]
  }

  /** Holds what a changelog says. */
  apply(changes: Iterable<ByteChange>, checkpoint?: Checkpoint): void {
    for (const [key, value] of changes) {
      this.#put(keyString(key), value === null ? Row.deletion() : this.#codec.fromBackend(value))
    }
    if (checkpoint !== undefined) this.#pending = checkpoint
  }

  /** The store above has put these rows into the nodes; they are committed from now on. Gives those they replace. */
  hold(nodes: readonly Node[], generation: number, replaced: (row: Row) => void): void {
    for (const node of nodes) {
      const row = node.at(generation) as Row
      const { below } = row
      row.generation = committedGeneration
      row.below = undefined
      this.#took(node, row, below)
      if (below !== undefined) replaced(below)
    }
  }

  /** The backend is to lose these rows. */
  drop(keys: readonly string[]): void {
    for (const key of keys) this.#put(key, Row.deletion())
  }

  /** What is held brings the store to this point. */
  advance(checkpoint: Checkpoint): void {
    this.#pending = checkpoint
  }

  checkpoint(): Checkpoint | undefined {
    this.#noticeReplacement()
    if (this.#pending === undefined) return this.#file
    return checkpointWith(this.#pending, this.#pending, this.#file)
  }

  entriesAbout(): number {
    return Math.max(0, this.#backend.entries() + this.#difference)
  }

  entries(): number {
    for (const node of this.#unknown) {
      const row = node.at(committedGeneration)
      const key = this.#table.rowOf(node)
      if (row === undefined || node.isNew !== undefined || this.#table.get(key) !== node) continue
      this.#difference -= difference(node, row)
      node.isNew = this.#backend.get(keyBytes(key)) === undefined
      this.#difference += difference(node, row)
    }
    this.#unknown = []
    return this.entriesAbout()
  }

  bytes(): number {
    return (this.#backend.bytes?.() ?? 0) + this.heldBytes
  }

  wipe(): void {
    this.#forget()
    this.#backend.wipe()
    this.#file = undefined
  }

  /**
   * One step: writes up to `most` of the rows that are held, and says how many. The caller confirms with `written` when
   * the backend's transaction is over; without that nothing is changed here.
   */
  write(most: number): number {
    this.#noticeReplacement()
    const pending = this.#pending
    if (pending === undefined) return 0
    this.#writing ??= this.#begin(pending)
    const { nodes, done, checkpoint } = this.#writing
    const end = Math.min(nodes.length, done + most)
    const base = end === nodes.length ? checkpoint : this.#file
    const next = base && checkpointWith(base, pending, this.#file)
    const rows = this.#rows(this.#writing, end)
    if (this.#backend.applyRows) this.#backend.applyRows(rows, next)
    else this.#backend.apply(inBytes(rows), next)
    this.#step = { end, checkpoint: next }
    return end - done
  }

  /** What the last `write` wrote is in the backend. True when nothing of what it began with is left. */
  written(): boolean {
    const writing = this.#writing
    const step = this.#step
    if (writing === undefined || step === undefined) return true
    this.#writes++
    this.#release(writing.nodes, writing.done, step.end)
    this.#left()
    if (this.#unknown.length > 0) this.#unknown = this.#unknown.filter((node) => node.isNew === undefined)
    this.#file = step.checkpoint
    this.#step = undefined
    writing.done = step.end
    if (step.end < writing.nodes.length) return false
    this.#writing = undefined
    if (this.#pending === writing.checkpoint) this.#pending = undefined
    return true
  }

  /** Writes all that is held. */
  writeAll(): void {
    while (this.isHolding) {
      this.write(Number.POSITIVE_INFINITY)
      this.written()
    }
  }

  close(): void {
    this.writeAll()
    this.#table.clear()
    this.#backend.close()
  }

  #begin(checkpoint: Checkpoint): Writing {
    const nodes = this.#held
    const keys = nodes.map((node) => this.#table.rowOf(node))
    sortByKey(keys, nodes)
    this.#held = []
    return { keys, nodes, checkpoint, done: 0 }
  }

  #rows({ keys, nodes, done }: Writing, end: number): RowWrites {
    return {
      count: end - done,
      key: (place) => keys[done + place] as string,
      value: (place) => this.#codec.toBackendBriefly((nodes[done + place] as Node).at(committedGeneration) as Row),
    }
  }

  /** The rows lie in the backend from now on. */
  #release(nodes: readonly Node[], from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const node = nodes[i] as Node
      const row = node.at(committedGeneration) as Row
      this.#count--
      this.#difference -= difference(node, row)
      node.isNew = row.isDeleted
      const above = node.above(committedGeneration)
      if (above === undefined) this.#table.remove(node)
      else above.below = undefined
    }
  }

  #put(key: string, row: Row, isNew?: boolean): void {
    let node = this.#table.get(key)
    if (node === undefined) {
      node = this.#table.add(key, row, 0)
      node.isNew = isNew
      this.#took(node, row, undefined)
      return
    }
    const before = node.at(committedGeneration)
    const above = node.above(committedGeneration)
    if (above === undefined) node.top = row
    else above.below = row
    this.#took(node, row, before)
  }

  /** The node's committed row is this one now, which the backend does not have. */
  #took(node: Node, row: Row, before: Row | undefined): void {
    if (before === undefined) {
      this.#held.push(node)
      this.#count++
      if (node.isNew === undefined) this.#unknown.push(node)
      const bytes = node.key.length + (row.isDeleted ? 0 : 2 * this.#codec.weight(row))
      this.#valueBytes += (bytes - this.#valueBytes) / Math.min(this.#count, 64)
      this.#difference += difference(node, row)
    } else {
      this.#difference += Number(before.isDeleted) - Number(row.isDeleted)
    }
  }

  /** The backend has begun anew meanwhile: what is held fits to what is gone. */
  #noticeReplacement(): void {
    const incarnation = this.#backend.incarnation ?? 0
    if (incarnation === this.#incarnation) return
    this.#incarnation = incarnation
    this.#forget()
    this.#file = this.#backend.checkpoint()
  }

  #forget(): void {
    this.#table.clear()
    this.#left()
    this.#held = []
    this.#unknown = []
    this.#count = 0
    this.#difference = 0
    this.#writing = undefined
    this.#step = undefined
    this.#pending = undefined
    this.#writes++
  }
}

function* inBytes(rows: RowWrites): IterableIterator<ByteChange> {
  // A backend may keep what it is given.
  for (let i = 0; i < rows.count; i++) yield [keyBytes(rows.key(i)), rows.value(i)?.slice() ?? null]
}

/** What the row adds to, or takes from, the number of rows in the backend. */
function difference(node: Node, row: Row): number {
  return Number(!row.isDeleted) - Number(node.isNew !== true)
}

/**
 * The checkpoint of a backend that holds all up to `base`, and perhaps rows up to `newest`, and those that the file was
 * ahead with.
 */
function checkpointWith(base: Checkpoint, newest: Checkpoint, file: Checkpoint | undefined): Checkpoint {
  const known = file?.topicId === newest.topicId ? file : undefined
  const ahead = Math.max(newest.changelogOffset, known?.ahead ?? 0)
  const { ahead: _, ...exact } = base
  if (ahead <= base.changelogOffset) return exact
  return { ...exact, commitId: newest.commitId || (known?.commitId ?? ''), ahead }
}
