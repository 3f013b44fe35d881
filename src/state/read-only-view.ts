/** Interactive queries: a store's committed rows, for readers beside the processing. */
import { assert } from '../base/assert.ts'
import { BaseStore } from './stores/base-store.ts'
import type {
  AnyStore,
  ReadOnlyKeyValueStore,
  SessionStore,
  StoreLifecycle,
  ValueAndTimestamp,
  VersionedStore,
  WindowStore,
} from './contract.ts'
import { construct } from './open-store.ts'

export type ReadOnlyTimestampedKeyValueStore<K, V> = ReadOnlyKeyValueStore<K, ValueAndTimestamp<V>>
export type ReadOnlyWindowStore<K, V> = Omit<WindowStore<K, V>, 'put'>
export type ReadOnlySessionStore<K, V> = Omit<SessionStore<K, V>, 'put'>
export type ReadOnlyVersionedStore<K, V> = Omit<VersionedStore<K, V>, 'put'>

export type ReadOnlyStore =
  | ReadOnlyKeyValueStore<unknown, unknown>
  | ReadOnlyTimestampedKeyValueStore<unknown, unknown>
  | ReadOnlyWindowStore<unknown, unknown>
  | ReadOnlySessionStore<unknown, unknown>
  | ReadOnlyVersionedStore<unknown, unknown>

/**
 * A view of the rows that are committed, at the time to which the last commit went: what the open and the sealed epochs
 * changed does not show, so a reader never sees what a failed commit takes back. It costs little; make one for each query. Writing to it throws `USAGE`.
 */
export function readOnlyView(store: AnyStore & StoreLifecycle): ReadOnlyStore {
  assert(store instanceof BaseStore, 'a view is made of a store that openStore gave')
  const time = store.committedTime
  const view = construct(store.spec, store.committedOnly(), store.partition, { streamTime: () => time, readOnly: true })
  view.adopt(store)
  return view
}
