/**
 * The way from one stage of a task to a deeper one, which is done later: its records wait for their place in the order.
 * Until then the deeper stage reads the rows of the shallower one as they were.
 */
import type { AnyStore, StoreSpec, ValueAndTimestamp, VersionedRecord, VersionedStore } from '../state/contract.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { type Deferral, type Stage, stagesOf } from '../topology/levels/stages.ts'
import type { Operator, Rec } from './contract.ts'

type Keyed = { readonly spec: StoreSpec } & VersionedStore<unknown, unknown>
type Row = ValueAndTimestamp<unknown> | VersionedRecord<unknown> | undefined

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
  /** By key, for each change that the deeper stage has not come to the row before it, the oldest first. */
  readonly #before = new Map<string, Row[]>()
  #spec: StoreSpec | undefined
  #last: { readonly id: string; readonly row: Row } | undefined

  /** The store for the stage that writes it. */
  write(store: AnyStore): AnyStore {
    const rows = store as unknown as Keyed
    this.#spec = rows.spec
    const note = (key: unknown): void => {
      this.#last = { id: this.#idOf(key), row: rows.get(key) }
    }
    const written = {
      spec: rows.spec,
      get: (key: unknown, asOf?: number) => (asOf === undefined ? rows.get(key) : rows.get(key, asOf)),
      put: (key: unknown, value: unknown, timestamp: number) => {
        note(key)
        return rows.put(key, value, timestamp)
      },
    }
    return written as unknown as AnyStore
  }

  /** The store for the stage that reads it. A versioned one is asked for the past itself where a time is given. */
  read(store: AnyStore): AnyStore {
    const rows = store as unknown as Keyed
    this.#spec = rows.spec
    const get = (key: unknown, asOf?: number): Row => {
      if (this.#before.size > 0 && typeof asOf !== 'number') {
        const before = this.#before.get(this.#idOf(key))
        if (before !== undefined) return before[0]
      }
      return typeof asOf === 'number' ? rows.get(key, asOf) : rows.get(key)
    }
    return { spec: rows.spec, get } as unknown as AnyStore
  }

  /** The row of this key was put and is told now; false: it was not put. */
  changed(key: unknown): boolean {
    const id = this.#idOf(key)
    const last = this.#last
    if (last?.id !== id) return false
    this.#last = undefined
    const before = this.#before.get(id)
    if (before === undefined) this.#before.set(id, [last.row])
    else before.push(last.row)
    return true
  }

  reached(key: unknown): void {
    const id = this.#idOf(key)
    const before = this.#before.get(id)
    before?.shift()
    if (before?.length === 0) this.#before.delete(id)
  }

  #idOf(key: unknown): string {
    const bytes = (this.#spec as StoreSpec).keySerde.serialize(key)
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  }
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
  for (const { index, from, stage: deeper, store } of stagesOf(topology).deferrals) {
    const rows = rowsBehind.get(index)
    if (store === undefined || rows === undefined) continue
    if (deeper === stage.index) views.set(store, rows.read(stores.get(store) as AnyStore))
    else if (stage.nodes.includes(from))
      views.set(store, rows.write(views.get(store) ?? (stores.get(store) as AnyStore)))
  }
  return views
}
