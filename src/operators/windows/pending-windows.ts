/**
 * Windows whose final result is still to come, in the order in which they close. Kept in memory and rebuilt from the
 * store; how far windows were closed is kept in a small store of its own, so that no result is told twice.
 */
import type { KeyValueStore } from '../../state/contract.ts'

export interface PendingWindow {
  readonly key: unknown
  readonly start: number
  readonly end: number
}

interface Bucket {
  readonly closesAt: number
  /** By the start and the key's bytes. */
  readonly windows: Map<string, PendingWindow>
}

const progressKey = 'closed'
const delayKey = 'delay'

export class PendingWindows {
  readonly #progress: KeyValueStore<unknown, unknown>
  readonly #identity: (key: unknown) => string
  readonly #delayMs: number
  #keptDelayMs: unknown
  /** Ascending by closing time. */
  readonly #buckets: Bucket[] = []
  /** Most windows in a row begin at the same time. */
  #lastStart = Number.NaN
  #lastStartText = ''
  /** Windows that close at or before this were told. */
  closedUpTo: number

  /** `delayMs`: from the end of a window until it closes. It may have been another one when windows were told. */
  constructor(progress: KeyValueStore<unknown, unknown>, delayMs: number, identity: (key: unknown) => string) {
    this.#progress = progress
    this.#identity = identity
    this.#delayMs = delayMs
    this.#keptDelayMs = progress.get(delayKey)
    const kept = progress.get(progressKey)
    const before = typeof this.#keptDelayMs === 'number' ? this.#keptDelayMs : delayMs
    this.closedUpTo = typeof kept === 'number' ? kept - before + delayMs : Number.NEGATIVE_INFINITY
  }

  get nextClose(): number {
    return this.#buckets[0]?.closesAt ?? Number.POSITIVE_INFINITY
  }

  add(window: PendingWindow, closesAt: number): void {
    const bucket = this.#bucket(closesAt)
    bucket.windows.set(this.#name(window), window)
  }

  remove(window: PendingWindow, closesAt: number): void {
    const at = this.#search(closesAt)
    const bucket = this.#buckets[at]
    if (bucket?.closesAt !== closesAt) return
    bucket.windows.delete(this.#name(window))
    if (bucket.windows.size === 0) this.#buckets.splice(at, 1)
  }

  /** Takes out all windows that close at or before `time`, in order of closing time, then start, then key. */
  close(time: number): PendingWindow[] {
    const closed: PendingWindow[] = []
    let taken = 0
    for (const bucket of this.#buckets) {
      if (bucket.closesAt > time) break
      taken++
      const entries = [...bucket.windows].sort(byName)
      for (const [, window] of entries) closed.push(window)
    }
    if (taken > 0) {
      this.#buckets.splice(0, taken)
      this.#progress.put(progressKey, time)
      if (this.#keptDelayMs !== this.#delayMs) this.#progress.put(delayKey, this.#delayMs)
      this.#keptDelayMs = this.#delayMs
    }
    if (time > this.closedUpTo) this.closedUpTo = time
    return closed
  }

  #name(window: PendingWindow): string {
    if (window.start !== this.#lastStart) {
      this.#lastStart = window.start
      this.#lastStartText = String(window.start).padStart(16, '0')
    }
    return this.#lastStartText + this.#identity(window.key)
  }

  #bucket(closesAt: number): Bucket {
    const at = this.#search(closesAt)
    const found = this.#buckets[at]
    if (found?.closesAt === closesAt) return found
    const bucket = { closesAt, windows: new Map() }
    this.#buckets.splice(at, 0, bucket)
    return bucket
  }

  /** Position of the first bucket that closes at or after this time. */
  #search(closesAt: number): number {
    let low = 0
    let high = this.#buckets.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#buckets[middle] as Bucket).closesAt < closesAt) low = middle + 1
      else high = middle
    }
    return low
  }
}

function byName([a]: readonly [string, PendingWindow], [b]: readonly [string, PendingWindow]): number {
  return a < b ? -1 : 1
}
