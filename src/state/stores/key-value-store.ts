/** Key-value stores, without and with a timestamp beside each value. */
import { BaseStore } from './base-store.ts'
import type { ByteChange, Checkpoint, KeyValueStore, TimestampedKeyValueStore, ValueAndTimestamp } from '../contract.ts'
import type { Row } from '../rows/row.ts'
import { Sweep } from './sweep.ts'

abstract class RowsByKey extends BaseStore {
  readonly #sweep =
    this.spec.ttlMs === undefined ? undefined : new Sweep(this.overlay, (_key, row) => this.#overAt(row.timestamp))

  approximateEntries(): number {
    return this.entries()
  }

  override get hasExpired(): boolean {
    return this.#sweep?.isDue(this.removableTo()) ?? false
  }

  override discard(): void {
    super.discard()
    this.#sweep?.restart()
  }

  override restore(changes: readonly ByteChange[], checkpoint: Checkpoint): void {
    super.restore(changes, checkpoint)
    this.#sweep?.restart()
  }

  protected override expire(time: number): readonly string[] {
    if (this.#sweep !== undefined) this.forget(this.#sweep.next(time))
    return []
  }

  /** `time`: of the reader; undefined: as far as event time has come. */
  protected row(key: unknown, keyBytes: Uint8Array | undefined, time: number | undefined): Row | undefined {
    const measured = this.meter?.began('get')
    const row = this.overlay.get(this.keyOf(key, keyBytes))
    if (measured) this.meter?.ended('get')
    return row === undefined || this.#isOver(row, time) ? undefined : row
  }

  protected write(key: unknown, value: unknown, timestamp: number, keyBytes: Uint8Array | undefined): void {
    const measured = this.meter?.began('put')
    const at = this.keyOf(key, keyBytes)
    if (value === null || value === undefined) this.overlay.delete(at)
    else {
      if (this.#sweep !== undefined) this.#removeOver(at)
      this.putValue(at, value, timestamp)
      this.#sweep?.put(this.#overAt(timestamp))
    }
    if (measured) this.meter?.ended('put')
  }

  /** A row whose time is over is none: what comes in its place is new to whoever walks over the rows just then. */
  #removeOver(at: string): void {
    const row = this.overlay.get(at)
    if (row !== undefined && this.#isOver(row, undefined)) this.overlay.delete(at)
  }

  protected *rows(from: unknown, to: unknown, time: number | undefined): IterableIterator<[key: unknown, row: Row]> {
    const low = from === undefined ? undefined : this.keyOf(from, undefined)
    // The upper bound is inclusive: nothing lies between a key and the key with a zero byte behind it.
    const high = to === undefined ? undefined : `${this.keyOf(to, undefined)}\0`
    for (const [key, row] of this.overlay.range(low, high)) {
      if (!this.#isOver(row, time)) yield [this.keyFrom(key), row]
    }
  }

  #isOver(row: Row, time: number | undefined): boolean {
    return this.#sweep !== undefined && (time ?? this.streamTime()) >= this.#overAt(row.timestamp)
  }

  #overAt(timestamp: number): number {
    return timestamp + (this.spec.ttlMs ?? Number.POSITIVE_INFINITY)
  }
}

export class PlainKeyValueStore extends RowsByKey implements KeyValueStore<unknown, unknown> {
  get(key: unknown, keyBytes?: Uint8Array): unknown {
    const row = this.row(key, keyBytes, undefined)
    return row && this.value(row)
  }

  getAt(key: unknown, time: number | undefined, keyBytes?: Uint8Array): unknown {
    const row = this.row(key, keyBytes, time)
    return row && this.value(row)
  }

  put(key: unknown, value: unknown, keyBytes?: Uint8Array): void {
    this.write(key, value, this.now(), keyBytes)
  }

  putAt(key: unknown, value: unknown, time: number | undefined, keyBytes?: Uint8Array): void {
    this.write(key, value, time === undefined ? this.now() : Math.max(time, 0), keyBytes)
  }

  putIfAbsent(key: unknown, value: unknown): unknown {
    const present = this.get(key)
    if (present === undefined) this.put(key, value)
    return present
  }

  delete(key: unknown): unknown {
    const present = this.get(key)
    this.put(key, null)
    return present
  }

  range(from?: unknown, to?: unknown): IterableIterator<[key: unknown, value: unknown]> {
    return this.rangeAt(from, to, undefined)
  }

  *rangeAt(from: unknown, to: unknown, time: number | undefined): IterableIterator<[key: unknown, value: unknown]> {
    for (const [key, row] of this.rows(from, to, time)) yield [key, this.value(row)]
  }

  all(): IterableIterator<[key: unknown, value: unknown]> {
    return this.range()
  }
}

export class StampedKeyValueStore extends RowsByKey implements TimestampedKeyValueStore<unknown, unknown> {
  get(key: unknown, keyBytes?: Uint8Array): ValueAndTimestamp<unknown> | undefined {
    const row = this.row(key, keyBytes, undefined)
    return row && { value: this.value(row), timestamp: row.timestamp }
  }

  getAt(key: unknown, time: number | undefined, keyBytes?: Uint8Array): ValueAndTimestamp<unknown> | undefined {
    const row = this.row(key, keyBytes, time)
    return row && { value: this.value(row), timestamp: row.timestamp }
  }

  put(key: unknown, value: unknown, timestamp: number, keyBytes?: Uint8Array): void {
    // Nothing goes by the order of these: rows of records whose producer counts nanoseconds stay what they were.
    if (!(Number.isInteger(timestamp) && timestamp >= 0)) this.checkTime(timestamp, 'timestamp')
    this.write(key, value, timestamp, keyBytes)
  }

  range(from?: unknown, to?: unknown): IterableIterator<[key: unknown, row: ValueAndTimestamp<unknown>]> {
    return this.rangeAt(from, to, undefined)
  }

  *rangeAt(
    from: unknown,
    to: unknown,
    time: number | undefined,
  ): IterableIterator<[key: unknown, row: ValueAndTimestamp<unknown>]> {
    for (const [key, row] of this.rows(from, to, time))
      yield [key, { value: this.value(row), timestamp: row.timestamp }]
  }

  all(): IterableIterator<[key: unknown, row: ValueAndTimestamp<unknown>]> {
    return this.range()
  }
}
