/**
 * Everything the views show: topics, a re-key, a store, a scheduled source, and records that take their time. Where a test
 * has shut the gate, the application's processor is not done with its beginning: restoring lasts until then.
 */
import { defineApp, serdes } from 'millrace'
import { waitAtGate } from '../support/gate.ts'

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
    const words = topology.stream('words', { key: serdes.string, value: serdes.json<Word>() })
    words.process(() => {
      waitAtGate()
      return () => undefined
    })
    words
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
