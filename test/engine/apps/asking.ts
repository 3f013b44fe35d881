/** Asks a service of each record, and waits for it where it answers nobody. */
import { defineApp, serdes } from 'millrace'

const ask = async (value: number): Promise<number> => {
  const response = await fetch(`${process.env.TEST_SERVICE_URL}/${value}`)
  if (!response.ok) throw new Error(`the service said ${response.status}`)
  return Number(await response.text())
}

export default defineApp({
  applicationId: 'asking',
  build(topology) {
    topology
      .stream('questions', { key: serdes.string, value: serdes.json<number>() })
      .mapValues(ask, { timeout: '5s', breaker: { after: 3, pause: '100ms' } })
      .groupByKey()
      .aggregate(
        () => [] as number[],
        (list, value) => [...list, value],
        { store: 'answers-by-key' },
      )
      .toStream()
      .to('answers')
  },
})
