/** Where stores keep their rows: a factory per kind of backend. */
import type { StoreBackendFactory } from './contract.ts'
import { MemoryBackend } from './memory-backend.ts'

/** Backends in memory: gone with the process, rebuilt from the changelog. */
export function memoryBackends(): StoreBackendFactory {
  return { open: () => new MemoryBackend(), close: () => undefined }
}
