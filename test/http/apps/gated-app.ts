/** Without state, so that a restart has nothing to restore: it lasts as long as the gate is shut. */
import { defineApp, serdes } from 'millrace'
import { waitAtGate } from '../support/gate.ts'

interface Word {
  readonly slowMs?: number
}

export default defineApp({
  applicationId: 'gated',
  build(topology) {
    const words = topology.stream('words', { key: serdes.string, value: serdes.json<Word>() })
    words
      .mapValues(async (word) => {
        if (word.slowMs !== undefined) await new Promise((resolve) => setTimeout(resolve, word.slowMs))
        return word
      })
      .to('done')
    words.process(() => {
      waitAtGate()
      return () => undefined
    })
  },
})
