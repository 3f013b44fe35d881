/** What V8 and the type stripper made of the sources is kept on disk: the next start has it at once, in every thread. */
import { enableCompileCache } from 'node:module'

/** To be called before anything large is imported. Where no folder can be written the program just starts slower. */
export function keepCompiled(): void {
  const { directory } = enableCompileCache()
  // Threads that are made later look here, not at what the main thread has enabled.
  if (directory !== undefined) process.env.NODE_COMPILE_CACHE ??= directory
}
