import { totalmem } from 'node:os'

/** How much memory the process may have: that of the machine, or what its container allows. */
export function memoryBytes(): number {
  const limit = process.constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}
