/** What the sides of an outer join of two streams remember of records without a partner. */
import type { Serde } from '../../serde/serde.ts'
import type { KeyValueStore, WindowStore } from '../../state/contract.ts'
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

const noneTold: readonly number[] = []

/**
 * Records that have found no partner yet, and those that were told to have none for as long as one might still come:
 * what was told is not taken back. Shared by both sides of a join. Several records may have one key, side and timestamp. Each of them
 * is told for itself: one that came too late to wait was not, and a partner may find it. They are told apart by their places
 * among what their side remembers.
 */
export class WaitingRecords {
  readonly #store: KeyValueStore<unknown, Waiting>
  readonly #keySerde: Serde<unknown>
  readonly deadlineOf: (timestamp: number, left: boolean) => number
  /** Of a side, records come due in the order of their times; those of the other side wait for longer, or less long. */
  readonly #lefts = new SortedList<WaitingPlace>(inOrder)
  readonly #rights = new SortedList<WaitingPlace>(inOrder)
  /** Of these no values are kept. A key, side and timestamp either waits or was told. */
  readonly #told = new SortedList<WaitingPlace>(inOrder)
  /** What each side remembers. */
  readonly #memories: { left?: WindowStore<unknown, unknown>; right?: WindowStore<unknown, unknown> } = {}
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

  /** Where this side remembers its records. The other side looks for partners there, and names it. */
  remembers(side: 'left' | 'right', memory: WindowStore<unknown, unknown>): void {
    this.#memories[side] = memory
  }

  init(): void {
    if (this.#rebuilt) return
    this.#rebuilt = true
    for (const [id, { records }] of this.#store.all()) {
      const place = this.#place(id as Uint8Array)
      const list = records.length > 0 ? this.#waitingOf(place.left) : this.#told
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
    const keyBytes = this.#keySerde.serialize(rec.key)
    const id = idOf(keyBytes, rec.timestamp, left)
    const held = this.#store.get(id)
    const record = { value: rec.value, headers: rec.headers, place: this.#placeOf(rec, left, keyBytes) }
    const records = held ? [...held.records, record] : [record]
    this.#store.put(id, { left, key: rec.key, records, told: noneTold })
    if (held && held.records.length > 0) return
    const place = this.#place(id)
    if (held) this.#told.remove(place)
    this.#waitingOf(left).add(place)
  }

  /** A partner was found for all records of this key, side and timestamp that wait. */
  matched(key: unknown, timestamp: number, left: boolean): void {
    if (this.size === 0) return
    const id = this.#id(key, timestamp, left)
    const held = this.#store.get(id)
    if (held === undefined || held.records.length === 0) return
    this.#store.delete(id)
    this.#waitingOf(left).remove(this.#place(id))
  }

  /** Places of the records of this key, side and timestamp that were told to have no partner. */
  toldOf(key: unknown, timestamp: number, left: boolean): Waiting['told'] {
    if (this.#told.size === 0) return noneTold
    return this.#store.get(this.#id(key, timestamp, left))?.told ?? noneTold
  }

  /** True when others of its key, side and timestamp were told to have no partner: then this one is told as well, at once. */
  addToTold(rec: Rec, left: boolean): boolean {
    if (this.#told.size === 0) return false
    const keyBytes = this.#keySerde.serialize(rec.key)
    const id = idOf(keyBytes, rec.timestamp, left)
    const held = this.#store.get(id)
    if (held === undefined || held.records.length > 0) return false
    const { told } = held
    if (told !== 'all') this.#store.put(id, { ...held, told: [...told, this.#placeOf(rec, left, keyBytes)] })
    return true
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
      this.#store.put(place.id, { ...waiting, records: [], told: waiting.records.map((record) => record.place) })
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
    return idOf(this.#keySerde.serialize(key), timestamp, left)
  }

  /** That of a record that is about to be remembered. */
  #placeOf({ key, timestamp }: Rec, left: boolean, keyBytes: Uint8Array): number {
    const memory = left ? this.#memories.left : this.#memories.right
    const before = memory?.fetchRange(key, timestamp, timestamp, false, keyBytes)
    let place = 0
    while (before?.next().done === false) place++
    return place
  }
}

function idOf(keyBytes: Uint8Array, timestamp: number, left: boolean): Uint8Array {
  const tail = new Uint8Array(1 + keyBytes.length)
  tail[0] = left ? 1 : 0
  tail.set(keyBytes, 1)
  return timedKey(timestamp, tail)
}

/** Both of them in one order. */
function merged(a: readonly WaitingPlace[], b: readonly WaitingPlace[]): readonly WaitingPlace[] {
  if (a.length === 0) return b
  return b.length === 0 ? a : [...a, ...b].sort(inOrder)
}
