/** A store as tests hold it: the same object before the application has started, and after a restart. */
import { MemoryBackend } from '../state/backends/memory-backend.ts'
import type { AnyStore, StoreSpec } from '../state/contract.ts'
import { openStore } from '../state/open-store.ts'

/** `live`: the store that runs; undefined where the application does not. */
export function storeHandle(spec: StoreSpec, partition: number, live: () => AnyStore | undefined): AnyStore {
  const empty = openStore(spec, new MemoryBackend(), partition, { streamTime: () => Number.NEGATIVE_INFINITY })
  return new Proxy(empty, {
    get(_, property) {
      const store = live() ?? empty
      const value = Reflect.get(store, property, store) as unknown
      return typeof value === 'function' ? value.bind(store) : value
    },
  })
}
