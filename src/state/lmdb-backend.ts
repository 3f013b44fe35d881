/** Rows in an LMDB database: they outlive the process, and with them the checkpoint they belong to. */
import { assert } from '../base/assert.ts'
import { EngineError, messageOf } from '../errors.ts'
import type { ByteChange, ByteEntry, Checkpoint, RowWrites, StoreBackend } from './contract.ts'
import { type LmdbEnvironment, pastLastKey, type RowKey, type Rows, type WrittenKey } from './lmdb-environment.ts'

/** LMDB's limit for a key, less the byte that stands before every key of ours (LMDB takes no empty key). */
const maxKeyBytes = 1977
/** Rows read by one look into the database; no cursor stays open between. */
const rowsPerRead = 128

/** What LMDB says when its pages contradict one another. */
const corruption = /MDB_(CORRUPTED|PAGE_NOTFOUND|PANIC|INVALID|BAD_TXN)/

interface Pages {
  readonly pageSize: number
  readonly treeLeafPageCount: number
  readonly treeBranchPageCount: number
  readonly overflowPages: number
}

export class LmdbBackend implements StoreBackend {
  readonly durable = true
  readonly maxKeyBytes = maxKeyBytes
  readonly #environment: LmdbEnvironment
  readonly #store: string
  readonly #checkpointKey: Uint8Array
  readonly #onClose: () => void
  #closed = false

  constructor(environment: LmdbEnvironment, store: string, onClose: () => void) {
    this.#environment = environment
    this.#store = store
    this.#checkpointKey = Buffer.from(`store/${store}`)
    this.#onClose = onClose
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#get(key)
  }

  getAt(key: string): Uint8Array | undefined {
    return this.#get(key)
  }

  #get(key: Uint8Array | string): Uint8Array | undefined {
    if (key.length > maxKeyBytes) return undefined
    try {
      // The buffer is LMDB's own and longer than the value; only its `length` tells.
      const found = this.#environment.store(this.#store).getBinaryFast(key)
      return found?.subarray(0, found.length)
    } catch (error) {
      throw this.#failed('read', error)
    }
  }

  *range(from?: Uint8Array, to?: Uint8Array, reverse = false): IterableIterator<ByteEntry> {
    let low = from ?? firstKey
    let high = to ?? pastLastKey
    let exclusive = false
    for (;;) {
      const rows = this.#read(low, high, reverse, exclusive)
      yield* rows
      const last = rows[rows.length - 1]
      if (last === undefined || rows.length < rowsPerRead) return
      if (reverse) high = last[0]
      else low = last[0]
      exclusive = !reverse
    }
  }

  apply(changes: Iterable<ByteChange>, checkpoint?: Checkpoint): void {
    this.#apply((store) => {
      for (const [key, value] of changes) change(store, key, value)
    }, checkpoint)
  }

  applyRows(rows: RowWrites, checkpoint?: Checkpoint): void {
    this.#apply((store) => {
      const written = rows.writeKey && new KeyOf(rows, rows.writeKey)
      for (let place = 0; place < rows.count; place++) {
        if (written !== undefined) written.place = place
        // It goes to our own encoder as it is, of which the types know nothing.
        const key = (written as RowKey | undefined) ?? rows.key(place)
        const value = rows.value(place)
        if (value === null) void store.remove(key)
        else void store.put(key, value)
      }
    }, checkpoint)
  }

  #apply(write: (store: Rows) => void, checkpoint: Checkpoint | undefined): void {
    const environment = this.#environment
    try {
      const store = environment.store(this.#store)
      const { checkpoints } = environment
      environment.transaction(() => {
        write(store)
        if (checkpoint !== undefined) checkpoints.put(this.#checkpointKey, Buffer.from(JSON.stringify(checkpoint)))
      })
    } catch (error) {
      throw this.#failed('written', error)
    }
  }

  get incarnation(): number {
    return this.#environment.incarnation
  }

  checkpoint(): Checkpoint | undefined {
    const found = this.#environment.checkpoints.get(this.#checkpointKey)
    return found && (JSON.parse(Buffer.from(found).toString()) as Checkpoint)
  }

  entries(): number {
    return (this.#environment.store(this.#store).getStats() as { entryCount: number }).entryCount
  }

  bytes(): number {
    const { pageSize, treeLeafPageCount, treeBranchPageCount, overflowPages } = this.#environment
      .store(this.#store)
      .getStats() as Pages
    return pageSize * (treeLeafPageCount + treeBranchPageCount + overflowPages)
  }

  wipe(): void {
    const environment = this.#environment
    // The checkpoint goes first: what is left after a crash in between is a store that is restored from the start.
    environment.transaction(() => void environment.checkpoints.remove(this.#checkpointKey))
    environment.store(this.#store).clearSync()
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#onClose()
  }

  /** At most `rowsPerRead` rows. */
  #read(low: Uint8Array, high: Uint8Array, reverse: boolean, exclusive: boolean): ByteEntry[] {
    const options = reverse
      ? { start: high, end: low, exclusiveStart: true, inclusiveEnd: true, reverse, limit: rowsPerRead }
      : { start: low, end: high, exclusiveStart: exclusive, limit: rowsPerRead }
    try {
      const rows: ByteEntry[] = []
      for (const { key, value } of this.#environment.store(this.#store).getRange(options))
        rows.push([key as Uint8Array, value])
      return rows
    } catch (error) {
      throw this.#failed('read', error)
    }
  }

  /** Within a transaction of several stores it is that one's failure: files are not set aside under it. */
  #failed(action: string, error: unknown): unknown {
    if (this.#environment.busy) return error
    return storeFailure(this.#environment, `'${this.#store}'`, action, error)
  }
}

/** What is told of a failure; files that contradict themselves are set aside. */
export function storeFailure(environment: LmdbEnvironment, store: string, action: string, cause: unknown): EngineError {
  const message = messageOf(cause)
  if (!corruption.test(message)) {
    return new EngineError('STORE_CORRUPT', `The store ${store} could not be ${action}: ${message}.`, { cause })
  }
  environment.replace(message)
  const files = `The files of the store ${store} contradict themselves (${message})`
  const sentence = `${files}; they were set aside and the store is rebuilt from its changelog.`
  return new EngineError('STORE_CORRUPT', sentence, { cause })
}

/** The key of one row after the other. A store refuses what is too long for LMDB when it is put. */
class KeyOf implements WrittenKey {
  place = 0
  readonly #rows: RowWrites
  readonly #writeKey: NonNullable<RowWrites['writeKey']>

  constructor(rows: RowWrites, writeKey: NonNullable<RowWrites['writeKey']>) {
    this.#rows = rows
    this.#writeKey = writeKey
  }

  write(target: Uint8Array, at: number): number {
    return this.#writeKey.call(this.#rows, this.place, target, at)
  }
}

const firstKey = new Uint8Array(0)

function change(store: Rows, key: Uint8Array, value: Uint8Array | null): void {
  // The sentence is only made where it is needed: this runs for every row.
  if (key.length > maxKeyBytes) assert(false, `a key of ${key.length} bytes came as far as the backend`)
  if (value === null) void store.remove(key)
  else void store.put(key, value)
}
