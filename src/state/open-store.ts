/** Opens the typed store that a specification asks for over a backend. */
import { unreachable } from '../base/assert.ts'
import type { BaseStore, StoreOptions } from './stores/base-store.ts'
import type { AnyStore, StoreBackend, StoreLifecycle, StoreSpec } from './contract.ts'
import { PlainKeyValueStore, StampedKeyValueStore } from './stores/key-value-store.ts'
import { SessionWindowStore } from './stores/session-store.ts'
import { VersionedRowStore } from './stores/versioned-store.ts'
import { TimeWindowStore } from './stores/window-store.ts'

export type { StoreOperation, StoreOptions } from './stores/base-store.ts'

export function openStore(
  spec: StoreSpec,
  backend: StoreBackend,
  partition: number,
  options: StoreOptions,
): AnyStore & StoreLifecycle {
  return construct(spec, backend, partition, options)
}

/** @internal */
export function construct(
  spec: StoreSpec,
  backend: StoreBackend,
  partition: number,
  options: StoreOptions,
): BaseStore & AnyStore {
  switch (spec.kind) {
    case 'key-value':
      return spec.timestamped
        ? new StampedKeyValueStore(spec, backend, partition, options)
        : new PlainKeyValueStore(spec, backend, partition, options)
    case 'window':
      return new TimeWindowStore(spec, backend, partition, options)
    case 'session':
      return new SessionWindowStore(spec, backend, partition, options)
    case 'versioned':
      return new VersionedRowStore(spec, backend, partition, options)
    default:
      return unreachable(spec.kind, 'store kind')
  }
}
