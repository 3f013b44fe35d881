/** Topics that nobody knows at the start: a pattern reads them, a function chooses them, letters go to one. */
import { defineApp, serdes } from 'millrace'

const numbers = { key: serdes.string, value: serdes.json<number>() }

export default defineApp({
  applicationId: 'topics',
  build(topology) {
    const read = topology.stream(/in-.*/, numbers).mapValues((n) => {
      if (n % 10 === 0) throw new TypeError('ten')
      return n
    })
    read.to('fixed', numbers)
    read.to((n: number) => `out-${n % 70}`, numbers)
    read.groupByKey().count({ store: 'counts' })
  },
})
