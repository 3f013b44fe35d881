/**
 * Alignment groups: how far the partitions of a group may drift apart. Dispatch is oldest-first, hence perfectly
 * aligned as long as every member has something buffered; a record is held only for *empty laggards*, members that lie
 * more than the drift behind, have nothing buffered, are not idle, and may still get an older record.
 */
import { widened } from './idleness.ts'
import { MinTree } from './min-tree.ts'

interface Group {
  readonly name: string
  readonly members: Set<number>
  /** Watermark of each member that others must wait for, `Infinity` for those they need not. */
  readonly laggards: MinTree
  lastMin: number | undefined
}

export class Alignment {
  #capacity: number
  readonly #groups: Array<Group | undefined> = []
  readonly #byName = new Map<string, number>()
  #groupOf: Int32Array
  #drift: Float64Array
  #excused: Uint8Array
  /** Offset of the head that is held, NaN for none, and since when. */
  #holdOffset: Float64Array
  #holdSince: Float64Array
  /** For how long heads were held, before the hold that lasts. */
  #heldMs: Float64Array
  readonly #holds: number[] = []

  constructor(capacity: number) {
    this.#capacity = capacity
    this.#groupOf = new Int32Array(capacity).fill(-1)
    this.#drift = new Float64Array(capacity)
    this.#excused = new Uint8Array(capacity)
    this.#holdOffset = new Float64Array(capacity).fill(Number.NaN)
    this.#holdSince = new Float64Array(capacity).fill(Number.NaN)
    this.#heldMs = new Float64Array(capacity)
  }

  get any(): boolean {
    return this.#byName.size > 0
  }

  get holding(): boolean {
    return this.#holds.length > 0
  }

  join(p: number, name: string, maxDriftMs: number): void {
    let index = this.#byName.get(name)
    if (index === undefined) {
      index = this.#groups.indexOf(undefined)
      if (index < 0) index = this.#groups.length
      const laggards = new MinTree(this.#capacity)
      this.#groups[index] = { name, members: new Set(), laggards, lastMin: undefined }
      this.#byName.set(name, index)
    }
    ;(this.#groups[index] as Group).members.add(p)
    this.#groupOf[p] = index
    this.#drift[p] = maxDriftMs
    this.#excused[p] = 0
  }

  leave(p: number, now: number): void {
    this.endHold(p, now)
    this.#heldMs[p] = 0
    const group = this.#group(p)
    if (!group) return
    group.members.delete(p)
    group.laggards.set(p, Number.POSITIVE_INFINITY)
    if (group.members.size === 0) {
      this.#groups[this.#groupOf[p] as number] = undefined
      this.#byName.delete(group.name)
    }
    this.#groupOf[p] = -1
  }

  aligned(p: number): boolean {
    return (this.#groupOf[p] as number) >= 0
  }

  groupName(p: number): string | null {
    return this.#group(p)?.name ?? null
  }

  /** `watermark`: of a member that has nothing buffered and is not idle, else `Infinity`. */
  setLaggard(p: number, watermark: number): void {
    this.#group(p)?.laggards.set(p, this.#excused[p] === 1 ? Number.POSITIVE_INFINITY : watermark)
  }

  /** Whether empty laggards forbid to dispatch a record that would bring `p` to `candidate`. */
  held(p: number, candidate: number): boolean {
    const group = this.#group(p)
    return group !== undefined && group.laggards.min < candidate - (this.#drift[p] as number)
  }

  laggards(p: number, candidate: number): number[] {
    const group = this.#group(p)
    if (!group) return []
    const bound = candidate - (this.#drift[p] as number)
    return [...group.members].filter((q) => q !== p && group.laggards.get(q) < bound)
  }

  /** Waits no longer for these, until they have a record again. */
  excuse(laggards: readonly number[]): void {
    for (const q of laggards) {
      this.#excused[q] = 1
      this.setLaggard(q, Number.POSITIVE_INFINITY)
    }
  }

  arrived(p: number): void {
    this.#excused[p] = 0
    this.setLaggard(p, Number.POSITIVE_INFINITY)
  }

  /** The head at `offset` is held; the same head keeps the time at which its hold began. */
  hold(p: number, offset: number, now: number): void {
    if (this.#holdOffset[p] === offset) return
    if (Number.isNaN(this.#holdOffset[p])) this.#holds.push(p)
    else this.#heldMs[p] = this.heldMs(p, now)
    this.#holdOffset[p] = offset
    this.#holdSince[p] = now
  }

  /** NaN without a hold on this very head. */
  heldSince(p: number, offset: number): number {
    return this.#holdOffset[p] === offset ? (this.#holdSince[p] as number) : Number.NaN
  }

  /** For how long heads of this partition were held since it was assigned, milliseconds. */
  heldMs(p: number, now: number): number {
    const since = this.#holdSince[p] as number
    return (this.#heldMs[p] as number) + (Number.isNaN(since) ? 0 : now - since)
  }

  endHold(p: number, now: number): void {
    const at = this.#holds.indexOf(p)
    if (at < 0) return
    this.#holds.splice(at, 1)
    this.#heldMs[p] = this.heldMs(p, now)
    this.#holdOffset[p] = Number.NaN
    this.#holdSince[p] = Number.NaN
  }

  endHolds(ended: (p: number, offset: number) => boolean, now: number): void {
    for (let i = this.#holds.length - 1; i >= 0; i--) {
      const p = this.#holds[i] as number
      if (ended(p, this.#holdOffset[p] as number)) this.endHold(p, now)
    }
  }

  /**
   * The least watermark of a group's members, `Infinity` standing for those that do not count; the last value where
   * none counts, undefined where none ever did. To be asked before a member stops counting, too.
   */
  groupMin(p: number, watermarkOf: (q: number) => number): number | undefined {
    const group = this.#group(p)
    if (!group) return undefined
    let least = Number.POSITIVE_INFINITY
    for (const q of group.members) least = Math.min(least, watermarkOf(q))
    if (least !== Number.POSITIVE_INFINITY) group.lastMin = least
    return group.lastMin
  }

  grow(capacity: number): void {
    const { length } = this.#groupOf
    const groupOf = new Int32Array(capacity).fill(-1)
    groupOf.set(this.#groupOf)
    const excused = new Uint8Array(capacity)
    excused.set(this.#excused)
    this.#groupOf = groupOf
    this.#excused = excused
    this.#drift = widened(this.#drift, capacity)
    this.#holdOffset = widened(this.#holdOffset, capacity).fill(Number.NaN, length)
    this.#holdSince = widened(this.#holdSince, capacity).fill(Number.NaN, length)
    this.#heldMs = widened(this.#heldMs, capacity)
    for (const group of this.#groups) group?.laggards.grow(capacity)
    this.#capacity = capacity
  }

  #group(p: number): Group | undefined {
    const index = this.#groupOf[p] as number
    return index < 0 ? undefined : this.#groups[index]
  }
}
