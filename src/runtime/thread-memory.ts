/** Settings of V8 for the engine's threads. */
import { setFlagsFromString } from 'node:v8'

/**
 * A thread may gather this much before V8 looks through all of its memory. Records travel in buffers outside V8's heap,
 * which count towards a limit that V8 derives from the heap itself: some ten megabytes here, reached by the buffers of a
 * moment, so that lanes were searched through twenty times a second for next to nothing.
 */
const oldSpaceMebibytes = 128

/** To be called before the threads are made: a thread takes the setting over when it begins. */
export function tuneThreadMemory(): void {
  setFlagsFromString(`--initial-old-space-size=${oldSpaceMebibytes}`)
}
