/** For those who can wait: readers of topics and stores outside of the lanes. */
import { SerdeWaits } from './serde.ts'

/** What `read` gives, asked again as often as its serdes wait for something. */
export async function whenKnown<T>(read: () => T): Promise<T> {
  for (;;) {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof SerdeWaits)) throw error
      await error.ready
    }
  }
}
