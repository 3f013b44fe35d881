/** Sessions by key, end and start, within a retention. */
import type { CommitEpoch } from '../base/ids.ts'
import { BaseStore, type StoreOptions } from './base-store.ts'
import { afterPrefix, clampTime, int64At, int64String, keyString } from './bytes.ts'
import type { ByteChange, Checkpoint, SealedChanges, SessionStore, StoreBackend, StoreSpec } from './contract.ts'
import { sessionSuffix } from './layout.ts'
import type { Row } from './row.ts'
import { Sweep } from './sweep.ts'

const endOf = (at: string): number => int64At(at, at.length - sessionSuffix)
const startOf = (at: string): number => int64At(at, at.length - 8)

export class SessionWindowStore extends BaseStore implements SessionStore<unknown, unknown> {
  readonly #sweep: Sweep

  constructor(spec: StoreSpec, backend: StoreBackend, partition: number, options: StoreOptions) {
    super(spec, backend, partition, options)
    this.#sweep = new Sweep(this.overlay)
  }

  put(key: unknown, start: number, end: number, value: unknown, keyBytes?: Uint8Array): void {
    this.onOperation?.('put')
    if (end <= this.clock.horizon) return
    const at = this.keyOf(key, keyBytes) + int64String(end) + int64String(start)
    if (value === null || value === undefined) {
      this.overlay.delete(at)
      return
    }
    this.clock.observe(end)
    this.putValue(at, value, end)
  }

  *findSessions(
    key: unknown,
    earliestEnd: number,
    latestStart: number,
    keyBytes?: Uint8Array,
  ): IterableIterator<[start: number, end: number, value: unknown]> {
    this.onOperation?.('get')
    const prefix = this.keyOf(key, keyBytes)
    const low = prefix + int64String(Math.max(clampTime(earliestEnd), this.clock.horizon + 1))
    const high = afterPrefix(prefix + int64String(Number.MAX_SAFE_INTEGER))
    for (const [at, row] of this.overlay.range(low, high)) {
      if (at.length !== prefix.length + sessionSuffix) continue
      const start = startOf(at)
      if (start <= latestStart) yield [start, endOf(at), this.value(row)]
    }
  }

  fetchSession(key: unknown, start: number, end: number, keyBytes?: Uint8Array): unknown {
    this.onOperation?.('get')
    if (end <= this.clock.horizon || start < 0) return undefined
    const row = this.overlay.get(this.keyOf(key, keyBytes) + int64String(end) + int64String(start))
    return row && this.value(row)
  }

  *all(): IterableIterator<[key: unknown, start: number, end: number, value: unknown]> {
    for (const [at, row] of this.overlay.range(undefined, undefined)) {
      const end = endOf(at)
      if (end > this.clock.horizon) yield [this.keyFrom(at.slice(0, -sessionSuffix)), startOf(at), end, this.value(row)]
    }
  }

  override seal(epoch: CommitEpoch): SealedChanges | null {
    const retention = this.spec.retentionMs
    // As for a window store, by the sessions' ends.
    if (retention !== undefined && this.overlay.isChanged) {
      this.clock.forget(Math.min(this.clock.newest, this.streamTime()) - retention)
    }
    return super.seal(epoch)
  }

  override restore(changes: readonly ByteChange[], checkpoint: Checkpoint): void {
    super.restore(changes, checkpoint)
    for (const [key] of changes) this.clock.observeCommitted(endOf(keyString(key)))
  }

  protected override expire(): readonly string[] {
    if (this.clock.horizon < 0) return []
    return this.forget(this.#sweep.next((at: string, _row: Row) => endOf(at) <= this.clock.horizon))
  }
}
