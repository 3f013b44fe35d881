/** Every version of a row within the history kept, by the time from which it was valid. */
import { BaseStore, type StoreOptions } from './base-store.ts'
import { afterPrefix, int64At, int64String, keyString, timeUpTo } from '../rows/bytes.ts'
import type { StoreBackend, StoreSpec, VersionedRecord, VersionedStore } from '../contract.ts'
import { versionSuffix } from '../rows/layout.ts'
import type { Overlay } from '../versions/overlay.ts'
import type { Row } from '../rows/row.ts'
import { Sweep } from './sweep.ts'

const versionOf = (at: string): number => int64At(at, at.length - versionSuffix)

export class VersionedRowStore extends BaseStore implements VersionedStore<unknown, unknown> {
  declare protected readonly overlay: Overlay
  readonly #retentionMs: number
  readonly #sweep: Sweep

  constructor(spec: StoreSpec, backend: StoreBackend, partition: number, options: StoreOptions) {
    super(spec, backend, partition, options)
    this.#retentionMs = spec.retentionMs ?? Number.POSITIVE_INFINITY
    this.#sweep = new Sweep(this.overlay, (at, row) => this.#overAt(at, row))
  }

  /** By the newest version of all keys, as in Kafka Streams. */
  put(key: unknown, value: unknown, timestamp: number, keyBytes?: Uint8Array): { validTo: number | undefined } | null {
    return this.putAt(key, value, timestamp, this.clock.newest, keyBytes)
  }

  get(key: unknown, asOf?: number, keyBytes?: Uint8Array): VersionedRecord<unknown> | undefined {
    return this.getAt(key, asOf, this.clock.newest, keyBytes)
  }

  *all(): IterableIterator<[key: unknown, version: VersionedRecord<unknown>]> {
    let newest: [at: string, row: Row] | undefined
    for (const [at, row] of this.overlay.range(undefined, undefined)) {
      if (newest && at.slice(0, -versionSuffix) !== newest[0].slice(0, -versionSuffix)) yield* this.#newest(newest)
      newest = [at, row]
    }
    if (newest) yield* this.#newest(newest)
  }

  /** `time`: of whoever puts it; the history ends so much before. */
  putAt(
    key: unknown,
    value: unknown,
    timestamp: number,
    time: number,
    keyBytes?: Uint8Array,
  ): { validTo: number | undefined } | null {
    this.checkTime(timestamp, 'timestamp')
    if (timestamp < time - this.#retentionMs) return null
    const measured = this.meter?.began('put')
    const put = this.#put(key, value, timestamp, keyBytes)
    if (measured) this.meter?.ended('put')
    return put
  }

  /** `time`: of the reader. */
  getAt(
    key: unknown,
    asOf: number | undefined,
    time: number,
    keyBytes?: Uint8Array,
  ): VersionedRecord<unknown> | undefined {
    const measured = this.meter?.began('get')
    const version = this.#get(key, asOf, time, keyBytes)
    if (measured) this.meter?.ended('get')
    return version
  }

  /** Time of the newest version of the key that is not after `asOf`, a deletion included. */
  lastAt(key: unknown, asOf: number): number | undefined {
    const entry = this.#atOrBefore(this.keyOf(key, undefined), asOf)
    return entry && versionOf(entry[0])
  }

  #put(
    key: unknown,
    value: unknown,
    timestamp: number,
    keyBytes: Uint8Array | undefined,
  ): { validTo: number | undefined } {
    this.clock.observe(timestamp)
    // It ends the version before it.
    this.#sweep.put(timestamp + this.#retentionMs)
    const prefix = this.keyOf(key, keyBytes)
    const at = prefix + int64String(timestamp)
    if (value === null || value === undefined) {
      this.checkLength(at.length)
      this.overlay.putTombstone(at, timestamp)
    } else this.putValue(at, value, timestamp)
    return { validTo: this.#following(prefix, timestamp) }
  }

  #get(
    key: unknown,
    asOf: number | undefined,
    time: number,
    keyBytes: Uint8Array | undefined,
  ): VersionedRecord<unknown> | undefined {
    const prefix = this.keyOf(key, keyBytes)
    const [at, row] = this.#atOrBefore(prefix, asOf) ?? []
    if (at === undefined || row === undefined || row.value === null) return undefined
    const validFrom = versionOf(at)
    const validTo = asOf === undefined ? undefined : this.#following(prefix, validFrom)
    // The newest version is always there; an older one only within the history.
    if (validTo !== undefined && (asOf as number) < time - this.#retentionMs) return undefined
    const value = this.value(row)
    return validTo === undefined ? { value, validFrom } : { value, validFrom, validTo }
  }

  override get hasExpired(): boolean {
    return this.#sweep.isDue(Math.min(this.clock.newest, this.removableTo()))
  }

  override discard(): void {
    super.discard()
    this.#sweep.restart()
  }

  protected override restored(key: Uint8Array): void {
    const version = versionOf(keyString(key))
    this.clock.observeCommitted(version)
    this.#sweep.put(version + this.#retentionMs)
  }

  /** Nobody who is still to come goes by an older time, and plain readers go by the newest version. */
  protected override expire(time: number): readonly string[] {
    const over = this.#sweep.next(Math.min(this.clock.newest, time))
    const gone = new Set(over)
    return over.filter((at) => {
      const prefix = at.slice(0, -versionSuffix)
      const version = versionOf(at)
      if (this.overlay.get(at)?.value !== null || !this.#hides(prefix, version, gone)) return true
      // A deletion may go once there is nothing left that it hides.
      this.#sweep.put(version + this.#retentionMs)
      return false
    })
  }

  /** An older version is there still, but for those that are gone. */
  #hides(prefix: string, version: number, gone: ReadonlySet<string>): boolean {
    for (const [at] of this.overlay.range(prefix + int64String(0), prefix + int64String(version))) {
      if (at.length === prefix.length + versionSuffix && !gone.has(at)) return true
    }
    return false
  }

  /** A version leaves once the one behind it is older than the history; a deletion once it is so itself. */
  #overAt(at: string, row: Row): number {
    const version = versionOf(at)
    if (row.value === null) return version + this.#retentionMs
    const next = this.#following(at.slice(0, -versionSuffix), version)
    return next === undefined ? Number.POSITIVE_INFINITY : next + this.#retentionMs
  }

  /** Nothing where it is a deletion, or rows of a longer key lie between this version and a newer one. */
  *#newest([at, row]: [at: string, row: Row]): IterableIterator<[key: unknown, version: VersionedRecord<unknown>]> {
    const [prefix, validFrom] = [at.slice(0, -versionSuffix), versionOf(at)]
    if (row.value === null || this.#following(prefix, validFrom) !== undefined) return
    yield [this.keyFrom(prefix), { value: this.value(row), validFrom }]
  }

  /** The newest row of the key that is not after `time`. */
  #atOrBefore(prefix: string, time: number | undefined): [string, Row] | undefined {
    const last = time === undefined ? Number.MAX_SAFE_INTEGER : timeUpTo(time)
    if (last < 0) return undefined
    const high = afterPrefix(prefix + int64String(last))
    for (const entry of this.overlay.range(prefix + int64String(0), high, true)) {
      if (entry[0].length === prefix.length + versionSuffix) return entry
    }
    return undefined
  }

  /** Time of the version that follows the one of `validFrom`. */
  #following(prefix: string, validFrom: number): number | undefined {
    const high = afterPrefix(prefix + int64String(Number.MAX_SAFE_INTEGER))
    for (const [at] of this.overlay.range(prefix + int64String(validFrom + 1), high)) {
      if (at.length === prefix.length + versionSuffix) return versionOf(at)
    }
    return undefined
  }
}
