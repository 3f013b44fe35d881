/** A store whose rows take room: the last value of each key, and how many there were. */
import { defineApp, serdes } from 'millrace'

interface Kept {
  readonly count: number
  readonly text: string
}

export default defineApp({
  applicationId: 'large-rows',
  build(topology) {
    topology
      .stream('in', { key: serdes.string, value: serdes.json<string>() })
      .groupByKey()
      .aggregate(
        (): Kept => ({ count: 0, text: '' }),
        ({ count }, text): Kept => ({ count: count + 1, text }),
        { store: 'kept' },
      )
      .toStream()
      .mapValues(({ count }) => count)
      .to('counts')
  },
})
