import { type Application, defineApp, serdes } from 'millrace'

const numbers = { key: serdes.string, value: serdes.json<number>() }

/** Sums by key of the first topic and the others: versions of one application. */
export function sumsOf(first: string, ...others: readonly string[]): Application {
  return defineApp({
    applicationId: 'sums',
    build(topology) {
      others
        .reduce((all, topic) => all.merge(topology.stream(topic, numbers)), topology.stream(first, numbers))
        .groupByKey()
        .reduce((a, b) => a + b, { store: 'sums' })
        .toStream()
        .to('told', numbers)
    },
  })
}
