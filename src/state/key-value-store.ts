/** Key-value stores, without and with a timestamp beside each value. */
import { BaseStore } from './base-store.ts'
import type { KeyValueStore, TimestampedKeyValueStore, ValueAndTimestamp } from './contract.ts'
import type { Row } from './row.ts'
import { Sweep } from './sweep.ts'

abstract class RowsByKey extends BaseStore {
  readonly #sweep = this.spec.ttlMs === undefined ? undefined : new Sweep(this.overlay)

  approximateEntries(): number {
    return this.entries()
  }

  protected override expire(): readonly string[] {
    // The changelog is compacted, not cut off by time: it has to hear of every entry that goes.
    for (const key of this.#sweep?.next((_key, row) => this.#isOver(row)) ?? []) this.overlay.delete(key)
    return []
  }

  protected row(key: unknown, keyBytes: Uint8Array | undefined): Row | undefined {
    this.onOperation?.('get')
    const row = this.overlay.get(this.keyOf(key, keyBytes))
    return row === undefined || this.#isOver(row) ? undefined : row
  }

  protected write(key: unknown, value: unknown, timestamp: number, keyBytes: Uint8Array | undefined): void {
    this.onOperation?.('put')
    const at = this.keyOf(key, keyBytes)
    if (value === null || value === undefined) this.overlay.delete(at)
    else this.putValue(at, value, timestamp)
  }

  protected *rows(from: unknown, to: unknown): IterableIterator<[key: unknown, row: Row]> {
    const low = from === undefined ? undefined : this.keyOf(from, undefined)
    // The upper bound is inclusive: nothing lies between a key and the key with a zero byte behind it.
    const high = to === undefined ? undefined : `${this.keyOf(to, undefined)}\0`
    for (const [key, row] of this.overlay.range(low, high)) {
      if (!this.#isOver(row)) yield [this.keyFrom(key), row]
    }
  }

  #isOver(row: Row): boolean {
    const ttl = this.spec.ttlMs
    return ttl !== undefined && this.streamTime() - row.timestamp >= ttl
  }
}

export class PlainKeyValueStore extends RowsByKey implements KeyValueStore<unknown, unknown> {
  get(key: unknown, keyBytes?: Uint8Array): unknown {
    const row = this.row(key, keyBytes)
    return row && this.value(row)
  }

  put(key: unknown, value: unknown, keyBytes?: Uint8Array): void {
    this.write(key, value, this.now(), keyBytes)
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

  *range(from?: unknown, to?: unknown): IterableIterator<[key: unknown, value: unknown]> {
    for (const [key, row] of this.rows(from, to)) yield [key, this.value(row)]
  }

  all(): IterableIterator<[key: unknown, value: unknown]> {
    return this.range()
  }
}

export class StampedKeyValueStore extends RowsByKey implements TimestampedKeyValueStore<unknown, unknown> {
  get(key: unknown, keyBytes?: Uint8Array): ValueAndTimestamp<unknown> | undefined {
    const row = this.row(key, keyBytes)
    return row && { value: this.value(row), timestamp: row.timestamp }
  }

  put(key: unknown, value: unknown, timestamp: number, keyBytes?: Uint8Array): void {
    this.write(key, value, timestamp, keyBytes)
  }

  *range(from?: unknown, to?: unknown): IterableIterator<[key: unknown, row: ValueAndTimestamp<unknown>]> {
    for (const [key, row] of this.rows(from, to)) yield [key, { value: this.value(row), timestamp: row.timestamp }]
  }

  all(): IterableIterator<[key: unknown, row: ValueAndTimestamp<unknown>]> {
    return this.range()
  }
}
