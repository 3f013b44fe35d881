/**
 * When a lane's durable stores are written: when what they hold takes too much memory, or has been held long enough,
 * since it is what a crash makes the next start replay. One partition after the other, in steps between which records
 * are processed, so that no commit has to wait for all of it.
 */
import { EngineError } from '../../base/errors.ts'
import type { StoreBackend } from '../../state/contract.ts'
import { WriteBehind } from '../../state/backends/write-behind.ts'

export interface WriteBehindOptions {
  /** Memory that committed rows may take before they are written, about; 0: they are written with their commit. */
  readonly bytes: number
  /** Time that they may be held, about. */
  readonly intervalMs: number
  /** Rows that one step writes at most. */
  readonly rowsPerStep: number
}

/** Part of a lane's bytes from which on it writes: while it does, what is held goes on growing. */
const writeFrom = 0.75
/** So many rows that are written in blocks take the time of one that is written by itself. */
const rowsInBlocks = 4
/** How often it is tried whether a disk that was full has room again. */
const roomEveryMs = 500
/** Part up to which rows that are written may stay for those who read them. */
const keepUpTo = 0.7

interface Held {
  readonly partition: number
  readonly stores: Map<string, WriteBehind>
  /** When the oldest of what is held came; Infinity: nothing is. */
  sinceMs: number
}

interface Round {
  readonly held: Held
  /** Those of its stores that have not written all that they began with. */
  left: WriteBehind[]
  /** Rows that are written stay. */
  readonly keep: boolean
}

export interface StoreWriterHost {
  /** Makes all that `write` does to this partition's stores one transaction. */
  together(partition: number, write: () => void): void
  /** Memory that rows take which are not written, about. */
  holding(bytes: number): void
  /** A step was passed; for tests that end the process there. */
  passed(): void
}

export class StoreWriter {
  readonly #options: WriteBehindOptions
  readonly #partitions = new Map<number, Held>()
  /** The one that is being written. */
  #round: Round | undefined
  /** The one that comes next, and when. */
  #next: Held | undefined
  #nextMs = Number.POSITIVE_INFINITY
  #lastMs = Number.NEGATIVE_INFINITY
  /** What is held takes more memory than it may. */
  #isFull = false
  #full: EngineError | undefined
  #roomAtMs = Number.NEGATIVE_INFINITY
  readonly #host: StoreWriterHost

  constructor(options: WriteBehindOptions, host: StoreWriterHost) {
    this.#options = options
    this.#host = host
  }

  open(store: string, partition: number, backend: StoreBackend): WriteBehind {
    let held = this.#partitions.get(partition)
    if (held === undefined) {
      held = { partition, stores: new Map(), sinceMs: Number.POSITIVE_INFINITY }
      this.#partitions.set(partition, held)
    }
    const behind = new WriteBehind(backend)
    held.stores.set(store, behind)
    return behind
  }

  /** The store's backend is closed. */
  release(store: string, partition: number): void {
    const held = this.#partitions.get(partition)
    held?.stores.delete(store)
    if (this.#round?.held === held) this.#round = undefined
    if (held === undefined || held.stores.size > 0) return
    this.#partitions.delete(partition)
    this.#plan()
  }

  /** The disk has no room: what is held stays here until it has. */
  get full(): EngineError | undefined {
    return this.#full
  }

  /** Commits may have left something to write. */
  notice(now: number): void {
    // A clock that was set back must not make anything wait for ever.
    this.#lastMs = Math.min(this.#lastMs, now)
    for (const held of this.#partitions.values()) {
      if (!holds(held)) continue
      if (this.#options.bytes === 0 && !this.#full) this.#writeAll(held, now)
      else if (held.sinceMs > now) held.sinceMs = now
    }
    this.#plan()
  }

  /** When something is due, by the clock; Infinity: nothing is held. */
  get nextAt(): number {
    if (this.#full) return this.#roomAtMs
    return this.#round === undefined ? this.#nextMs : Number.NEGATIVE_INFINITY
  }

  /** Writes one step of what is due; true when there is more. */
  step(now: number): boolean {
    if (this.#full) return this.#tryAgain(now)
    if (this.#round === undefined) {
      if (now < this.#nextMs || this.#next === undefined) return false
      this.#lastMs = now
      this.#round = this.#begin(this.#next)
    }
    this.#write(this.#round, this.#options.rowsPerStep, now)
    if (this.#round === undefined) this.#plan()
    return this.#round !== undefined && !this.#full
  }

  /** Writes as much as has to be written before more may be held: nothing else is done between the parts of a changelog. */
  makeRoom(now: number): void {
    const most = writeFrom * this.#options.bytes
    // No more than that at once: other tasks of the lane may be at work while this one's stores are restored.
    while (this.#isFull && !this.#full && this.#heldBytes() > most) this.step(now)
  }

  #heldBytes(): number {
    let bytes = 0
    for (const { stores } of this.#partitions.values()) bytes += bytesOf(stores)
    return bytes
  }

  /** Looks whether there is room by now, with what is to be written anyway. */
  #tryAgain(now: number): boolean {
    // A clock that was set back must not make it wait for longer.
    this.#roomAtMs = Math.min(this.#roomAtMs, now + roomEveryMs)
    if (now < this.#roomAtMs) return false
    const held = this.#round?.held ?? [...this.#partitions.values()].find(holds)
    this.#full = undefined
    if (held === undefined) return false
    this.#round ??= this.#begin(held)
    this.#write(this.#round, this.#options.rowsPerStep, now)
    if (this.#round === undefined) this.#plan()
    return !this.#full
  }

  /** Writes all that is held of this partition. */
  flush(partition: number): void {
    const held = this.#partitions.get(partition)
    if (held !== undefined) this.#writeAll(held)
  }

  flushAll(): void {
    for (const held of this.#partitions.values()) this.#writeAll(held)
    this.#plan()
  }

  /** What there is no room for is left: the changelog has it. */
  #writeAll(held: Held, now = Number.POSITIVE_INFINITY): void {
    if (this.#round?.held === held) this.#round = undefined
    this.#full = undefined
    while (holds(held) && !this.#full) this.#write(roundOf(held, false), Number.POSITIVE_INFINITY, now)
  }

  #begin(held: Held): Round {
    let all = 0
    for (const { stores } of this.#partitions.values()) for (const store of stores.values()) all += store.bufferBytes
    const { bytes } = this.#options
    // Room is made for what is held at the cost of what is only kept.
    if (all > bytes * writeFrom) for (const store of held.stores.values()) store.shrink()
    return roundOf(held, all < bytes * keepUpTo)
  }

  #plan(): void {
    let oldest: Held | undefined
    let largest: Held | undefined
    let sum = 0
    let most = -1
    for (const held of this.#partitions.values()) {
      if (!holds(held)) {
        held.sinceMs = Number.POSITIVE_INFINITY
        continue
      }
      const bytes = bytesOf(held.stores)
      sum += bytes
      if (bytes > most) {
        most = bytes
        largest = held
      }
      if (oldest === undefined || held.sinceMs < oldest.sinceMs) oldest = held
    }
    const { bytes, intervalMs } = this.#options
    const isFull = sum > writeFrom * bytes
    this.#isFull = isFull
    // The partitions' turns are spread over the interval.
    const pauseMs = intervalMs / Math.max(1, this.#partitions.size)
    this.#next = isFull ? largest : oldest
    if (isFull) this.#nextMs = Number.NEGATIVE_INFINITY
    else
      this.#nextMs = oldest ? Math.max(oldest.sinceMs + intervalMs, this.#lastMs + pauseMs) : Number.POSITIVE_INFINITY
    this.#host.holding(sum)
  }

  /** One transaction with up to `most` rows. */
  #write(round: Round, most: number, now: number): void {
    const { partition } = round.held
    const wrote: WriteBehind[] = []
    let room = most
    try {
      this.#host.together(partition, () => {
        for (const store of round.left) {
          room -= store.write(room, rowsInBlocks)
          wrote.push(store)
          this.#host.passed()
          if (room <= 0) return
        }
      })
    } catch (error) {
      if (!EngineError.is(error) || error.code !== 'STORE_DISK_FULL') throw error
      this.#full = error
      this.#roomAtMs = now + roomEveryMs
      return
    }
    this.#host.passed()
    for (const store of wrote) if (store.written(round.keep)) round.left = round.left.filter((each) => each !== store)
    if (round.left.length > 0) return
    round.held.sinceMs = holds(round.held) ? now : Number.POSITIVE_INFINITY
    if (this.#round === round) this.#round = undefined
  }
}

function roundOf(held: Held, keep: boolean): Round {
  return { held, keep, left: [...held.stores.values()].filter((store) => store.isHolding) }
}

function holds({ stores }: Held): boolean {
  for (const store of stores.values()) if (store.isHolding) return true
  return false
}

function bytesOf(stores: ReadonlyMap<string, WriteBehind>): number {
  let bytes = 0
  for (const store of stores.values()) bytes += store.heldBytes
  return bytes
}
