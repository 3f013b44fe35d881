/** Settings of V8 for the engine's threads. */
import { setFlagsFromString } from 'node:v8'

/**
 * How much a thread may allocate before V8 collects all of its memory. Records travel in buffers outside V8's heap.
 * These count towards a limit that V8 derives from the heap itself. Here that limit is some ten megabytes, which the
 * buffers of a moment reach. Lanes were collected twenty times a second, and hardly anything was freed.
 */
const oldSpaceMebibytes = 128

/** Call it before the threads are made: a thread takes the setting over when it begins. */
export function tuneThreadMemory(): void {
  setFlagsFromString(`--initial-old-space-size=${oldSpaceMebibytes}`)
}
