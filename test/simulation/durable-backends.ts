/** Stores that outlive a simulated crash: what was applied stays, what was not is gone, as with LMDB. */
import { keyBytes, keyString } from '../../src/state/rows/bytes.ts'
import type { ByteChange, ByteEntry, Checkpoint, StoreBackend, StoreBackendFactory } from '../../src/state/contract.ts'
import { MemoryBackend } from '../../src/state/backends/memory-backend.ts'
import type { FailingDisk } from './failing-disk.ts'

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
  /** What the transaction under way has changed, as it was before. */
  #undo: Array<() => void> | undefined
  /** The write is through, unless it is part of a larger one. */
  ended: (() => void) | undefined

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
    this.#inTransaction(() => {
      const before = this.#checkpoint
      this.#undo?.push(() => {
        this.#checkpoint = before
      })
      for (const [key, value] of rows) this.#set(keyString(key), value?.slice())
      this.#checkpoint = next ?? before
    })
    this.#written?.(checkpoint)
  }

  #set(key: string, value: Uint8Array | undefined): void {
    const before = this.#rows.get(key)
    this.#undo?.push(() => (before === undefined ? this.#rows.delete(key) : this.#rows.set(key, before)))
    if (value === undefined) this.#rows.delete(key)
    else this.#rows.set(key, value)
  }

  /** A write by itself: all of it or nothing. */
  #inTransaction(write: () => void): void {
    if (this.ended === undefined || this.#undo !== undefined) {
      write()
      return
    }
    this.begin()
    write()
    try {
      this.ended()
      this.commit()
    } catch (error) {
      this.rollBack()
      throw error
    }
  }

  begin(): void {
    this.#undo = []
  }

  commit(): void {
    this.#undo = undefined
  }

  rollBack(): void {
    for (const undo of this.#undo?.reverse() ?? []) undo()
    this.#undo = undefined
  }

  checkpoint(): Checkpoint | undefined {
    return this.#checkpoint
  }

  entries(): number {
    return this.#rows.size
  }

  wipe(): void {
    const [rows, checkpoint] = [[...this.#rows], this.#checkpoint]
    this.#undo?.push(() => {
      for (const [key, value] of rows) this.#rows.set(key, value)
      this.#checkpoint = checkpoint
    })
    this.#rows.clear()
    this.#checkpoint = undefined
  }

  close(): void {
    return
  }

  /** As it lies on the disk at this moment. */
  copy(checkpoint = this.#checkpoint): DiskBackend {
    const copy = new DiskBackend(this.#tamper, this.#written)
    for (const [key, value] of this.#rows) copy.#rows.set(key, value)
    copy.#checkpoint = checkpoint
    return copy
  }
}

const partitionOfStore = (id: string): number => Number(id.slice(id.lastIndexOf('/') + 1))

export class DurableBackends {
  readonly #backends = new Map<string, StoreBackend>()
  readonly #make: () => StoreBackend
  readonly #failing: FailingDisk | undefined
  /** Of each file, what is synchronized of its stores. */
  readonly #synced = new Map<number, ReadonlyMap<string, DiskBackend>>()
  /** From now on the disk does what it is told. */
  isSound = false

  /** `make`: what rows are kept in; by default in a store's own memory, which outlives the process all the same. */
  constructor(make: () => StoreBackend = () => new MemoryBackend(), failing?: FailingDisk | null) {
    this.#make = make
    this.#failing = failing ?? undefined
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
        if (backend instanceof DiskBackend) {
          if (this.#failing) backend.ended = () => this.#ended(partition)
          return backend
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
      together: (partition, write) => this.#together(partition, write),
      close: () => undefined,
    }
  }

  entries(): IterableIterator<[string, StoreBackend]> {
    return this.#backends.entries()
  }

  /** One transaction of all stores of a partition. */
  #together(partition: number, write: () => void): void {
    if (!this.#failing) {
      write()
      return
    }
    const stores = this.#filesOf(partition).map(([, backend]) => backend)
    for (const store of stores) store.begin()
    try {
      write()
      this.#ended(partition)
      for (const store of stores) store.commit()
    } catch (error) {
      for (const store of stores) store.rollBack()
      throw error
    }
  }

  #ended(partition: number): void {
    const failing = this.#failing
    if (!failing || this.isSound) return
    failing.check()
    if (failing.chance(failing.faults.synced)) this.#synced.set(partition, this.#copies(partition))
  }

  #filesOf(partition: number): Array<[string, DiskBackend]> {
    return [...this.#backends].filter(
      (entry): entry is [string, DiskBackend] =>
        entry[1] instanceof DiskBackend && partitionOfStore(entry[0]) === partition,
    )
  }

  #copies(partition: number): Map<string, DiskBackend> {
    return new Map(this.#filesOf(partition).map(([id, backend]) => [id, backend.copy()]))
  }

  /**
   * What a process that was killed leaves behind: committed rows, and nothing of what it held in memory. A zombie keeps
   * its own: the lock of the state folder lets no two processes work on the same files.
   */
  survivors(): DurableBackends {
    const result = new DurableBackends(this.#make, this.#failing)
    result.isSound = this.isSound
    const left = this.#leftByCrash()
    for (const [id, backend] of this.#backends) {
      if (backend instanceof DiskBackend) {
        const file = left ? left.get(id) : backend
        if (file) result.#backends.set(id, file.copy())
        continue
      }
      const survivor = this.#make()
      const checkpoint = backend.checkpoint()
      const rows = [...backend.range(undefined, undefined)].map(([key, value]) => [key.slice(), value.slice()] as const)
      if (checkpoint) survivor.apply(rows, checkpoint)
      result.#backends.set(id, survivor)
    }
    for (const partition of new Set([...result.#backends.keys()].map(partitionOfStore)))
      result.#synced.set(partition, result.#copies(partition))
    return result
  }

  /** Where the machine lost its power: of each file what was synchronized, or nothing. Undefined: it did not. */
  #leftByCrash(): ReadonlyMap<string, DiskBackend> | undefined {
    const failing = this.#failing
    if (!failing || this.isSound || !failing.chance(failing.faults.powerCuts)) return undefined
    const left = new Map<string, DiskBackend>()
    for (const [partition, stores] of this.#synced) {
      if (failing.chance(failing.faults.torn)) continue
      for (const [id, backend] of stores) {
        const now = this.#filesOf(partition).find(([each]) => each === id)?.[1]
        left.set(id, failing.faults.losesRowsOnly ? backend.copy(now?.checkpoint()) : backend)
      }
    }
    return left
  }

  /** A copy of before takes the place of a store. */
  putBack(id: string, backend: DiskBackend): void {
    this.#backends.set(id, backend.copy())
  }

  lose(): void {
    this.#backends.clear()
    this.#synced.clear()
  }
}
