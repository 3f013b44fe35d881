/** Interactive queries, the lane's part: rows of committed state, encoded, from the store's partitions that lie here. */
import { EngineError } from '../../base/errors.ts'
import type {
  AnyStore,
  ReadOnlyKeyValueStore,
  StoreLifecycle,
  StoreSpec,
  ValueAndTimestamp,
  VersionedRecord,
} from '../../state/contract.ts'
import {
  type ReadOnlySessionStore,
  type ReadOnlyStore,
  type ReadOnlyVersionedStore,
  type ReadOnlyWindowStore,
  readOnlyView,
} from '../../state/read-only-view.ts'

/** What is asked of every lane; keys are the key serde's bytes. */
export type StoreQuery =
  | { readonly kind: 'get'; readonly key: Uint8Array }
  | { readonly kind: 'range'; readonly from: Uint8Array | null; readonly to: Uint8Array | null }
  /** Windows (sessions) of one key, or of all, that start (lie) between two times. */
  | { readonly kind: 'fetch'; readonly key: Uint8Array | null; readonly from: number; readonly to: number }
  | { readonly kind: 'count' }

/** A row on its way between threads. Times are present where the kind of store has them. */
export interface StoreRow {
  readonly key: Uint8Array
  readonly value: Uint8Array
  /** Of the store it lies in: processors may put one key into several. */
  readonly partition: number
  readonly timestamp?: number
  readonly start?: number
  readonly end?: number
  readonly validTo?: number
}

type Found = Omit<StoreRow, 'key' | 'value' | 'partition'> & { readonly key: unknown; readonly value: unknown }

/** Up to `limit` rows of each store; for `count` none, but their number. */
export function queryStores(
  stores: Iterable<AnyStore & StoreLifecycle>,
  query: StoreQuery,
  limit: number,
): { rows: StoreRow[]; count: number } {
  const rows: StoreRow[] = []
  let count = 0
  for (const store of stores) {
    const { spec, partition } = store
    if (query.kind === 'count') {
      count += store.entries()
      continue
    }
    const view = readOnlyView(store)
    // The first rows of each partition: which of them are the first of all is known where all come together.
    const most = rows.length + limit
    for (const { key, value, ...times } of found(spec, view, query)) {
      if (rows.length >= most) break
      const bytes = { key: spec.keySerde.serialize(key), value: spec.valueSerde.serialize(value) }
      rows.push({ ...bytes, partition, ...times })
    }
  }
  return { rows, count: query.kind === 'count' ? count : rows.length }
}

function found(spec: StoreSpec, view: ReadOnlyStore, query: Exclude<StoreQuery, { kind: 'count' }>): Iterable<Found> {
  switch (spec.kind) {
    case 'key-value':
      return keyValueRows(spec, view as ReadOnlyKeyValueStore<unknown, unknown>, query)
    case 'versioned':
      return versionedRows(spec, view as ReadOnlyVersionedStore<unknown, unknown>, query)
    case 'window':
      return windowRows(spec, view as ReadOnlyWindowStore<unknown, unknown>, query)
    case 'session':
      return sessionRows(spec, view as ReadOnlySessionStore<unknown, unknown>, query)
  }
}

function refuse(spec: StoreSpec, asked: string, instead: string): never {
  throw new EngineError('USAGE', `the ${spec.kind} store ${spec.name} does not answer ${asked}; ask with ${instead}`)
}

function* keyValueRows(
  spec: StoreSpec,
  view: ReadOnlyKeyValueStore<unknown, unknown>,
  query: Exclude<StoreQuery, { kind: 'count' }>,
): Iterable<Found> {
  if (query.kind === 'fetch') refuse(spec, 'fetch', 'get, range or all')
  const row = (key: unknown, found: unknown): Found => {
    if (!spec.timestamped) return { key, value: found }
    const { value, timestamp } = found as ValueAndTimestamp<unknown>
    return { key, value, timestamp }
  }
  if (query.kind === 'get') {
    const key = spec.keySerde.deserialize(query.key)
    const value = view.get(key)
    if (value !== undefined) yield row(key, value)
    return
  }
  const bound = (bytes: Uint8Array | null): unknown => (bytes === null ? undefined : spec.keySerde.deserialize(bytes))
  for (const [key, value] of view.range(bound(query.from), bound(query.to))) yield row(key, value)
}

function* versionedRows(
  spec: StoreSpec,
  view: ReadOnlyVersionedStore<unknown, unknown>,
  query: Exclude<StoreQuery, { kind: 'count' }>,
): Iterable<Found> {
  const row = (key: unknown, { value, validFrom, validTo }: VersionedRecord<unknown>): Found => ({
    key,
    value,
    timestamp: validFrom,
    ...(validTo !== undefined && { validTo }),
  })
  if (query.kind === 'get') {
    const key = spec.keySerde.deserialize(query.key)
    const version = view.get(key)
    if (version !== undefined) yield row(key, version)
    return
  }
  if (query.kind === 'fetch' || query.from !== null || query.to !== null) refuse(spec, query.kind, 'get or all')
  for (const [key, version] of view.all()) yield row(key, version)
}

function* windowRows(
  spec: StoreSpec,
  view: ReadOnlyWindowStore<unknown, unknown>,
  query: Exclude<StoreQuery, { kind: 'count' }>,
): Iterable<Found> {
  if (query.kind === 'get') refuse(spec, 'get', 'fetch or all')
  const size = spec.windowSizeMs ?? 0
  const row = (key: unknown, start: number, { value, timestamp }: ValueAndTimestamp<unknown>): Found => ({
    key,
    value,
    ...(spec.timestamped && { timestamp }),
    start,
    end: start + size,
  })
  if (query.kind === 'range') {
    if (query.from !== null || query.to !== null) refuse(spec, 'range', 'fetch or all')
    for (const [key, start, found] of view.all()) yield row(key, start, found)
  } else if (query.key === null) {
    for (const [key, start, found] of view.fetchAll(query.from, query.to)) yield row(key, start, found)
  } else {
    const key = spec.keySerde.deserialize(query.key)
    for (const [start, found] of view.fetchRange(key, query.from, query.to)) yield row(key, start, found)
  }
}

function* sessionRows(
  spec: StoreSpec,
  view: ReadOnlySessionStore<unknown, unknown>,
  query: Exclude<StoreQuery, { kind: 'count' }>,
): Iterable<Found> {
  if (query.kind === 'get') refuse(spec, 'get', 'fetch or all')
  if (query.kind === 'range') {
    if (query.from !== null || query.to !== null) refuse(spec, 'range', 'fetch or all')
    for (const [key, start, end, value] of view.all()) yield { key, value, start, end }
  } else if (query.key === null) {
    for (const [key, start, end, value] of view.all()) {
      if (end >= query.from && start <= query.to) yield { key, value, start, end }
    }
  } else {
    const key = spec.keySerde.deserialize(query.key)
    for (const [start, end, value] of view.findSessions(key, query.from, query.to)) yield { key, value, start, end }
  }
}
