/** Everything the views show: topics, a re-key, a store, a scheduled source, and records that take their time. */
import { defineApp, serdes } from 'millrace'

interface Word {
  readonly text: string
  /** Processing takes so long. */
  readonly slowMs?: number
  /** Processing fails. */
  readonly poison?: boolean
}

async function takeTime(word: Word): Promise<Word> {
  if (word.poison === true) throw new Error('a poisoned record')
  if (word.slowMs !== undefined) await new Promise((resolve) => setTimeout(resolve, word.slowMs))
  return word
}

export default defineApp({
  applicationId: 'late-flights',
  build(topology) {
    topology
      .stream('words', { key: serdes.string, value: serdes.json<Word>() })
      .mapValues(takeTime)
      .groupBy((word) => word.text)
      .count({ store: 'counts' })
      .toStream()
      .to('totals')
    topology
      .scheduled('heartbeats', { every: '1h', emit: () => [], key: serdes.string, value: serdes.json<Word>() })
      .to('beats')
  },
})
