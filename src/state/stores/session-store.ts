/** Sessions by key, end and start, within a retention. */
import { EngineError } from '../../base/errors.ts'
import { BaseStore, type StoreOptions } from './base-store.ts'
import { afterPrefix, int64At, int64String, isTime, keyString, timeFrom, timeUpTo } from '../rows/bytes.ts'
import type { SessionStore, StoreBackend, StoreSpec } from '../contract.ts'
import { sessionSuffix } from '../rows/layout.ts'
import { Sweep } from './sweep.ts'
import type { RowName } from './told-rows.ts'

const endOf = (at: string): number => int64At(at, at.length - sessionSuffix)
const startOf = (at: string): number => int64At(at, at.length - 8)

export class SessionWindowStore extends BaseStore implements SessionStore<unknown, unknown> {
  readonly #sweep: Sweep

  constructor(spec: StoreSpec, backend: StoreBackend, partition: number, options: StoreOptions) {
    super(spec, backend, partition, options)
    this.#sweep = new Sweep(this.overlay, endOf)
  }

  put(key: unknown, start: number, end: number, value: unknown, keyBytes?: Uint8Array): void {
    this.checkTime(start, 'start')
    this.checkTime(end, 'end')
    if (end < start) throw this.#endsTooEarly(start, end)
    const measured = this.meter?.began('put')
    if (!this.#isForgotten(end)) this.#put(key, start, end, value, keyBytes)
    if (measured) this.meter?.ended('put')
  }

  #put(key: unknown, start: number, end: number, value: unknown, keyBytes: Uint8Array | undefined): void {
    const at = this.keyOf(key, keyBytes) + int64String(end) + int64String(start)
    if (value === null || value === undefined) {
      this.overlay.delete(at)
      return
    }
    this.clock.observe(end)
    this.#sweep.put(end)
    this.putValue(at, value, end)
  }

  *findSessions(
    key: unknown,
    earliestEnd: number,
    latestStart: number,
    keyBytes?: Uint8Array,
  ): IterableIterator<[start: number, end: number, value: unknown]> {
    this.meter?.began('get')
    const prefix = this.keyOf(key, keyBytes)
    const [from, last] = [Math.max(timeFrom(earliestEnd), this.#horizon + 1), timeUpTo(latestStart)]
    if (from > Number.MAX_SAFE_INTEGER || last < 0) return
    const low = prefix + int64String(from)
    const high = afterPrefix(prefix + int64String(Number.MAX_SAFE_INTEGER))
    for (const [at, row] of this.overlay.range(low, high)) {
      if (at.length !== prefix.length + sessionSuffix) continue
      const start = startOf(at)
      if (start <= last) yield [start, endOf(at), this.value(row)]
    }
  }

  fetchSession(key: unknown, start: number, end: number, keyBytes?: Uint8Array): unknown {
    const measured = this.meter?.began('get')
    if (!isTime(start) || !isTime(end) || this.#isForgotten(end)) return undefined
    const row = this.overlay.get(this.keyOf(key, keyBytes) + int64String(end) + int64String(start))
    if (measured) this.meter?.ended('get')
    return row && this.value(row)
  }

  /** As `fetchSession`, for a reader behind event time: as long as the row is there. He says himself what is over for him. */
  fetchKept(key: unknown, start: number, end: number): unknown {
    if (!isTime(start) || !isTime(end)) return undefined
    const row = this.overlay.get(this.keyOf(key, undefined) + int64String(end) + int64String(start))
    return row && this.value(row)
  }

  *all(): IterableIterator<[key: unknown, start: number, end: number, value: unknown]> {
    const horizon = this.#horizon
    for (const [at, row] of this.overlay.range(undefined, undefined)) {
      const end = endOf(at)
      if (end > horizon) yield [this.keyFrom(at.slice(0, -sessionSuffix)), startOf(at), end, this.value(row)]
    }
  }

  override rowOf(key: unknown, start: number, end: number): string {
    return this.keyOf(key, undefined) + int64String(end) + int64String(start)
  }

  protected override nameRow(row: string, into: RowName): void {
    into.key = this.keyFrom(row.slice(0, -sessionSuffix))
    into.start = startOf(row)
    into.end = endOf(row)
  }

  override get hasExpired(): boolean {
    return this.#sweep.isDue(this.#horizon)
  }

  override discard(): void {
    super.discard()
    this.#sweep.restart()
  }

  protected override restored(key: Uint8Array): void {
    const end = endOf(keyString(key))
    this.clock.observeCommitted(end)
    this.#sweep.put(end)
  }

  protected override expire(time: number): readonly string[] {
    this.forget(this.#sweep.next(this.clock.horizon(time)))
    return []
  }

  get #horizon(): number {
    return this.clock.horizon(this.streamTime())
  }

  #endsTooEarly(start: number, end: number): EngineError {
    return new EngineError(
      'PROCESSING_FAILED',
      `The store '${this.spec.name}' cannot keep a session that starts at ${start} and ends at ${end}, before it begins: ` +
        'give its start first, then its end.',
    )
  }

  #isForgotten(end: number): boolean {
    return end <= this.clock.kept && end <= this.#horizon
  }
}
