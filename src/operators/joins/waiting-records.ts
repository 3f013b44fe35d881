/** What the sides of an outer join of two streams remember of records without a partner. */
import type { Serde } from '../../serde/serde.ts'
import type { KeyValueStore } from '../../state/contract.ts'
import { SortedList } from '../../state/rows/sorted-list.ts'
import { timedKey, timeOfKey, type Waiting } from '../../topology/serdes/internal-serdes.ts'
import type { Rec } from '../contract.ts'
import { bytesText, byText } from '../text-order.ts'

interface WaitingPlace {
  readonly timestamp: number
  readonly left: boolean
  /** The store's key, as text: time, side, key. */
  readonly text: string
  readonly id: Uint8Array
}

const inOrder = (a: WaitingPlace, b: WaitingPlace): number => a.timestamp - b.timestamp || byText(a.text, b.text)

/**
 * Records that have found no partner yet, and those that were told to have none for as long as one might still come:
 * what was told is not taken back. Shared by both sides of a join.
 */
export class WaitingRecords {
  readonly #store: KeyValueStore<unknown, Waiting>
  readonly #keySerde: Serde<unknown>
  readonly deadlineOf: (timestamp: number, left: boolean) => number
  /** Of a side, records come due in the order of their times; those of the other side wait for longer, or less long. */
  readonly #lefts = new SortedList<WaitingPlace>(inOrder)
  readonly #rights = new SortedList<WaitingPlace>(inOrder)
  /** Kept without their values. */
  readonly #told = new SortedList<WaitingPlace>(inOrder)
  #rebuilt = false
  /** What was due up to here was told. What has come since with its time already over waits for the next instant. */
  lookedAt = Number.NEGATIVE_INFINITY

  /** `deadlineOf`: when a record of this time and side has waited for long enough; a later one of its side does so later. */
  constructor(
    store: KeyValueStore<unknown, Waiting>,
    keySerde: Serde<unknown>,
    deadlineOf: (timestamp: number, left: boolean) => number,
  ) {
    this.#store = store
    this.#keySerde = keySerde
    this.deadlineOf = deadlineOf
  }

  init(): void {
    if (this.#rebuilt) return
    this.#rebuilt = true
    for (const [id, { values }] of this.#store.all()) {
      const place = this.#place(id as Uint8Array)
      const list = values.length > 0 ? this.#waitingOf(place.left) : this.#told
      list.add(place)
    }
  }

  /** Number of keys, sides and times of which records wait. */
  get size(): number {
    return this.#lefts.size + this.#rights.size
  }

  /** Time of the oldest record that waits; Infinity: none does. */
  get oldest(): number {
    return Math.min(
      this.#lefts.first?.timestamp ?? Number.POSITIVE_INFINITY,
      this.#rights.first?.timestamp ?? Number.POSITIVE_INFINITY,
    )
  }

  /** When the first of them has waited for long enough; Infinity: none waits. */
  get nextDeadline(): number {
    return Math.min(this.#firstDeadline(this.#lefts), this.#firstDeadline(this.#rights))
  }

  add(rec: Rec, left: boolean): void {
    const id = this.#id(rec.key, rec.timestamp, left)
    const held = this.#store.get(id)
    const values = held ? [...held.values, rec.value] : [rec.value]
    this.#store.put(id, { left, key: rec.key, values, headers: rec.headers })
    if (held && held.values.length > 0) return
    const place = this.#place(id)
    if (held) this.#told.remove(place)
    this.#waitingOf(left).add(place)
  }

  /** A partner was found for all records of this key, side and timestamp. */
  matched(key: unknown, timestamp: number, left: boolean): void {
    if (this.size === 0) return
    const id = this.#id(key, timestamp, left)
    if (this.#store.get(id) === undefined) return
    this.#store.delete(id)
    this.#waitingOf(left).remove(this.#place(id))
  }

  /** True when the records of this key, side and timestamp were told to have no partner. */
  wasTold(key: unknown, timestamp: number, left: boolean): boolean {
    if (this.#told.size === 0) return false
    return this.#store.get(this.#id(key, timestamp, left))?.values.length === 0
  }

  /** Forgets what was told of records before this time: whoever comes for them now is late. */
  forget(before: number): void {
    if (this.#told.size === 0) return
    for (const { id } of this.#told.takeWhile((place) => place.timestamp < before)) this.#store.delete(id)
  }

  /** Takes out what waits in vain at this time, oldest first. */
  takeDue(watermark: number): Array<{ timestamp: number; waiting: Waiting }> {
    const isDue = ({ timestamp, left }: WaitingPlace): boolean => this.deadlineOf(timestamp, left) <= watermark
    const taken = merged(this.#lefts.takeWhile(isDue), this.#rights.takeWhile(isDue))
    return taken.map((place) => {
      const waiting = this.#store.get(place.id) as Waiting
      this.#store.put(place.id, { ...waiting, headers: [], values: [] })
      this.#told.add(place)
      return { timestamp: place.timestamp, waiting }
    })
  }

  #waitingOf(left: boolean): SortedList<WaitingPlace> {
    return left ? this.#lefts : this.#rights
  }

  #firstDeadline({ first }: SortedList<WaitingPlace>): number {
    return first === undefined ? Number.POSITIVE_INFINITY : this.deadlineOf(first.timestamp, first.left)
  }

  #place(id: Uint8Array): WaitingPlace {
    return { timestamp: timeOfKey(id), left: id[8] === 1, text: bytesText(id), id }
  }

  #id(key: unknown, timestamp: number, left: boolean): Uint8Array {
    const keyBytes = this.#keySerde.serialize(key)
    const tail = new Uint8Array(1 + keyBytes.length)
    tail[0] = left ? 1 : 0
    tail.set(keyBytes, 1)
    return timedKey(timestamp, tail)
  }
}

/** Both of them in one order. */
function merged(a: readonly WaitingPlace[], b: readonly WaitingPlace[]): readonly WaitingPlace[] {
  if (a.length === 0) return b
  return b.length === 0 ? a : [...a, ...b].sort(inOrder)
}
