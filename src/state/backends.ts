/** Stores that keep their rows on disk. */
import { join } from 'node:path'
import { type Clock, systemClock } from '../base/clock.ts'
import { EngineError } from '../base/errors.ts'
import type { StoreBackend, StoreBackendFactory } from './contract.ts'
import { LmdbBackend, storeFailure } from './backends/lmdb-backend.ts'
import { LmdbEnvironment } from './backends/lmdb-environment.ts'

export interface LmdbOptions {
  /** `engine.state.dir`. The rows of an application lie in `<dir>/<applicationId>/partition-<n>`. */
  readonly dir: string
  readonly applicationId: string
  /** Lane that opens the stores: for messages alone, the files do not know lanes. */
  readonly lane?: number
  /** Address space of a partition's files to begin with, in bytes; grows with the data. Default 16 MiB. */
  readonly mapSize?: number
  /** Most stores an application can have. Default 256. */
  readonly maxStores?: number
  readonly clock?: Clock
  /** Told of a folder that was set aside because it could not be read, with the reason. */
  readonly onQuarantine?: (folder: string, reason: string) => void
  /**
   * Told when damage was found while stores were open, whoever met it: their files were set aside, and the rows are gone
   * until the stores are opened again and restored.
   */
  readonly onLost?: (error: EngineError) => void
  /** The files are somebody else's by now: nothing is written any more. Default: they never are. */
  readonly isAbandoned?: () => boolean
}

/** Folder of one application's stores. */
export function stateFolder(dir: string, applicationId: string): string {
  return join(dir, applicationId)
}

/**
 * Backends in LMDB, one environment for each partition. The process must hold the lock of the folder
 * (`lockStateFolder`); within it a partition is opened by one lane at a time.
 */
export function lmdbBackends(options: LmdbOptions): StoreBackendFactory {
  const open = new Map<number, { readonly environment: LmdbEnvironment; users: number }>()

  const leave = (partition: number): void => {
    const entry = open.get(partition)
    if (entry === undefined || --entry.users > 0) return
    open.delete(partition)
    entry.environment.close()
  }

  return {
    open(store: string, partition: number, form = ''): StoreBackend {
      let entry = open.get(partition)
      if (entry === undefined) {
        const environment = new LmdbEnvironment({
          folder: join(stateFolder(options.dir, options.applicationId), `partition-${partition}`),
          applicationId: options.applicationId,
          partition,
          mapSize: options.mapSize ?? 16 * 1024 * 1024,
          maxStores: options.maxStores ?? 256,
          clock: options.clock ?? systemClock,
          onQuarantine: options.onQuarantine ?? (() => undefined),
          onLost: options.onLost ?? (() => undefined),
          isAbandoned: options.isAbandoned ?? (() => false),
        })
        entry = { environment, users: 0 }
        open.set(partition, entry)
      }
      const backend = new LmdbBackend(entry.environment, store, form, () => leave(partition))
      entry.users++
      return backend
    },
    together(partition: number, write: () => void): void {
      const environment = open.get(partition)?.environment
      if (environment === undefined) {
        write()
        return
      }
      try {
        environment.transaction(write)
      } catch (error) {
        if (EngineError.is(error)) throw error
        throw storeFailure(environment, `of partition ${partition}`, 'written', error)
      }
    },
    close(): void {
      // Where the thread ends within a transaction, LMDB itself ends that, and nothing of it is left.
      for (const { environment } of open.values()) if (!environment.busy) environment.close()
      open.clear()
    },
  }
}
