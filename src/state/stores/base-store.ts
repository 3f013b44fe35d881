/** What all kinds of stores share: the key's encoding, the overlay, and the life cycle that the lane drives. */
import { assert } from '../../base/assert.ts'
import type { CommitEpoch } from '../../base/ids.ts'
import { EngineError } from '../../base/errors.ts'
import { string as stringSerde } from '../../serde/primitive.ts'
import type { Serde } from '../../serde/serde.ts'
import { keyBytes as bytesOf, isTime, keyString } from '../rows/bytes.ts'
import type {
  ByteChange,
  ByteEntry,
  ChangedRows,
  Checkpoint,
  SealedChanges,
  StoreBackend,
  StoreLifecycle,
  StoreSpec,
} from '../contract.ts'
import { segmentMs } from '../rows/layout.ts'
import type { RowPrefetch } from '../table/prefetch.ts'
import { MemoryBackend } from '../backends/memory-backend.ts'
import { Overlay } from '../versions/overlay.ts'
import { type Row, RowCodec } from '../rows/row.ts'
import type { RowLayer } from '../rows/row-layer.ts'
import { unreadableRow } from '../rows/unreadable.ts'
import { RetentionClock } from './retention-clock.ts'
import { type RowName, ToldRows } from './told-rows.ts'
import { Sealed, SealedColumns } from '../rows/sealed.ts'
import { SealedEpoch } from '../table/sealed-epoch.ts'
import { KeyValueRows } from '../table/key-value-rows.ts'
import { WindowRows } from '../windows/window-rows.ts'
import { WriteBehind } from '../backends/write-behind.ts'

export type StoreOperation = 'get' | 'put'

/** Told of every point read and every write. */
export interface StoreMeter {
  /** True: `ended` is to be told when this one is done. */
  began(operation: StoreOperation): boolean
  ended(operation: StoreOperation): void
}

export interface StoreOptions {
  /**
   * The task's stream time; -Infinity before the first record. For stores of windows and sessions: that of which all
   * timers have fired, so that none is taken away before it was emitted, however far the watermark jumps.
   */
  readonly streamTime: () => number
  /** No reader who is still to come goes by an older time: what is over then may be removed. Default: `streamTime`. */
  readonly removableTo?: () => number
  readonly meter?: StoreMeter | undefined
  /** Refuses writes. */
  readonly readOnly?: boolean
}

export abstract class BaseStore implements StoreLifecycle {
  readonly spec: StoreSpec
  readonly partition: number
  protected readonly overlay: RowLayer
  protected readonly codec: RowCodec
  protected readonly clock: RetentionClock
  protected readonly streamTime: () => number
  protected readonly removableTo: () => number
  protected readonly meter: StoreMeter | undefined
  readonly #backend: StoreBackend
  readonly #keySerde: Serde<unknown>
  readonly #maxKeyBytes: number
  #lastKey: unknown
  #lastKeyString: string | undefined
  /** Rows whose time is over, by the epoch with which they leave the backend. */
  readonly #dropped = new Map<CommitEpoch, readonly string[]>()

  constructor(spec: StoreSpec, backend: StoreBackend, partition: number, options: StoreOptions) {
    this.spec = spec
    this.partition = partition
    this.codec = RowCodec.of(spec, partition)
    this.overlay = layerOf(spec, backend, this.codec, options.readOnly ?? false)
    this.streamTime = options.streamTime
    this.removableTo = options.removableTo ?? options.streamTime
    this.meter = options.meter
    this.#backend = backend
    this.#keySerde = spec.keySerde
    this.#maxKeyBytes = backend.maxKeyBytes ?? Number.POSITIVE_INFINITY
    this.clock = new RetentionClock(spec.retentionMs)
    this.clock.resume(backend.checkpoint() ?? {})
  }

  get uncommittedBytes(): number {
    return this.overlay.bytes
  }

  get hasExpired(): boolean {
    return false
  }

  get changedCount(): number {
    return this.overlay.changedRows
  }

  changedRows(): ChangedRows {
    return new ToldRows(this.overlay.changes(), this.codec, (row, into) => this.nameRow(row, into))
  }

  rowOf(key: unknown, _start: number, _end: number): string {
    return this.keyOf(key, undefined)
  }

  protected nameRow(row: string, into: RowName): void {
    into.key = this.keyFrom(row)
  }

  get rowPrefetch(): RowPrefetch | undefined {
    return this.overlay instanceof KeyValueRows ? this.overlay.ahead : undefined
  }

  /** Event time as it is committed. */
  get committedTime(): number {
    return this.clock.committed.time
  }

  /** A view takes over from the store it looks at what that has forgotten. */
  adopt(store: BaseStore): void {
    this.clock.show(store.clock)
  }

  /** Reads committed rows alone. */
  committedOnly(): StoreBackend {
    return new CommittedOnly(this.#backend)
  }

  seal(epoch: CommitEpoch, upTo = Number.POSITIVE_INFINITY): SealedChanges | null {
    // Nobody applies what no changelog waits for; and no epoch is sealed before the last one was committed.
    if (!this.spec.changelog) {
      this.overlay.settleAll()
      this.clock.applied(epoch - 1)
      this.#dropped.clear()
    }
    assert(!this.#dropped.has(epoch), `epoch ${epoch} of store ${this.spec.name} is sealed twice`)
    const time = Math.min(this.streamTime(), upTo)
    const dropped = this.expire(Math.min(this.removableTo(), upTo))
    const { bytes } = this.overlay
    const sealed = this.overlay.seal(epoch)
    this.clock.seal(epoch, time)
    if (dropped.length > 0) this.#dropped.set(epoch, dropped)
    if (sealed === null) return null
    if (sealed instanceof SealedEpoch) return new SealedColumns(sealed, this.now(), bytes)
    return new Sealed(sealed, this.spec, this.codec, this.now(), bytes)
  }

  applied(epoch: CommitEpoch, checkpoint: Checkpoint): void {
    this.clock.applied(epoch)
    this.overlay.applied(epoch, this.#dropped.get(epoch) ?? [], this.clock.stamp(checkpoint))
    this.#dropped.delete(epoch)
  }

  committed(epoch: CommitEpoch): void {
    this.clock.applied(epoch)
    const dropped = this.#dropped.get(epoch)
    if (dropped === undefined) return
    this.#dropped.delete(epoch)
    const checkpoint = this.#backend.checkpoint()
    if (checkpoint !== undefined) this.overlay.applied(epoch, dropped, this.clock.stamp(checkpoint))
  }

  begin(time: number): void {
    this.clock.begin(Math.min(time, this.streamTime()))
  }

  discard(): void {
    this.overlay.discard()
    this.clock.discard()
    const { newest, committed } = this.clock
    assert(newest === committed.newest, `store ${this.spec.name} forgets by rows that were taken back`)
    this.#dropped.clear()
  }

  detach(): void {
    this.discard()
    this.overlay.freeze()
  }

  restore(changes: readonly ByteChange[], checkpoint: Checkpoint): void {
    assert(!this.overlay.isChanged, `store ${this.spec.name} is restored while it has changes of its own`)
    for (const [key, value] of changes) this.restored(key, value)
    this.#backend.apply(changes, this.clock.stamp(checkpoint))
    this.overlay.changedBelow()
  }

  wipe(): void {
    this.discard()
    this.#backend.wipe()
    this.clock.reset()
    this.overlay.changedBelow()
  }

  entries(): number {
    return this.#backend.entries()
  }

  close(): void {
    this.detach()
    this.#backend.close()
  }

  /** Stream time as a timestamp for rows: 0 while it is unknown. */
  protected now(): number {
    return Math.max(this.streamTime(), 0)
  }

  /** Told of every row that comes from the changelog; null: it goes. */
  protected restored(_key: Uint8Array, _value: Uint8Array | null): void {
    return
  }

  /**
   * Called when an epoch is sealed, with the time up to which rows that are over may go. Removes what is past its time:
   * from the open epoch where the changelog is to hear of it, else by returning rows that only the backend loses.
   */
  protected expire(_time: number): readonly string[] {
    return []
  }

  /**
   * Takes out rows past their time. The changelog hears of each: a broker that cut it off by time would go by its own
   * clock, and throw away windows of records that were written long after they happened.
   */
  protected forget(rows: readonly string[]): void {
    for (const at of rows) this.overlay.delete(at)
  }

  /** Adds or replaces a row; refuses a key that the backend could not take once the change is committed. */
  protected putValue(at: string, value: unknown, timestamp: number): void {
    this.checkLength(at.length)
    this.overlay.put(at, value, timestamp)
  }

  /** Refuses a key that the backend could not take once the change is committed. */
  protected checkLength(length: number): void {
    if (length > this.#maxKeyBytes) {
      throw new EngineError(
        'PROCESSING_FAILED',
        `The store '${this.spec.name}' cannot keep a key of ${length} bytes: its backend takes ${this.#maxKeyBytes}. ` +
          `Use a shorter key, or set 'engine.state.store' to 'memory'.`,
      )
    }
  }

  /** Refuses a time that a restart would read as another one, or walks would never come to. */
  protected checkTime(time: number, what: string): void {
    if (!isTime(time)) {
      throw new EngineError(
        'PROCESSING_FAILED',
        `The store '${this.spec.name}' cannot keep a row whose ${what} is ${String(time)}: give whole milliseconds since ` +
          '1970, from 0 on; Math.floor takes a fraction down to them.',
      )
    }
  }

  /** Key string of a key. `keyBytes` are its serialised bytes where the caller has them. */
  protected keyOf(key: unknown, keyBytes: Uint8Array | undefined): string {
    if (this.#lastKeyString !== undefined && Object.is(key, this.#lastKey)) return this.#lastKeyString
    let text: string
    if (keyBytes !== undefined) text = keyString(keyBytes)
    else if (this.#keySerde === stringSerde && isAscii(key)) text = key
    else text = keyString(this.#keySerde.serialize(key))
    // An object may have changed by the next call.
    if (typeof key !== 'object') {
      this.#lastKey = key
      this.#lastKeyString = text
    }
    return text
  }

  protected keyFrom(key: string): unknown {
    if (this.#keySerde === stringSerde && isAscii(key)) return key
    const bytes = bytesOf(key)
    try {
      return this.#keySerde.deserialize(bytes)
    } catch (cause) {
      const row = { store: this.spec.name, partition: this.partition, bytes, what: 'key' } as const
      throw unreadableRow(row, this.#keySerde.name, cause)
    }
  }

  protected value(row: Row): unknown {
    return this.codec.value(row)
  }
}

function layerOf(spec: StoreSpec, backend: StoreBackend, codec: RowCodec, readOnly: boolean): RowLayer {
  if (spec.kind === 'window') return new WindowRows(backend, codec, readOnly, segmentMs(spec))
  if (spec.kind === 'key-value' && (backend instanceof MemoryBackend || backend instanceof WriteBehind)) {
    return new KeyValueRows(backend, codec, readOnly)
  }
  return new Overlay(backend, codec, readOnly)
}

class CommittedOnly implements StoreBackend {
  readonly durable = false
  readonly #backend: StoreBackend

  constructor(backend: StoreBackend) {
    this.#backend = backend
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#backend.get(key)
  }

  range(from?: Uint8Array, to?: Uint8Array, reverse?: boolean): IterableIterator<ByteEntry> {
    return this.#backend.range(from, to, reverse)
  }

  apply(): void {
    assert(false, 'a view of a store was told to change it')
  }

  checkpoint(): Checkpoint | undefined {
    return this.#backend.checkpoint()
  }

  entries(): number {
    return this.#backend.entries()
  }

  wipe(): void {
    this.apply()
  }

  /** The backend belongs to the store. */
  close(): void {
    return
  }
}

function isAscii(key: unknown): key is string {
  if (typeof key !== 'string' || key.length > 64) return false
  for (let i = 0; i < key.length; i++) if (key.charCodeAt(i) > 127) return false
  return true
}
