/** What all kinds of stores share: the key's encoding, the overlay, and the life cycle that the lane drives. */
import { assert } from '../base/assert.ts'
import type { CommitEpoch } from '../base/ids.ts'
import { EngineError } from '../errors.ts'
import { string as stringSerde } from '../serde/primitive.ts'
import type { Serde } from '../serde/serde.ts'
import { keyBytes as bytesOf, keyString } from './bytes.ts'
import type {
  ByteChange,
  ByteEntry,
  Checkpoint,
  SealedChanges,
  StoreBackend,
  StoreLifecycle,
  StoreSpec,
} from './contract.ts'
import { segmentMs, segmentPrefix, windowSuffix } from './layout.ts'
import { Overlay } from './overlay.ts'
import { type Row, RowCodec } from './row.ts'
import { RetentionClock } from './retention-clock.ts'
import { Sealed } from './sealed.ts'

export type StoreOperation = 'get' | 'put'

export interface StoreOptions {
  /** The task's stream time; -Infinity before the first record. */
  readonly streamTime: () => number
  /** Told of every point read and every write, for the counters. */
  readonly onOperation?: ((operation: StoreOperation) => void) | undefined
  /** Refuses writes. */
  readonly readOnly?: boolean
}

export abstract class BaseStore implements StoreLifecycle {
  readonly spec: StoreSpec
  readonly partition: number
  protected readonly overlay: Overlay
  protected readonly codec: RowCodec
  protected readonly clock = new RetentionClock()
  protected readonly streamTime: () => number
  protected readonly onOperation: ((operation: StoreOperation) => void) | undefined
  readonly #backend: StoreBackend
  readonly #keySerde: Serde<unknown>
  readonly #maxKeyBytes: number
  #lastKey: unknown
  #lastKeyString: string | undefined
  /** Rows whose time is over, by the epoch with which they leave the backend. */
  readonly #dropped = new Map<CommitEpoch, readonly string[]>()
  /** Of those, the ones that found no epoch to leave with: it had no changes. */
  #waiting: readonly string[] = []

  constructor(spec: StoreSpec, backend: StoreBackend, partition: number, options: StoreOptions) {
    this.spec = spec
    this.partition = partition
    this.codec = RowCodec.of(spec)
    this.overlay = new Overlay(backend, this.codec, options.readOnly, spec.kind === 'window' ? segmentMs(spec) : 0)
    this.streamTime = options.streamTime
    this.onOperation = options.onOperation
    this.#backend = backend
    this.#keySerde = spec.keySerde
    this.#maxKeyBytes = backend.maxKeyBytes ?? Number.POSITIVE_INFINITY
  }

  get uncommittedBytes(): number {
    return this.overlay.bytes
  }

  /** A view takes over from the store it looks at what that has forgotten. */
  adopt(store: BaseStore): void {
    this.clock.adopt(store.clock)
  }

  /** Reads committed rows alone. */
  committedOnly(): StoreBackend {
    return new CommittedOnly(this.#backend)
  }

  seal(epoch: CommitEpoch): SealedChanges | null {
    // Nobody applies what no changelog waits for; and no epoch is sealed before the last one was committed.
    if (!this.spec.changelog) {
      this.overlay.settleAll()
      this.clock.applied(epoch - 1)
      this.#dropped.clear()
    }
    const dropped = this.expire()
    const { bytes } = this.overlay
    const sealed = this.overlay.seal(epoch)
    if (sealed !== null) this.clock.seal(epoch)
    if (sealed === null) {
      this.#waiting = this.#waiting.concat(dropped)
      return null
    }
    this.#dropped.set(epoch, this.#waiting.concat(dropped))
    this.#waiting = []
    return new Sealed(sealed, this.spec, this.codec, this.now(), bytes)
  }

  applied(epoch: CommitEpoch, checkpoint: Checkpoint): void {
    this.overlay.applied(epoch, this.#dropped.get(epoch) ?? [], checkpoint)
    this.clock.applied(epoch)
    this.#dropped.delete(epoch)
  }

  discard(): void {
    this.overlay.discard()
    this.clock.discard()
    this.#dropped.clear()
    this.#waiting = []
  }

  detach(): void {
    this.discard()
    this.overlay.freeze()
  }

  restore(changes: readonly ByteChange[], checkpoint: Checkpoint): void {
    this.#backend.apply(changes, checkpoint)
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

  /**
   * Called when an epoch is sealed. Removes what is past its time: from the open epoch where the changelog is to
   * hear of it, else by returning rows that only the backend loses.
   */
  protected expire(): readonly string[] {
    return []
  }

  /**
   * Rows past their retention. The changelog hears of each: a broker that cut it off by time would go by its own clock,
   * and throw away windows of records that were written long after they happened.
   */
  protected forget(rows: readonly string[]): readonly string[] {
    if (!this.spec.changelog) return rows
    for (const at of rows) this.overlay.delete(at)
    return []
  }

  /** Adds or replaces a row; refuses a key that the backend could not take once the change is committed. */
  protected putValue(at: string, value: unknown, timestamp: number): void {
    this.#checkLength(at.length)
    this.overlay.put(at, value, timestamp)
  }

  /** As `putValue`, for the only (or first) row of a window. */
  protected putWindow(key: string, windowStart: number, value: unknown, timestamp: number): void {
    this.#checkLength(key.length + segmentPrefix + windowSuffix)
    this.overlay.putWindow(key, windowStart, value, timestamp)
  }

  protected putTombstone(at: string, timestamp: number): void {
    this.#checkLength(at.length)
    this.overlay.putTombstone(at, timestamp)
  }

  #checkLength(length: number): void {
    if (length > this.#maxKeyBytes) {
      throw new EngineError(
        'PROCESSING_FAILED',
        `The store '${this.spec.name}' cannot keep a key of ${length} bytes: its backend takes ${this.#maxKeyBytes}. ` +
          `Use a shorter key, or set 'engine.state.store' to 'memory'.`,
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
    return this.#keySerde.deserialize(bytesOf(key))
  }

  protected value(row: Row): unknown {
    return this.codec.value(row)
  }
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
