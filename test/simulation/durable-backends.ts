/** Stores that outlive a simulated crash: what was applied stays, what was not is gone, as with LMDB. */
import type { StoreBackend, StoreBackendFactory } from '../../src/state/contract.ts'
import { MemoryBackend } from '../../src/state/memory-backend.ts'

export class DurableBackends {
  readonly #backends = new Map<string, MemoryBackend>()

  factory(): StoreBackendFactory {
    return {
      open: (store, partition) => {
        const id = `${store}/${partition}`
        let backend = this.#backends.get(id)
        if (!backend) {
          backend = new MemoryBackend()
          this.#backends.set(id, backend)
        }
        const kept: StoreBackend = backend
        // Closing releases the handle; the data stay.
        return new Proxy(kept, {
          get: (target, property) => {
            if (property === 'close') return () => undefined
            const value = Reflect.get(target, property, target) as unknown
            return typeof value === 'function' ? value.bind(target) : value
          },
        })
      },
      together: (_, write) => write(),
      close: () => undefined,
    }
  }

  entries(): IterableIterator<[string, MemoryBackend]> {
    return this.#backends.entries()
  }

  /**
   * What a process that was killed leaves behind: committed rows, and nothing of what it held in memory. A zombie keeps
   * its own: the lock of the state folder lets no two processes work on the same files.
   */
  survivors(): DurableBackends {
    const result = new DurableBackends()
    for (const [id, backend] of this.#backends) {
      const survivor = new MemoryBackend()
      const checkpoint = backend.checkpoint()
      const rows = [...backend.range(undefined, undefined)].map(([key, value]) => [key.slice(), value.slice()] as const)
      if (checkpoint) survivor.apply(rows, checkpoint)
      result.#backends.set(id, survivor)
    }
    return result
  }

  lose(): void {
    this.#backends.clear()
  }
}
