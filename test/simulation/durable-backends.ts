/** Stores that outlive a simulated crash: what was applied stays, what was not is gone, as with LMDB. */
import { keyBytes, keyString } from '../../src/state/rows/bytes.ts'
import type { ByteChange, ByteEntry, Checkpoint, StoreBackend, StoreBackendFactory } from '../../src/state/contract.ts'
import { MemoryBackend } from '../../src/state/backends/memory-backend.ts'

/** A change of what is written to a simulated disk, for the test of the checkers. */
export type DiskTamper = (
  changes: readonly ByteChange[],
  checkpoint: Checkpoint | undefined,
) => readonly [readonly ByteChange[], Checkpoint | undefined]

/** Bytes on a disk: rows that a store does not keep are read from here, and written in steps. */
export class DiskBackend implements StoreBackend {
  readonly durable = true
  readonly #rows = new Map<string, Uint8Array>()
  readonly #tamper: DiskTamper | undefined
  /** Told of every write. */
  readonly #written: ((checkpoint: Checkpoint | undefined) => void) | undefined
  #checkpoint: Checkpoint | undefined

  constructor(tamper?: DiskTamper, written?: (checkpoint: Checkpoint | undefined) => void) {
    this.#tamper = tamper
    this.#written = written
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#rows.get(keyString(key))
  }

  *range(from?: Uint8Array, to?: Uint8Array, reverse = false): IterableIterator<ByteEntry> {
    const [low, high] = [from && keyString(from), to && keyString(to)]
    const inside = (key: string): boolean => (low === undefined || key >= low) && (high === undefined || key < high)
    const keys = [...this.#rows.keys()].filter(inside).sort()
    for (const key of reverse ? keys.reverse() : keys) {
      const value = this.#rows.get(key)
      if (value !== undefined) yield [keyBytes(key), value]
    }
  }

  apply(changes: Iterable<ByteChange>, checkpoint?: Checkpoint): void {
    const all = [...changes]
    const [rows, next] = this.#tamper?.(all, checkpoint) ?? [all, checkpoint]
    for (const [key, value] of rows) {
      if (value === null) this.#rows.delete(keyString(key))
      else this.#rows.set(keyString(key), value.slice())
    }
    this.#checkpoint = next ?? this.#checkpoint
    this.#written?.(checkpoint)
  }

  checkpoint(): Checkpoint | undefined {
    return this.#checkpoint
  }

  entries(): number {
    return this.#rows.size
  }

  wipe(): void {
    this.#rows.clear()
    this.#checkpoint = undefined
  }

  close(): void {
    return
  }

  /** As it lies on the disk at this moment. */
  copy(): DiskBackend {
    const copy = new DiskBackend(this.#tamper, this.#written)
    for (const [key, value] of this.#rows) copy.#rows.set(key, value)
    copy.#checkpoint = this.#checkpoint
    return copy
  }
}

export class DurableBackends {
  readonly #backends = new Map<string, StoreBackend>()
  readonly #make: () => StoreBackend

  /** `make`: what rows are kept in; by default in a store's own memory, which outlives the process all the same. */
  constructor(make: () => StoreBackend = () => new MemoryBackend()) {
    this.#make = make
  }

  factory(): StoreBackendFactory {
    return {
      open: (store, partition) => {
        const id = `${store}/${partition}`
        let backend = this.#backends.get(id)
        if (!backend) {
          backend = this.#make()
          this.#backends.set(id, backend)
        }
        if (backend instanceof DiskBackend) return backend
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

  entries(): IterableIterator<[string, StoreBackend]> {
    return this.#backends.entries()
  }

  /**
   * What a process that was killed leaves behind: committed rows, and nothing of what it held in memory. A zombie keeps
   * its own: the lock of the state folder lets no two processes work on the same files.
   */
  survivors(): DurableBackends {
    const result = new DurableBackends(this.#make)
    for (const [id, backend] of this.#backends) {
      if (backend instanceof DiskBackend) {
        result.#backends.set(id, backend.copy())
        continue
      }
      const survivor = this.#make()
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
