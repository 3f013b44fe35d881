/**
 * The way from one stage of a task to a deeper one, which is done later: its records wait for their place in the order.
 * Until then the deeper stage reads the rows of the shallower one as they were.
 */
import type { AnyStore, StoreSpec, ValueAndTimestamp, VersionedRecord, Windowed } from '../state/contract.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { type Deferral, type Stage, stagesOf } from '../topology/levels/stages.ts'
import type { Operator, Rec } from './contract.ts'
import {
  isByWindow,
  isOver,
  keptRow,
  notingWindows,
  type WindowedRow,
  type WindowedRowReader,
} from './windows/windows-behind.ts'

type Row = ValueAndTimestamp<unknown> | VersionedRecord<unknown> | undefined

/** A store of rows by key, one that forgets, or one of versions: each has of this what its kind has. */
interface Rows {
  readonly spec: StoreSpec
  get(key: unknown, asOf?: number): Row
  getAt(key: unknown, time: number): Row
  getAt(key: unknown, asOf: number | undefined, time: number): Row
  lastAt(key: unknown, asOf: number): number | undefined
  put(key: unknown, value: unknown, timestamp: number): unknown
  putAt(key: unknown, value: unknown, timestamp: number, time: number): unknown
}

interface Before {
  readonly row: Row
  /** Of a version: its time, and the version of that very time that it has replaced. */
  readonly at?: number
  readonly replaces?: Row | 'nothing'
}

/** Passes a record on to the deeper stage. */
export class DeferOperator implements Operator {
  readonly #way: Deferral
  readonly #host: { defer?(way: Deferral, rec: Rec): void }
  readonly #rows: RowsBehind | undefined

  constructor(way: Deferral, host: { defer?(way: Deferral, rec: Rec): void }, rows: RowsBehind | undefined) {
    this.#way = way
    this.#host = host
    this.#rows = rows
  }

  /** It tells that a row was changed, and nothing of what the operator tells. */
  get tellsRows(): boolean {
    return this.#rows !== undefined
  }

  process(rec: Rec): void {
    if (this.#rows !== undefined && !this.#rows.changed(rec.key)) return
    this.#host.defer?.(this.#way, rec)
  }
}

/** The deeper stage has come to the change of a row. */
export class RowsReached implements Operator {
  readonly #rows: RowsBehind

  constructor(rows: RowsBehind) {
    this.#rows = rows
  }

  process(rec: Rec): void {
    this.#rows.reached(rec.key)
  }
}

/** The rows of a store as the deeper stage is to see them: of each that was changed since what it was before. */
export class RowsBehind {
  /** By key, for each change that the deeper stage has not come to, the oldest first. */
  readonly #before = new Map<string, Before[]>()
  #spec: StoreSpec | undefined
  /** What a suppression holds back: a row is told while it is still there. */
  #buffer: Rows | undefined
  #last: { readonly id: string; readonly before: Before } | undefined

  /** The store for the stage that writes it. */
  write(store: AnyStore): AnyStore {
    const rows = store as unknown as Rows
    this.#spec = rows.spec
    if (isByWindow(rows.spec)) {
      return notingWindows(store, (key) => {
        this.#last = { id: this.#idOf(key), before: { row: keptRow(store, key) } }
      })
    }
    const note = (key: unknown, timestamp: number): void => {
      this.#last = { id: this.#idOf(key), before: beforeOf(rows, key, timestamp) }
    }
    const written = {
      ...reading(rows),
      put: (key: unknown, value: unknown, timestamp: number) => {
        note(key, timestamp)
        return rows.put(key, value, timestamp)
      },
      putAt: (key: unknown, value: unknown, timestamp: number, time: number) => {
        note(key, timestamp)
        return rows.putAt(key, value, timestamp, time)
      },
    }
    return written as unknown as AnyStore
  }

  /** What a suppression in the shallower stage holds back. */
  tells(buffer: AnyStore): void {
    this.#buffer = buffer as unknown as Rows
    this.#spec = this.#buffer.spec
  }

  /** The store for the stage that reads it. */
  read(store: AnyStore): AnyStore {
    const rows = store as unknown as Rows
    this.#spec = rows.spec
    const unreached = (key: unknown): readonly Before[] | undefined =>
      this.#before.size === 0 ? undefined : this.#before.get(this.#idOf(key))
    const get = (key: unknown): Row => {
      const before = unreached(key)
      return before === undefined ? rows.get(key) : before[0]?.row
    }
    const { spec } = rows
    if (isByWindow(spec)) {
      const rowAt: WindowedRowReader['rowAt'] = (key, time) => {
        if (isOver(spec, key, time)) return undefined
        const before = unreached(key)
        return before === undefined ? keptRow(store, key) : (before[0]?.row as WindowedRow)
      }
      return { spec, rowAt } as unknown as AnyStore
    }
    if (spec.kind === 'versioned') {
      const getAt = (key: unknown, asOf: number | undefined, time: number): Row => {
        const before = unreached(key)
        if (before === undefined) return rows.getAt(key, asOf, time)
        return asOf === undefined ? before[0]?.row : versionBefore(rows, key, asOf, time, before)
      }
      const lastAt = (key: unknown, asOf: number): number | undefined => rows.lastAt(key, asOf)
      return { spec, get, getAt, lastAt } as unknown as AnyStore
    }
    const { ttlMs } = spec
    if (ttlMs === undefined) return { spec, get } as unknown as AnyStore
    const getAt = (key: unknown, time: number): Row => {
      const before = unreached(key)
      if (before === undefined) return rows.getAt(key, time)
      const row = before[0]?.row as ValueAndTimestamp<unknown> | undefined
      return row === undefined || time >= row.timestamp + ttlMs ? undefined : row
    }
    return { spec, get, getAt } as unknown as AnyStore
  }

  /** The row of this key was put and is told now; false: it was not put. */
  changed(key: unknown): boolean {
    const id = this.#idOf(key)
    const last = this.#buffer === undefined ? this.#last : { id, before: { row: this.#buffer.get(key) } }
    if (last?.id !== id) return false
    this.#last = undefined
    const before = this.#before.get(id)
    if (before === undefined) this.#before.set(id, [last.before])
    else before.push(last.before)
    return true
  }

  reached(key: unknown): void {
    const id = this.#idOf(key)
    const before = this.#before.get(id)
    before?.shift()
    if (before?.length === 0) this.#before.delete(id)
  }

  #idOf(key: unknown): string {
    const spec = this.#spec as StoreSpec
    if (!isByWindow(spec)) return this.#textOf(key)
    const { key: inner, start, end } = key as Windowed<unknown>
    return `${start} ${spec.kind === 'session' ? end : ''} ${this.#textOf(inner)}`
  }

  #textOf(key: unknown): string {
    const bytes = (this.#spec as StoreSpec).keySerde.serialize(key)
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  }
}

/** Whoever reads says himself what is over for him. */
const everything = Number.NEGATIVE_INFINITY

function reading(rows: Rows): object {
  const { spec } = rows
  const get = (key: unknown, asOf?: number): Row => (asOf === undefined ? rows.get(key) : rows.get(key, asOf))
  if (spec.kind === 'versioned') {
    const getAt = (key: unknown, asOf: number | undefined, time: number): Row => rows.getAt(key, asOf, time)
    const lastAt = (key: unknown, asOf: number): number | undefined => rows.lastAt(key, asOf)
    return { spec, get, getAt, lastAt }
  }
  if (spec.ttlMs === undefined) return { spec, get }
  return { spec, get, getAt: (key: unknown, time: number): Row => rows.getAt(key, time) }
}

/** What a change at this time is about to replace. */
function beforeOf(rows: Rows, key: unknown, timestamp: number): Before {
  const { kind, ttlMs } = rows.spec
  if (kind !== 'versioned') return { row: ttlMs === undefined ? rows.get(key) : rows.getAt(key, everything) }
  const row = rows.getAt(key, undefined, everything)
  if (rows.lastAt(key, timestamp) !== timestamp) return { row, at: timestamp, replaces: 'nothing' }
  return { row, at: timestamp, replaces: rows.getAt(key, timestamp, everything) }
}

/** The version valid at this time, without those that were put behind the reader. */
function versionBefore(rows: Rows, key: unknown, asOf: number, time: number, unreached: readonly Before[]): Row {
  let at = rows.lastAt(key, asOf)
  for (; at !== undefined; at = rows.lastAt(key, at - 1)) {
    // Of several at one time the first has replaced what the reader is to see.
    const put = unreached.find((before) => before.at === at)
    if (put === undefined) break
    if (put.replaces !== 'nothing') return put.replaces
  }
  if (at === undefined) return undefined
  const row = rows.getAt(key, at, everything) as VersionedRecord<unknown> | undefined
  const isNewest = row?.validTo === undefined || unreached.some((before) => before.at === row.validTo)
  return isNewest || asOf >= time - (rows.spec.retentionMs as number) ? row : undefined
}

/** By way: all operators that change a store, as those of a cogroup do, keep one account of it for each deeper stage. */
export function rowsBehindOf(ways: readonly Deferral[]): Map<number, RowsBehind> {
  const accounts = new Map<string, RowsBehind>()
  const byWay = new Map<number, RowsBehind>()
  for (const { index, stage, store } of ways) {
    if (store === undefined) continue
    const id = `${stage} ${store}`
    const rows = accounts.get(id) ?? new RowsBehind()
    accounts.set(id, rows)
    byWay.set(index, rows)
  }
  return byWay
}

interface SharingTask {
  readonly topology: CompiledTopology
  readonly stage?: Stage
  readonly stores: ReadonlyMap<string, AnyStore>
  readonly rowsBehind?: ReadonlyMap<number, RowsBehind>
}

/** Of rows that stages of one task share: one stage keeps what it changes, the other reads what it has come to. */
export function sharedRows({ topology, stage, stores, rowsBehind }: SharingTask): Map<string, AnyStore> {
  const views = new Map<string, AnyStore>()
  if (stage === undefined || rowsBehind === undefined) return views
  const kept = new Set<RowsBehind>()
  for (const { index, from, stage: deeper, store } of stagesOf(topology).deferrals) {
    const rows = rowsBehind.get(index)
    if (store === undefined || rows === undefined) continue
    if (deeper === stage.index) views.set(store, rows.read(stores.get(store) as AnyStore))
    else if (stage.nodes.includes(from) && !kept.has(rows)) {
      kept.add(rows)
      if (topology.nodes[from]?.spec.op === 'suppress') rows.tells(stores.get(store) as AnyStore)
      else views.set(store, rows.write(views.get(store) ?? (stores.get(store) as AnyStore)))
    }
  }
  return views
}
