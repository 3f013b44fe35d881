/** Functions that throw, directly and behind a promise. */
import { defineApp, serdes } from 'millrace'

function refuse(value: number): number {
  if (value === 13) throw new Error('not this one')
  return value
}

export default defineApp({
  applicationId: 'throwing',
  build(topology) {
    topology
      .stream('numbers', { key: serdes.string, value: serdes.json<number>() })
      .mapValues((value) => refuse(value))
      .to('passed')
  },
})
