/** A table's rows, whatever kind of store keeps them. */
import type {
  AnyStore,
  KeyValueStore,
  SessionStore,
  TimestampedKeyValueStore,
  ValueAndTimestamp,
  VersionedStore,
  Windowed,
  WindowStore,
} from '../state/contract.ts'
import type { Suppressed } from '../topology/serdes/internal-serdes.ts'
import type { Getter, StoreRefSpec } from '../topology/operator-spec.ts'
import { isPromise, type Origin, Rec, type TaskContext } from './contract.ts'
import type { StampedKeyValueStore } from '../state/stores/key-value-store.ts'
import type { VersionedRowStore } from '../state/stores/versioned-store.ts'
import { historyTimeOf, processingFailed, timeOf, unplacedOrigin } from './node-operator.ts'
import type { WindowedRowReader } from './windows/windows-behind.ts'

export interface Row extends ValueAndTimestamp<unknown> {
  /** When it was told, at the latest, where its timestamp does not say so: that of a row below `suppress` is not known. */
  readonly toldAt?: number | undefined
}
/** What stores that forget are asked by a record's own time; so are the rows that a deeper stage reads. */
export type AgingRows = Pick<StampedKeyValueStore, 'spec' | 'getAt'>
export type HistoryRows = Pick<VersionedRowStore, 'spec' | 'getAt' | 'putAt'>
export type RowPut = 'latest' | 'older' | 'rejected'

/** A function that is given this value can change it in place, as many folds do: what is told of it is read anew then. */
export function isChangeable(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

/** What each call for one record is given: at first what was read, and then what is stored, for one that failed may have changed it. */
export function forEachCall<T>(first: T, stored: () => T): () => T {
  let calls = 0
  return () => (calls++ === 0 ? first : stored())
}

/** A key-value or versioned store under one face. What it forgets it forgets by the time of the record at hand. */
export class RowStore {
  readonly #context: TaskContext
  readonly #plain: TimestampedKeyValueStore<unknown, unknown> | undefined
  readonly #versioned: VersionedStore<unknown, unknown> | undefined
  readonly #aging: AgingRows | undefined
  readonly #history: HistoryRows | undefined

  constructor(context: TaskContext, { name, kind }: Pick<StoreRefSpec, 'name' | 'kind'>) {
    const store = context.store(name)
    this.#context = context
    if (kind === 'versioned') this.#versioned = store as VersionedStore<unknown, unknown>
    else this.#plain = store as TimestampedKeyValueStore<unknown, unknown>
    this.#aging = agingOf(store)
    this.#history = historyOf(store, context)
  }

  get(key: unknown, rec: Rec): Row | undefined {
    if (this.#aging) return this.#aging.getAt(key, timeOf(rec) ?? this.#context.streamTime())
    if (this.#plain) return this.#plain.get(key)
    const version = this.#versioned?.get(key)
    return version && { value: version.value, timestamp: version.validFrom }
  }

  /** `rec`: for which it is put. */
  put(key: unknown, value: unknown, timestamp: number, rec: Rec): RowPut {
    if (this.#plain) {
      this.#plain.put(key, value, timestamp)
      return 'latest'
    }
    const result = this.#history
      ? this.#history.putAt(key, value, timestamp, historyTimeOf(rec))
      : this.#versioned?.put(key, value, timestamp)
    if (!result) return 'rejected'
    return result.validTo === undefined ? 'latest' : 'older'
  }
}

/** Undefined of a store that does not forget rows. */
function agingOf(store: AnyStore): AgingRows | undefined {
  const { ttlMs } = (store as Partial<AgingRows>).spec ?? {}
  return ttlMs !== undefined && 'getAt' in store ? (store as unknown as AgingRows) : undefined
}

/** Undefined of a store that keeps no history, or of one that goes by what was put. */
function historyOf(store: AnyStore, { operatorTime }: TaskContext): HistoryRows | undefined {
  const isVersioned = (store as Partial<HistoryRows>).spec?.kind === 'versioned'
  return isVersioned && !operatorTime ? (store as unknown as HistoryRows) : undefined
}

export const toldAtOf = (row: Row): number => row.toldAt ?? row.timestamp

export type Found = Row | undefined | Promise<Row | undefined>

/** Reads one row of a table that is joined, kept or computed. */
export interface RowReader {
  readonly versioned: boolean
  /** For this record. `asOf` asks a versioned table for the row valid at that time. */
  get(key: unknown, rec: Rec, asOf?: number): Found
}

function andThen(found: Found, resume: (row: Row | undefined) => Found): Found {
  return isPromise(found) ? found.then(resume) : resume(found as Row | undefined)
}

function storeReader(getter: Extract<Getter, { kind: 'store' }>, context: TaskContext): RowReader {
  const store = context.store(getter.store)
  if ('rowAt' in store) {
    const windows = store as unknown as WindowedRowReader
    // What a timer tells stands before that instant: a window that closes then is not over for it.
    const before = ({ topic, at }: Origin): number => (topic === '' ? at - 1 : at)
    return { versioned: false, get: (key, { origin }) => windows.rowAt(key as Windowed<unknown>, before(origin)) }
  }
  if (getter.storeKind === 'window') {
    const windows = store as WindowStore<unknown, unknown>
    return {
      versioned: false,
      get: (key) => windows.fetch((key as Windowed<unknown>).key, (key as Windowed<unknown>).start),
    }
  }
  if (getter.storeKind === 'session') {
    const sessions = store as SessionStore<unknown, unknown>
    return {
      versioned: false,
      get: (key) => {
        const windowed = key as Windowed<unknown>
        const value = sessions.fetchSession(windowed.key, windowed.start, windowed.end)
        return value === undefined || value === null ? undefined : { value, timestamp: windowed.end }
      },
    }
  }
  if (getter.storeKind === 'versioned') {
    const versions = store as VersionedStore<unknown, unknown>
    const history = historyOf(store, context)
    return {
      versioned: true,
      get: (key, rec, asOf) => {
        const version = history ? history.getAt(key, asOf, historyTimeOf(rec)) : versions.get(key, asOf)
        return version && { value: version.value, timestamp: version.validFrom }
      },
    }
  }
  const rows = store as TimestampedKeyValueStore<unknown, unknown>
  const aging = agingOf(store)
  if (aging) return { versioned: false, get: (key, rec) => aging.getAt(key, timeOf(rec) ?? context.streamTime()) }
  return { versioned: false, get: (key) => rows.get(key) }
}

/** The record that functions of a table see when a row is looked up rather than updated. */
function rowRecord(key: unknown, row: Row | undefined): Rec {
  return new Rec(
    key,
    row?.value ?? null,
    row?.timestamp ?? 0,
    [],
    unplacedOrigin(Number.NEGATIVE_INFINITY),
    undefined,
    undefined,
  )
}

/**
 * What a function makes of a row that is looked up. Where it fails, and the policy lets that go, there is no such row: its
 * failure was told when the row came.
 */
function madeOf(context: TaskContext, rec: Rec, make: () => Found): Found {
  const failed = (error: unknown): undefined => {
    const failure = processingFailed(error, '', rec)
    if (context.isPassedOver?.(rec, failure, true) !== true) throw error
    return undefined
  }
  try {
    const made = make()
    return isPromise(made) ? (made.then(undefined, failed) as Promise<Row | undefined>) : made
  } catch (error) {
    return failed(error)
  }
}

export function rowReader(getter: Getter, context: TaskContext): RowReader {
  switch (getter.kind) {
    case 'store':
      return storeReader(getter, context)
    case 'filter': {
      const parent = rowReader(getter.parent, context)
      const { predicate, not } = getter
      const pick = (key: unknown, row: Row | undefined): Found => {
        if (row === undefined) return undefined
        const passes = predicate(row.value, key, rowRecord(key, row))
        if (isPromise(passes))
          return passes.then((result) => (Boolean(result) !== not ? row : undefined)) as Promise<Row | undefined>
        return Boolean(passes) !== not ? row : undefined
      }
      return {
        versioned: parent.versioned,
        get: (key, rec, asOf) =>
          andThen(parent.get(key, rec, asOf), (row) => madeOf(context, rec, () => pick(key, row))),
      }
    }
    case 'mapValues': {
      const parent = rowReader(getter.parent, context)
      const { fn, onDeletes } = getter
      const map = (key: unknown, row: Row | undefined): Found => {
        if (row === undefined && !onDeletes) return undefined
        const timestamp = row?.timestamp ?? -1
        const value = fn(row?.value ?? null, key, rowRecord(key, row))
        const made = (v: unknown): Row | undefined =>
          v === null || v === undefined ? undefined : { value: v, timestamp, toldAt: row?.toldAt }
        return isPromise(value) ? (value.then(made) as Promise<Row | undefined>) : made(value)
      }
      return {
        versioned: parent.versioned,
        get: (key, rec, asOf) =>
          andThen(parent.get(key, rec, asOf), (row) => madeOf(context, rec, () => map(key, row))),
      }
    }
    case 'join':
      return joinReader(getter, context)
    case 'suppressed': {
      const parent = rowReader(getter.parent, context)
      const buffer = context.store(getter.store) as KeyValueStore<unknown, Suppressed>
      return {
        versioned: false,
        get: (key, rec) => {
          const held = buffer.get(key)
          if (held === undefined) return parent.get(key, rec)
          if (held.priorValue === null) return undefined
          return { value: held.priorValue, timestamp: -1, toldAt: held.oldTimestamp }
        },
      }
    }
  }
}

function joinReader(getter: Extract<Getter, { kind: 'join' }>, context: TaskContext): RowReader {
  const left = rowReader(getter.left, context)
  const right = rowReader(getter.right, context)
  const { leftOuter, rightOuter, joiner } = getter
  const join = (key: unknown, a: Row | undefined, b: Row | undefined): Found => {
    if (a === undefined && (b === undefined || !rightOuter)) return undefined
    if (b === undefined && !leftOuter) return undefined
    const timestamp = Math.max(a?.timestamp ?? -1, b?.timestamp ?? -1)
    const toldAt = Math.max(a === undefined ? -1 : toldAtOf(a), b === undefined ? -1 : toldAtOf(b))
    const value = joiner(a?.value ?? null, b?.value ?? null, key)
    const made = (v: unknown): Row | undefined =>
      v === null || v === undefined ? undefined : { value: v, timestamp, toldAt }
    return isPromise(value) ? (value.then(made) as Promise<Row | undefined>) : made(value)
  }
  return {
    versioned: false,
    get: (key, rec) =>
      andThen(left.get(key, rec), (a) =>
        andThen(right.get(key, rec), (b) => madeOf(context, rec, () => join(key, a, b))),
      ),
  }
}
