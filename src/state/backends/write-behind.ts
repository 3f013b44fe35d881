/**
 * Committed rows in front of a durable backend. Commits change them here; many commits later they are written in the
 * order of their keys, each row once, together with the checkpoint of a commit that they contain: a page of the
 * backend is then written once for many rows, instead of once for each. What a crash takes away with this memory is
 * replayed from the changelog, from the checkpoint on.
 *
 * A large part is written in several steps, and commits go on between them. A crash there leaves rows that are newer
 * than the checkpoint; its `ahead` tells how far the changelog has to be replayed until everything fits again.
 */
import { assert } from '../../base/assert.ts'
import { keyBytes, keyString } from '../rows/bytes.ts'
import type { ByteChange, ByteEntry, Checkpoint, StoreBackend } from '../contract.ts'
import type { WriteBuffer, HeldBatch } from './write-buffer.ts'
import { KeyFilter } from './key-filter.ts'
import { type Layers, mergedRows } from '../rows/merged-rows.ts'
import { NodeBuffer } from '../versions/node-buffer.ts'
import { PlainTable } from '../versions/node-table.ts'
import { bytesCodec } from '../rows/row.ts'
import { changesOf } from '../rows/row-writes.ts'

/** So many rows may stand in another order than that of their keys: twice what `inKeyOrder` leaves. */
const looseRun = 32

/** What is under way to the backend. */
interface Writing {
  readonly batch: HeldBatch
  /** Everything up to here is among the rows, or in the backend already. */
  readonly checkpoint: Checkpoint
  /** Rows that are written. */
  done: number
}

export class WriteBehind implements StoreBackend {
  readonly durable: boolean
  readonly maxKeyBytes?: number
  readonly #backend: StoreBackend
  #rows: WriteBuffer = new NodeBuffer(bytesCodec, new PlainTable())
  #writing: Writing | undefined
  #step: { readonly end: number; readonly checkpoint: Checkpoint | undefined } | undefined
  /** What the rows here bring the store to; undefined: all of it is in the backend. */
  #pending: Checkpoint | undefined
  /** What the backend says of itself. */
  #file: Checkpoint | undefined
  #incarnation: number
  #writes = 0
  /** The backend is known to have no row: all that will be in it comes from here. */
  #isEmpty: boolean
  /** No row of the backend has a greater key than this; null: it has none; undefined: nobody has looked. */
  #greatest: string | null | undefined

  constructor(backend: StoreBackend) {
    this.#backend = backend
    this.durable = backend.durable
    if (backend.maxKeyBytes !== undefined) this.maxKeyBytes = backend.maxKeyBytes
    this.#incarnation = backend.incarnation ?? 0
    this.#file = backend.checkpoint()
    this.#isEmpty = backend.entries() === 0
  }

  /** The backend itself: what it holds is not all that is committed. */
  get backend(): StoreBackend {
    return this.#backend
  }

  /**
   * Whether the backend may have rows with this key or a greater one. Windows are written in the order of time: most of
   * what is asked for is younger than all that was ever written, and need not be looked for.
   */
  reaches(key: string): boolean {
    if (this.#greatest === undefined) {
      const [last] = this.#backend.range(undefined, undefined, true)
      this.#greatest = last ? keyString(last[0]) : null
    }
    return this.#greatest !== null && this.#greatest >= key
  }

  /** Moves with every change of the backend. */
  get writes(): number {
    return this.#writes
  }

  /** Memory that the rows take which the backend does not have, about. */
  get heldBytes(): number {
    return this.#rows.heldBytes
  }

  /** Memory that all rows here take, about. */
  get bufferBytes(): number {
    return this.#rows.bufferBytes
  }

  get isHolding(): boolean {
    return this.#pending !== undefined
  }

  /** From now on rows lie here, in another form. */
  attach(rows: WriteBuffer): void {
    for (const [key, value] of this.#rows.held()) rows.hold(key, value)
    const before = this.#rows
    before.leave?.()
    if ('gone' in rows) rows.gone = this.#isEmpty ? new KeyFilter() : before.gone
    if ('gone' in before) before.gone = undefined
    this.#rows = rows
    this.#writing = undefined
  }

  get(key: Uint8Array): Uint8Array | undefined {
    const value = this.#rows.committed(keyString(key))
    return value === undefined ? this.#backend.get(key) : (value ?? undefined)
  }

  *range(from?: Uint8Array, to?: Uint8Array, reverse = false): IterableIterator<ByteEntry> {
    const rows = this.#rows
    const layers: Layers<Uint8Array> = {
      keys: (low, high, down) => rows.keys(low, high, down),
      at: (key) => rows.committed(key),
      isOld: () => true,
      below: (low, high, down) => entries(this.#backend.range(bytesOf(low), bytesOf(high), down)),
      writes: () => this.#writes,
    }
    for (const [key, value] of mergedRows(layers, from && keyString(from), to && keyString(to), reverse)) {
      yield [keyBytes(key), value]
    }
  }

  /** Holds what a changelog says. */
  apply(changes: Iterable<ByteChange>, checkpoint?: Checkpoint): void {
    for (const [key, value] of changes) this.#rows.hold(keyString(key), value)
    if (checkpoint !== undefined) this.#pending = checkpoint
  }

  /** What is held brings the store to this point; these rows go. */
  advance(checkpoint: Checkpoint, dropped: readonly string[]): void {
    for (const key of dropped) this.#rows.hold(key, null)
    this.#pending = checkpoint
  }

  checkpoint(): Checkpoint | undefined {
    this.#noticeReplacement()
    if (this.#pending === undefined) return this.#file
    return checkpointWith(this.#pending, this.#pending, this.#file)
  }

  /** Rows of which nobody knows are mostly new: their keys have a time in them. */
  entriesAbout(): number {
    return Math.max(0, this.#backend.entries() + this.#rows.difference + (this.#rows.unknown ?? 0))
  }

  entries(): number {
    this.#rows.compare((key) => this.#backend.get(keyBytes(key)) !== undefined)
    return Math.max(0, this.#backend.entries() + this.#rows.difference)
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
   * One step: writes up to `most` of the rows that are held, and says how many; of those that lie in blocks `inBlocks` count as one. The caller confirms with `written` when
   * the backend's transaction is over; without that nothing is changed here.
   */
  write(most: number, inBlocks = 1): number {
    this.#noticeReplacement()
    const pending = this.#pending
    if (pending === undefined) return 0
    this.#writing ??= { batch: this.#rows.take(this.#backend.inHashOrder ?? false), checkpoint: pending, done: 0 }
    const { batch, done, checkpoint } = this.#writing
    const share = batch.hashed === undefined ? 1 : inBlocks
    const end = Math.min(batch.count, done + most * share)
    assert(end >= done, `${done} rows of ${batch.count} are written, and ${end} are to be`)
    const base = end === batch.count ? checkpoint : this.#file
    const next = base && checkpointWith(base, pending, this.#file)
    // They come in the order of their keys, but for a few that are close together; or nobody asks for the greatest one.
    if (batch.hashed !== undefined) this.#greatest = undefined
    else for (let i = Math.max(done, end - looseRun); i < end; i++) this.#raise(batch.key(i))
    if (this.#backend.applyRows) this.#backend.applyRows(batch, done, end, next)
    else this.#backend.apply(changesOf(batch, done, end), next)
    this.#step = { end, checkpoint: next }
    return Math.ceil((end - done) / share)
  }

  /** What the last `write` wrote is in the backend. True when nothing of what it began with is left. */
  written(keep = false): boolean {
    const writing = this.#writing
    const step = this.#step
    if (writing === undefined || step === undefined) return true
    this.#writes++
    this.#isEmpty = false
    assert(step.end >= writing.done, 'rows are written in their order')
    writing.batch.release(writing.done, step.end, keep)
    this.#file = step.checkpoint ?? this.#file
    this.#step = undefined
    writing.done = step.end
    if (step.end < writing.batch.count) return false
    this.#writing = undefined
    if (this.#pending === writing.checkpoint) this.#pending = undefined
    return true
  }

  /** Drops rows that the backend has. */
  shrink(): void {
    this.#rows.shrink()
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
    this.#rows.clear()
    this.#backend.close()
  }

  opensAnew(): void {
    const isLost = this.#backend.isLost === true
    this.#backend.opensAnew?.()
    // Also where it was noticed before: what has been held since belongs to rows that are gone.
    if (isLost) this.#forget()
    this.#noticeReplacement()
  }

  /** The backend has begun anew meanwhile: what is held fits to what is gone. */
  #noticeReplacement(): void {
    const incarnation = this.#backend.incarnation ?? 0
    if (incarnation === this.#incarnation) return
    this.#incarnation = incarnation
    this.#forget()
    this.#file = this.#backend.checkpoint()
  }

  #raise(key: string): void {
    if (this.#greatest !== undefined && (this.#greatest === null || key > this.#greatest)) this.#greatest = key
  }

  #forget(): void {
    this.#greatest = undefined
    this.#rows.clear()
    this.#isEmpty = true
    if ('gone' in this.#rows) this.#rows.gone = new KeyFilter()
    this.#writing = undefined
    this.#step = undefined
    this.#pending = undefined
    this.#writes++
  }
}

const bytesOf = (key: string | undefined): Uint8Array | undefined => (key === undefined ? undefined : keyBytes(key))

function* entries(range: Iterable<ByteEntry>): IterableIterator<readonly [string, Uint8Array]> {
  for (const [key, value] of range) yield [keyString(key), value]
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
