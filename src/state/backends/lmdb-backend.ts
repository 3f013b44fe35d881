/**
 * Rows in an LMDB database: they outlive the process, and with them the checkpoint they belong to. Rows that are written
 * in the order of their keys' hashes lie in blocks (`lmdb-blocks.ts`) until somebody asks for them in the order of their
 * keys; all others each have a key in the database.
 */
import { assert } from '../../base/assert.ts'
import { EngineError, messageOf } from '../../base/errors.ts'
import type { ByteChange, ByteEntry, Checkpoint, HashedRows, RowWrites, StoreBackend } from '../contract.ts'
import { keyBytes, keyString, writeKeyString } from '../rows/bytes.ts'
import { orderByHash, sortByKey } from './key-order.ts'
import { checkedLength, checksum, checksumOfKey, ChecksumWriter } from './checksum.ts'
import { diskFull, isDiskFull } from './lmdb-room.ts'
import { type BlockLayout, LmdbBlocks } from './lmdb-blocks.ts'
import {
  type LmdbEnvironment,
  pastLastKey,
  type RowKey,
  rowPrefix,
  type Rows,
  type WrittenKey,
} from './lmdb-environment.ts'
import { DamagedRow, storeName } from './lmdb-notes.ts'
import { changesOf } from '../rows/row-writes.ts'
import { hashOf } from '../table/cell-table.ts'

/** LMDB's limit for a key, less the byte that stands before every key of ours (LMDB takes no empty key). */
const maxKeyBytes = 1977
/** Rows read by one look into the database; no cursor stays open between. */
const rowsPerRead = 128
/** Rows that are moved with one transaction. */
const rowsPerMove = 65536
/** On average, for rows that lie in blocks: of longer ones there would be few in each. */
const mostBlockRowBytes = 256
/** Rows of which that is found out. */
const someRows = 64

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
  readonly #checkpointName: string
  readonly #form: string
  readonly #onClose: () => void
  readonly #blocks: LmdbBlocks
  readonly #checked: CheckedRows
  #closed = false
  /** Incarnation of the files with which it was opened. */
  #opened: number
  /** When the file was told of the store, for what was written since may have been undone. */
  #toldAt = -1

  /** Rows of another form than this one, of an application that has changed meanwhile, are not kept. */
  constructor(environment: LmdbEnvironment, store: string, form: string, onClose: () => void) {
    this.#environment = environment
    this.#store = store
    this.#checkpointName = storeName(store)
    this.#form = form
    this.#onClose = onClose
    this.#blocks = new LmdbBlocks(environment, store)
    this.#checked = new CheckedRows(checksum(environment.checksumOf(store), Uint8Array.of(rowPrefix)))
    this.#opened = environment.incarnation
    this.#try('read', () => {
      this.#takeForm()
      if (this.#blocks.layout === undefined) this.#blocks.sweep()
    })
  }

  /** Makes the store known to the file. */
  #takeForm(): void {
    const environment = this.#environment
    void environment.store(this.#store)
    const found = environment.notes.formOf(this.#store)
    if (found === this.#form) return
    if (found !== undefined && found !== '' && this.#form !== '') this.wipe()
    environment.transaction(() => this.#tell())
  }

  #tell(): void {
    const { notes, undone } = this.#environment
    notes.setForm(this.#store, this.#form)
    this.#toldAt = undone
  }

  get inHashOrder(): boolean {
    return this.#blocks.layout !== undefined || this.#keys === 0
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#blocks.layout === undefined ? this.#get(key) : this.getAt(keyString(key))
  }

  opensAnew(): void {
    this.#opened = this.#environment.incarnation
  }

  get isLost(): boolean {
    return this.#opened !== this.#environment.incarnation
  }

  /** What is asked of empty files in place of its own is not answered: a row that was lost is not one that never was. */
  #refuseIfLost(): void {
    if (!this.isLost) return
    const sentence = `The files of the store '${this.#store}' were set aside; it is rebuilt from its changelog when the lane begins anew.`
    throw new EngineError('STORE_CORRUPT', sentence)
  }

  getAt(key: string): Uint8Array | undefined {
    this.#refuseIfLost()
    const { layout } = this.#blocks
    if (layout === undefined) return this.#get(key)
    try {
      return this.#blocks.get(layout, hashOf(key) >>> 0, key)
    } catch (error) {
      throw this.#failed('read', error)
    }
  }

  #get(key: Uint8Array | string): Uint8Array | undefined {
    this.#refuseIfLost()
    if (key.length > maxKeyBytes) return undefined
    try {
      // The buffer is LMDB's own and longer than the value; only its `length` tells.
      const found = this.#environment.store(this.#store).getBinaryFast(key)
      return found && this.#checked.value(key, found, found.length)
    } catch (error) {
      throw this.#failed('read', error)
    }
  }

  *range(from?: Uint8Array, to?: Uint8Array, reverse = false): IterableIterator<ByteEntry> {
    this.#refuseIfLost()
    if (this.#blocks.layout !== undefined) this.#try('written', () => this.#intoRows())
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
    const { layout } = this.#blocks
    this.#apply((store) => {
      if (layout !== undefined) this.#applyHashed(layout, hashed(changes))
      else for (const [key, value] of changes) this.#change(store, key, value)
    }, checkpoint)
  }

  applyRows(rows: RowWrites, from: number, to: number, checkpoint?: Checkpoint): void {
    this.#apply((store) => {
      if (rows.hashed !== undefined && this.#blocks.layout === undefined && this.#keys === 0) {
        const bytes = averageBytes(rows, from, to)
        if (bytes <= mostBlockRowBytes) this.#blocks.begin(rows.count * bytes)
      }
      const { layout } = this.#blocks
      if (layout === undefined) putRows(store, this.#checked, rows, from, to)
      else if (rows.hashed) this.#blocks.apply(layout, rows.hashed, from, to)
      else this.#applyHashed(layout, hashed(changesOf(rows, from, to)))
    }, checkpoint)
  }

  #applyHashed(layout: BlockLayout, rows: HashedRows): void {
    this.#blocks.apply(layout, rows, 0, rows.hashes.length)
  }

  #apply(write: (store: Rows) => void, checkpoint: Checkpoint | undefined): void {
    this.#refuseIfLost()
    const environment = this.#environment
    this.#try('written', () => {
      const store = environment.store(this.#store)
      environment.transaction(() => {
        if (this.#toldAt !== environment.undone) this.#tell()
        write(store)
        if (checkpoint !== undefined) {
          const before = this.#dated()
          // Steps on the way to a newer offset leave the one that is there as old as it is.
          const isSame = before?.changelogOffset === checkpoint.changelogOffset && checkpoint.ahead !== undefined
          const writtenAt = (isSame ? before.writtenAt : undefined) ?? environment.now()
          environment.notes.put(this.#checkpointName, JSON.stringify({ ...checkpoint, writtenAt }))
        }
      })
    })
  }

  get incarnation(): number {
    return this.#environment.incarnation
  }

  checkpoint(): Checkpoint | undefined {
    const dated = this.#dated()
    if (dated === undefined) return undefined
    const { writtenAt: _, ...checkpoint } = dated
    return checkpoint
  }

  writtenAt(): number | undefined {
    return this.#dated()?.writtenAt
  }

  #dated(): (Checkpoint & { readonly writtenAt?: number }) | undefined {
    const found = this.#environment.notes.get(this.#checkpointName)
    return found === undefined ? undefined : (JSON.parse(found) as Checkpoint)
  }

  entries(): number {
    return this.#blocks.layout?.rows ?? this.#keys
  }

  get #keys(): number {
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
    environment.transaction(() => {
      environment.notes.remove(this.#checkpointName)
      this.#blocks.forget()
    })
    environment.store(this.#store).clearSync()
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#onClose()
  }

  /** At most `rowsPerRead` rows. */
  #read(low: Uint8Array, high: Uint8Array, reverse: boolean, exclusive: boolean): ByteEntry[] {
    this.#refuseIfLost()
    const options = reverse
      ? { start: high, end: low, exclusiveStart: true, inclusiveEnd: true, reverse, limit: rowsPerRead }
      : { start: low, end: high, exclusiveStart: exclusive, limit: rowsPerRead }
    try {
      const rows: ByteEntry[] = []
      for (const { key, value } of this.#environment.store(this.#store).getRange(options))
        rows.push([key as Uint8Array, this.#checked.value(key, value, value.length)])
      return rows
    } catch (error) {
      throw this.#failed('read', error)
    }
  }

  /** From now on each row has a key of its own. What a crash leaves half done is begun anew. */
  #intoRows(): void {
    const environment = this.#environment
    const store = environment.store(this.#store)
    for (;;) {
      const left = this.#read(firstKey, pastLastKey, false, false)
      if (left.length === 0) break
      environment.transaction(() => {
        for (const [key] of left) void store.remove(key)
      })
    }
    let keys: string[] = []
    let values: Uint8Array[] = []
    const put = (): void => {
      sortByKey(keys, values)
      environment.transaction(() => {
        for (const [i, key] of keys.entries()) void store.put(key, this.#checked.with(key, values[i] as Uint8Array))
      })
      keys = []
      values = []
    }
    this.#blocks.each((key, value) => {
      if (keys.push(keyString(key)) + values.push(value.slice()) >= 2 * rowsPerMove) put()
    })
    put()
    environment.transaction(() => this.#blocks.forget())
    this.#blocks.sweep()
  }

  #change(store: Rows, key: Uint8Array, value: Uint8Array | null): void {
    // The sentence is only made where it is needed: this runs for every row.
    if (key.length > maxKeyBytes) assert(false, `a key of ${key.length} bytes came as far as the backend`)
    if (value === null) void store.remove(key)
    else void store.put(key, this.#checked.with(key, value))
  }

  #try(action: string, run: () => void): void {
    try {
      run()
    } catch (error) {
      throw EngineError.is(error) ? error : this.#failed(action, error)
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
  if (isDiskFull(cause, environment.folder)) return diskFull(store, environment.folder, cause)
  if (!corruption.test(message)) {
    return new EngineError('STORE_CORRUPT', `The store ${store} could not be ${action}: ${message}.`, { cause })
  }
  environment.replace(message)
  const files = `The files of the store ${store} contradict themselves (${message})`
  const sentence = `${files}; they were set aside and the store is rebuilt from its changelog.`
  const error = new EngineError('STORE_CORRUPT', sentence, { cause })
  environment.lost(error)
  return error
}

function putRows(store: Rows, checked: CheckedRows, rows: RowWrites, from: number, to: number): void {
  const written = rows.writeKey && new KeyOf(rows, rows.writeKey)
  for (let place = from; place < to; place++) {
    if (written !== undefined) written.place = place
    const key = written ?? rows.key(place)
    const value = rows.value(place)
    // A written key goes to our own encoder as it is, of which the types know nothing.
    if (value === null) void store.remove(key as RowKey)
    else void store.put(key as RowKey, checked.with(key, value))
  }
}

/** Values of a store's rows, each before its checksum. */
class CheckedRows {
  readonly #sum: number
  readonly #writer = new ChecksumWriter()
  readonly #key = new Uint8Array(maxKeyBytes)

  constructor(sum: number) {
    this.#sum = sum
  }

  /** Valid until the next call. */
  with(key: RowKey | KeyOf, value: Uint8Array): Uint8Array {
    return this.#writer.with(this.#of(key), value)
  }

  /** The value within what was read, which lies in the same memory. */
  value(key: RowKey, read: Uint8Array, length: number): Uint8Array {
    const end = checkedLength(this.#of(key), read, 0, length)
    if (end < 0)
      throw new DamagedRow(`the row ${Buffer.from(typeof key === 'string' ? keyBytes(key) : key).toString('hex')}`)
    return read.subarray(0, end)
  }

  #of(key: RowKey | KeyOf): number {
    if (typeof key === 'string') return checksumOfKey(this.#sum, key)
    if (key instanceof Uint8Array) return checksum(this.#sum, key)
    return checksum(this.#sum, this.#key, 0, key.write(this.#key, 0))
  }
}

/** The key of one row after the other. A store refuses what is too long for LMDB when it is put. */
class KeyOf implements WrittenKey {
  readonly prefix = rowPrefix
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

function averageBytes(rows: RowWrites, from: number, to: number): number {
  const end = Math.min(to, from + someRows)
  let sum = 0
  for (let i = from; i < end; i++) sum += rows.key(i).length + (rows.value(i)?.length ?? 0)
  return sum / Math.max(1, end - from)
}

/** Changes in any order, in that of their hashes; the last one of a key counts. */
function hashed(changes: Iterable<ByteChange>): HashedRows {
  const last = new Map<string, Uint8Array | null>()
  for (const [key, value] of changes) last.set(keyString(key), value)
  const [keys, values] = [[...last.keys()], [...last.values()]]
  const places = Int32Array.from(keys, (_, i) => i)
  const hashes = orderByHash(places, (i) => hashOf(keys[i] as string))
  const key = (place: number): string => keys[places[place] as number] as string
  return {
    hashes,
    keyLength: (place) => key(place).length,
    writeKey: (place, target, at) => writeKeyString(key(place), target, at),
    value: (place) => values[places[place] as number] as Uint8Array | null,
    touch: () => undefined,
  }
}
